/**
 * Composes the locks of several backends, and finds the weakest confinement and the strictest symlink rule of two backends.
 *
 * A request is first mapped through all combinators to the locks of the backends. The backends are locked one after another
 * in one global order, each with all its paths together. Two requests therefore cannot deadlock. A request cannot deadlock
 * with itself either, even if both filesystems of a mount use the same backend.
 */
import type * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import type { Fault, Info, Locks, Rules } from "../port/Backend.ts"

const confinements: ReadonlyArray<Info["confinement"]> = ["best-effort", "race-free-open", "race-free", "virtual"]

export const weakestConfinement = (self: Info, that: Info): Info["confinement"] =>
  confinements[Math.min(confinements.indexOf(self.confinement), confinements.indexOf(that.confinement))]!

const strictness: ReadonlyArray<NonNullable<Rules["symlinks"]>> = ["follow", "report", "refuse"]

export const strictestSymlinks = (self: Rules | undefined, that: Rules | undefined): NonNullable<Rules["symlinks"]> =>
  strictness[Math.max(strictness.indexOf(self?.symlinks ?? "follow"), strictness.indexOf(that?.symlinks ?? "follow"))]!

interface LockRequest {
  readonly locks: Locks | undefined
  readonly paths: ReadonlyArray<FsPath>
}

type DividePaths = (paths: ReadonlyArray<FsPath>) => ReadonlyArray<LockRequest>

const divideByLocks = new WeakMap<Locks, DividePaths>()

const rankByLocks = new WeakMap<Locks, number>()
let nextRank = 0

const rankOf = (locks: Locks): number => {
  let found = rankByLocks.get(locks)
  if (found === undefined) rankByLocks.set(locks, (found = nextRank++))
  return found
}

const collectLocks = (requests: ReadonlyArray<LockRequest>, into: Map<Locks, Array<FsPath>>): Map<Locks, Array<FsPath>> => {
  for (const { locks, paths } of requests) {
    if (locks === undefined || paths.length === 0) continue
    const divide = divideByLocks.get(locks)
    if (divide !== undefined) collectLocks(divide(paths), into)
    else into.set(locks, [...(into.get(locks) ?? []), ...paths])
  }
  return into
}

const innermostFirst = (requests: ReadonlyArray<LockRequest>): ReadonlyArray<readonly [Locks, ReadonlyArray<FsPath>]> =>
  [...collectLocks(requests, new Map())].sort(([self], [that]) => rankOf(that) - rankOf(self))

export const withExclusiveLocks = <A, E, R>(
  requests: ReadonlyArray<LockRequest>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => innermostFirst(requests).reduce((inner, [locks, paths]) => locks.exclusive(paths, inner), effect)

/** Runs `effect` under locks that are reentrant for calls inside the effect. */
const alone = <A, E, R>(requests: ReadonlyArray<LockRequest>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  innermostFirst(requests).reduce((inner, [locks, paths]) => locks.alone?.(paths, inner) ?? inner, effect)

type Claim = NonNullable<Locks["claim"]>

const makeClaimThrough =
  (divide: DividePaths): Claim =>
  <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) =>
    divide([path]).reduceRight<Effect.Effect<A, E | Fault, R>>(
      (inner, { locks, paths }) => paths.reduceRight((inner, at) => locks?.claim?.(at, inner) ?? inner, inner),
      effect
    )

/**
 * Composes the locks of several backends. `divide` assigns each path to a backend. Callers pass `claim` if a file and its lock
 * have different paths.
 */
export const composeLocks = (divide: DividePaths, claim: Claim | undefined = makeClaimThrough(divide)): Locks => {
  const locks: Locks = {
    exclusive: (paths, effect) => withExclusiveLocks(divide(paths), effect),
    alone: (paths, effect) => alone(divide(paths), effect),
    claim
  }
  divideByLocks.set(locks, divide)
  return locks
}
