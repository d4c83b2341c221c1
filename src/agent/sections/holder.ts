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
import { type Previews, renderMounts } from "./mounted.ts"
import { memoized, scopeEnded, failIfClosed } from "./once.ts"

export interface OpenedFilesystem {
  readonly filesystem: Algebra
  readonly services: Context.Context<never>
  /** The previews of the mounts. @default the planned previews */
  readonly previews?: Previews | undefined
  /** The directory on the machine, if the filesystem is one. */
  readonly directory?: string | undefined
}

export interface HeldFilesystem {
  /** The list of mounts for a text; before the opening, the planned ones. */
  readonly mountList: Effect.Effect<string>
  readonly opened: Effect.Effect<OpenedFilesystem, SectionError>
  readonly snapshots: Effect.Effect<SnapshotStore.Operations, SectionError>
  readonly services: Effect.Effect<Context.Context<never>, SectionError>
}

/** Holds the filesystem until the scope ends. Fails if all earlier holders have ended. */
export type SharedFilesystem = Effect.Effect<HeldFilesystem, Unavailable, Scope.Scope>

export interface Options {
  readonly previews?: Previews | undefined
  /** The directory for archives of snapshots. @default a temporary directory */
  readonly snapshotDirectory?: string | undefined
}

export const make = Effect.fnUntraced(function* <R>(
  open: Effect.Effect<OpenedFilesystem, SectionError, R>,
  { snapshotDirectory, ...planned }: Options
): Effect.fn.Return<SharedFilesystem, never, Exclude<R, Scope.Scope>> {
  const resourceScope = yield* Scope.make()
  let previews = planned.previews ?? []
  const memoizeInScope = <A, E, R2>(effect: Effect.Effect<A, E, R2>) => Scope.provide(memoized(effect), resourceScope)
  const opened = yield* memoizeInScope(
    Effect.tap(open, (opened) =>
      Effect.sync(() => {
        previews = opened.previews ?? previews
      })
    )
  )
  const snapshots = yield* memoizeInScope(
    Effect.flatMap(opened, ({ filesystem }) => History.makeSnapshotStore(filesystem, snapshotDirectory))
  )
  const services = yield* memoizeInScope(
    Effect.flatMap(opened, ({ filesystem, services }) => History.withSnapshots(filesystem, services))
  )

  let holders = 0
  const acquire = Effect.suspend(() => {
    if (resourceScope.state._tag === "Closed") return Effect.fail(scopeEnded)
    holders++
    return Effect.void
  })
  const release = Effect.suspend(() => (--holders === 0 ? Scope.close(resourceScope, Exit.void) : Effect.void))

  return Effect.gen(function* () {
    yield* Effect.acquireRelease(acquire, () => release)
    const whileHeld = failIfClosed(yield* Effect.scope)
    return {
      mountList: Effect.suspend(() => renderMounts(previews)),
      opened: whileHeld(opened),
      snapshots: whileHeld(snapshots),
      services: whileHeld(services)
    }
  })
})
