/**
 * A filesystem over another that is never touched: reads fall through, every change goes to the upper one, and what was deleted is
 * remembered in the overlay. What has changed can be told, written down, or forgotten.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Fault, ListError, TransferError, tagsOf, type Unsupported } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { alike } from "./caseless.ts"
import { type Algebra, make } from "./Filesystem.ts"
import { exclusively } from "./locking.ts"
import * as Caller from "./operations/call.ts"
import { type Difference, differences } from "./overlay/differences.ts"
import * as Layers from "./overlay/layers.ts"
import * as Port from "./overlay/port.ts"
import { forget, writeDown } from "./overlay/writeDown.ts"

/**
 * One entry that differs from the lower filesystem.
 *
 * @since 0.1.0
 */
export interface Change {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath.FsPath
}

const overlays = new WeakMap<Backend, Layers.Layers>()

/**
 * `lower` as it is, changed by what is in `upper`, where every further change goes. The lower one is never touched, so it may be read
 * only; the upper one is best empty at first, and belongs to the overlay from then on.
 *
 * - a file is copied up whole before it is appended to, moved or given attributes; moving a directory copies up what is in it
 * - deletions are remembered in memory, not in names that a user could see, and are gone with the overlay
 * - permissions and locks are the upper's, the reading of paths the lower's; links are treated as the stricter of the two does
 * - links and attributes need both to have them; watching tells what is changed here and, where the lower one can be watched, there
 * - names are distinguished by case only where both distinguish them
 *
 * @since 0.1.0
 */
export const overlay =
  (upper: Algebra) =>
  (lower: Algebra): Algebra => {
    const layers = Layers.make(...alike(upper.port, lower.port))
    const port = Port.make(layers)
    overlays.set(port, layers)
    return make(port)
  }

/**
 * What `changes` can fail with.
 *
 * @since 0.1.0
 */
export type ChangesError = ListError | Unsupported

/**
 * What `commit` can fail with.
 *
 * @since 0.1.0
 */
export type CommitError = TransferError | Unsupported

const tags = {
  changes: new Set([...tagsOf(ListError), "Unsupported"]),
  commit: new Set([...tagsOf(TransferError), "Unsupported"])
}

const withLayers = <A, E>(
  self: Algebra,
  operation: string,
  expected: Caller.Tags,
  use: (layers: Layers.Layers) => Effect.Effect<A, Fault>
): Effect.Effect<A, E> =>
  Caller.make(self.port).run(operation, ".", expected, () => {
    const layers = overlays.get(self.port)
    return layers === undefined ? Effect.fail(Caller.unsupported("overlay")) : use(layers)
  })

/** While nothing else is changed, above or below. */
const alone = <A>({ lower, upper }: Layers.Layers, effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  exclusively(
    [
      { locks: upper.locks, paths: [FsPath.root] },
      { locks: lower.locks, paths: [FsPath.root] }
    ],
    effect
  )

/** A file that was only touched shows no other content. */
const told = (all: ReadonlyArray<Difference>): ReadonlyArray<Change> =>
  all.flatMap(({ _tag, extent, path }) => (extent === "time" ? [] : [{ _tag, path }]))

/**
 * What the overlay shows otherwise than what it lies over, in path order: files, links and directories, by kind, content, target and
 * permission bits. Fails with Unsupported on a filesystem that `overlay` has not made (one that is decorated further, too).
 *
 * @since 0.1.0
 */
export const changes = (self: Algebra): Effect.Effect<ReadonlyArray<Change>, ChangesError> =>
  withLayers(self, "changes", tags.changes, (layers) => Effect.map(differences(layers), told))

/**
 * Writes the changes down into the filesystem below, answers them, and leaves the overlay empty. What is new comes first and what is
 * gone goes last, each file whole. A commit that fails or is interrupted may have written some of them; the overlay then still
 * has them all and shows the same as before, and committing again goes on. Waits for all other writes, and they for it.
 *
 * @since 0.1.0
 */
export const commit = (self: Algebra): Effect.Effect<ReadonlyArray<Change>, CommitError> =>
  withLayers(self, "commit", tags.commit, (layers) => alone(layers, Effect.map(writeDown(layers), told)))

/**
 * Forgets the changes: the overlay shows again what it lies over.
 *
 * @since 0.1.0
 */
export const discard = (self: Algebra): Effect.Effect<void, CommitError> =>
  withLayers(self, "discard", tags.commit, (layers) => alone(layers, forget(layers)))
