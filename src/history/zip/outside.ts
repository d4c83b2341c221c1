/**
 * Files of the machine itself, where archives are kept: read where they are, and written under a hidden name beside their place, so that
 * there is the old archive or the new one, and never a part.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { basename, dirname, Fs, getSystemErrorMessage, join, resolve } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

const denied: Fault = { _tag: "AccessDenied", why: "permission" }
const notAFile: Fault = { _tag: "NotAFile" }
const diskFull: Fault = { _tag: "DiskFull" }
const tooLong: Fault = { _tag: "PathTooLong", detail: "the disk takes no name, or no path, of that length" }
const invalid: Fault = { _tag: "InvalidPath", detail: "the disk does not take such a name" }

const table: Readonly<Record<string, Fault>> = {
  ENOENT: { _tag: "NotFound" },
  EEXIST: { _tag: "NotADirectory" },
  ENOTDIR: { _tag: "NotADirectory" },
  EISDIR: notAFile,
  // What opens a FIFO or a socket is told so.
  ENXIO: notAFile,
  EACCES: denied,
  EPERM: denied,
  EROFS: { _tag: "AccessDenied", why: "readOnly" },
  EBUSY: { _tag: "AccessDenied", why: "busy" },
  ENOSPC: diskFull,
  EDQUOT: diskFull,
  EFBIG: diskFull,
  ENAMETOOLONG: tooLong,
  ELOOP: { _tag: "InvalidPath", detail: "its links lead in a circle, or through too many others" },
  ERR_INVALID_ARG_VALUE: invalid
}

interface SystemError extends Error {
  readonly code: string
  readonly errno?: number
}

const isSystemError = (error: unknown): error is SystemError =>
  error instanceof Error && "code" in error && typeof error.code === "string"

/** What an error of `node:fs` means; whatever else it is, is a mistake in this program and thrown on. */
export const faultOf = (error: unknown): Fault => {
  if (!isSystemError(error)) throw error
  const { code, errno } = error
  const detail = errno === undefined ? "the system reported an error" : getSystemErrorMessage(errno)
  return { ...((Object.hasOwn(table, code) ? table[code] : undefined) ?? { _tag: "IoError", code, detail }), cause: error }
}

/** Starts a call of the thread pool and waits for its end, come what may: the descriptor may not be closed before. */
export const awaited = <A>(start: (done: (error: Error | null, value: A) => void) => void): Effect.Effect<A, Fault> =>
  Effect.uninterruptible(
    Effect.callback<A, Fault>((resume) =>
      start((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(faultOf(error))))
    )
  )

/** Runs what calls the system at once, and answers or throws. */
export const attempt = <A>(run: () => A | Fault): Effect.Effect<A, Fault> =>
  Effect.suspend(() => {
    try {
      const outcome = run()
      return isFault(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome)
    } catch (error) {
      return Effect.fail(faultOf(error))
    }
  })

const isFault = (value: unknown): value is Fault => typeof value === "object" && value !== null && "_tag" in value

const closing = (descriptor: number): Effect.Effect<void> => Effect.sync(() => Fs.closeSync(descriptor))

export interface Opened {
  readonly descriptor: number
  readonly size: number
  /** Its path with all links resolved. */
  readonly file: string
}

/**
 * Opens a regular file until the scope ends, and never waits, as opening a FIFO would. `follows`: whether a link of that name is followed,
 * where the system can be told not to.
 *
 * @default follows: true
 */
export const open = (
  path: string,
  { follows = true }: { readonly follows?: boolean } = {}
): Effect.Effect<Opened, Fault, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      attempt(() => Fs.openSync(resolve(path), follows ? readable : readable | (Fs.constants.O_NOFOLLOW ?? 0))),
      closing
    ),
    (descriptor) =>
      attempt(() => {
        const stat = Fs.fstatSync(descriptor)
        return stat.isFile() ? { descriptor, size: stat.size, file: Fs.realpathSync(path) } : notAFile
      })
  )

const readable = Fs.constants.O_RDONLY | (Fs.constants.O_NONBLOCK ?? 0)

export interface Target {
  /** With the links of its directory resolved. */
  readonly path: string
  /** Directories that were made for it, the outermost first. */
  readonly made: ReadonlyArray<string>
}

/** Whether something stands there that no file may replace: a directory, a FIFO, a socket or a device, also behind a link. */
const isTaken = (path: string): boolean => Fs.statSync(path, { throwIfNoEntry: false })?.isFile() === false

/** Makes the directory of a file that is to come. */
const prepare = (path: string): Target => {
  const asked = resolve(path)
  const first = makeDirectories(dirname(asked))
  const made: Array<string> = []
  if (first !== undefined) for (let at = dirname(asked); at.length >= first.length; at = dirname(at)) made.unshift(at)
  return { path: join(Fs.realpathSync(dirname(asked)), basename(asked)), made }
}

const unmake = (made: ReadonlyArray<string>): void => {
  try {
    for (const path of [...made].reverse()) Fs.rmdirSync(path)
  } catch {
    // Somebody else uses it by now.
  }
}

/** The kind of the names of drafts. */
const kind = "archive"

const removeQuietly = (path: string): void => {
  try {
    Fs.unlinkSync(path)
  } catch {
    // It has gone before.
  }
}

/**
 * Removes the drafts beside a target that a killed process of this installation left. Other names are not touched, whatever their form.
 */
const sweep = (directory: string): Effect.Effect<void> =>
  awaited<ReadonlyArray<string>>((end) => Fs.readdir(directory, (error, names) => end(error, names))).pipe(
    Effect.map((names) => {
      for (const name of names) {
        if (TemporaryNames.verify(name)?.kind === kind && TemporaryNames.isLeftover(name)) removeQuietly(join(directory, name))
      }
    }),
    Effect.ignore
  )

const writeFully = (descriptor: number, bytes: Uint8Array, done = 0): Effect.Effect<void, Fault> =>
  done === bytes.length
    ? Effect.void
    : Effect.flatMap(
        awaited<number>((end) => Fs.write(descriptor, bytes, done, bytes.length - done, null, end)),
        (written) => (written === 0 ? Effect.fail(diskFull) : writeFully(descriptor, bytes, done + written))
      )

const asFaults =
  <E>(map: (fault: Fault) => E) =>
  <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, E, R> =>
    Effect.mapError(effect, map)

/**
 * Writes what `bytes` gives for the place of the file. On failure and interruption the old file stays, if there was one, and nothing
 * else. `map`: what becomes of a failure out here.
 */
export const write = <E, E2, R>(
  path: string,
  bytes: (target: Target) => Stream.Stream<Uint8Array, E, R>,
  map: (fault: Fault) => E2
): Effect.Effect<void, E | E2, R> => {
  const here = asFaults(map)
  return Effect.acquireUseRelease(
    Effect.tap(here(attempt(() => prepare(path))), ({ path }) => sweep(dirname(path))),
    (target): Effect.Effect<void, E | E2, R> => {
      const name = TemporaryNames.make(kind)
      const draft = join(dirname(target.path), name)
      return Effect.acquireUseRelease(
        here(
          attempt(() => {
            return isTaken(target.path) ? notAFile : Fs.openSync(draft, "wx")
          })
        ),
        (descriptor) =>
          Stream.runForEach(bytes(target), (chunk) => here(writeFully(descriptor, chunk))).pipe(
            Effect.andThen(here(awaited<void>((end) => Fs.fsync(descriptor, (error) => end(error, undefined))))),
            Effect.andThen(here(attempt(() => Fs.renameSync(draft, target.path))))
          ),
        (descriptor, exit) =>
          Effect.sync(() => {
            Fs.closeSync(descriptor)
            if (!Exit.isSuccess(exit)) removeQuietly(draft)
          })
      ).pipe(Effect.ensuring(Effect.sync(() => TemporaryNames.forget(name))))
    },
    ({ made }, exit) => Effect.sync(() => (Exit.isSuccess(exit) ? undefined : unmake(made)))
  )
}
