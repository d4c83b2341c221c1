/**
 * Path locks: writes to one path run one after another, in order of arrival, while other paths proceed.
 *
 * A request locks its paths exclusively and every directory above them shared. So removing or moving a directory waits for
 * the writers below it, and locking the root excludes everything. A request takes all its locks in one step, so two
 * requests cannot deadlock.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { fold, type FsPath, isWithin, parent, root } from "../model/FsPath.ts"

export interface Locks {
  /** Runs `effect` with exclusive locks on `paths`. A caller that is interrupted while it waits leaves the queue. */
  readonly exclusive: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Runs `effect` with the locks of `exclusive`. Calls inside the effect may lock these paths again, and wait only for
   * each other.
   */
  readonly alone: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

interface LockHolder {
  readonly owner: object
  readonly keys: ReadonlyArray<FsPath>
  readonly innerLocks: Locks
  readonly above: LockHolder | undefined
  /** True after the holder has ended. A fiber that outlives the holder no longer holds its locks. */
  isOver: boolean
}

const CurrentHolder: Context.Reference<LockHolder | undefined> = Context.Reference<LockHolder | undefined>(
  "fs-algebra/runtime/Holding",
  {
    defaultValue: () => undefined
  }
)

const findHolder = (owner: object, from: LockHolder | undefined): LockHolder | undefined => {
  for (let at = from; at !== undefined; at = at.above) if (at.owner === owner && !at.isOver) return at
  return undefined
}

const exclusiveLock = -1

interface LockRequest {
  readonly exclusive: ReadonlyArray<FsPath>
  readonly shared: ReadonlyArray<FsPath>
  resume: (() => void) | undefined
}

export const make = (options?: { readonly caseSensitive?: boolean | undefined }): Locks => {
  /** The number of shared locks of each locked path, or `exclusiveLock`. */
  const lockStates = new Map<FsPath, number>()
  const waiting: Array<LockRequest> = []
  const ignoresCase = options?.caseSensitive === false

  const makeRequest = (paths: ReadonlyArray<FsPath>): LockRequest => {
    const exclusive: Array<FsPath> = []
    for (const path of paths) {
      const key = ignoresCase ? fold(path) : path
      if (!exclusive.includes(key)) exclusive.push(key)
    }
    const shared: Array<FsPath> = []
    for (const path of exclusive) {
      for (let at = path; at !== root;) {
        at = parent(at)
        if (!shared.includes(at) && !exclusive.includes(at)) shared.push(at)
      }
    }
    return { exclusive, shared, resume: undefined }
  }
  const canTake = (self: LockRequest): boolean => {
    for (const path of self.exclusive) if (lockStates.has(path)) return false
    for (const path of self.shared) if (lockStates.get(path) === exclusiveLock) return false
    return true
  }
  const conflicts = (self: LockRequest, that: LockRequest): boolean =>
    self.exclusive.some((path) => that.exclusive.includes(path) || that.shared.includes(path)) ||
    self.shared.some((path) => that.exclusive.includes(path))
  const take = (self: LockRequest): void => {
    for (const path of self.exclusive) lockStates.set(path, exclusiveLock)
    for (const path of self.shared) lockStates.set(path, (lockStates.get(path) ?? 0) + 1)
  }
  const grantWaiting = (): void => {
    for (let i = 0; i < waiting.length;) {
      const next = waiting[i]!
      if (!canTake(next) || waiting.slice(0, i).some((earlier) => conflicts(earlier, next))) {
        i++
        continue
      }
      waiting.splice(i, 1)
      take(next)
      next.resume!()
    }
  }
  const release = (self: LockRequest): void => {
    for (const path of self.exclusive) lockStates.delete(path)
    for (const path of self.shared) {
      const count = lockStates.get(path)!
      if (count === 1) lockStates.delete(path)
      else lockStates.set(path, count - 1)
    }
    if (waiting.length > 0) grantWaiting()
  }
  const wait = (self: LockRequest): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      let granted = false
      self.resume = () => {
        granted = true
        resume(Effect.void)
      }
      waiting.push(self)
      return Effect.sync(() => {
        if (granted) release(self)
        else {
          waiting.splice(waiting.indexOf(self), 1)
          grantWaiting()
        }
      })
    })

  const withLocks: Locks["exclusive"] = (paths, effect) =>
    Effect.uninterruptibleMask((restore) => {
      const self = makeRequest(paths)
      const run = Effect.onExit(restore(effect), () => {
        release(self)
        return Effect.void
      })
      if (canTake(self) && !waiting.some((earlier) => conflicts(earlier, self))) {
        take(self)
        return run
      }
      return Effect.flatMap(restore(wait(self)), () => run)
    })

  const keyOf = (path: FsPath): FsPath => (ignoresCase ? fold(path) : path)
  /**
   * Runs the effect with locks on the paths. If an outer `alone` already holds a path, the path is locked only among
   * the calls inside that `alone`.
   */
  const withLocksFrom = <A, E, R>(
    holding: LockHolder | undefined,
    paths: ReadonlyArray<FsPath>,
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> => {
    if (holding === undefined) return withLocks(paths, effect)
    const isCovered = (path: FsPath): boolean => holding.keys.some((key) => isWithin(key, keyOf(path)))
    // A lock on a directory above a held path would wait forever, so it is not requested.
    const isFree = (path: FsPath): boolean => !isCovered(path) && !holding.keys.some((key) => isWithin(keyOf(path), key))
    const uncoveredPaths = paths.filter(isFree)
    const runCovered = holding.innerLocks.exclusive(paths.filter(isCovered), effect)
    return uncoveredPaths.length === 0
      ? runCovered
      : withLocksFrom(findHolder(lockStates, holding.above), uncoveredPaths, runCovered)
  }
  const exclusive: Locks["exclusive"] = (paths, effect) =>
    Effect.withFiber((fiber) => withLocksFrom(findHolder(lockStates, fiber.getRef(CurrentHolder)), paths, effect))

  return {
    exclusive,
    alone: (paths, effect) =>
      exclusive(
        paths,
        Effect.withFiber((fiber) => {
          const holding: LockHolder = {
            owner: lockStates,
            keys: paths.map(keyOf),
            innerLocks: make(options),
            above: fiber.getRef(CurrentHolder),
            isOver: false
          }
          // Wait for fibers that still hold an inner lock, so that they do not run together with the next holder.
          const endHolding = Effect.suspend(() => {
            holding.isOver = true
            return holding.innerLocks.exclusive([root], Effect.void)
          })
          return Effect.ensuring(Effect.provideService(effect, CurrentHolder, holding), endHolding)
        })
      )
  }
}

/**
 * Returns the locks of a part of a larger filesystem.
 *
 * `alone` first locks the whole filesystem with `whole`, and then takes its own locks. So if its effect later locks the
 * whole filesystem too, this lock is already held and cannot deadlock.
 */
export const nestLocks = (whole: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>, own: Locks): Locks => ({
  exclusive: own.exclusive,
  alone: (paths, effect) => whole(own.alone(paths, effect))
})

/**
 * Runs an acquisition without the current lock holder in its context.
 *
 * A release runs with the context of its acquisition. Without a holder in that context, the release uses the locks that
 * the releasing fiber holds, and so does not wait for them.
 */
export const withoutHolder = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => Context.omit(CurrentHolder)(context) as Context.Context<R>)
