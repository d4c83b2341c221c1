/**
 * One tree is made into another in two parts. All that takes time or can go wrong is done in hiding, on the same disk; then what differs
 * is renamed into place. Whoever is stopped in the first part leaves nothing, in the second everything as it was; and whoever is killed
 * leaves a journal, by which the next start finishes it.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { TakingBack } from "../port/Rules.ts"
import { inspect } from "./exchange/inspect.ts"
import * as Journal from "./exchange/journal.ts"
import { abandoned, inUse, makeToken, probeOf, type Region, stagingIn } from "./exchange/places.ts"
import * as Plan from "./exchange/plan.ts"
import { type Content, keep, type Mismatch, stage } from "./exchange/stage.ts"
import * as Staging from "./exchange/staging.ts"
import { type Crossing, swap } from "./exchange/swap.ts"
import type { DirectoryNode } from "./tree.ts"

export { isUnreadable, recover } from "./exchange/recover.ts"
export type { Content, Mismatch } from "./exchange/stage.ts"

export interface Goal<E> {
  /** What is there now. */
  readonly before: DirectoryNode
  readonly after: DirectoryNode
  /** The bytes of a file of `after`, by the path that it has there. Small files are best given whole. */
  readonly content: Content<E>
  /** After each file or link that has been made, of how many. */
  readonly onProgress?: ((done: number, of: number) => Effect.Effect<void>) | undefined
}

/** Directories that are known to lie on other disks than what is above them, and whether only names in them can be exchanged. */
type Crossings = Map<FsPath.FsPath, boolean>

const isCrossing = (error: unknown): error is Crossing =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "Crossing"

const first: Region = { path: FsPath.root, isFlat: false }

const journalAs = (token: string, name: keyof typeof Journal.names): FsPath.FsPath =>
  FsPath.join(stagingIn(first, token), Journal.names[name])

/** A few times, since what is left of it is of no use to anybody. */
const persistently = (effect: Effect.Effect<void, Fault>): Effect.Effect<void> => {
  const attempt = (left: number): Effect.Effect<void> =>
    Effect.flatMap(Effect.exit(effect), (exit) => (Exit.isSuccess(exit) || left === 0 ? Effect.void : attempt(left - 1)))
  return attempt(2)
}

const exchangeOnce = <E>(
  port: Backend,
  goal: Goal<E>,
  plan: Plan.Plan,
  token: string
): Effect.Effect<void, Fault | Mismatch | Crossing | E> => {
  let journal: "forward" | "back" | undefined
  const { regions } = plan
  const turned = (from: "forward" | "back", to: "back" | "done"): Effect.Effect<void, Fault> =>
    Effect.provideService(port.rename(journalAs(token, from), journalAs(token, to), { replace: true }), TakingBack, true)
  const turning = Effect.suspend(() =>
    Effect.ignoreCause(Effect.tap(turned("forward", "back"), () => Effect.sync(() => void (journal = "back"))))
  )
  const cleared = Effect.suspend(() => {
    if (abandoned.has(token)) return Effect.void
    const settled = journal === undefined ? Effect.void : persistently(turned(journal, "done"))
    return Effect.andThen(settled, persistently(Staging.remove(port, regions, token)))
  })
  const made = Effect.gen(function* () {
    // Of the other disks nobody would know before there is a journal.
    if (regions.length > 1) {
      yield* Staging.make(port, [first], token)
      yield* port.write<never, never>(journalAs(token, "done"), Journal.encode({ regions, steps: [], modes: [] }), "create")
    }
    yield* Staging.make(port, regions.length > 1 ? regions.slice(1) : regions, token)
    yield* stage(port, plan, token, goal)
    yield* keep(port, plan, token)
    yield* Effect.uninterruptible(
      Effect.tap(port.write<never, never>(journalAs(token, "forward"), Journal.encode(plan), "create"), () =>
        Effect.sync(() => void (journal = "forward"))
      )
    )
    yield* swap(port, plan, token, { turning, onStuck: Effect.sync(() => void abandoned.add(token)) })
  })
  return Effect.acquireUseRelease(
    Effect.sync(() => void inUse.add(token)),
    () => made,
    () =>
      Effect.ensuring(
        cleared,
        Effect.sync(() => inUse.delete(token))
      )
  )
}

/** The highest directory on the same disk; it is on another than the root. */
const topOfDisk = (port: Backend, directory: FsPath.FsPath, token: string): Effect.Effect<FsPath.FsPath, Fault> => {
  const probe = probeOf(token)
  let at = directory
  const climb: Effect.Effect<void> = Effect.suspend(() => {
    if (at === FsPath.root) return Effect.void
    const up = FsPath.parent(at)
    const renamed = port.rename(FsPath.join(at, probe), FsPath.join(up, probe), { replace: false })
    return Effect.flatMap(Effect.exit(Effect.uninterruptible(renamed)), (exit) => {
      if (!Exit.isSuccess(exit)) return Effect.void
      at = up
      return climb
    })
  })
  return Effect.acquireUseRelease(
    port.makeDirectory(FsPath.join(directory, probe)),
    () => Effect.map(climb, () => at),
    () => persistently(Effect.suspend(() => port.remove(FsPath.join(at, probe))))
  )
}

/** Learns from a rename that was not possible; whether there was anything to learn. */
const learn = Effect.fnUntraced(function* (
  port: Backend,
  crossings: Crossings,
  { directory }: Crossing,
  token: string
): Effect.fn.Return<boolean, Fault> {
  const known = crossings.get(directory)
  if (known === true) return false
  const top = known === false ? directory : yield* topOfDisk(port, directory, token)
  if (top === FsPath.root || crossings.has(top)) crossings.set(directory, true)
  else crossings.set(top, false)
  return true
})

/**
 * Makes what is there, `before`, into `after`, touching only what differs. The caller holds the port's root. Content whose size or id
 * is not the file's fails with Mismatch, what could not be brought back stands in the way with IoError; then nothing has changed, as
 * after every other failure and after an interruption.
 */
export const exchange = <E>(port: Backend, goal: Goal<E>): Effect.Effect<void, Fault | Mismatch | E> =>
  Effect.suspend(() => {
    const crossings: Crossings = new Map()
    const attempt: Effect.Effect<void, Fault | Mismatch | E> = Effect.suspend(() => {
      const plan = Plan.make(port, goal.before, goal.after, crossings)
      if (Plan.isFault(plan)) return Effect.fail(plan)
      if (plan.steps.length === 0 && plan.modes.length === 0) return Effect.void
      const token = makeToken()
      return Effect.catch(
        Effect.andThen(inspect(port, plan), exchangeOnce(port, goal, plan, token)),
        (error): Effect.Effect<void, Fault | Mismatch | E> =>
          isCrossing(error)
            ? Effect.flatMap(learn(port, crossings, error, token), (isNew) => (isNew ? attempt : Effect.fail(error.fault)))
            : Effect.fail(error)
      )
    })
    return attempt
  })
