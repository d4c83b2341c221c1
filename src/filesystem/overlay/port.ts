/**
 * The port of an overlay.
 *
 * A change first copies the entries that it needs to the upper tree, and then changes the copies in one step. A partial change
 * is therefore never visible, and a failed change has no visible effect.
 */
import {
  alreadyExists,
  notAFile,
  directoryNotEmpty,
  accessDenied,
  invalidArgument,
  notADirectory,
  notFound
} from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { FileStat, WatchEvent } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPathModule from "../../model/FsPath.ts"
import {
  type Attributes,
  type Backend,
  type Commit,
  follow,
  type Info,
  keyOf,
  type Links,
  type Rules,
  type WriteHow
} from "../../port/Backend.ts"
import { make as makeWatchers } from "../../port/watchers.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { strictestSymlinks, weakestConfinement } from "../locking.ts"
import { aside, canRename, copyEntry, setMode, setTime, writeWithModeOf } from "./carry.ts"
import { type Layers } from "./layers.ts"

// Copies entries from the lower to the upper tree before they change. The copies themselves are not a visible change.
//
// If two fibers need the same entry, the second fiber uses the copy of the first.

interface CopyUp {
  readonly directory: (path: FsPathModule.FsPath) => Effect.Effect<void, Fault>
  /**
   * Copies an entry and its parent directories to the upper tree. If the entry does not exist, copies only the
   * directories.
   */
  readonly entry: (path: FsPathModule.FsPath) => Effect.Effect<void, Fault>
  readonly tree: (path: FsPathModule.FsPath) => Effect.Effect<void, Fault>
}

type CreatedDirectories = Array<readonly [path: FsPathModule.FsPath, like: FileStat]>

const makeCopyUp = ({ statLower, list, lower, toLowerSpelling, upper }: Layers): CopyUp => {
  const copyUpEntry = (path: FsPathModule.FsPath, stat: FileStat): Effect.Effect<void, Fault> =>
    Effect.catch(
      Effect.flatMap(toLowerSpelling(path), (path) => copyEntry(lower, path, stat, upper, { replace: false })),
      (fault) => (fault._tag === "AlreadyExists" ? Effect.void : Effect.fail(fault))
    )

  const copyUpDirectories = Effect.fnUntraced(function* (
    path: FsPathModule.FsPath,
    created: CreatedDirectories
  ): Effect.fn.Return<void, Fault> {
    const missing: Array<FsPathModule.FsPath> = []
    for (let at = path; at !== FsPathModule.root && (yield* upper.stat(at)) === undefined; at = FsPathModule.parent(at))
      missing.push(at)
    for (let i = missing.length - 1; i >= 0; i--) {
      const at = missing[i]!
      const stat = yield* statLower(at)
      if (stat === undefined) return yield* Effect.fail(notFound)
      yield* copyUpEntry(at, stat)
      created.push([at, stat])
    }
  })

  /**
   * Restores the times and modes of new directories. Runs last, because creating entries in a directory changes its time and
   * needs write permission.
   */
  const restoreTimesAndModes = (created: CreatedDirectories): Effect.Effect<void> =>
    Effect.forEach(
      created,
      ([path, like]) => Effect.ignore(Effect.andThen(setMode(upper, path, like.mode), setTime(upper, path, like))),
      { discard: true }
    )

  const copyUpLeaf = (path: FsPathModule.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(upper.stat(path), (found) =>
      found === undefined
        ? Effect.flatMap(statLower(path), (stat) => (stat === undefined ? Effect.void : copyUpEntry(path, stat)))
        : Effect.void
    )

  const restoringAfterwards = (run: (created: CreatedDirectories) => Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      const created: CreatedDirectories = []
      return Effect.ensuring(run(created), restoreTimesAndModes(created))
    })

  const tree = Effect.fnUntraced(function* (
    top: FsPathModule.FsPath,
    created: CreatedDirectories
  ): Effect.fn.Return<void, Fault> {
    yield* copyUpDirectories(top, created)
    const stack = [top]
    while (stack.length > 0) {
      const here = stack.pop()!
      for (const child of yield* list(here)) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const path = FsPathModule.join(here, keyOf(child))
        if (child.kind !== "directory") {
          yield* copyUpLeaf(path)
          continue
        }
        yield* copyUpDirectories(path, created)
        stack.push(path)
      }
    }
  })

  return {
    directory: (path) => restoringAfterwards((created) => copyUpDirectories(path, created)),
    entry: (path) =>
      restoringAfterwards((created) => Effect.andThen(copyUpDirectories(FsPathModule.parent(path), created), copyUpLeaf(path))),
    tree: (path) => restoringAfterwards((created) => tree(path, created))
  }
}

const failMoveIntoItself: Effect.Effect<never, Fault> = Effect.fail(
  invalidArgument("to", "a directory cannot be moved into itself")
)

type Mode = "create" | "replace" | "append"

const checkWritable = (mode: Mode, found: FileStat): Effect.Effect<void, Fault> =>
  mode === "create" ? Effect.fail(alreadyExists) : found.kind === "file" ? Effect.void : Effect.fail(notAFile)

const checkReplaceable = (source: FileStat, target: FileStat): Effect.Effect<void, Fault> =>
  source.kind === "directory" && target.kind !== "directory"
    ? Effect.fail(notADirectory)
    : source.kind !== "directory" && target.kind === "directory"
      ? Effect.fail(notAFile)
      : Effect.void

export const make = (layers: Layers): Backend => {
  const { statLower, hidden, keyOf, list, lower, open, toLowerSpelling, stat, upper } = layers
  const copyUp = makeCopyUp(layers)
  // The overlay reports its changes itself, because the upper tree does not see deletions and would report copies as changes.
  const { emit: notifyWatchers, watch } = makeWatchers(keyOf)

  const notifyAfter = <A, E, R>(effect: Effect.Effect<A, E, R>, notify: () => void): Effect.Effect<A, E, R> =>
    Effect.onExit(effect, (exit) => (Exit.isSuccess(exit) ? Effect.sync(notify) : Effect.void))

  const checkVacant = (path: FsPathModule.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(path), (found) => (found === undefined ? checkParentDirectory(path) : Effect.fail(alreadyExists)))

  const checkParentDirectory = (path: FsPathModule.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(FsPathModule.parent(path)), (above) =>
      above === undefined ? Effect.fail(notFound) : above.kind === "directory" ? Effect.void : Effect.fail(notADirectory)
    )

  /** Runs a change of the upper tree and hides the lower entry, if there is one, during and after the change. */
  const hideLowerWhile = (path: FsPathModule.FsPath, effect: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.flatMap(statLower(path), (stat) => (stat === undefined ? effect : hidden.hideWhile(path, effect)))

  /**
   * Returns the path in its existing spelling. If the entry exists only in the lower tree, its name may differ from the path in
   * case.
   */
  const toExistingSpelling = (
    path: FsPathModule.FsPath
  ): Effect.Effect<{ readonly at: FsPathModule.FsPath; readonly isBelow: boolean }, Fault> =>
    Effect.flatMap(upper.stat(path), (above): ReturnType<typeof toExistingSpelling> =>
      above === undefined
        ? Effect.map(toLowerSpelling(path), (at) => ({ at, isBelow: true }))
        : Effect.succeed({ at: path, isBelow: false })
    )

  const write = <E, R>(
    path: FsPathModule.FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.suspend(() => {
      let found: FileStat | undefined
      const prepareWrite = Effect.flatMap(stat(path), (now) => {
        found = now
        const admits = now === undefined ? checkParentDirectory(path) : checkWritable(mode, now)
        return Effect.andThen(admits, copyUp.directory(FsPathModule.parent(path)))
      })
      const copied = mode === "append" ? copyUp.entry(path) : Effect.void
      const outer = how?.commit
      const commit: Commit = <A, E2, R2>(publish: Effect.Effect<A, E2, R2>) => {
        const publishAndNotify = notifyAfter(publish, () => notifyWatchers(found === undefined ? "Created" : "Updated", path))
        if (outer === undefined) return Effect.andThen(copied, publishAndNotify)
        // The entry may have changed while the stream was staged, so check again.
        return outer<A, E2 | Fault, R2>(Effect.andThen(Effect.andThen(prepareWrite, copied), publishAndNotify))
      }
      const written = Effect.suspend((): Effect.Effect<FileStat, Fault | E, R> => {
        const old = found
        if (old === undefined) return upper.write(path, bytes, mode, { commit })
        return Effect.flatMap(toExistingSpelling(path), ({ at, isBelow }) =>
          isBelow && mode === "replace" && old.mode !== undefined && upper.attributes !== undefined
            ? replaceLike(at, old, bytes, commit)
            : upper.write(at, bytes, mode, { commit })
        )
      })
      return Effect.andThen(prepareWrite, written)
    })

  /** Replaces a file that exists only in the lower tree. Keeps the mode of the lower file. */
  const replaceLike = <E, R>(
    path: FsPathModule.FsPath,
    like: FileStat,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    commit: Commit
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      canRename(upper, path)
        ? aside(upper, path, (staged) =>
            Effect.andThen(writeWithModeOf(upper, staged, like, bytes), commit(upper.rename(staged, path, { replace: true })))
          )
        : upper.write(path, bytes, "replace", {
            commit: (publish) => commit(Effect.tap(publish, () => setMode(upper, path, like.mode)))
          }),
      () => Effect.flatMap(upper.stat(path), (stat) => (stat === undefined ? Effect.fail(notFound) : Effect.succeed(stat)))
    )

  const remove = (path: FsPathModule.FsPath): Effect.Effect<void, Fault> =>
    path === FsPathModule.root
      ? Effect.fail(accessDenied("root"))
      : Effect.flatMap(stat(path), (found) => {
          if (found === undefined) return Effect.fail(notFound)
          const removeUpper = Effect.flatMap(upper.stat(path), (above) =>
            hideLowerWhile(path, above === undefined ? Effect.void : upper.remove(path))
          )
          return notifyAfter(
            found.kind === "directory"
              ? Effect.flatMap(list(path), (children) => (children.length === 0 ? removeUpper : Effect.fail(directoryNotEmpty)))
              : removeUpper,
            () => notifyWatchers("Removed", path)
          )
        })

  const rename = Effect.fnUntraced(function* (
    from: FsPathModule.FsPath,
    to: FsPathModule.FsPath,
    replace: boolean
  ): Effect.fn.Return<void, Fault> {
    if (from === FsPathModule.root || to === FsPathModule.root) return yield* Effect.fail(accessDenied("root"))
    const source = yield* stat(from)
    if (source === undefined) return yield* Effect.fail(notFound)
    if (from === to) return yield* replace ? Effect.void : Effect.fail(alreadyExists)
    const isSame = keyOf(from) === keyOf(to)
    if (source.kind === "directory" && !isSame && FsPathModule.isWithin(keyOf(from), keyOf(to)))
      return yield* failMoveIntoItself
    const target = isSame ? undefined : yield* stat(to)
    if (target === undefined) yield* checkParentDirectory(to)
    else {
      if (!replace) return yield* Effect.fail(alreadyExists)
      yield* checkReplaceable(source, target)
      if (target.kind === "directory" && (yield* list(to)).length > 0) return yield* Effect.fail(directoryNotEmpty)
    }
    yield* copyUp.directory(FsPathModule.parent(to))
    if ((yield* statLower(from)) !== undefined) yield* source.kind === "directory" ? copyUp.tree(from) : copyUp.entry(from)
    const { at } = target === undefined ? { at: to } : yield* toExistingSpelling(to)
    yield* notifyAfter(hideLowerWhile(from, upper.rename(from, at, { replace })), () => {
      notifyWatchers("Removed", from)
      notifyWatchers("Created", to)
    })
  })

  const makeAndNotify = (path: FsPathModule.FsPath, make: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.andThen(checkVacant(path), copyUp.directory(FsPathModule.parent(path))).pipe(
      Effect.andThen(notifyAfter(make, () => notifyWatchers("Created", path)))
    )

  const linksOf = (above: Links, under: Links): Links => {
    const inEither = (
      path: FsPathModule.FsPath,
      read: (side: Links) => Effect.Effect<string, Fault>
    ): Effect.Effect<string, Fault> =>
      Effect.flatMap(upper.stat(path), (found) =>
        found === undefined
          ? Effect.flatMap(statLower(path), (stat) => (stat === undefined ? Effect.fail(notFound) : read(under)))
          : read(above)
      )
    return {
      read: (path) => inEither(path, (side) => side.read(path)),
      follow: (path) => inEither(path, (side) => follow(side, path)),
      // A symlink copied from the lower tree keeps its target. The target may begin with the absolute path of the lower
      // root.
      relative: (path, target) => under.relative?.(path, target) ?? above.relative?.(path, target),
      make: (path, target) => makeAndNotify(path, above.make(path, target))
    }
  }

  const attributesOf = (above: Attributes): Attributes => ({
    set: (path, values) =>
      Effect.flatMap(stat(path), (found) => {
        if (found === undefined) return Effect.fail(notFound)
        const copiedUp = found.kind === "directory" ? copyUp.directory(path) : copyUp.entry(path)
        return Effect.andThen(
          copiedUp,
          notifyAfter(above.set(path, values), () => notifyWatchers("Updated", path))
        )
      })
  })

  const showsThrough = (path: FsPathModule.FsPath): Effect.Effect<boolean, Fault> =>
    Effect.map(upper.stat(path), (above) => above === undefined && !hidden.covers(path))

  /** Ends the changes of a lower directory that is gone. Fails with NotFound if the overlay has no such directory either. */
  const endIfLowerIsGone = (path: FsPathModule.FsPath): Stream.Stream<never, Fault> =>
    Stream.unwrap(Effect.map(stat(path), (found) => (found?.kind === "directory" ? Stream.empty : Stream.fail(notFound))))

  const changesBelow = (path: FsPathModule.FsPath): Stream.Stream<WatchEvent, Fault> =>
    Stream.unwrap(
      Effect.map(statLower(path), (stat) =>
        stat?.kind !== "directory" || lower.watch === undefined
          ? Stream.empty
          : Stream.filterEffect(
              Stream.catch(lower.watch(path), (fault) =>
                fault._tag === "NotFound" ? endIfLowerIsGone(path) : Stream.fail(fault)
              ),
              (event) => showsThrough(event.path)
            )
      )
    )

  const checkDirectory = (path: FsPathModule.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(path), (found) => {
      if (found === undefined) return Effect.fail(notFound)
      return found.kind === "directory" ? Effect.void : Effect.fail(notADirectory)
    })

  const watchAll = (path: FsPathModule.FsPath): Stream.Stream<WatchEvent, Fault> =>
    Stream.merge(watch(path, checkDirectory(path)), changesBelow(path))

  return {
    info: infoOf(upper.info, lower.info),
    stat,
    list,
    open,
    write,
    makeDirectory: (path) => makeAndNotify(path, upper.makeDirectory(path)),
    remove,
    rename: (from, to, { replace }) => rename(from, to, replace),
    links: upper.links && lower.links && linksOf(upper.links, lower.links),
    attributes: upper.attributes && lower.attributes && attributesOf(upper.attributes),
    watch: lower.watch && watchAll,
    rules: rulesOf(upper, lower),
    locks: upper.locks,
    calls: lower.calls
  }
}

const infoOf = (upper: Info, lower: Info): Info => ({
  name: `overlay(${upper.name}, ${lower.name})`,
  root: lower.root,
  caseSensitive: lower.caseSensitive,
  readOnly: upper.readOnly,
  confinement: weakestConfinement(upper, lower)
})

/**
 * Combines the rules. The permissions come from the upper tree, because changes go there. The path policy comes from
 * the lower tree.
 */
const rulesOf = (upper: Backend, lower: Backend): Rules => ({
  permits: upper.rules?.permits,
  pinned: (path) => lower.rules?.pinned?.(path) === true || upper.rules?.pinned?.(path) === true,
  policy: lower.rules?.policy,
  symlinks: strictestSymlinks(upper.rules, lower.rules),
  preservePermissions: lower.rules?.preservePermissions
})
