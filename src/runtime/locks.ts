/**
 * Path locks: writes to one path run one after another, in order of arrival, while other paths proceed.
 *
 * A request locks its paths exclusively and every directory above them shared. So removing or moving a directory waits
 * for the writers below it, and locking the root excludes everything. A request takes all its locks at once, so two
 * requests cannot deadlock.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { fold, type FsPath, isWithin, parent, root } from "../model/FsPath.ts"

export interface Locks {
  /** Runs `effect` with exclusive locks on `paths`. An interruption while waiting leaves the queue. */
  readonly exclusive: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Runs `effect` with the same locks. Requests of the effect itself for these paths exclude only each other. */
  readonly alone: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

interface Held {
  readonly owner: object
  readonly keys: ReadonlyArray<FsPath>
  readonly turns: Locks
  readonly above: Held | undefined
  /** Set when the holder has ended. A fiber that outlives the holder no longer holds its locks. */
  isOver: boolean
}

const Holding: Context.Reference<Held | undefined> = Context.Reference<Held | undefined>("fs-algebra/runtime/Holding", {
  defaultValue: () => undefined
})

const heldBy = (owner: object, from: Held | undefined): Held | undefined => {
  for (let at = from; at !== undefined; at = at.above) if (at.owner === owner && !at.isOver) return at
  return undefined
}

interface Hold {
  shared: number
  exclusive: boolean
}

interface Request {
  readonly exclusive: ReadonlyArray<FsPath>
  readonly shared: ReadonlyArray<FsPath>
  resume: (() => void) | undefined
}

const above = (path: FsPath, out: Array<FsPath>): void => {
  for (let at = path; at !== root;) {
    at = parent(at)
    if (!out.includes(at)) out.push(at)
  }
}

export const make = (options?: { readonly caseSensitive?: boolean | undefined }): Locks => {
  const held = new Map<FsPath, Hold>()
  const waiting: Array<Request> = []
  const folds = options?.caseSensitive === false

  const request = (paths: ReadonlyArray<FsPath>): Request => {
    const exclusive: Array<FsPath> = []
    for (const path of paths) {
      const key = folds ? fold(path) : path
      if (!exclusive.includes(key)) exclusive.push(key)
    }
    const shared: Array<FsPath> = []
    for (const path of exclusive) above(path, shared)
    return { exclusive, shared: shared.filter((path) => !exclusive.includes(path)), resume: undefined }
  }
  const free = (self: Request): boolean => {
    for (const path of self.exclusive) if (held.has(path)) return false
    for (const path of self.shared) if (held.get(path)?.exclusive === true) return false
    return true
  }
  const conflicts = (self: Request, that: Request): boolean =>
    self.exclusive.some((path) => that.exclusive.includes(path) || that.shared.includes(path)) ||
    self.shared.some((path) => that.exclusive.includes(path))
  const take = (self: Request): void => {
    for (const path of self.exclusive) held.set(path, { shared: 0, exclusive: true })
    for (const path of self.shared) {
      const hold = held.get(path)
      if (hold === undefined) held.set(path, { shared: 1, exclusive: false })
      else hold.shared++
    }
  }
  const wake = (): void => {
    for (let i = 0; i < waiting.length;) {
      const next = waiting[i]!
      if (!free(next) || waiting.slice(0, i).some((earlier) => conflicts(earlier, next))) {
        i++
        continue
      }
      waiting.splice(i, 1)
      take(next)
      next.resume!()
    }
  }
  const release = (self: Request): void => {
    for (const path of self.exclusive) held.delete(path)
    for (const path of self.shared) {
      const hold = held.get(path)!
      if (--hold.shared === 0) held.delete(path)
    }
    if (waiting.length > 0) wake()
  }
  const wait = (self: Request): Effect.Effect<void> =>
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
          wake()
        }
      })
    })

  const takingTurns: Locks["exclusive"] = (paths, effect) =>
    Effect.uninterruptibleMask((restore) => {
      const self = request(paths)
      const run = Effect.ensuring(
        restore(effect),
        Effect.sync(() => release(self))
      )
      if (free(self) && !waiting.some((earlier) => conflicts(earlier, self))) {
        take(self)
        return run
      }
      return Effect.flatMap(restore(wait(self)), () => run)
    })

  const keyOf = (path: FsPath): FsPath => (folds ? fold(path) : path)
  /** Locks each path at the innermost holder that covers it, and all other paths at the shared locks. */
  const takingFrom = <A, E, R>(
    holding: Held | undefined,
    paths: ReadonlyArray<FsPath>,
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> => {
    if (holding === undefined) return takingTurns(paths, effect)
    const isOurs = (path: FsPath): boolean => holding.keys.some((key) => isWithin(key, keyOf(path)))
    // A path that contains a held one would wait for ever, so it is not requested.
    const isFree = (path: FsPath): boolean => !isOurs(path) && !holding.keys.some((key) => isWithin(keyOf(path), key))
    const elsewhere = paths.filter(isFree)
    const ours = holding.turns.exclusive(paths.filter(isOurs), effect)
    return elsewhere.length === 0 ? ours : takingFrom(heldBy(held, holding.above), elsewhere, ours)
  }
  const exclusive: Locks["exclusive"] = (paths, effect) =>
    Effect.withFiber((fiber) => takingFrom(heldBy(held, fiber.getRef(Holding)), paths, effect))

  return {
    exclusive,
    alone: (paths, effect) =>
      exclusive(
        paths,
        Effect.withFiber((fiber) => {
          const holding: Held = {
            owner: held,
            keys: paths.map(keyOf),
            turns: make(options),
            above: fiber.getRef(Holding),
            isOver: false
          }
          // Wait for fibers that still hold an inner lock, so that they cannot meet the next holder.
          const over = Effect.suspend(() => {
            holding.isOver = true
            return holding.turns.exclusive([root], Effect.void)
          })
          return Effect.ensuring(Effect.provideService(effect, Holding, holding), over)
        })
      )
  }
}

/**
 * Returns the locks of a part of a larger whole. `alone` locks the whole first, by `whole`, which covers these locks
 * too.
 *
 * So a holder that goes on from a part to the whole already holds it and cannot deadlock.
 */
export const within = (whole: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>, own: Locks): Locks => ({
  exclusive: own.exclusive,
  alone: (paths, effect) => whole(own.alone(paths, effect))
})

/**
 * Runs an acquisition without the current lock holder in its context.
 *
 * A release runs with the context of its acquisition. Without a holder in that context, the release uses the locks of the
 * releasing fiber, and so does not wait for them.
 */
export const unheld = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => Context.omit(Holding)(context) as Context.Context<R>)
