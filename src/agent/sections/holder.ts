/**
 * What a section works on, held by each section that does: it is opened at the first use by any of them, and closed when the last one
 * has gone. So a clone for another session can share a directory, or a container, with the section that it was cloned from.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type * as SnapshotStore from "../../history/SnapshotStore.ts"
import type { Unavailable } from "../../model/FsError.ts"
import type { SectionError } from "../Section.ts"
import * as History from "./history.ts"
import { type Previews, rendered } from "./mounted.ts"
import { once, over, whileOpen } from "./once.ts"

export interface Opened {
  readonly filesystem: Algebra
  /** What stands beside it, such as a Sandbox. */
  readonly services: Context.Context<never>
  /** @default what was planned */
  readonly previews?: Previews | undefined
  /** Where it is on the machine, if it is a directory of that. */
  readonly directory?: string | undefined
}

/** What one section has of it. */
export interface Held {
  /** What is mounted, for a text; until it is opened, what will be. */
  readonly mounted: Effect.Effect<string>
  readonly opened: Effect.Effect<Opened, SectionError>
  readonly snapshots: Effect.Effect<SnapshotStore.Operations, SectionError>
  readonly services: Effect.Effect<Context.Context<never>, SectionError>
}

/** Until the scope ends. Fails where all who held it have gone. */
export type Holder = Effect.Effect<Held, Unavailable, Scope.Scope>

export interface Options {
  /** What the mounts will be. */
  readonly previews?: Previews | undefined
  /** @default a temporary one */
  readonly snapshotDirectory?: string | undefined
}

export const make = Effect.fnUntraced(function* <R>(
  open: Effect.Effect<Opened, SectionError, R>,
  { snapshotDirectory, ...planned }: Options
): Effect.fn.Return<Holder, never, Exclude<R, Scope.Scope>> {
  const own = yield* Scope.make()
  let previews = planned.previews ?? []
  const within = <A, E, R2>(effect: Effect.Effect<A, E, R2>) => Scope.provide(once(effect), own)
  const opened = yield* within(
    Effect.tap(open, (opened) =>
      Effect.sync(() => {
        previews = opened.previews ?? previews
      })
    )
  )
  const snapshots = yield* within(Effect.flatMap(opened, ({ filesystem }) => History.store(filesystem, snapshotDirectory)))
  const services = yield* within(
    Effect.flatMap(opened, ({ filesystem, services }) => History.withSnapshots(filesystem, services))
  )

  let holders = 0
  const enter = Effect.suspend(() => {
    if (own.state._tag === "Closed") return Effect.fail(over)
    holders++
    return Effect.void
  })
  const leave = Effect.suspend(() => (--holders === 0 ? Scope.close(own, Exit.void) : Effect.void))

  return Effect.gen(function* () {
    yield* Effect.acquireRelease(enter, () => leave)
    const mine = whileOpen(yield* Effect.scope)
    return {
      mounted: Effect.suspend(() => rendered(previews)),
      opened: mine(opened),
      snapshots: mine(snapshots),
      services: mine(services)
    }
  })
})
