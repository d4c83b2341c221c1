/**
 * An overlay over a filesystem that is never modified: reads fall through, and all changes go to an upper filesystem.
 *
 * The overlay remembers deletions. Its changes can be listed, committed or discarded.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Fault, ListError, TransferError, tagsOf, type Unsupported } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { withSameCaseRule } from "./caseless.ts"
import { type Algebra, make } from "./Filesystem.ts"
import { withExclusiveLocks } from "./locking.ts"
import * as Caller from "./operations/call.ts"
import { type Difference, differences } from "./overlay/differences.ts"
import * as Layers from "./overlay/layers.ts"
import * as Port from "./overlay/port.ts"
import { discardChanges, commitOverlay } from "./overlay/writeDown.ts"

/**
 * An entry that differs from the lower filesystem.
 *
 * @since 0.1.0
 */
export interface Change {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath.FsPath
}

const overlays = new WeakMap<Backend, Layers.Layers>()

/**
 * Creates an overlay: `lower` with the changes in `upper`, where every further change goes.
 *
 * `lower` is never modified, so it may be read-only. `upper` should be empty at first, and belongs to the overlay from
 * then on.
 *
 * - a file is copied up whole before it is appended to, moved or given attributes; moving a directory copies up its
 *   contents
 * - deletions are remembered in memory, not as visible names, and are lost with the overlay
 * - permissions and locks come from `upper`, the path policy from `lower`; symlinks get the stricter treatment of the
 *   two
 * - symlinks and attributes need support in both; watching reports changes here and, if `lower` can be watched, there
 * - names are case-sensitive only if both are
 *
 * @example
 * ```ts
 * const draft = Overlay.overlay(Filesystem.make(yield* InMemory.make()))(fs)
 * yield* draft.write("notes/done.md", "")
 * yield* fs.exists("notes/done.md") // => false
 * yield* Overlay.commit(draft)
 * yield* fs.exists("notes/done.md") // => true
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const overlay =
  (upper: Algebra) =>
  (lower: Algebra): Algebra => {
    const layers = Layers.make(...withSameCaseRule(upper.port, lower.port))
    const port = Port.make(layers)
    overlays.set(port, layers)
    return make(port)
  }

/**
 * The errors of `changes`.
 *
 * @since 0.1.0
 */
export type ChangesError = ListError | Unsupported

/**
 * The errors of `commit`.
 *
 * @since 0.1.0
 */
export type CommitError = TransferError | Unsupported

const errorTags = {
  changes: new Set([...tagsOf(ListError), "Unsupported"]),
  commit: new Set([...tagsOf(TransferError), "Unsupported"])
}

const useLayers = <A, E>(
  self: Algebra,
  operation: string,
  expected: Caller.ErrorTags,
  use: (layers: Layers.Layers) => Effect.Effect<A, Fault>
): Effect.Effect<A, E> =>
  Caller.make(self.port).run(operation, ".", expected, () => {
    const layers = overlays.get(self.port)
    return layers === undefined ? Effect.fail(Caller.unsupported("overlay")) : use(layers)
  })

const withBothLocks = <A>({ lower, upper }: Layers.Layers, effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  withExclusiveLocks(
    [
      { locks: upper.locks, paths: [FsPath.root] },
      { locks: lower.locks, paths: [FsPath.root] }
    ],
    effect
  )

/** Drops differences of modification time only, which users do not see as changes. */
const toChanges = (all: ReadonlyArray<Difference>): ReadonlyArray<Change> =>
  all.flatMap(({ _tag, extent, path }) => (extent === "time" ? [] : [{ _tag, path }]))

/**
 * Returns the differences to the lower filesystem in path order: kind, content, target and permission bits of all
 * entries.
 *
 * Fails with Unsupported on a filesystem that `overlay` did not return, also on a decorated overlay.
 *
 * @category changes
 * @since 0.1.0
 */
export const changes = (self: Algebra): Effect.Effect<ReadonlyArray<Change>, ChangesError> =>
  useLayers(self, "changes", errorTags.changes, (layers) => Effect.map(differences(layers), toChanges))

/**
 * Writes the changes to the lower filesystem, returns them, and leaves the overlay empty.
 *
 * New entries come first and removals last, each file atomically. A failed or interrupted commit may have written some
 * of them. The overlay then still has all changes and shows the same as before, and another commit continues. Excludes
 * all other writes.
 *
 * @category changes
 * @since 0.1.0
 */
export const commit = (self: Algebra): Effect.Effect<ReadonlyArray<Change>, CommitError> =>
  useLayers(self, "commit", errorTags.commit, (layers) => withBothLocks(layers, Effect.map(commitOverlay(layers), toChanges)))

/**
 * Discards the changes, so that the overlay shows the lower filesystem again.
 *
 * @category changes
 * @since 0.1.0
 */
export const discard = (self: Algebra): Effect.Effect<void, CommitError> =>
  useLayers(self, "discard", errorTags.commit, (layers) => withBothLocks(layers, discardChanges(layers)))
