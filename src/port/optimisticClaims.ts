/**
 * Claims of backends whose store decides each write by a condition, such as the tag of an object or the root of a tree.
 *
 * A claim excludes nobody. It remembers what the check has seen, the write names it, and if the store refuses the write, both
 * run again.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type { Fault } from "../model/Fault.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Locks } from "./Backend.ts"

export interface Claim<Seen> {
  readonly path: FsPath
  /** The state that the holder saw first; `undefined` until it looks. */
  seen: Seen | undefined
}

/** The number of times that a write is made again because other writers were faster. */
export const maxAttempts = 32

/** A pause of random length, after which competing writers no longer collide. */
export const shortPause: Effect.Effect<void> = Effect.flatMap(Random.nextBetween(1, 20), (millis) => Effect.sleep(millis))

let count = 0

/** Makes the claims of one backend. Its operations fail with this very `overtaken` if the entry is no longer as seen. */
export const makeClaims = <Seen>(overtaken: Fault) => {
  // A call on one backend can call another with the same path. So each backend has a reference of its own.
  const Current = Context.Reference<Claim<Seen> | undefined>(`fs-algebra/Claim/${count++}`, { defaultValue: () => undefined })

  /** Returns the claim that the running effect holds on the path. */
  const claimOf = (path: FsPath): Effect.Effect<Claim<Seen> | undefined> =>
    Effect.map(Current, (claim) => (claim?.path === path ? claim : undefined))

  /** Tests whether a fiber holds a claim. */
  const isClaiming = (fiber: Fiber.Fiber<unknown, unknown>): boolean => fiber.getRef(Current) !== undefined

  const claim: NonNullable<Locks["claim"]> = <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) => {
    const attempt = (left: number): Effect.Effect<A, E | Fault, R> =>
      Effect.catch(
        Effect.suspend(() => Effect.provideService(effect, Current, { path, seen: undefined })),
        (error): Effect.Effect<A, E | Fault, R> =>
          error !== overtaken || left === 0 ? Effect.fail(error) : Effect.andThen(shortPause, attempt(left - 1))
      )
    return attempt(maxAttempts)
  }

  return { claim, claimOf, isClaiming }
}
