/**
 * Decorators: functions from a filesystem to a filesystem with fewer permissions, a smaller view, a quota, tracing or
 * retries.
 *
 * Each decorator wraps the port, so no call can bypass it, and `make` turns the port into a filesystem again. Every decorator
 * keeps the locks. A decorator keeps an acceleration or `history` only if the call cannot bypass the decorator.
 *
 * @since 0.1.0
 */
import { is as isFault, accessDenied, notFound, notADirectory } from "../model/Fault.ts"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { resolve } from "../engine/resolve.ts"
import type { ListError, NotADirectory, StatError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { around, type Backend, mapPath, type WritePlan } from "../port/Backend.ts"
import { isMutation } from "../port/Operation.ts"
import * as Request from "../port/Request.ts"
import { type Algebra, make } from "./Filesystem.ts"
import { composeLocks, withExclusiveLocks } from "./locking.ts"
import * as Caller from "./operations/call.ts"
import * as Quota from "./quota.ts"
import * as Traced from "./traced.ts"

const readingAccelerations = ({ explore, perform }: Backend): Pick<Backend, "explore" | "perform"> => ({
  explore,
  perform: Request.only(perform, Request.reading)
})

/**
 * Makes a filesystem read-only: every change fails with AccessDenied `readOnly`, before any call of the backend.
 *
 * @example
 * ```ts
 * const refused = yield* Effect.flip(Decorator.readOnly(fs).write("a.txt", "one"))
 * refused._tag // => "AccessDenied"
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const readOnly = (self: Algebra): Algebra => {
  const { port } = self
  const { hostRoots } = port
  return make({
    ...around(port, (operation, next) => (isMutation(operation) ? Effect.fail(accessDenied("readOnly")) : next)),
    info: { ...port.info, readOnly: true },
    rules: { ...port.rules, permits: () => false },
    hostRoots: hostRoots && { ...hostRoots, settleTransactions: () => hostRoots.settleTransactions(() => false) },
    ...readingAccelerations(port)
  })
}

const isRoot = (path: FsPath.FsPath): boolean => path === FsPath.root

/** Tests whether the plan requires an existing file. A write of an existing file creates no parents. */
const requiresExistingFile = ({ ifMatch, mode }: WritePlan): boolean =>
  typeof ifMatch === "string" || mode === "replace" || mode === "appendExisting"

const isTop = (path: FsPath.FsPath): boolean => isRoot(FsPath.parent(path))

/**
 * Returns the handlers of whole changes for a filesystem whose root is a directory of another filesystem.
 *
 * The handlers must not create parents, because they would then re-create a removed root directory.
 */
const changeAccelerationsBelow = (perform: Request.Perform): Request.Handlers => ({
  Write: <E, R>(request: Request.Write<E, R>) =>
    request.plan.createParents && !requiresExistingFile(request.plan) && !isTop(request.path)
      ? Request.declined
      : perform<E, R>({ ...request, plan: { ...request.plan, createParents: false } }),
  Remove: (request) => (isRoot(request.path) ? Effect.fail(accessDenied("root")) : perform(request)),
  MakeDirectory: (request) =>
    isRoot(request.path) || (request.plan.parents && !isTop(request.path))
      ? Request.declined
      : perform({ ...request, plan: { ...request.plan, parents: false } }),
  Move: (request) =>
    isRoot(request.path) || isRoot(request.to)
      ? Effect.fail(accessDenied("root"))
      : request.plan.createParents && !isTop(request.to)
        ? Request.declined
        : perform({ ...request, plan: { ...request.plan, createParents: false } })
})

const subdirectoryPort = (self: Backend, base: FsPath.FsPath): Backend => {
  const toOuterPath = (path: FsPath.FsPath): FsPath.FsPath => FsPath.below(base, path)
  const port = mapPath(self, toOuterPath, (path) => FsPath.relative(base, path))
  const { root } = self.info
  const { locks } = self
  const depth = FsPath.segments(base).length
  return {
    ...port,
    info: { ...self.info, root: isRoot(base) ? root : root.endsWith("/") ? `${root}${base}` : `${root}/${base}` },
    remove: (path) => (isRoot(path) ? Effect.fail(accessDenied("root")) : port.remove(path)),
    rename: (from, to, options) =>
      isRoot(from) || isRoot(to) ? Effect.fail(accessDenied("root")) : port.rename(from, to, options),
    locks: locks && composeLocks((paths) => [{ locks, paths: paths.map(toOuterPath) }]),
    perform: Request.override(port.perform, (perform) => ({
      ...(!isRoot(base) && changeAccelerationsBelow(perform)),
      RemoveTree: (request) => (isRoot(request.path) ? Effect.fail(accessDenied("root")) : perform(request)),
      // Decline the whole request if it contains the root: a view never creates its base directory.
      MakeMany: (request) => (request.entries.some(({ path }) => isRoot(path)) ? Request.declined : perform(request)),
      // Decline an answer of at most `depth` entries, because it shows that the base directory no longer exists.
      Look: (request) =>
        Effect.map(perform(request), (seen) =>
          Option.map(
            Option.filter(seen, (all) => all.length > depth),
            (all) => all.slice(depth)
          )
        )
    }))
  }
}

const subdirectoryErrorTags: Caller.ErrorTags = new Set([...Caller.errorTags.stat, "NotADirectory"])

/**
 * Returns a filesystem whose root is the given directory.
 *
 * Symlinks in the path of the directory are resolved once, when this effect runs. Symlinks that lead out of the directory fail
 * with AccessDenied `escape`, even if they stay within the original filesystem. Fails with NotFound if the directory is
 * missing.
 *
 * @category combinators
 * @since 0.1.0
 */
export const subdirectory =
  (path: string) =>
  (self: Algebra): Effect.Effect<Algebra, StatError | NotADirectory> => {
    const { port } = self
    return Caller.make(port).call("subdirectory", path, subdirectoryErrorTags, Caller.readActions, (path) =>
      Effect.flatMap(resolve(port, path), (found) =>
        found.stat === undefined
          ? Effect.fail(notFound)
          : found.stat.kind === "directory"
            ? Effect.sync(() => make(subdirectoryPort(port, found.path)))
            : Effect.fail(notADirectory)
      )
    )
  }

/**
 * The limits of a quota.
 *
 * @since 0.1.0
 */
export interface QuotaOptions {
  /** The maximum total size of all regular files, in bytes. @default no bound */
  readonly maxBytes?: number | undefined
  /** The maximum number of files, symlinks and entries of kind `other`. Directories do not count. @default no bound */
  readonly maxFiles?: number | undefined
}

const toQuotaBound = (name: string, value = Number.POSITIVE_INFINITY): number => {
  if (typeof value === "number" && value >= 0) return value
  throw new RangeError(`quota: ${name} must be a number of at least 0, not ${String(value)}`)
}

/**
 * Limits the bytes and files of a filesystem. A change that exceeds a limit fails with DiskFull and leaves nothing
 * behind. A stream fails as soon as its bytes exceed the limit.
 *
 * The effect counts the existing content once. Later changes through this filesystem are counted. The replacement of a file
 * counts the difference between the new and the old size. Existing content that exceeds a limit stays, and may shrink.
 *
 * If a limit is negative or NaN, the effect dies with a RangeError.
 *
 * @category combinators
 * @since 0.1.0
 */
export const quota =
  (options: QuotaOptions) =>
  (self: Algebra): Effect.Effect<Algebra, ListError> =>
    Effect.suspend(() => {
      const bounds = {
        maxBytes: toQuotaBound("maxBytes", options.maxBytes),
        maxFiles: toQuotaBound("maxFiles", options.maxFiles)
      }
      const { port } = self
      return Caller.make(port).run("quota", ".", Caller.errorTags.list, () =>
        Effect.map(withExclusiveLocks([{ locks: port.locks, paths: [FsPath.root] }], Quota.measure(port)), (usage) =>
          make({ ...Quota.around(port, bounds, usage), ...readingAccelerations(port) })
        )
      )
    })

/**
 * Adds one span `Filesystem.<operation>` per call, with the attributes `path` (as the caller wrote it) and `backend`,
 * and metrics:
 *
 * - `fs_algebra_calls_total` and `fs_algebra_call_duration_ms`, by operation and backend
 * - `fs_algebra_errors_total`, by operation, backend and the error's tag
 * - `fs_algebra_read_bytes_total` and `fs_algebra_written_bytes_total`, by backend
 *
 * Without this decorator there are no spans and no metrics. A filesystem that is already traced is returned unchanged.
 *
 * @category combinators
 * @since 0.1.0
 */
export const traced = (self: Algebra): Algebra => (Traced.isTraced(self.port) ? self : make(Traced.around(self.port)))

/**
 * The number of retries and the pauses between them.
 *
 * @since 0.1.0
 */
export interface RetryOptions {
  /** The number of retries after the first attempt: a whole number of at least 0. Other numbers throw a RangeError. */
  readonly times: number
  /**
   * The first pause. Each following pause is twice as long. Every pause varies randomly by up to a fifth.
   * @default 50 milliseconds
   */
  readonly base?: Duration.Input | undefined
}

const noEffectErrorCodes = new Set<unknown>(["EMFILE", "ENFILE", "EAGAIN"])

const temporaryErrorCodes = new Set<unknown>([
  ...noEffectErrorCodes,
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

const isWithoutEffect = (error: unknown): boolean =>
  isBusy(error) || (isFault(error, "IoError") && noEffectErrorCodes.has(error["code"]))

const isPassing = (error: unknown): boolean =>
  isBusy(error) ||
  isFault(error, "Timeout") ||
  isFault(error, "Unavailable") ||
  (isFault(error, "IoError") && temporaryErrorCodes.has(error["code"]))

const wholeReads = new Set<Request.Tag>(["Read"])

/**
 * Retries calls that fail for a temporary reason.
 *
 * Reads are retried after Timeout, Unavailable, AccessDenied `busy`, and IoError with a code such as EMFILE, EAGAIN,
 * EINTR or ECONNRESET. Changes are retried only if the fault means that nothing was done (`busy`, EMFILE, ENFILE,
 * EAGAIN). A write of a stream is never retried, because a stream can run only once.
 *
 * @category combinators
 * @since 0.1.0
 */
export const retry = (options: RetryOptions): ((self: Algebra) => Algebra) => {
  const { base = "50 millis", times } = options
  if (!Number.isSafeInteger(times) || times < 0)
    throw new RangeError(`retry: times must be a whole number of at least 0, not ${String(times)}`)
  const firstPauseMillis = Duration.toMillis(Duration.fromInputUnsafe(base))
  // A call that succeeds immediately costs only one error handler.
  const retryWhile = <A, E, R>(
    self: Effect.Effect<A, E, R>,
    isRetryable: (error: unknown) => boolean
  ): Effect.Effect<A, E, R> => {
    const attempt = (retriesLeft: number, pauseMillis: number): Effect.Effect<A, E, R> =>
      Effect.catch(self, (error) =>
        retriesLeft > 0 && isRetryable(error)
          ? Effect.flatMap(Random.next, (random) =>
              Effect.delay(attempt(retriesLeft - 1, pauseMillis * 2), pauseMillis * (0.8 + 0.4 * random))
            )
          : Effect.fail(error)
      )
    return attempt(times, firstPauseMillis)
  }
  return ({ port }) => {
    const retried = around(port, (operation, next) =>
      !isMutation(operation)
        ? retryWhile(next, isPassing)
        : operation._tag === "Write" && operation.size === undefined
          ? next
          : retryWhile(next, isWithoutEffect)
    )
    return make({
      ...retried,
      history: port.history,
      open: (path) =>
        Effect.map(retried.open(path), (handle) => ({
          ...handle,
          read: (offset, length) => retryWhile(handle.read(offset, length), isPassing)
        })),
      perform: Request.override(Request.only(port.perform, wholeReads), (perform) => ({
        Read: (request) =>
          retryWhile(
            Effect.suspend(() => perform(request)),
            isPassing
          )
      }))
    })
  }
}
