/**
 * A content store in a directory. Each content is a file named by its hash, in one of 256 folders. The file is written under a hidden name
 * and then renamed, so a hash names a complete file or none. Concurrent writers of the same content produce the same file. A hidden name
 * contains the identity of its process; opening the store removes the hidden files of dead processes.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Fs, join, randomBytes, resolve } from "../../runtime/node.ts"
import { type Hasher, hasher, sha256 } from "../../runtime/hash.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import type { ContentStore } from "../ContentStore.ts"
import type { JournalError } from "../errors.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import { codeOf } from "../../model/systemError.ts"
import { closeQuietly, unlinkQuietly } from "../../runtime/host.ts"
import { attempt, runAsync, ioError, readAt, sync, syncDirectory } from "../journal/system.ts"
import { chunkSize, damagedContentError, missingContentError } from "./refs.ts"

const operation = "ContentStore.put"

/** The size in bytes up to which a synchronous write is faster than handing the bytes to another thread. */
const maxSyncWriteBytes = 64 * 1024

/** The age in milliseconds after which a hidden file is a leftover, if it is unknown whether its process is alive. */
const leftoverAgeMillis = 24 * 60 * 60 * 1000

/** Opening with O_NONBLOCK does not block if a pipe stands in place of a content. Windows has no such flag. */
const { O_NONBLOCK, O_RDONLY }: { readonly O_NONBLOCK?: number; readonly O_RDONLY: number } = Fs.constants

const draftNamePattern = /^\.([0-9a-z-]+)\.[0-9a-f]{24}\.tmp$/
const isHash = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const mkdir = (directory: string): void => void makeDirectories(directory, 0o700)

/** Removes the leftovers of dead processes. `now` is read from a new file, because the disk's clock may differ from ours. */
const removeLeftovers = (directory: string): void => {
  const entries = Fs.readdirSync(directory).filter((name) => draftNamePattern.test(name))
  if (entries.length === 0) return
  const probe = join(directory, `.${Identity.self()}.${randomBytes(12).toString("hex")}.tmp`)
  Fs.closeSync(Fs.openSync(probe, "wx", 0o600))
  const now = Fs.statSync(probe).mtimeMs
  Fs.unlinkSync(probe)
  for (const name of entries) {
    const at = join(directory, name)
    const age = now - (Fs.statSync(at, { throwIfNoEntry: false })?.mtimeMs ?? now)
    if (Identity.isDead(draftNamePattern.exec(name)![1]!) ?? age > leftoverAgeMillis) unlinkQuietly(at)
  }
}

interface Draft {
  readonly path: string
  readonly descriptor: number
  readonly digest: Hasher
  size: number
}

const write = (draft: Draft, bytes: Uint8Array): Effect.Effect<void, JournalError> => {
  const diskFullError = (): JournalError => ioError(operation, Object.assign(new Error("the disk is full"), { code: "ENOSPC" }))
  const writeFrom = (done: number): Effect.Effect<void, JournalError> =>
    done === bytes.length
      ? Effect.void
      : Effect.flatMap(
          bytes.length <= maxSyncWriteBytes
            ? attempt(operation, () => Fs.writeSync(draft.descriptor, bytes, done))
            : runAsync<number>(operation, (end) => Fs.write(draft.descriptor, bytes, done, bytes.length - done, null, end)),
          (written) => (written === 0 ? Effect.fail(diskFullError()) : writeFrom(done + written))
        )
  return Effect.suspend(() => {
    draft.digest.update(bytes)
    draft.size += bytes.length
    return writeFrom(0)
  })
}

export const contentPath = (directory: string, hash: string): string => join(directory, hash.slice(0, 2), hash.slice(2))

export interface Options {
  readonly fsync: boolean
  readonly removesLeftovers: boolean
}

export const make = (
  directoryPath: string,
  { fsync, removesLeftovers }: Options
): Effect.Effect<ContentStore, JournalError> => {
  const directory = resolve(directoryPath)
  const folderOf = (hash: string): string => join(directory, hash.slice(0, 2))
  const pathOf = (hash: string): string => contentPath(directory, hash)
  const hasContent = (ref: ContentRef): boolean => {
    if (!isHash(ref.sha256)) return false
    const stats = Fs.statSync(pathOf(ref.sha256), { throwIfNoEntry: false })
    return stats?.isFile() === true && stats.size === ref.size
  }

  const openDraft = attempt(operation, (): Draft => {
    const path = join(directory, `.${Identity.self()}.${randomBytes(12).toString("hex")}.tmp`)
    try {
      return { path, descriptor: Fs.openSync(path, "wx", 0o600), digest: hasher(), size: 0 }
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error
      mkdir(directory)
      return { path, descriptor: Fs.openSync(path, "wx", 0o600), digest: hasher(), size: 0 }
    }
  })

  const publish = (draft: Draft): Effect.Effect<ContentRef, JournalError> => {
    const ref: ContentRef = { sha256: draft.digest.digest(), size: draft.size }
    const folder = folderOf(ref.sha256)
    const move = attempt(operation, () => {
      mkdir(folder)
      Fs.renameSync(draft.path, pathOf(ref.sha256))
    })
    if (!fsync) return Effect.as(move, ref)
    return sync(operation, draft.descriptor).pipe(
      Effect.andThen(move),
      Effect.andThen(syncDirectory(operation, folder)),
      Effect.andThen(syncDirectory(operation, directory)),
      Effect.as(ref)
    )
  }

  /** Syncs an existing content, because the process that wrote it may not have waited for the disk. */
  const syncExisting = (ref: ContentRef): Effect.Effect<ContentRef, JournalError> =>
    fsync
      ? Effect.acquireUseRelease(
          attempt(operation, () => Fs.openSync(pathOf(ref.sha256), O_RDONLY)),
          (descriptor) => Effect.andThen(sync(operation, descriptor), syncDirectory(operation, folderOf(ref.sha256))),
          (descriptor) => Effect.sync(() => closeQuietly(descriptor))
        ).pipe(Effect.as(ref))
      : Effect.succeed(ref)

  const withDraft = <E, R>(fill: (draft: Draft) => Effect.Effect<void, E, R>): Effect.Effect<ContentRef, E | JournalError, R> =>
    Effect.acquireUseRelease(
      openDraft,
      (draft) => Effect.andThen(fill(draft), Effect.uninterruptible(Effect.suspend(() => publish(draft)))),
      (draft) =>
        Effect.sync(() => {
          closeQuietly(draft.descriptor)
          unlinkQuietly(draft.path)
        })
    )

  const read = (ref: ContentRef): Stream.Stream<Uint8Array, JournalError> =>
    Stream.unwrap(
      Effect.gen(function* () {
        if (!isHash(ref.sha256)) return yield* missingContentError(ref)
        const descriptor = yield* Effect.acquireRelease(
          Effect.catchIf(
            attempt("ContentStore.get", () => Fs.openSync(pathOf(ref.sha256), O_RDONLY | (O_NONBLOCK ?? 0))),
            (error) => error.detail.startsWith("ENOENT"),
            () => Effect.fail(missingContentError(ref))
          ),
          (descriptor) => Effect.sync(() => closeQuietly(descriptor))
        )
        const stats = yield* attempt("ContentStore.get", () => Fs.fstatSync(descriptor))
        if (!stats.isFile()) return yield* damagedContentError(ref)
        const digest = hasher()
        return Stream.unfold(0, (at) =>
          Effect.flatMap(
            attempt("ContentStore.get", () => {
              const bytes = new Uint8Array(Math.min(chunkSize, Math.max(1, ref.size - at)))
              return bytes.subarray(0, readAt(descriptor, bytes, at))
            }),
            (bytes) => {
              if (bytes.length > 0) {
                digest.update(bytes)
                return at + bytes.length > ref.size
                  ? Effect.fail(damagedContentError(ref))
                  : Effect.succeed([bytes, at + bytes.length] as const)
              }
              return at === ref.size && digest.digest() === ref.sha256
                ? Effect.succeed(undefined)
                : Effect.fail(damagedContentError(ref))
            }
          )
        )
      })
    )

  const store: ContentStore = {
    put: (bytes) =>
      Effect.suspend(() => {
        const copy = new Uint8Array(bytes)
        const ref: ContentRef = { sha256: sha256(copy), size: copy.length }
        return Effect.flatMap(
          attempt(operation, () => hasContent(ref)),
          (known) => (known ? syncExisting(ref) : withDraft((draft) => write(draft, copy)))
        )
      }),
    putStream: (bytes) =>
      withDraft((draft) =>
        Stream.runForEachArray(bytes, (chunks) => Effect.forEach(chunks, (chunk) => write(draft, chunk), { discard: true }))
      ),
    get: (ref) =>
      Effect.map(Stream.runCollect(read(ref)), (chunks) => {
        const out = new Uint8Array(ref.size)
        let at = 0
        for (const chunk of chunks) {
          out.set(chunk, at)
          at += chunk.length
        }
        return out
      }),
    stream: read,
    has: (ref) => attempt("ContentStore.has", () => hasContent(ref))
  }
  return Effect.as(
    attempt("ContentStore.open", () => {
      if (removesLeftovers && Fs.existsSync(directory)) removeLeftovers(directory)
    }),
    store
  )
}
