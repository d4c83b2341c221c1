/**
 * One tree is exchanged by one at a time, in whatever process: what another one looked at before may not be what this one leaves. Whoever
 * comes makes a hidden directory of its own first and looks for those of others second, so of two that come at once at least one sees
 * the other, and gives way. It lies in the tree, since that is all that those who exchange it have in common.
 */
import * as Effect from "effect/Effect"
import { randomInt } from "node:crypto"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { abandoned, inUse, makeToken, ownerOf } from "./places.ts"
import { isLeft } from "./recover.ts"

/** Milliseconds that are waited between two looks at least, and in all. */
const [between, patience] = [10, 120_000] as const

/** Of the real time, whatever clock the program has: what is waited for is another process. */
const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })

const busy: Fault = { _tag: "AccessDenied", path: FsPath.root, why: "busy" }

const isAnybody = Effect.fnUntraced(function* (port: Backend, own: string): Effect.fn.Return<boolean, Fault> {
  for (const { kind, name } of yield* port.list(FsPath.root)) {
    const owner = ownerOf(name)
    if (owner === undefined || name === own || kind !== "directory") continue
    if (!(yield* isLeft(port, name, owner))) return true
  }
  return false
})

/** What cannot be removed is left for whoever comes next, and nobody takes it for one who is at work. */
const leave = (port: Backend, token: string): Effect.Effect<void> =>
  Effect.suspend(() => port.remove(FsPath.join(FsPath.root, token))).pipe(
    Effect.catch((fault) => (fault._tag === "NotFound" ? Effect.void : Effect.fail(fault))),
    // A defect leaves it there as a fault does.
    Effect.sandbox,
    Effect.retry({ times: 2 }),
    Effect.catch(() => Effect.sync(() => void abandoned.add(token))),
    Effect.provideService(TakingBack, true),
    Effect.ensuring(Effect.sync(() => void inUse.delete(token)))
  )

const enter = (port: Backend, token: string): Effect.Effect<void, Fault> =>
  Effect.suspend(() => {
    inUse.add(token)
    return port.makeDirectory(FsPath.join(FsPath.root, token))
  })

/** Runs the effect while nobody else exchanges this tree. In memory there is nobody else. Fails with AccessDenied `busy`. */
export const taking = <A, E, R>(port: Backend, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> => {
  if (port.info.confinement === "virtual") return effect
  const attempt = (waited: number): Effect.Effect<A, E | Fault, R> => {
    const token = makeToken()
    const tried: Effect.Effect<{ readonly value: A } | undefined, E | Fault, R> = Effect.acquireUseRelease(
      Effect.onError(enter(port, token), () => leave(port, token)),
      () =>
        Effect.flatMap(isAnybody(port, token), (isBusy): Effect.Effect<{ readonly value: A } | undefined, E, R> =>
          isBusy ? Effect.succeed(undefined) : Effect.map(effect, (value) => ({ value }))
        ),
      () => leave(port, token)
    )
    return Effect.flatMap(tried, (done) => {
      if (done !== undefined) return Effect.succeed(done.value)
      if (waited > patience) return Effect.fail(busy)
      const wait = between + randomInt(Math.min(500, between + waited))
      return Effect.andThen(pause(wait), attempt(waited + wait))
    })
  }
  return Effect.suspend(() => attempt(0))
}
