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
import { strictest, weakest } from "../both.ts"
import { aside, mayRename, setMode, writeLike } from "./carry.ts"
import { type Layers, notADirectory, notFound } from "./layers.ts"
import * as Raise from "./raise.ts"
import * as Watchers from "./watchers.ts"

const notAFile: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotAFile" })
const notEmpty: Effect.Effect<never, Fault> = Effect.fail({ _tag: "DirectoryNotEmpty" })
const exists: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AlreadyExists" })
const root: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "root" })
const intoItself: Effect.Effect<never, Fault> = Effect.fail({
  _tag: "InvalidArgument",
  argument: "to",
  detail: "a directory cannot be moved into itself"
})

type Mode = "create" | "replace" | "append"

const admitted = (mode: Mode, found: FileStat): Effect.Effect<void, Fault> =>
  mode === "create" ? exists : found.kind === "file" ? Effect.void : notAFile

const replaceable = (source: FileStat, target: FileStat): Effect.Effect<void, Fault> =>
  source.kind === "directory" && target.kind !== "directory"
    ? notADirectory
    : source.kind !== "directory" && target.kind === "directory"
      ? notAFile
      : Effect.void

export const make = (layers: Layers): Backend => {
  const { below, hidden, keyOf, list, lower, open, spelt, stat, upper } = layers
  const raise = Raise.make(layers)
  const { tell, watch } = Watchers.make(keyOf)

  const telling = <A, E, R>(effect: Effect.Effect<A, E, R>, news: () => void): Effect.Effect<A, E, R> =>
    Effect.onExit(effect, (exit) => (Exit.isSuccess(exit) ? Effect.sync(news) : Effect.void))

  const vacant = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(path), (found) => (found === undefined ? inDirectory(path) : exists))

  const inDirectory = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(stat(FsPath.parent(path)), (above) =>
      above === undefined ? notFound : above.kind === "directory" ? Effect.void : notADirectory
    )

  /** Runs a change of the upper tree and hides the lower entry, if there is one, during and after the change. */
  const hiding = (path: FsPath.FsPath, effect: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.flatMap(below(path), (stat) => (stat === undefined ? effect : hidden.while(path, effect)))

  /** Returns the path in the existing spelling. An entry of the lower tree only may differ in case. */
  const place = (path: FsPath.FsPath): Effect.Effect<{ readonly at: FsPath.FsPath; readonly isBelow: boolean }, Fault> =>
    Effect.flatMap(upper.stat(path), (above): ReturnType<typeof place> =>
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
      const ready = Effect.flatMap(stat(path), (now) => {
        found = now
        const admits = now === undefined ? inDirectory(path) : admitted(mode, now)
        return Effect.andThen(admits, raise.directory(FsPath.parent(path)))
      })
      const copied = mode === "append" ? raise.entry(path) : Effect.void
      const outer = how?.commit
      const commit: Commit = <A, E2, R2>(publish: Effect.Effect<A, E2, R2>) => {
        const told = telling(publish, () => tell(found === undefined ? "Created" : "Updated", path))
        if (outer === undefined) return Effect.andThen(copied, told)
        // The entry may have changed while the stream was staged, so check again.
        return outer<A, E2 | Fault, R2>(Effect.andThen(Effect.andThen(ready, copied), told))
      }
      const written = Effect.suspend((): Effect.Effect<FileStat, Fault | E, R> => {
        const old = found
        if (old === undefined) return upper.write(path, bytes, mode, { commit })
        return Effect.flatMap(place(path), ({ at, isBelow }) =>
          isBelow && mode === "replace" && old.mode !== undefined && upper.attributes !== undefined
            ? replaceLike(at, old, bytes, commit)
            : upper.write(at, bytes, mode, { commit })
        )
      })
      return Effect.andThen(ready, written)
    })

  /** Replaces a file that exists only in the lower tree, and keeps its mode, which the upper tree does not know. */
  const replaceLike = <E, R>(
    path: FsPath.FsPath,
    like: FileStat,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    commit: Commit
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.flatMap(
      mayRename(upper, path)
        ? aside(upper, path, (staged) =>
            Effect.andThen(writeLike(upper, staged, like, bytes), commit(upper.rename(staged, path, { replace: true })))
          )
        : upper.write(path, bytes, "replace", {
            commit: (publish) => commit(Effect.tap(publish, () => setMode(upper, path, like.mode)))
          }),
      () => Effect.flatMap(upper.stat(path), (stat) => (stat === undefined ? notFound : Effect.succeed(stat)))
    )

  const remove = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    path === FsPath.root
      ? root
      : Effect.flatMap(stat(path), (found) => {
          if (found === undefined) return notFound
          const gone = Effect.flatMap(upper.stat(path), (above) =>
            hiding(path, above === undefined ? Effect.void : upper.remove(path))
          )
          return telling(
            found.kind === "directory"
              ? Effect.flatMap(list(path), (children) => (children.length === 0 ? gone : notEmpty))
              : gone,
            () => tell("Removed", path)
          )
        })

  const rename = Effect.fnUntraced(function* (
    from: FsPath.FsPath,
    to: FsPath.FsPath,
    replace: boolean
  ): Effect.fn.Return<void, Fault> {
    if (from === FsPath.root || to === FsPath.root) return yield* root
    const source = yield* stat(from)
    if (source === undefined) return yield* notFound
    if (from === to) return yield* replace ? Effect.void : exists
    const isSame = keyOf(from) === keyOf(to)
    if (source.kind === "directory" && !isSame && FsPath.isWithin(keyOf(from), keyOf(to))) return yield* intoItself
    const target = isSame ? undefined : yield* stat(to)
    if (target === undefined) yield* inDirectory(to)
    else {
      if (!replace) return yield* exists
      yield* replaceable(source, target)
      if (target.kind === "directory" && (yield* list(to)).length > 0) return yield* notEmpty
    }
    yield* raise.directory(FsPath.parent(to))
    if ((yield* below(from)) !== undefined) yield* source.kind === "directory" ? raise.tree(from) : raise.entry(from)
    const { at } = target === undefined ? { at: to } : yield* place(to)
    yield* telling(hiding(from, upper.rename(from, at, { replace })), () => {
      tell("Removed", from)
      tell("Created", to)
    })
  })

  const made = (path: FsPath.FsPath, make: Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.andThen(vacant(path), raise.directory(FsPath.parent(path))).pipe(
      Effect.andThen(telling(make, () => tell("Created", path)))
    )

  const linksOf = (above: Links, under: Links): Links => {
    const inEither = (path: FsPath.FsPath, read: (side: Links) => Effect.Effect<string, Fault>): Effect.Effect<string, Fault> =>
      Effect.flatMap(upper.stat(path), (found) =>
        found === undefined ? Effect.flatMap(below(path), (stat) => (stat === undefined ? notFound : read(under))) : read(above)
      )
    return {
      read: (path) => inEither(path, (side) => side.read(path)),
      follow: (path) => inEither(path, (side) => follow(side, path)),
      // A symlink copied from the lower tree keeps its target, which may name the root of the lower tree.
      relative: (path, target) => under.relative?.(path, target) ?? above.relative?.(path, target),
      make: (path, target) => made(path, above.make(path, target))
    }
  }

  const attributesOf = (above: Attributes): Attributes => ({
    set: (path, values) =>
      Effect.flatMap(stat(path), (found) => {
        if (found === undefined) return notFound
        const raised = found.kind === "directory" ? raise.directory(path) : raise.entry(path)
        return Effect.andThen(
          raised,
          telling(above.set(path, values), () => tell("Updated", path))
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
        if (found === undefined) return notFound
        return found.kind === "directory" ? Effect.succeed(Stream.merge(watch(path), changesBelow(path))) : notADirectory
      })
    )

  return {
    info: infoOf(upper.info, lower.info),
    stat,
    list,
    open,
    write,
    makeDirectory: (path) => made(path, upper.makeDirectory(path)),
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
  confinement: weakest(upper, lower)
})

/**
 * Combines the rules: permissions come from the upper tree, because changes go there; path policy comes from the lower
 * one.
 */
const rulesOf = (upper: Backend, lower: Backend): Rules => ({
  permits: upper.rules?.permits,
  pinned: (path) => lower.rules?.pinned?.(path) === true || upper.rules?.pinned?.(path) === true,
  policy: lower.rules?.policy,
  symlinks: strictest(upper.rules, lower.rules),
  preservePermissions: lower.rules?.preservePermissions
})
