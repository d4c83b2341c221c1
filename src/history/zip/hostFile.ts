/**
 * Archive files on the host's disk.
 *
 * A file is written under a temporary name in the same directory and then renamed. So the path always has the complete old
 * archive or the complete new archive.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Host from "../../runtime/host.ts"
import { basename, dirname, Fs, getSystemErrorMessage, join, resolve } from "../../runtime/node.ts"
import { diskFull, notAFile } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { isSystemError } from "../../model/realms.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

const denied: Fault = { _tag: "AccessDenied", why: "permission" }
const tooLong: Fault = { _tag: "PathTooLong", detail: "the name or the path is too long for the disk" }
const invalid: Fault = { _tag: "InvalidPath", detail: "the disk does not accept this name" }

const faultByCode: Readonly<Record<string, Fault>> = {
  ENOENT: { _tag: "NotFound" },
  EEXIST: { _tag: "NotADirectory" },
  ENOTDIR: { _tag: "NotADirectory" },
  EISDIR: notAFile,
  // The error code for opening a socket.
  ENXIO: notAFile,
  EACCES: denied,
  EPERM: denied,
  EROFS: { _tag: "AccessDenied", why: "readOnly" },
  EBUSY: { _tag: "AccessDenied", why: "busy" },
  ENOSPC: diskFull,
  EDQUOT: diskFull,
  EFBIG: diskFull,
  ENAMETOOLONG: tooLong,
  ELOOP: { _tag: "InvalidPath", detail: "the links in the path form a cycle or a chain that is too long" },
  ERR_INVALID_ARG_VALUE: invalid
}

/** Converts an error of `node:fs` to a fault. Throws any other error again, because it is a bug. */
export const faultOf = (error: unknown): Fault => {
  if (!isSystemError(error)) throw error
  const { code, errno } = error
  const detail = errno === undefined ? "the system reported an error" : getSystemErrorMessage(errno)
  return {
    ...((Object.hasOwn(faultByCode, code) ? faultByCode[code] : undefined) ?? { _tag: "IoError", code, detail }),
    cause: error
  }
}

export const awaitCall = <A>(start: Host.Start<A>): Effect.Effect<A, Fault> => Host.awaited(start, faultOf)

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

const closeDescriptor = (descriptor: number): Effect.Effect<void> => Effect.sync(() => Fs.closeSync(descriptor))

export interface Opened {
  readonly descriptor: number
  readonly size: number
  readonly file: string
}

/**
 * Opens a regular file for the scope. Does not block on a FIFO.
 *
 * With `followsLinks: false`, does not follow a symlink at the end of the path, if the system has O_NOFOLLOW.
 */
export const open = (
  path: string,
  { followsLinks = true }: { readonly followsLinks?: boolean } = {}
): Effect.Effect<Opened, Fault, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      attempt(() => Fs.openSync(resolve(path), followsLinks ? readFlags : readFlags | (Fs.constants.O_NOFOLLOW ?? 0))),
      closeDescriptor
    ),
    (descriptor) =>
      attempt(() => {
        const stat = Fs.fstatSync(descriptor)
        return stat.isFile() ? { descriptor, size: stat.size, file: Fs.realpathSync(path) } : notAFile
      })
  )

const readFlags = Fs.constants.O_RDONLY | (Fs.constants.O_NONBLOCK ?? 0)

export interface Target {
  readonly path: string
  readonly createdDirectories: ReadonlyArray<string>
}

/** Tests whether the path is, or links to, a directory, a FIFO, a socket or a device. Such a path must not be replaced. */
const isBlocked = (path: string): boolean => Fs.statSync(path, { throwIfNoEntry: false })?.isFile() === false

const prepareTarget = (path: string): Target => {
  const asked = resolve(path)
  const first = makeDirectories(dirname(asked))
  const createdDirectories: Array<string> = []
  if (first !== undefined)
    for (let at = dirname(asked); at.length >= first.length; at = dirname(at)) createdDirectories.unshift(at)
  return { path: join(Fs.realpathSync(dirname(asked)), basename(asked)), createdDirectories }
}

const removeDirectories = (createdDirectories: ReadonlyArray<string>): void => {
  try {
    for (const path of [...createdDirectories].reverse()) Fs.rmdirSync(path)
  } catch {
    // The directory is not empty, because another process uses it now.
  }
}

const temporaryKind = "archive"

/**
 * Removes temporary archives in this directory that killed processes of this installation left. Other files are never removed.
 */
const removeLeftovers = (directory: string): Effect.Effect<void> =>
  awaitCall<ReadonlyArray<string>>((end) => Fs.readdir(directory, (error, names) => end(error, names))).pipe(
    Effect.map((names) => {
      for (const name of names) {
        if (TemporaryNames.verify(name)?.kind === temporaryKind && TemporaryNames.isLeftover(name))
          Host.unlinkQuietly(join(directory, name))
      }
    }),
    Effect.ignore
  )

export const writeFully = (descriptor: number, bytes: Uint8Array): Effect.Effect<void, Fault> =>
  Host.writeFully(descriptor, bytes, faultOf, diskFull)

const mapFaults =
  <E>(map: (fault: Fault) => E) =>
  <A, R>(effect: Effect.Effect<A, Fault, R>): Effect.Effect<A, E, R> =>
    Effect.mapError(effect, map)

/**
 * Writes a stream to a file. `bytes` returns the stream for the final path. A failure or an interruption keeps an existing
 * file, and leaves no other files.
 *
 * `map` converts a fault of the disk.
 */
export const write = <E, E2, R>(
  path: string,
  bytes: (target: Target) => Stream.Stream<Uint8Array, E, R>,
  map: (fault: Fault) => E2
): Effect.Effect<void, E | E2, R> => {
  const withMappedFaults = mapFaults(map)
  return Effect.acquireUseRelease(
    Effect.tap(withMappedFaults(attempt(() => prepareTarget(path))), ({ path }) => removeLeftovers(dirname(path))),
    (target): Effect.Effect<void, E | E2, R> => {
      const name = TemporaryNames.make(temporaryKind)
      const draft = join(dirname(target.path), name)
      return Effect.acquireUseRelease(
        withMappedFaults(
          attempt(() => {
            return isBlocked(target.path) ? notAFile : Fs.openSync(draft, "wx")
          })
        ),
        (descriptor) =>
          Stream.runForEach(bytes(target), (chunk) => withMappedFaults(writeFully(descriptor, chunk))).pipe(
            Effect.andThen(Host.sync(descriptor, (error) => map(faultOf(error)))),
            Effect.andThen(withMappedFaults(attempt(() => Fs.renameSync(draft, target.path))))
          ),
        (descriptor, exit) =>
          Effect.sync(() => {
            Fs.closeSync(descriptor)
            if (!Exit.isSuccess(exit)) Host.unlinkQuietly(draft)
          })
      ).pipe(Effect.ensuring(Effect.sync(() => TemporaryNames.forget(name))))
    },
    ({ createdDirectories }, exit) =>
      Effect.sync(() => (Exit.isSuccess(exit) ? undefined : removeDirectories(createdDirectories)))
  )
}
