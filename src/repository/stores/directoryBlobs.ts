import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { codeOf } from "../../model/realms.ts"
import * as Host from "../../runtime/host.ts"
import { hasher } from "../../runtime/hash.ts"
import { Fs, join, sep } from "../../runtime/node.ts"
import type { StoreError } from "../errors.ts"
import * as Blobs from "./blobs.ts"
import { errorOf, maxSyncBytes, openFile, ownDirectory, type Place } from "./directory.ts"

/** The number of entries between two yields to other fibers. */
const batch = 256

const tooLarge = Symbol("tooLarge")

const folderPattern = /^[0-9a-f]{2}$/

/** Makes a store of the blobs below the directory `top`. */
export const make = ({ attempt, fsync, publishNow, syncNames, withDraft }: Place, top: string): Blobs.OwnOperations => {
  // `join` would take as long as a system call.
  const folderOf = (hash: string): string => `${top}${sep}${hash.slice(0, 2)}`
  const pathOf = (hash: string): string => `${folderOf(hash)}${sep}${hash.slice(2)}`

  /** Tests whether the folder of the hash exists. Throws if the folder is a link or a file. */
  const hasFolder = (hash: string): boolean => {
    const stats = Fs.lstatSync(folderOf(hash), { throwIfNoEntry: false })
    if (stats?.isDirectory() === false) throw Object.assign(new Error("not a directory"), { code: "ENOTDIR" })
    return stats !== undefined
  }

  const statOf = (hash: string) => (hasFolder(hash) ? Fs.lstatSync(pathOf(hash), { throwIfNoEntry: false }) : undefined)

  const opened = <A>(
    what: string,
    hash: string,
    use: (file: { readonly descriptor: number; readonly size: number } | undefined) => Effect.Effect<A, StoreError>
  ): Effect.Effect<A, StoreError> =>
    Effect.acquireUseRelease(
      attempt(what, () => (hasFolder(hash) ? openFile(pathOf(hash)) : undefined)),
      use,
      (file) => Effect.sync(() => file && Host.closeQuietly(file.descriptor))
    )

  const read = (what: string, descriptor: number, offset: number, length: number): Effect.Effect<Uint8Array, StoreError> =>
    Effect.suspend(() => {
      const bytes = new Uint8Array(length)
      const cut = (done: number) => (done === length ? bytes : bytes.slice(0, done))
      if (length <= maxSyncBytes) return attempt(what, () => cut(Host.readAt(descriptor, bytes, offset)))
      const readFrom = (done: number): Effect.Effect<Uint8Array, StoreError> =>
        Effect.flatMap(
          Host.awaited<number, StoreError>(
            (end) => Fs.read(descriptor, bytes, done, length - done, offset + done, end),
            errorOf(what)
          ),
          (count) => (count === 0 || done + count === length ? Effect.succeed(cut(done + count)) : readFrom(done + count))
        )
      return readFrom(0)
    })

  /** Sets the modification time of existing, intact content to now. Returns false if the content must be written. */
  const refresh = (what: string, hash: string, bytes: Uint8Array): Effect.Effect<boolean, StoreError> =>
    opened(what, hash, (file) =>
      file === undefined || file.size !== bytes.length
        ? Effect.succeed(false)
        : Effect.gen(function* () {
            const found = yield* read(what, file.descriptor, 0, file.size)
            if (Buffer.compare(found, bytes) !== 0) return false
            const now = (yield* Clock.currentTimeMillis) / 1000
            const isThere = yield* attempt(what, () => {
              try {
                Fs.utimesSync(pathOf(hash), now, now)
                // Another process may have read the old time before, and deleted the content afterwards.
                return Fs.lstatSync(pathOf(hash), { throwIfNoEntry: false }) !== undefined
              } catch (error) {
                // Another process has deleted the content meanwhile.
                if (codeOf(error) === "ENOENT") return false
                throw error
              }
            })
            // The process that wrote the content may not have synced the file.
            if (isThere && fsync) yield* Host.sync(file.descriptor, errorOf(what))
            return isThere
          })
    )

  /** Reads a range synchronously. Returns `tooLarge` if the range has more than `maxSyncBytes` bytes. */
  const readNow = (hash: string, range: Blobs.Range | undefined): Uint8Array | undefined | typeof tooLarge => {
    const file = hasFolder(hash) ? openFile(pathOf(hash)) : undefined
    if (file === undefined) return undefined
    try {
      const offset = Math.min(range?.offset ?? 0, file.size)
      const length = Math.min(range?.length ?? file.size, file.size - offset)
      if (length > maxSyncBytes) return tooLarge
      const bytes = new Uint8Array(length)
      const done = Host.readAt(file.descriptor, bytes, offset)
      return done === length ? bytes : bytes.slice(0, done)
    } finally {
      Host.closeQuietly(file.descriptor)
    }
  }

  const readSlowly = (
    what: string,
    hash: string,
    range: Blobs.Range | undefined
  ): Effect.Effect<Uint8Array | undefined, StoreError> =>
    opened(what, hash, (file) => {
      if (file === undefined) return Effect.succeed(undefined)
      const { descriptor, size } = file
      const offset = Math.min(range?.offset ?? 0, size)
      const length = Math.min(range?.length ?? size, size - offset)
      return length > Blobs.maxBlobBytes
        ? Effect.fail(Blobs.corruptBlob(hash, `its file has ${size} bytes, more than one call can read`))
        : read(what, descriptor, offset, length)
    })

  const publish = (what: string, hash: string, draft: string): Effect.Effect<void, StoreError> =>
    attempt(what, () => {
      if (!hasFolder(hash)) ownDirectory(folderOf(hash))
      Fs.renameSync(draft, pathOf(hash))
    })

  /** Stores small content that is new, and returns true. Returns false if the caller must store the content in another way. */
  const putNow = (hash: string, bytes: Uint8Array): boolean => {
    if (fsync || bytes.length > maxSyncBytes) return false
    const isFirst = !hasFolder(hash)
    // Most content is new. `lstat` costs less than an `open` that fails.
    if (!isFirst && Fs.lstatSync(pathOf(hash), { throwIfNoEntry: false }) !== undefined) return false
    publishNow(bytes, () => {
      if (isFirst) ownDirectory(folderOf(hash))
      return pathOf(hash)
    })
    return true
  }

  const putSlowly = (what: string, hash: string, bytes: Uint8Array): Effect.Effect<void, StoreError> =>
    Effect.gen(function* () {
      const exists = yield* attempt(what, () => statOf(hash) !== undefined)
      if (!exists || !(yield* refresh(what, hash, bytes))) {
        yield* withDraft(
          what,
          (write) => write(bytes),
          (draft) => publish(what, hash, draft)
        )
      }
      yield* syncNames(what, folderOf(hash), top)
    })

  return Blobs.make({
    put: (hash, bytes) => {
      const what = `put of the blob ${hash}`
      return Effect.flatMap(
        attempt(what, () => putNow(hash, bytes)),
        (isStored) => (isStored ? Effect.void : putSlowly(what, hash, bytes))
      )
    },
    comparesInPlace: true,
    putStream: (bytes) =>
      Effect.suspend(() => {
        const what = "put of a stream"
        const digest = hasher()
        let size = 0
        return withDraft(
          what,
          (write) =>
            Stream.runForEachArray(bytes, (chunks) =>
              Effect.forEach(
                chunks,
                (chunk) => {
                  digest.update(chunk)
                  size += chunk.length
                  return write(chunk)
                },
                { discard: true }
              )
            ),
          (draft) => {
            const hash = digest.digest()
            return publish(what, hash, draft).pipe(
              Effect.andThen(syncNames(what, folderOf(hash), top)),
              Effect.as({ hash, size })
            )
          }
        )
      }),
    sizeOf: (hash) =>
      attempt(`look at the blob ${hash}`, () => {
        const stats = statOf(hash)
        return stats?.isFile() === true ? stats.size : undefined
      }),
    get: (hash, range) => {
      const what = `get of the blob ${hash}`
      return Effect.flatMap(
        attempt(what, () => readNow(hash, range)),
        (found) => (found === tooLarge ? readSlowly(what, hash, range) : Effect.succeed(found))
      )
    },
    has: (hashes) =>
      Effect.gen(function* () {
        const found: Array<string> = []
        for (let at = 0; at < hashes.length; at += batch) {
          yield* attempt("has", () => {
            for (const hash of hashes.slice(at, at + batch)) {
              if (statOf(hash)?.isFile() === true) found.push(hash)
            }
          })
          yield* Effect.yieldNow
        }
        return found
      }),
    delete: (hashes) =>
      Effect.forEach(
        hashes,
        (hash, n) =>
          Effect.andThen(
            attempt(`delete of the blob ${hash}`, () => {
              try {
                if (hasFolder(hash)) Fs.unlinkSync(pathOf(hash))
              } catch (error) {
                if (codeOf(error) !== "ENOENT") throw error
              }
            }),
            n % batch === 0 ? Effect.yieldNow : Effect.void
          ),
        { discard: true }
      ),
    deleteOlder: (hashes, millis) =>
      Effect.gen(function* () {
        let count = 0
        for (const hash of hashes) {
          yield* attempt(`delete of the blob ${hash}`, () => {
            const stats = statOf(hash)
            if (stats === undefined || stats.mtimeMs >= millis) return
            Fs.rmSync(pathOf(hash), { force: true })
            count++
          })
          yield* Effect.yieldNow
        }
        return count
      }),
    list: Stream.fromIterableEffect(
      attempt("list of the blobs", () => Fs.readdirSync(top).filter((name) => folderPattern.test(name)))
    ).pipe(
      Stream.mapEffect((folder) =>
        attempt("list of the blobs", () => {
          const path = join(top, folder)
          const found: Array<Blobs.Listed> = []
          if (!Fs.lstatSync(path).isDirectory()) return found
          for (const name of Fs.readdirSync(path)) {
            if (!Blobs.isHash(folder + name)) continue
            const stats = Fs.lstatSync(join(path, name), { throwIfNoEntry: false })
            if (stats?.isFile() === true)
              found.push({ hash: folder + name, storedAt: DateTime.makeUnsafe(Math.trunc(stats.mtimeMs)) })
          }
          return found
        })
      ),
      Stream.flattenIterable
    )
  })
}
