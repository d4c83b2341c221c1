/**
 * Stores in a directory, for any number of processes of one machine.
 *
 * - `format.json` names the format and its version.
 * - `blobs/ab/cdef…` is the content whose hash is `abcdef…`.
 * - `heads/HASH.json` has two lines: the name of the workspace, whose SHA-256 is the file's name, and the text of its head.
 * - `heads/HASH.lock` is a directory that exists while a process replaces the head.
 * - `drafts` has files that are being written. A rename publishes a draft.
 *
 * Other programs may have written to the directory. So symlinks below it are not followed, only regular files are read, and
 * every content is checked.
 */
import * as Effect from "effect/Effect"
import { isSystemError } from "../../model/realms.ts"
import { writeFile } from "../../runtime/atomicFile.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Host from "../../runtime/host.ts"
import { Fs, getSystemErrorMessage, join, randomBytes, resolve } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { StoreError } from "../errors.ts"
import * as Blobs from "./directoryBlobs.ts"
import * as Heads from "./directoryHeads.ts"
import type { Stores } from "./stores.ts"

export interface DirectoryOptions {
  /** The path of the directory. The layer creates it if it does not exist. */
  readonly directory: string
  /** If true, a change returns only when it is on the disk, so that it survives a loss of power. @default false */
  readonly fsync?: boolean | undefined
}

/** The codes for a full disk or an exceeded quota. */
const fullCodes: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"])
const fullNumbers: ReadonlySet<number> = new Set([-122, -69])

/** The codes for an entry that the store has not made, such as a planted link, directory or special file. */
const foreignCodes: ReadonlySet<string> = new Set(["ELOOP", "EISDIR", "ENOTDIR", "ENXIO", "ENOTEMPTY", "EMLINK"])

/** Converts a system error to a StoreError without host paths. Throws other errors, because they are bugs. */
export const errorOf =
  (what: string) =>
  (error: unknown): StoreError => {
    if (error instanceof StoreError) return error
    if (!isSystemError(error)) throw error
    const { code, errno = 0 } = error
    const why = `${code}: ${errno < 0 ? getSystemErrorMessage(errno) : "the operating system reported an error"}`
    if (fullCodes.has(code) || fullNumbers.has(errno)) {
      return new StoreError({ reason: "full", detail: `${what}: the disk of the store has no space left (${why})` })
    }
    return foreignCodes.has(code)
      ? foreign(what, why)
      : new StoreError({ reason: "unavailable", detail: `${what}: the directory of the store cannot be used (${why})` })
  }

export const foreign = (what: string, why: string): StoreError =>
  new StoreError({
    reason: "corrupt",
    detail: `${what}: the entry in the store's directory is not a file of the store (${why}); move the entry away`
  })

export interface Place {
  readonly directory: string
  readonly fsync: boolean
  readonly attempt: <A>(what: string, run: () => A) => Effect.Effect<A, StoreError>
  /** Writes a draft, and removes it at the end of `use` unless it was renamed. */
  readonly withDraft: <A>(
    what: string,
    bytes: Uint8Array,
    use: (draft: string) => Effect.Effect<A, StoreError>
  ) => Effect.Effect<A, StoreError>
  /** If `fsync` is true, waits until the entries of the directories are on the disk. */
  readonly syncNames: (what: string, ...directories: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

const draftPattern = /^\.([0-9a-z-]+)\.[0-9a-f]{24}\.tmp$/
const leftoverAgeMillis = 24 * 60 * 60 * 1000
const {
  O_NOFOLLOW = 0,
  O_NONBLOCK = 0,
  O_RDONLY
}: Partial<Record<string, number>> & { readonly O_RDONLY: number } = Fs.constants

/** The number of bytes up to which a synchronous call is faster than a call in another thread. */
export const maxSyncBytes = 64 * 1024

const writeNow = (descriptor: number, bytes: Uint8Array, full: () => StoreError): void => {
  for (let done = 0; done < bytes.length;) {
    const written = Fs.writeSync(descriptor, bytes, done, bytes.length - done)
    if (written === 0) throw full()
    done += written
  }
}

const draftName = (): string => `.${Identity.self()}.${randomBytes(12).toString("hex")}.tmp`

/** Opens a file without following a link and without waiting for the writer of a FIFO. Returns `undefined` if it is missing. */
export const openFile = (path: string): { readonly descriptor: number; readonly size: number } | undefined => {
  let descriptor: number
  try {
    descriptor = Fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    if (isSystemError(error) && error.code === "ENOENT") return undefined
    throw error
  }
  const stats = Fs.fstatSync(descriptor)
  if (stats.isFile()) return { descriptor, size: stats.size }
  Host.closeQuietly(descriptor)
  throw Object.assign(new Error("not a regular file"), { code: "EISDIR" })
}

/** Creates a directory of the store if it is missing. Throws if anything else has its name. */
export const ownDirectory = (path: string): void => {
  makeDirectories(path, 0o700)
  if (!Fs.lstatSync(path).isDirectory()) throw Object.assign(new Error("not a directory"), { code: "ENOTDIR" })
}

/**
 * Removes the drafts of dead processes. Computes their ages by the clock of the disk, because drafts may come from another
 * machine.
 */
const removeLeftovers = (directory: string): void => {
  const names = Fs.readdirSync(directory).filter((name) => draftPattern.test(name))
  if (names.length === 0) return
  const probe = join(directory, draftName())
  Fs.closeSync(Fs.openSync(probe, "wx", 0o600))
  const now = Fs.lstatSync(probe).mtimeMs
  Fs.unlinkSync(probe)
  for (const name of names) {
    const path = join(directory, name)
    const age = now - (Fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now)
    if (Identity.isDead(draftPattern.exec(name)![1]!) ?? age > leftoverAgeMillis) Host.unlinkQuietly(path)
  }
}

const formatText = `${JSON.stringify({ format: "fs-algebra store", version: 1 })}\n`
const maxFormatBytes = 1_000

const invalid = (detail: string): StoreError => new StoreError({ reason: "invalid", detail })

const ownNames = ["drafts", "blobs", "heads"]

/** Creates a store in an empty directory, or opens an existing store. Throws for any other directory. */
const openFormat = (directory: string): void => {
  const path = join(directory, "format.json")
  const found = openFile(path)
  if (found === undefined) {
    // Another process may be creating the store at this moment, so the directories of a store are permitted.
    const isForeign = (name: string): boolean => name !== "format.json" && !ownNames.includes(name)
    if (Fs.readdirSync(directory).some(isForeign)) {
      throw invalid("the directory of the store has other files in it; use an empty or a new directory")
    }
    ownNames.forEach((name) => ownDirectory(join(directory, name)))
    writeFile(path, formatText, { draft: join(directory, "drafts", draftName()) })
    return
  }
  try {
    const bytes = new Uint8Array(Math.min(found.size, maxFormatBytes))
    Host.readAt(found.descriptor, bytes, 0)
    if (new TextDecoder().decode(bytes) !== formatText) {
      throw invalid("the directory holds no store that this version can open; use another directory, or update fs-algebra")
    }
  } finally {
    Host.closeQuietly(found.descriptor)
  }
  ownNames.forEach((name) => ownDirectory(join(directory, name)))
}

export const open = ({ directory, fsync = false }: DirectoryOptions): Effect.Effect<Stores, StoreError> =>
  Effect.gen(function* () {
    if (directory === "") return yield* invalid("the directory of the store has an empty path")
    const attempt: Place["attempt"] = (what, run) => Effect.try({ try: run, catch: errorOf(what) })
    const root = yield* attempt("opening the store", () => {
      makeDirectories(resolve(directory), 0o700)
      const real = Fs.realpathSync(resolve(directory))
      openFormat(real)
      removeLeftovers(join(real, "drafts"))
      return real
    })

    const syncNames: Place["syncNames"] = (what, ...directories) =>
      fsync && process.platform !== "win32"
        ? Effect.forEach(directories, (path) => Host.syncDirectory(path, errorOf(what)), { discard: true })
        : Effect.void

    const withDraft: Place["withDraft"] = (what, bytes, use) => {
      // The error is made only when it is needed, because that takes longer than to write a small file.
      const full = () => new StoreError({ reason: "full", detail: `${what}: the disk of the store has no space left` })
      const path = join(root, "drafts", draftName())
      return Effect.acquireUseRelease(
        attempt(what, () => ({ descriptor: Fs.openSync(path, "wx", 0o600), isOpen: true })),
        (draft) =>
          (bytes.length <= maxSyncBytes
            ? attempt(what, () => writeNow(draft.descriptor, bytes, full))
            : Host.writeFully(draft.descriptor, bytes, errorOf(what), full())
          ).pipe(
            Effect.andThen(fsync ? Host.sync(draft.descriptor, errorOf(what)) : Effect.void),
            // Some network disks report lost content only when the file is closed.
            Effect.andThen(
              attempt(what, () => {
                draft.isOpen = false
                Fs.closeSync(draft.descriptor)
              })
            ),
            Effect.andThen(use(path))
          ),
        (draft) =>
          Effect.sync(() => {
            if (draft.isOpen) Host.closeQuietly(draft.descriptor)
            // Most drafts have been renamed. `lstat` costs less than an `unlink` that fails.
            if (Fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined) Host.unlinkQuietly(path)
          })
      )
    }

    const place: Place = { directory: root, fsync, attempt, withDraft, syncNames }
    yield* syncNames("opening the store", root)
    return { blobs: Blobs.make(place), heads: Heads.make(place) }
  })
