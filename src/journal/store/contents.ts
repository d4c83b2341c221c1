/**
 * A content store in a directory. Each content is a file whose name is its hash, in one of 256 subdirectories. The file is
 * first written under a temporary name and then renamed. So a file with a hash as its name is complete. Concurrent writers of
 * the same content produce the same file. A temporary name contains the identity of its process. Opening the store removes the
 * temporary files of dead processes.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { codeOf } from "../../model/realms.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { hasher, type Hasher, sha256 } from "../../runtime/hash.ts"
import { closeQuietly, unlinkQuietly } from "../../runtime/host.ts"
import { Fs, join, randomBytes, resolve } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import type { ContentStore } from "../model.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import { concatenate } from "../../runtime/buffer.ts"
import { JournalError } from "../errors.ts"
import { attempt, ioError, runAsync, sync, syncDirectory } from "./systemCalls.ts"
import { readAt } from "../../runtime/host.ts"

const chunkSize = 65_536

const operation = "ContentStore.get"

const missingContentError = (ref: ContentRef): JournalError =>
  new JournalError({ operation, reason: "corrupt", detail: `the content ${ref.sha256} is missing` })

const damagedContentError = (ref: ContentRef): JournalError =>
  new JournalError({ operation, reason: "corrupt", detail: `the content ${ref.sha256} does not match its hash` })

export const make = (): ContentStore => {
  const contentsByHash = new Map<string, Uint8Array>()
  const storeUncopied = (sha256: string, bytes: Uint8Array): ContentRef => {
    if (!contentsByHash.has(sha256)) contentsByHash.set(sha256, bytes)
    return { sha256, size: bytes.length }
  }
  const find = (ref: ContentRef): Effect.Effect<Uint8Array, JournalError> =>
    Effect.suspend(() => {
      const bytes = contentsByHash.get(ref.sha256)
      if (bytes === undefined) return Effect.fail(missingContentError(ref))
      return bytes.length === ref.size ? Effect.succeed(bytes) : Effect.fail(damagedContentError(ref))
    })
  return {
    put: (bytes) =>
      Effect.sync(() => {
        const copy = new Uint8Array(bytes)
        return storeUncopied(sha256(copy), copy)
      }),
    putStream: (bytes) =>
      Effect.suspend(() => {
        const chunks: Array<Uint8Array> = []
        const digest = hasher()
        let size = 0
        const take = (chunk: Uint8Array): void => {
          const copy = new Uint8Array(chunk)
          digest.update(copy)
          chunks.push(copy)
          size += copy.length
        }
        return Effect.map(
          Stream.runForEachArray(bytes, (more) => Effect.sync(() => more.forEach(take))),
          () => storeUncopied(digest.digest(), concatenate(chunks))
        )
      }),
    get: (ref) => Effect.map(find(ref), (bytes) => bytes.slice()),
    stream: (ref) =>
      Stream.unwrap(
        Effect.map(find(ref), (bytes) =>
          Stream.unfold(0, (at) =>
            Effect.sync(() => (at < bytes.length ? ([bytes.slice(at, at + chunkSize), at + chunkSize] as const) : undefined))
          )
        )
      ),
    has: (ref) => Effect.sync(() => contentsByHash.get(ref.sha256)?.length === ref.size)
  }
}

const operationDirectory = "ContentStore.put"

/** The largest size, in bytes, at which a synchronous write is faster than a write in another thread. */
const maxSyncWriteBytes = 64 * 1024

/** The age, in milliseconds, after which a temporary file is removed if it is unknown whether its process is alive. */
const leftoverAgeMillis = 24 * 60 * 60 * 1000

/** The flags for opening a file. With O_NONBLOCK, opening a FIFO does not block. Windows has no O_NONBLOCK. */
const { O_NONBLOCK, O_RDONLY }: { readonly O_NONBLOCK?: number; readonly O_RDONLY: number } = Fs.constants

const draftNamePattern = /^\.([0-9a-z-]+)\.[0-9a-f]{24}\.tmp$/
const isHash = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

const mkdir = (directory: string): void => void makeDirectories(directory, 0o700)

/**
 * Removes the temporary files of dead processes. Computes ages by the disk's clock, because it may differ from the
 * machine's clock.
 */
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
  const diskFullError = (): JournalError =>
    ioError(operationDirectory, Object.assign(new Error("the disk is full"), { code: "ENOSPC" }))
  const writeFrom = (done: number): Effect.Effect<void, JournalError> =>
    done === bytes.length
      ? Effect.void
      : Effect.flatMap(
          bytes.length <= maxSyncWriteBytes
            ? attempt(operationDirectory, () => Fs.writeSync(draft.descriptor, bytes, done))
            : runAsync<number>(operationDirectory, (end) =>
                Fs.write(draft.descriptor, bytes, done, bytes.length - done, null, end)
              ),
          (written) => (written === 0 ? Effect.fail(diskFullError()) : writeFrom(done + written))
        )
  return Effect.suspend(() => {
    draft.digest.update(bytes)
    draft.size += bytes.length
    return writeFrom(0)
  })
}

export const contentPath = (directory: string, hash: string): string => join(directory, hash.slice(0, 2), hash.slice(2))

interface Options {
  readonly fsync: boolean
  readonly removesLeftovers: boolean
}

export const makeDirectory = (
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

  const openDraft = attempt(operationDirectory, (): Draft => {
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
    const move = attempt(operationDirectory, () => {
      mkdir(folder)
      Fs.renameSync(draft.path, pathOf(ref.sha256))
    })
    if (!fsync) return Effect.as(move, ref)
    return sync(operationDirectory, draft.descriptor).pipe(
      Effect.andThen(move),
      Effect.andThen(syncDirectory(operationDirectory, folder)),
      Effect.andThen(syncDirectory(operationDirectory, directory)),
      Effect.as(ref)
    )
  }

  /** Syncs an existing content, because the process that wrote it may not have synced it. */
  const syncExisting = (ref: ContentRef): Effect.Effect<ContentRef, JournalError> =>
    fsync
      ? Effect.acquireUseRelease(
          attempt(operationDirectory, () => Fs.openSync(pathOf(ref.sha256), O_RDONLY)),
          (descriptor) =>
            Effect.andThen(sync(operationDirectory, descriptor), syncDirectory(operationDirectory, folderOf(ref.sha256))),
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
          attempt(operationDirectory, () => hasContent(ref)),
          (known) => (known ? syncExisting(ref) : withDraft((draft) => write(draft, copy)))
        )
      }),
    putStream: (bytes) =>
      withDraft((draft) =>
        Stream.runForEachArray(bytes, (chunks) => Effect.forEach(chunks, (chunk) => write(draft, chunk), { discard: true }))
      ),
    get: (ref) => Effect.map(Stream.runCollect(read(ref)), concatenate),
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
