/**
 * Stores in a directory, for any number of processes of one machine.
 *
 * - `format.json` names the format and its version.
 * - `blobs/ab/cdef…` is the content whose hash is `abcdef…`.
 * - `heads/HASH.json` has two lines: the name of the workspace, whose SHA-256 is the file's name, and the text of its head.
 * - `heads/HASH.lock` is a directory. This directory has an entry of each process that replaces the head at the moment.
 * - `drafts` has files that are being written. A rename publishes a draft.
 *
 * Other programs may have written to the directory. So symlinks below the directory are not followed, only regular files are
 * read, and every content is checked.
 */
import * as Effect from "effect/Effect"
import { codeOf, isSystemError } from "../../model/realms.ts"
import { writeFile } from "../../runtime/atomicFile.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Host from "../../runtime/host.ts"
import { Fs, getSystemErrorMessage, join, randomBytes, resolve } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { StoreError } from "../errors.ts"
import type { OwnOperations } from "./blobs.ts"
import * as Blobs from "./directoryBlobs.ts"
import * as Heads from "./directoryHeads.ts"
import type { Stores } from "./stores.ts"

export interface DirectoryOptions {
  /** The path of the directory. The layer creates a missing directory. */
  readonly directory: string
  /** If true, a change returns only when it is on the disk, so that it survives a loss of power. @default false */
  readonly fsync?: boolean | undefined
}

/** The codes for a full disk, an exceeded quota, and a file above the size limit of the disk or the process. */
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

const fullError = (what: string): StoreError =>
  new StoreError({ reason: "full", detail: `${what}: the disk of the store has no space left` })

export const foreign = (what: string, why: string): StoreError =>
  new StoreError({
    reason: "corrupt",
    detail: `${what}: the entry in the store's directory is not a file of the store (${why}); move the entry away`
  })

export interface Place {
  readonly directory: string
  readonly fsync: boolean
  readonly attempt: <A>(what: string, run: () => A) => Effect.Effect<A, StoreError>
  /** Writes at most `maxSyncBytes` bytes and then gives the file its path, synchronously. Throws system errors. */
  readonly publishNow: (bytes: Uint8Array, pathOf: () => string) => void
  /** Writes a draft, and removes it at the end of `use` unless it was renamed. */
  readonly withDraft: <A, E, R>(
    what: string,
    fill: (write: (bytes: Uint8Array) => Effect.Effect<void, StoreError>) => Effect.Effect<void, StoreError | E, R>,
    use: (draft: string) => Effect.Effect<A, StoreError>
  ) => Effect.Effect<A, StoreError | E, R>
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

/** Random digits, so that two threads and two copies of this module never choose the same name. */
let own: string | undefined
let drafts = 0

const draftName = (): string =>
  `.${Identity.self()}.${(own ??= randomBytes(8).toString("hex"))}${(drafts++ % 2 ** 32).toString(16).padStart(8, "0")}.tmp`

/**
 * Opens a file without following a link and without waiting for the writer of a FIFO. Returns `undefined` if the file is
 * missing.
 */
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
 * Removes the drafts of dead processes, and drafts of unknown processes after a day. Computes their ages by the clock of the
 * disk, because drafts may come from another machine.
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

const attempt: Place["attempt"] = (what, run) => Effect.try({ try: run, catch: errorOf(what) })

/** Opens a new draft. With `mayBeMissing`, creates the directory if it is missing. */
const openDraft = (directory: string, mayBeMissing: boolean): { readonly path: string; readonly descriptor: number } => {
  const path = join(directory, draftName())
  try {
    return { path, descriptor: Fs.openSync(path, "wx", 0o600) }
  } catch (error) {
    if (!mayBeMissing || codeOf(error) !== "ENOENT") throw error
    makeDirectories(directory, 0o700)
    return { path, descriptor: Fs.openSync(path, "wx", 0o600) }
  }
}

const makePlace = (directory: string, drafts: string, fsync: boolean): Place => ({
  directory,
  fsync,
  attempt,
  publishNow: (bytes, pathOf) => {
    const draft = openDraft(drafts, drafts === directory)
    try {
      Host.writeAndClose(draft.descriptor, bytes)
      Fs.renameSync(draft.path, pathOf())
    } catch (error) {
      Host.unlinkQuietly(draft.path)
      throw error
    }
  },
  syncNames: (what, ...directories) =>
    fsync && process.platform !== "win32"
      ? Effect.forEach(directories, (path) => Host.syncDirectory(path, errorOf(what)), { discard: true })
      : Effect.void,
  withDraft: (what, fill, use) => {
    return Effect.acquireUseRelease(
      attempt(what, () => ({ ...openDraft(drafts, drafts === directory), isOpen: true })),
      (draft) =>
        fill((bytes) =>
          bytes.length <= maxSyncBytes
            ? attempt(what, () => Host.writeNow(draft.descriptor, bytes))
            : Host.writeFully(draft.descriptor, bytes, errorOf(what), fullError(what))
        ).pipe(
          Effect.andThen(fsync ? Host.sync(draft.descriptor, errorOf(what)) : Effect.void),
          // Some network disks report only at the close that the content was lost.
          Effect.andThen(
            attempt(what, () => {
              draft.isOpen = false
              Fs.closeSync(draft.descriptor)
            })
          ),
          Effect.andThen(Effect.suspend(() => use(draft.path)))
        ),
      (draft) =>
        Effect.sync(() => {
          if (draft.isOpen) Host.closeQuietly(draft.descriptor)
          // Most drafts have been renamed. The look costs less than the error of a removal.
          if (Fs.existsSync(draft.path)) Host.unlinkQuietly(draft.path)
        })
    )
  }
})

export const open = ({ directory, fsync = false }: DirectoryOptions): Effect.Effect<Stores, StoreError> =>
  Effect.gen(function* () {
    if (directory === "") return yield* invalid("the directory of the store has an empty path")
    const root = yield* attempt("opening the store", () => {
      makeDirectories(resolve(directory), 0o700)
      const real = Fs.realpathSync(resolve(directory))
      openFormat(real)
      removeLeftovers(join(real, "drafts"))
      return real
    })
    const place = makePlace(root, join(root, "drafts"), fsync)
    yield* place.syncNames("opening the store", root)
    return { blobs: Blobs.make(place, join(root, "blobs")), heads: Heads.make(place) }
  })

/**
 * Opens a directory that has only blobs, with its drafts beside them. The first content creates the directory. A reader leaves
 * the drafts of other programs alone.
 */
export const openBlobs = (
  { directory, fsync = false }: DirectoryOptions,
  isReader: boolean
): Effect.Effect<OwnOperations, StoreError> =>
  Effect.suspend(() => {
    const top = resolve(directory)
    return Effect.as(
      attempt("opening the contents", () => {
        if (!isReader && Fs.existsSync(top)) removeLeftovers(top)
      }),
      Blobs.make(makePlace(top, top, fsync), top)
    )
  })
