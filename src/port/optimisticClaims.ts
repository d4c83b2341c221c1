/**
 * Claims of backends whose store accepts a write only under a condition, such as the tag of an object or the root of a tree.
 *
 * A claim does not exclude other writers. The claim records the state that the precondition check read, and the write is
 * conditional on this state. If the store refuses the write, the check and the write run again.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Fault } from "../model/Fault.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Locks } from "./Backend.ts"

export interface Claim<Seen> {
  readonly path: FsPath
  /** The first state that the holder of the claim read; `undefined` before the first read. */
  seen: Seen | undefined
}

/** The maximum number of retries of a write after other writers were faster. */
export const maxAttempts = 32

/** A pause of 1 to 20 milliseconds. The length is random, so that competing writers do not retry at the same time. */
export const shortPause: Effect.Effect<void> = Effect.flatMap(Random.nextBetween(1, 20), (millis) => Effect.sleep(millis))

let count = 0

/**
 * Creates the claims of one backend. If the entry no longer has the state in the claim, a write of the backend must fail with
 * the object `overtaken` itself.
 */
export const makeClaims = <Seen>(overtaken: Fault) => {
  // A backend may call another backend with the same path, so each backend has its own reference.
  const Current = Context.Reference<Claim<Seen> | undefined>(`fs-algebra/Claim/${count++}`, { defaultValue: () => undefined })

  /** Returns the claim that the running effect holds on the path. */
  const claimOf = (path: FsPath): Effect.Effect<Claim<Seen> | undefined> =>
    Effect.map(Current, (claim) => (claim?.path === path ? claim : undefined))

  const claim: NonNullable<Locks["claim"]> = <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>) => {
    const attempt = (left: number): Effect.Effect<A, E | Fault, R> =>
      Effect.catch(
        Effect.suspend(() => Effect.provideService(effect, Current, { path, seen: undefined })),
        (error): Effect.Effect<A, E | Fault, R> =>
          error !== overtaken || left === 0 ? Effect.fail(error) : Effect.andThen(shortPause, attempt(left - 1))
      )
    return attempt(maxAttempts)
  }

  return { claim, claimOf }
}
