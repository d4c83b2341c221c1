/**
 * Shares a filesystem between sections: it is opened at the first use by any of them, and closed when the last one ends. A
 * clone for another session can therefore share a directory or a container with its original.
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
  readonly services: Context.Context<never>
  /** The previews of the mounts. @default the planned previews */
  readonly previews?: Previews | undefined
  /** The directory on the machine, if the filesystem is one. */
  readonly directory?: string | undefined
}

export interface Held {
  /** The list of mounts for a text; before the opening, the planned ones. */
  readonly mounted: Effect.Effect<string>
  readonly opened: Effect.Effect<Opened, SectionError>
  readonly snapshots: Effect.Effect<SnapshotStore.Operations, SectionError>
  readonly services: Effect.Effect<Context.Context<never>, SectionError>
}

/** Holds the filesystem until the scope ends. Fails if all earlier holders have ended. */
export type Holder = Effect.Effect<Held, Unavailable, Scope.Scope>

export interface Options {
  readonly previews?: Previews | undefined
  /** The directory for archives of snapshots. @default a temporary directory */
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
