/**
 * The port of an overlay.
 *
 * A change first copies the entries that it needs to the upper tree and then happens there in one step. So nobody sees
 * a partial change, and a failed change has no visible effect.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { FileStat, WatchEvent } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import {
  type Attributes,
  type Backend,
  type Commit,
  follow,
  type Info,
  type Links,
  type Rules,
  type WriteHow
} from "../../port/Backend.ts"
import { strictestSymlinks, weakestConfinement } from "../both.ts"
import { aside, canRename, setMode, writeWithModeOf } from "./carry.ts"
import { type Layers, failNotADirectory, failNotFound } from "./layers.ts"
import * as Raise from "./raise.ts"
import * as Watchers from "./watchers.ts"

const failNotAFile: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotAFile" })
const failNotEmpty: Effect.Effect<never, Fault> = Effect.fail({ _tag: "DirectoryNotEmpty" })
const failExists: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AlreadyExists" })
const failRootDenied: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "root" })
const failMoveIntoItself: Effect.Effect<never, Fault> = Effect.fail({
  _tag: "InvalidArgument",
  argument: "to",
  detail: "a directory cannot be moved into itself"
})

type Mode = "create" | "replace" | "append"

const checkWritable = (mode: Mode, found: FileStat): Effect.Effect<void, Fault> =>
  mode === "create" ? failExists : found.kind === "file" ? Effect.void : failNotAFile

const checkReplaceable = (source: FileStat, target: FileStat): Effect.Effect<void, Fault> =>
  source.kind === "directory" && target.kind !== "directory"
    ? failNotADirectory
    : source.kind !== "directory" && target.kind === "directory"
      ? failNotAFile
      : Effect.void

export const make = (layers: Layers): Backend => {
  const { statLower: below, hidden, keyOf, list, lower, open, toLowerSpelling: spelt, stat, upper } = layers
  const raise = Raise.make(layers)
  const { notifyWatchers: tell, watch } = Watchers.make(keyOf)

  const notifyAfter = <A, E, R>(effect: Effect.Effect<A, E, R>, notify: () => void): Effect.Effect<A, E, R> =>
    Effect.onExit(effect, (exit) => (Exit.isSuccess(exit) ? Effect.sync(notify) : Effect.void))

  const checkVacant = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(path), (found) => (found === undefined ? checkParentDirectory(path) : failExists))

  const checkParentDirectory = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(FsPath.parent(path)), (above) =>
      above === undefined ? failNotFound : above.kind === "directory" ? Effect.void : failNotADirectory
    )

  /** Runs a change of the upper tree and hides the lower entry, if there is one, during and after the change. */
  const hideLowerWhile = (path: FsPath.FsPath, effect: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.flatMap(below(path), (stat) => (stat === undefined ? effect : hidden.hideWhile(path, effect)))

  /** Returns the path in the existing spelling. An entry of the lower tree only may differ in case. */
  const toExistingSpelling = (
    path: FsPath.FsPath
  ): Effect.Effect<{ readonly at: FsPath.FsPath; readonly isBelow: boolean }, Fault> =>
    Effect.flatMap(upper.stat(path), (above): ReturnType<typeof toExistingSpelling> =>
      above === undefined
        ? Effect.map(spelt(path), (at) => ({ at, isBelow: true }))
        : Effect.succeed({ at: path, isBelow: false })
    )

  const write = <E, R>(
    path: FsPath.FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.suspend(() => {
      let found: FileStat | undefined
      const prepareWrite = Effect.flatMap(stat(path), (now) => {
        found = now
        const admits = now === undefined ? checkParentDirectory(path) : checkWritable(mode, now)
        return Effect.andThen(admits, raise.directory(FsPath.parent(path)))
      })
      const copied = mode === "append" ? raise.entry(path) : Effect.void
      const outer = how?.commit
      const commit: Commit = <A, E2, R2>(publish: Effect.Effect<A, E2, R2>) => {
        const publishAndNotify = notifyAfter(publish, () => tell(found === undefined ? "Created" : "Updated", path))
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

  /** Replaces a file that exists only in the lower tree, and keeps its mode, which the upper tree does not know. */
  const replaceLike = <E, R>(
    path: FsPath.FsPath,
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
      () => Effect.flatMap(upper.stat(path), (stat) => (stat === undefined ? failNotFound : Effect.succeed(stat)))
    )

  const remove = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    path === FsPath.root
      ? failRootDenied
      : Effect.flatMap(stat(path), (found) => {
          if (found === undefined) return failNotFound
          const removeUpper = Effect.flatMap(upper.stat(path), (above) =>
            hideLowerWhile(path, above === undefined ? Effect.void : upper.remove(path))
          )
          return notifyAfter(
            found.kind === "directory"
              ? Effect.flatMap(list(path), (children) => (children.length === 0 ? removeUpper : failNotEmpty))
              : removeUpper,
            () => tell("Removed", path)
          )
        })

  const rename = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    replace: boolean
  ): Effect.fn.Return<void, Fault> {
    if (from === FsPath.root || to === FsPath.root) return yield* failRootDenied
    const source = yield* stat(from)
    if (source === undefined) return yield* failNotFound
    if (from === to) return yield* replace ? Effect.void : failExists
    const isSame = keyOf(from) === keyOf(to)
    if (source.kind === "directory" && !isSame && FsPath.isWithin(keyOf(from), keyOf(to))) return yield* failMoveIntoItself
    const target = isSame ? undefined : yield* stat(to)
    if (target === undefined) yield* checkParentDirectory(to)
    else {
      if (!replace) return yield* failExists
      yield* checkReplaceable(source, target)
      if (target.kind === "directory" && (yield* list(to)).length > 0) return yield* failNotEmpty
    }
    yield* raise.directory(FsPath.parent(to))
    if ((yield* below(from)) !== undefined) yield* source.kind === "directory" ? raise.tree(from) : raise.entry(from)
    const { at } = target === undefined ? { at: to } : yield* toExistingSpelling(to)
    yield* notifyAfter(hideLowerWhile(from, upper.rename(from, at, { replace })), () => {
      tell("Removed", from)
      tell("Created", to)
    })
  })

  const makeAndNotify = (path: FsPath.FsPath, make: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.andThen(checkVacant(path), raise.directory(FsPath.parent(path))).pipe(
      Effect.andThen(notifyAfter(make, () => tell("Created", path)))
    )

  const linksOf = (above: Links, under: Links): Links => {
    const inEither = (path: FsPath.FsPath, read: (side: Links) => Effect.Effect<string, Fault>): Effect.Effect<string, Fault> =>
      Effect.flatMap(upper.stat(path), (found) =>
        found === undefined
          ? Effect.flatMap(below(path), (stat) => (stat === undefined ? failNotFound : read(under)))
          : read(above)
      )
    return {
      read: (path) => inEither(path, (side) => side.read(path)),
      follow: (path) => inEither(path, (side) => follow(side, path)),
      // A symlink copied from the lower tree keeps its target, which may name the root of the lower tree.
      relative: (path, target) => under.relative?.(path, target) ?? above.relative?.(path, target),
      make: (path, target) => makeAndNotify(path, above.make(path, target))
    }
  }

  const attributesOf = (above: Attributes): Attributes => ({
    set: (path, values) =>
      Effect.flatMap(stat(path), (found) => {
        if (found === undefined) return failNotFound
        const copiedUp = found.kind === "directory" ? raise.directory(path) : raise.entry(path)
        return Effect.andThen(
          copiedUp,
          notifyAfter(above.set(path, values), () => tell("Updated", path))
        )
      })
  })

  const showsThrough = (path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
    Effect.map(upper.stat(path), (above) => above === undefined && !hidden.covers(path))

  const changesBelow = (path: FsPath.FsPath): Stream.Stream<WatchEvent, Fault> =>
    Stream.unwrap(
      Effect.map(below(path), (stat) =>
        stat?.kind !== "directory" || lower.watch === undefined
          ? Stream.empty
          : Stream.filterEffect(lower.watch(path), (event) => showsThrough(event.path))
      )
    )

  const watchAll = (path: FsPath.FsPath): Stream.Stream<WatchEvent, Fault> =>
    Stream.unwrap(
      Effect.flatMap(stat(path), (found) => {
        if (found === undefined) return failNotFound
        return found.kind === "directory" ? Effect.succeed(Stream.merge(watch(path), changesBelow(path))) : failNotADirectory
      })
    )

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
 * Combines the rules: permissions come from the upper tree, because changes go there; path policy comes from the lower
 * one.
 */
const rulesOf = (upper: Backend, lower: Backend): Rules => ({
  permits: upper.rules?.permits,
  pinned: (path) => lower.rules?.pinned?.(path) === true || upper.rules?.pinned?.(path) === true,
  policy: lower.rules?.policy,
  symlinks: strictestSymlinks(upper.rules, lower.rules),
  preservePermissions: lower.rules?.preservePermissions
})
