/**
 * An overlay over a lower filesystem, which stays unmodified: reads fall through to the lower filesystem, and all changes go to
 * an upper filesystem.
 *
 * The overlay remembers deletions. Its changes can be listed, committed or discarded.
 *
 * @since 0.1.0
 */
import { unsupported } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Read from "../engine/read.ts"
import { removeWithContent } from "../engine/remove.ts"
import type { FileStat } from "../model/Entry.ts"
import { type Fault, ListError, located, tagsOf, TransferError, type Unsupported } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import { Buffer } from "../runtime/buffer.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { type Algebra, make } from "./Filesystem.ts"
import { withSameCaseRule } from "./caseless.ts"
import { withExclusiveLocks } from "./locking.ts"
import * as Caller from "./operations/call.ts"
import { copyEntry, setMode, setTime, withContent } from "./overlay/carry.ts"
import * as LayersModule from "./overlay/layers.ts"
import type { Layers } from "./overlay/layers.ts"
import * as Port from "./overlay/port.ts"

// Finds the differences between the lower tree and the overlay.
//
// Only hidden paths and paths with an upper entry can differ, so all other paths are skipped. The entries of both trees
// are compared, because a file that was copied to the upper tree may be unchanged.

interface Difference {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath.FsPath
  /**
   * The most significant difference. `kind` also means that only one tree has the entry. `mode` also means that the names differ
   * in case.
   */
  readonly extent: "kind" | "content" | "mode" | "time"
}

const compareBlockBytes = 512 * 1024

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && Buffer.compare(a, b) === 0

const sameContent = (self: Backend, that: Backend, path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
  Effect.scoped(
    Effect.flatMap(Effect.all([self.open(path), that.open(path)]), ([a, b]) => {
      const size = a.stat.sizeBytes
      const from = (offset: number): Effect.Effect<boolean, Fault> =>
        offset >= size
          ? Effect.succeed(true)
          : Effect.flatMap(
              Effect.zip(
                Read.range(a, offset, Math.min(compareBlockBytes, size - offset)),
                Read.range(b, offset, Math.min(compareBlockBytes, size - offset))
              ),
              ([left, right]) => (sameBytes(left, right) ? from(offset + compareBlockBytes) : Effect.succeed(false))
            )
      return size === b.stat.sizeBytes ? from(0) : Effect.succeed(false)
    })
  )

const sameLink = (self: Backend, that: Backend, path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
  self.links === undefined || that.links === undefined
    ? Effect.succeed(false)
    : Effect.zipWith(self.links.read(path), that.links.read(path), (a, b) => a === b)

/** Compares modes. Modes are equal if one of the trees cannot set them. */
const sameMode = (layers: Layers, a: FileStat, b: FileStat): boolean =>
  layers.upper.attributes === undefined ||
  layers.lower.attributes === undefined ||
  a.mode === undefined ||
  b.mode === undefined ||
  (a.mode & 0o777) === (b.mode & 0o777)

const sameTime = (layers: Layers, a: FileStat, b: FileStat): boolean =>
  layers.upper.attributes === undefined ||
  layers.lower.attributes === undefined ||
  a.modifiedAt === undefined ||
  b.modifiedAt === undefined ||
  a.modifiedAt.epochMilliseconds === b.modifiedAt.epochMilliseconds

interface Place {
  readonly path: FsPath.FsPath
  readonly inUpper: boolean
  readonly inLower: boolean
  /** True if the overlay shows no entry of the lower tree at this path. */
  readonly isLowerHidden: boolean
}

const differences = Effect.fnUntraced(function* (layers: Layers): Effect.fn.Return<ReadonlyArray<Difference>, Fault> {
  const { hidden, keyOf: pathKey, lower, upper } = layers
  const hiddenAncestors = hidden.ancestors()
  const isCaseSensitive = upper.info.caseSensitive
  const out: Array<Difference> = []
  const stack: Array<Place> = [{ path: FsPath.root, inUpper: true, inLower: true, isLowerHidden: false }]

  const children = Effect.fnUntraced(function* (
    port: Backend,
    path: FsPath.FsPath,
    exists: boolean
  ): Effect.fn.Return<Map<string, Child>, Fault> {
    const byName = new Map<string, Child>()
    for (const child of exists ? yield* port.list(path) : []) {
      if (!TemporaryNames.isInProgress(child.name)) byName.set(isCaseSensitive ? child.name : FsPath.fold(child.name), child)
    }
    return byName
  })

  const compare = Effect.fnUntraced(function* (
    path: FsPath.FsPath,
    above: Child,
    under: Child
  ): Effect.fn.Return<Difference["extent"] | undefined, Fault> {
    const [a, b] = yield* Effect.all([upper.stat(path), lower.stat(path)])
    if (a === undefined || b === undefined) return undefined
    if (a.kind !== b.kind) return "kind"
    if (a.kind === "file" && !(yield* sameContent(upper, lower, path))) return "content"
    if (a.kind === "symlink" && !(yield* sameLink(upper, lower, path))) return "content"
    if (above.name !== under.name || (a.kind !== "symlink" && !sameMode(layers, a, b))) return "mode"
    return a.kind === "file" && !sameTime(layers, a, b) ? "time" : undefined
  })

  while (stack.length > 0) {
    const currentPlace = stack.pop()!
    const above = yield* children(upper, currentPlace.path, currentPlace.inUpper)
    const under = yield* children(lower, currentPlace.path, currentPlace.inLower)
    for (const [name, child] of above) {
      const path = FsPath.join(currentPlace.path, keyOf(child))
      const other = under.get(name)
      if (other === undefined) out.push({ _tag: "Added", path, extent: "kind" })
      else {
        const extent = yield* compare(path, child, other)
        if (extent !== undefined) out.push({ _tag: "Modified", path, extent })
      }
      const inLower = other?.kind === "directory"
      if (child.kind === "directory") stack.push({ path, inUpper: true, inLower, isLowerHidden: hidden.covers(path) })
      else if (inLower) stack.push({ path, inUpper: false, inLower, isLowerHidden: true })
    }
    for (const [name, child] of under) {
      if (above.has(name)) continue
      const path = FsPath.join(currentPlace.path, keyOf(child))
      const isLowerHidden = currentPlace.isLowerHidden || hidden.covers(path)
      if (isLowerHidden) out.push({ _tag: "Removed", path, extent: "kind" })
      if (child.kind === "directory" && (isLowerHidden || hiddenAncestors.has(pathKey(path)))) {
        stack.push({ path, inUpper: false, inLower: true, isLowerHidden })
      }
    }
  }
  return isCaseSensitive
    ? out.sort((a, b) => FsPath.compare(a.path, b.path))
    : out.sort((a, b) => FsPath.compare(FsPath.fold(a.path), FsPath.fold(b.path)) || FsPath.compare(a.path, b.path))
})

// Commits an overlay. First, new and changed entries are written, parents before children. Entries that replace an entry of
// another kind are written afterwards.
//
// Removals come last, so a moved entry exists at its new path before its old path is removed. Each file is written atomically.
// The overlay keeps all changes until the last step. An interruption therefore loses nothing, and the next commit continues.

const removeAll = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(port.stat(path), (stat) =>
    stat === undefined
      ? Effect.void
      : stat.kind === "directory"
        ? Effect.asVoid(removeWithContent(port, path))
        : port.remove(path)
  )

/**
 * Empties an upper directory that exists in the lower tree too. Keeps the files of writes in progress, and the directories that
 * contain these files.
 */
const emptyUpperDirectory = Effect.fnUntraced(function* (
  layers: Layers,
  directory: FsPath.FsPath
): Effect.fn.Return<void, Fault> {
  const { lower, upper } = layers
  for (const child of yield* upper.list(directory)) {
    if (TemporaryNames.isInProgress(child.name)) continue
    const path = FsPath.join(directory, keyOf(child))
    if (child.kind !== "directory" || (yield* lower.stat(path))?.kind !== "directory") yield* removeAll(upper, path)
    else {
      yield* emptyUpperDirectory(layers, path)
      yield* Effect.catch(upper.remove(path), (fault) =>
        fault._tag === "DirectoryNotEmpty" ? Effect.void : Effect.fail(fault)
      )
    }
  }
})

const discardChanges = (layers: Layers): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      layers.hidden.clear()
      return emptyUpperDirectory(layers, FsPath.root)
    })
  )

/** Updates a file in place, so that the file keeps its other attributes, such as the owner. */
const updateFile = (layers: Layers, { extent, path }: Difference, above: FileStat): Effect.Effect<void, Fault> => {
  const { lower, upper } = layers
  const content =
    extent === "content"
      ? withContent(upper, path, (content) => Effect.asVoid(lower.write(path, content, "replace")))
      : Effect.void
  return content.pipe(
    Effect.andThen(extent === "time" ? Effect.void : setMode(lower, path, above.mode)),
    Effect.andThen(setTime(lower, path, above))
  )
}

const writeDifference = Effect.fnUntraced(function* (layers: Layers, difference: Difference): Effect.fn.Return<void, Fault> {
  const { lower, upper } = layers
  const { path } = difference
  const above = yield* upper.stat(path)
  if (above === undefined) return
  const under = yield* lower.stat(path)
  if (under !== undefined) yield* renameToSpelling(lower, path)
  if (under?.kind === above.kind && above.kind === "file") return yield* updateFile(layers, difference, above)
  if (under?.kind === above.kind && above.kind === "directory") return
  if (under?.kind === "directory" || above.kind === "directory") yield* removeAll(lower, path)
  yield* copyEntry(upper, path, above, lower, { replace: under !== undefined })
})

const renameToSpelling = (lower: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  lower.info.caseSensitive
    ? Effect.void
    : Effect.flatMap(lower.list(FsPath.parent(path)), (children) => {
        const name = FsPath.name(path)
        const other = children.find((child) => child.name !== name && FsPath.fold(child.name) === FsPath.fold(name))
        return other === undefined
          ? Effect.void
          : lower.rename(FsPath.join(FsPath.parent(path), other.name), path, { replace: true })
      })

const restoreDirectoryMode = Effect.fnUntraced(function* (
  { lower, upper }: Layers,
  path: FsPath.FsPath
): Effect.fn.Return<void, Fault> {
  const above = yield* upper.stat(path)
  if (above?.kind === "directory") yield* setMode(lower, path, above.mode)
})

/** Returns the added and modified entries. Entries that replace an entry of another kind come last, with everything in them. */
const sortForCommit = (all: ReadonlyArray<Difference>): ReadonlyArray<Difference> => {
  const postponedPaths = new Set<FsPath.FsPath>()
  const isPostponed = (path: FsPath.FsPath): boolean =>
    postponedPaths.has(path) || (path !== FsPath.root && isPostponed(FsPath.parent(path)))
  const written = all.filter(({ _tag }) => _tag !== "Removed")
  for (const { _tag, extent, path } of written) if (_tag === "Modified" && extent === "kind") postponedPaths.add(path)
  return [...written.filter(({ path }) => !isPostponed(path)), ...written.filter(({ path }) => isPostponed(path))]
}

const commitOverlay = Effect.fnUntraced(function* (layers: Layers): Effect.fn.Return<ReadonlyArray<Difference>, Fault> {
  const all = yield* differences(layers)
  const written = sortForCommit(all)
  const withPath = (path: FsPath.FsPath, step: Effect.Effect<void, Fault>) =>
    Effect.mapError(step, (fault) => located(fault, path))
  for (const difference of written) yield* withPath(difference.path, writeDifference(layers, difference))
  for (const { _tag, path } of all) if (_tag === "Removed") yield* withPath(path, removeAll(layers.lower, path))
  for (const { path } of written.toReversed()) yield* withPath(path, restoreDirectoryMode(layers, path))
  yield* discardChanges(layers)
  return all
})

/**
 * An entry that differs from the lower filesystem.
 *
 * @since 0.1.0
 */
export interface Change {
  readonly _tag: "Added" | "Modified" | "Removed"
  readonly path: FsPath.FsPath
}

const overlays = new WeakMap<Backend, LayersModule.Layers>()

/**
 * Creates an overlay: it shows `lower` with the changes in `upper`, and writes every further change to `upper`.
 *
 * `lower` is never modified, so it may be read-only. `upper` should be empty at first, and only the overlay may change it
 * afterwards.
 *
 * - before an append, a move or a change of its attributes, a file is copied whole to `upper`; a move of a directory copies
 *   its contents to `upper`
 * - deletions are remembered in memory, not as visible names, and are lost with the overlay
 * - permissions and locks come from `upper`, the path policy from `lower`; the stricter `symlinks` option of the two applies
 * - symlinks and attributes need support in both filesystems; watching reports changes of the overlay and, if `lower` can be
 *   watched, of `lower`
 * - names are case-sensitive only if both filesystems are case-sensitive
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
    const layers = LayersModule.make(...withSameCaseRule(upper.port, lower.port))
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
  use: (layers: LayersModule.Layers) => Effect.Effect<A, Fault>
): Effect.Effect<A, E> =>
  Caller.make(self.port).run(operation, ".", expected, () => {
    const layers = overlays.get(self.port)
    return layers === undefined ? Effect.fail(unsupported("overlay")) : use(layers)
  })

const withBothLocks = <A>({ lower, upper }: LayersModule.Layers, effect: Effect.Effect<A, Fault>): Effect.Effect<A, Fault> =>
  withExclusiveLocks(
    [
      { locks: upper.locks, paths: [FsPath.root] },
      { locks: lower.locks, paths: [FsPath.root] }
    ],
    effect
  )

/** Drops entries that differ only in modification time, because a different time alone does not count as a change. */
const toChanges = (all: ReadonlyArray<Difference>): ReadonlyArray<Change> =>
  all.flatMap(({ _tag, extent, path }) => (extent === "time" ? [] : [{ _tag, path }]))

/**
 * Returns the entries that differ from the lower filesystem in kind, content, target or permission bits, in path order.
 *
 * Fails with Unsupported on a filesystem that `overlay` did not return, such as a decorated overlay.
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
 * changes. The overlay then still has all changes and shows the same tree as before, and the next commit continues.
 * Other writes wait until the commit has ended.
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
