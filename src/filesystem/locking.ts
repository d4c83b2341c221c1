/**
 * Locks across several backends.
 *
 * A request is first traced through all combinators down to the real locks. These are taken one after another in one
 * global order, each with all its paths at once. So no two requests can deadlock, and no request with itself, even if
 * both sides of a mount are on the same backend.
 */
import type * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import type { Fault, Locks } from "../port/Backend.ts"

export interface Request {
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

export const exclusively = <A, E, R>(
  requests: ReadonlyArray<Request>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  [...collect(requests, new Map())]
    .sort(([self], [that]) => rank(that) - rank(self))
    .reduce((inner, [locks, paths]) => locks.exclusive(paths, inner), effect)

/** Runs `effect` with locks that the effect's own calls may take again. */
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

/** Composes locks from others, as `divide` defines. `claim` is needed if the file's path differs from its lock's path. */
export const composed = (divide: Divide, claim: Claim | undefined = claimThrough(divide)): Locks => {
  const locks: Locks = {
    exclusive: (paths, effect) => exclusively(divide(paths), effect),
    alone: (paths, effect) => alone(divide(paths), effect),
    claim
  }
  divisions.set(locks, divide)
  return locks
}
