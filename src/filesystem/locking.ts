/**
 * A request over the locks of several backends. It is first traced down to the locks that really exist, through every combinator that
 * was made here, and those are then taken one after another in one order for the whole program, each with all its paths at once. So
 * no two requests can wait for each other, and none for itself, even where both sides of a mount lie on the same backend.
 */
import type * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import type { Fault, Locks } from "../port/Backend.ts"

export interface Request {
  /** Left out where the backend has none: then there is nothing to take. */
  readonly locks: Locks | undefined
  readonly paths: ReadonlyArray<FsPath>
}

type Divide = (paths: ReadonlyArray<FsPath>) => ReadonlyArray<Request>

const divisions = new WeakMap<Locks, Divide>()

const ranks = new WeakMap<Locks, number>()
let ranked = 0

const rank = (locks: Locks): number => {
  let found = ranks.get(locks)
  if (found === undefined) ranks.set(locks, (found = ranked++))
  return found
}

const collect = (requests: ReadonlyArray<Request>, into: Map<Locks, Array<FsPath>>): Map<Locks, Array<FsPath>> => {
  for (const { locks, paths } of requests) {
    if (locks === undefined || paths.length === 0) continue
    const divide = divisions.get(locks)
    if (divide !== undefined) collect(divide(paths), into)
    else into.set(locks, [...(into.get(locks) ?? []), ...paths])
  }
  return into
}

/** Runs `effect` while all of it is held. */
export const exclusively = <A, E, R>(
  requests: ReadonlyArray<Request>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  [...collect(requests, new Map())]
    .sort(([self], [that]) => rank(that) - rank(self))
    .reduce((inner, [locks, paths]) => locks.exclusive(paths, inner), effect)

/** Runs `effect` while all of it is the effect's own to change. */
export const alone = <A, E, R>(requests: ReadonlyArray<Request>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  [...collect(requests, new Map())]
    .sort(([self], [that]) => rank(that) - rank(self))
    .reduce((inner, [locks, paths]) => locks.alone?.(paths, inner) ?? inner, effect)

type Claim = NonNullable<Locks["claim"]>

const claimThrough =
  (divide: Divide): Claim =>
  <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) =>
    divide([path]).reduceRight<Effect.Effect<A, E | Fault, R>>(
      (inner, { locks, paths }) => paths.reduceRight((inner, at) => locks?.claim?.(at, inner) ?? inner, inner),
      effect
    )

/** Locks that are other locks', as `divide` says. `claim` is for where the file lies at another path than its turn is taken for. */
export const composed = (divide: Divide, claim: Claim | undefined = claimThrough(divide)): Locks => {
  const locks: Locks = {
    exclusive: (paths, effect) => exclusively(divide(paths), effect),
    alone: (paths, effect) => alone(divide(paths), effect),
    claim
  }
  divisions.set(locks, divide)
  return locks
}
