/**
 * What changes one filesystem into another that does the same with a difference: less is permitted, less is seen, less fits, more is
 * known, more is tried. Each is written on the port, where there is no way past it, and made a filesystem again by `make`.
 *
 * All keep the rules, the locks and the order of writes of what they decorate, and the accelerations that only read. Other
 * accelerations, and history, go unless it is said that they stay.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Stream from "effect/Stream"
import { isFault } from "../engine/directories.ts"
import { resolve } from "../engine/resolve.ts"
import type { Fault, ListError, NotADirectory, StatError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Accelerations, around, type Backend, looking, mapPath, type WriteHow, type WritePlan } from "../port/Backend.ts"
import { isMutation } from "../port/Operation.ts"
import { type Algebra, make } from "./Filesystem.ts"
import { composed, exclusively } from "./locking.ts"
import * as Caller from "./operations/call.ts"
import * as Quota from "./quota.ts"
import * as Traced from "./traced.ts"

const denied = (why: "readOnly" | "root"): Effect.Effect<never, Fault> => Effect.fail({ _tag: "AccessDenied", why })

/** The fast ways to what only reads, which may stay where only changing is decorated. */
const reading = ({ accelerations }: Backend): Accelerations | undefined => accelerations && looking(accelerations)

/**
 * Neither write nor delete, whoever asks and by whatever way: AccessDenied `readOnly`, before any look at the backend.
 *
 * @since 0.1.0
 */
export const readOnly = (self: Algebra): Algebra => {
  const { port } = self
  const { hostRoots } = port
  return make({
    ...around(port, (operation, next) => (isMutation(operation) ? denied("readOnly") : next)),
    info: { ...port.info, readOnly: true },
    rules: { ...port.rules, permits: () => false },
    hostRoots: hostRoots && { ...hostRoots, settle: () => hostRoots.settle(() => false) },
    accelerations: reading(port)
  })
}

const isRoot = (path: FsPath.FsPath): boolean => path === FsPath.root

/** A file that must be there needs no parents. */
const isThere = ({ ifMatch, mode }: WritePlan): boolean =>
  typeof ifMatch === "string" || mode === "replace" || mode === "appendExisting"

const declined = Effect.succeed(undefined)

/**
 * Whole changes below a directory that is no root to those who make them. They may make no directories on the way, or they would make
 * that one too where it has gone.
 */
const changingBelow = ({ makeDirectory, move, remove, write }: Accelerations): Accelerations => {
  const isTop = (path: FsPath.FsPath): boolean => isRoot(FsPath.parent(path))
  return {
    ...(write && {
      write: <E, R>(
        path: FsPath.FsPath,
        bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
        plan: WritePlan,
        how?: WriteHow
      ): ReturnType<typeof write<E, R>> =>
        plan.createParents && !isThere(plan) && !isTop(path)
          ? declined
          : write(path, bytes, { ...plan, createParents: false }, how)
    }),
    ...(remove && { remove: (path, plan) => (isRoot(path) ? denied("root") : remove(path, plan)) }),
    ...(makeDirectory && {
      makeDirectory: (path, plan) =>
        isRoot(path) || (plan.parents && !isTop(path)) ? declined : makeDirectory(path, { ...plan, parents: false })
    }),
    ...(move && {
      move: (from, to, plan) =>
        isRoot(from) || isRoot(to)
          ? denied("root")
          : plan.createParents && !isTop(to)
            ? declined
            : move(from, to, { ...plan, createParents: false })
    })
  }
}

const below = (self: Backend, base: FsPath.FsPath): Backend => {
  const into = (path: FsPath.FsPath): FsPath.FsPath => FsPath.below(base, path)
  const port = mapPath(self, into, (path) => FsPath.relative(base, path))
  const { root } = self.info
  const { locks } = self
  const removeTree = port.accelerations?.removeTree
  const look = self.accelerations?.look
  const depth = FsPath.segments(base).length
  return {
    ...port,
    info: { ...self.info, root: isRoot(base) ? root : root.endsWith("/") ? `${root}${base}` : `${root}/${base}` },
    remove: (path) => (isRoot(path) ? denied("root") : port.remove(path)),
    rename: (from, to, options) => (isRoot(from) || isRoot(to) ? denied("root") : port.rename(from, to, options)),
    locks: locks && composed((paths) => [{ locks, paths: paths.map(into) }]),
    accelerations: port.accelerations && {
      ...port.accelerations,
      ...(!isRoot(base) && changingBelow(port.accelerations)),
      ...(removeTree && { removeTree: (path: FsPath.FsPath) => (isRoot(path) ? denied("root") : removeTree(path)) }),
      // Where there is no such directory any more, the look ends before what is seen from here begins.
      ...(look && {
        look: (path: FsPath.FsPath) =>
          Effect.map(look(into(path)), (seen) => (seen !== undefined && seen.length > depth ? seen.slice(depth) : undefined))
      })
    }
  }
}

const directory: Caller.Tags = new Set([...Caller.tags.stat, "NotADirectory"])

/**
 * A directory as a filesystem of its own, with that directory as its root. Links on the way to it are followed now, once; links
 * inside that lead out of it are AccessDenied `escape` from then on, also where they would have stayed within the whole.
 * Fails with NotFound where there is nothing: the directory is not made.
 *
 * @since 0.1.0
 */
export const subdirectory =
  (path: string) =>
  (self: Algebra): Effect.Effect<Algebra, StatError | NotADirectory> => {
    const { port } = self
    return Caller.make(port).call("subdirectory", path, directory, Caller.reading, (path) =>
      Effect.flatMap(resolve(port, path), (found) =>
        found.stat === undefined
          ? Effect.fail(Caller.notFound)
          : found.stat.kind === "directory"
            ? Effect.sync(() => make(below(port, found.path)))
            : Effect.fail(Caller.notADirectory)
      )
    )
  }

/**
 * How much a filesystem may hold.
 *
 * @since 0.1.0
 */
export interface QuotaOptions {
  /** Of all regular files together, in bytes. @default no bound */
  readonly maxBytes?: number | undefined
  /** Files, links and others; directories are free. @default no bound */
  readonly maxFiles?: number | undefined
}

const bound = (name: string, value = Number.POSITIVE_INFINITY): number => {
  if (typeof value === "number" && value >= 0) return value
  throw new RangeError(`quota: ${name} must be a number of at least 0, not ${String(value)}`)
}

/**
 * No more than so many bytes and files: what would pass a bound is DiskFull and leaves nothing behind, a stream as soon as it comes to
 * that. What is there is counted now, once; from then on what goes through this filesystem is. A file that replaces another counts
 * by the difference. What is over a bound already stays, and may shrink.
 *
 * A bound that is negative or not a number is a mistake in the program, not something that a caller could handle: a defect.
 *
 * @since 0.1.0
 */
export const quota =
  (options: QuotaOptions) =>
  (self: Algebra): Effect.Effect<Algebra, ListError> =>
    Effect.suspend(() => {
      const bounds = { maxBytes: bound("maxBytes", options.maxBytes), maxFiles: bound("maxFiles", options.maxFiles) }
      const { port } = self
      return Caller.make(port).run("quota", ".", Caller.tags.list, () =>
        Effect.map(exclusively([{ locks: port.locks, paths: [FsPath.root] }], Quota.measure(port)), (usage) =>
          make({ ...Quota.around(port, bounds, usage), accelerations: reading(port) })
        )
      )
    })

/**
 * One span `Filesystem.<operation>` per call, with the attributes `path` (as the caller wrote it) and `backend`, and metrics:
 *
 * - `fs_algebra_calls_total` and `fs_algebra_call_duration_ms`, by operation and backend
 * - `fs_algebra_errors_total`, by operation, backend and the error's tag
 * - `fs_algebra_read_bytes_total` and `fs_algebra_written_bytes_total`, by backend
 *
 * Without it there are none of these. What is traced already stays as it is.
 *
 * @since 0.1.0
 */
export const traced = (self: Algebra): Algebra => (Traced.isTraced(self.port) ? self : make(Traced.around(self.port)))

/**
 * How often, and after which pauses, a call that failed for the moment is tried again.
 *
 * @since 0.1.0
 */
export interface RetryOptions {
  /** After the first attempt. A whole number, at least 0; anything else is a defect. */
  readonly times: number
  /** The first pause; each following one is twice as long, and all vary by a fifth either way. @default 50 milliseconds */
  readonly base?: Duration.Input | undefined
}

/** The backend says that it could not begin. */
const undone = new Set<unknown>(["EMFILE", "ENFILE", "EAGAIN"])

/** It may be otherwise the next time, and reading twice does no harm. */
const passing = new Set<unknown>([
  ...undone,
  "EBUSY",
  "EINTR",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "ENETRESET",
  "ENOBUFS",
  "EPIPE",
  "ETIMEDOUT"
])

const isBusy = (error: unknown): boolean => isFault(error, "AccessDenied") && error["why"] === "busy"

const isUndone = (error: unknown): boolean => isBusy(error) || (isFault(error, "IoError") && undone.has(error["code"]))

const isPassing = (error: unknown): boolean =>
  isBusy(error) ||
  isFault(error, "Timeout") ||
  isFault(error, "Unavailable") ||
  (isFault(error, "IoError") && passing.has(error["code"]))

/**
 * Tries again what failed for a reason that passes. Reads: Timeout, Unavailable, AccessDenied `busy`, and IoError with a code such as
 * EMFILE, EAGAIN, EINTR or ECONNRESET. Changes: only where the fault says that nothing was done (`busy`, EMFILE, ENFILE, EAGAIN).
 * Never a write of a stream, which can be run only once.
 *
 * @since 0.1.0
 */
export const retry = (options: RetryOptions): ((self: Algebra) => Algebra) => {
  const { base = "50 millis", times } = options
  if (!Number.isSafeInteger(times) || times < 0)
    throw new RangeError(`retry: times must be a whole number, not ${String(times)}`)
  const first = Duration.toMillis(Duration.fromInputUnsafe(base))
  // What succeeds at once pays for one handler, and for no schedule.
  const again = <A, E, R>(self: Effect.Effect<A, E, R>, passes: (error: unknown) => boolean): Effect.Effect<A, E, R> => {
    const attempt = (left: number, pause: number): Effect.Effect<A, E, R> =>
      Effect.catch(self, (error) =>
        left > 0 && passes(error)
          ? Effect.flatMap(Random.next, (random) => Effect.delay(attempt(left - 1, pause * 2), pause * (0.8 + 0.4 * random)))
          : Effect.fail(error)
      )
    return attempt(times, first)
  }
  return ({ port }) => {
    const retried = around(port, (operation, next) =>
      !isMutation(operation)
        ? again(next, isPassing)
        : operation._tag === "Write" && operation.size === undefined
          ? next
          : again(next, isUndone)
    )
    const read = port.accelerations?.read
    return make({
      ...retried,
      history: port.history,
      open: (path) =>
        Effect.map(retried.open(path), (handle) => ({
          ...handle,
          read: (offset, length) => again(handle.read(offset, length), isPassing)
        })),
      accelerations: read && {
        read: (path, maxBytes) =>
          again(
            Effect.suspend(() => read(path, maxBytes)),
            isPassing
          )
      }
    })
  }
}
