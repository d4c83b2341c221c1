/**
 * Commits an overlay. New and different entries are written first, parents before children; then entries that replace
 * another kind.
 *
 * Removed entries go last, so a moved entry exists at its new place before it leaves the old one. Each step is atomic,
 * and the overlay keeps all changes until the last step. So an interruption loses nothing, and another commit
 * continues.
 */
import * as Effect from "effect/Effect"
import { removeWithContent } from "../../engine/remove.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { copyEntry, setMode, setTime, withContent } from "./carry.ts"
import { type Difference, differences } from "./differences.ts"
import type { Layers } from "./layers.ts"

const removeAll = (port: Backend, path: FsPath.FsPath): Effect.Effect<void, Fault> =>
  Effect.flatMap(port.stat(path), (stat) =>
    stat === undefined
      ? Effect.void
      : stat.kind === "directory"
        ? Effect.asVoid(removeWithContent(port, path))
        : port.remove(path)
  )

/** Empties an upper directory that the lower tree has too. Keeps writes in progress, which still need the directory. */
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

export const discardChanges = (layers: Layers): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      layers.hidden.clear()
      return emptyUpperDirectory(layers, FsPath.root)
    })
  )

/** Updates a file in place, so that the lower tree keeps its other attributes, such as the owner. */
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

/**
 * Sorts the differences: first entries that replace nothing of another kind, then the others with everything in them.
 */
const sortForCommit = (all: ReadonlyArray<Difference>): ReadonlyArray<Difference> => {
  const postponedPaths = new Set<FsPath.FsPath>()
  const isPostponed = (path: FsPath.FsPath): boolean =>
    postponedPaths.has(path) || (path !== FsPath.root && isPostponed(FsPath.parent(path)))
  const written = all.filter(({ _tag }) => _tag !== "Removed")
  for (const { _tag, extent, path } of written) if (_tag === "Modified" && extent === "kind") postponedPaths.add(path)
  return [...written.filter(({ path }) => !isPostponed(path)), ...written.filter(({ path }) => isPostponed(path))]
}

export const commitOverlay = Effect.fnUntraced(function* (layers: Layers): Effect.fn.Return<ReadonlyArray<Difference>, Fault> {
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
