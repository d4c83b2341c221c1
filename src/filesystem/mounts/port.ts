/**
 * The port over two trees, one mounted in a directory of the other.
 *
 * Each path belongs to one side, with that side's permissions, locks and faults. A rename between the sides is
 * impossible and needs a copy. The directories that lead to the mount point cannot be removed.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileStat, Kind, WatchEvent } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Attributes, type Backend, type Child, follow, type Info, type Locks, type Rules } from "../../port/Backend.ts"
import { strictest, weakest } from "../both.ts"
import { composed } from "../locking.ts"

const root: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "root" })
const crossing: Effect.Effect<never, Fault> = Effect.fail({
  _tag: "IoError",
  code: "EXDEV",
  detail: "the two lie on different filesystems"
})

const unsupported = (feature: string): Effect.Effect<never, Fault> => Effect.fail({ _tag: "Unsupported", feature })

const opaque = (kind: Kind): Kind => (kind === "symlink" ? "other" : kind)

const withoutLinks = (self: Backend): Backend =>
  self.links !== undefined
    ? self
    : {
        ...self,
        stat: (path) =>
          Effect.map(self.stat(path), (stat): FileStat | undefined => stat && { ...stat, kind: opaque(stat.kind) }),
        list: (path) =>
          Effect.map(self.list(path), (children) => children.map((child): Child => ({ ...child, kind: opaque(child.kind) })))
      }

interface Map {
  readonly isInside: (path: FsPath.FsPath) => boolean
  readonly isPinned: (path: FsPath.FsPath) => boolean
  readonly into: (path: FsPath.FsPath) => FsPath.FsPath
}

const mapOf = (at: FsPath.FsPath, caseSensitive: boolean): Map => {
  if (caseSensitive) {
    return {
      isInside: (path) => FsPath.isWithin(at, path),
      isPinned: (path) => FsPath.isWithin(path, at),
      into: (path) => FsPath.relative(at, path)
    }
  }
  const top = FsPath.fold(at)
  const depth = FsPath.segments(at).length
  return {
    isInside: (path) => FsPath.isWithin(top, FsPath.fold(path)),
    isPinned: (path) => FsPath.isWithin(FsPath.fold(path), top),
    // Another spelling may have another length.
    into: (path) => FsPath.fromSegments(FsPath.segments(path).slice(depth))
  }
}

export const make = (outerSide: Backend, at: FsPath.FsPath, innerSide: Backend): Backend => {
  const hasLinks = outerSide.links !== undefined || innerSide.links !== undefined
  const outer = hasLinks ? withoutLinks(outerSide) : outerSide
  const inner = hasLinks ? withoutLinks(innerSide) : innerSide
  const map = mapOf(at, outer.info.caseSensitive)
  const { into, isInside, isPinned } = map

  const on = <A>(path: FsPath.FsPath, use: (side: Backend, path: FsPath.FsPath) => A): A =>
    isInside(path) ? use(inner, into(path)) : use(outer, path)

  /** Lists the mount point as a directory, even if it hides an entry of another kind. */
  const showing = (children: ReadonlyArray<Child>): ReadonlyArray<Child> => {
    const name = FsPath.name(at)
    const isIt = (child: Child): boolean =>
      child.name === name || (!outer.info.caseSensitive && FsPath.fold(child.name) === FsPath.fold(name))
    const shown = children.find(isIt)?.name ?? name
    return [...children.filter((child) => !isIt(child)), { name: shown, kind: "directory", addressable: true }]
  }

  const isHolder = (path: FsPath.FsPath): boolean =>
    isPinned(path) && FsPath.segments(path).length === FsPath.segments(at).length - 1

  const list: Backend["list"] = (path) =>
    isHolder(path) ? Effect.map(outer.list(path), showing) : on(path, (side, path) => side.list(path))

  const rename: Backend["rename"] = (from, to, options) =>
    isPinned(from) || isPinned(to)
      ? root
      : isInside(from) !== isInside(to)
        ? crossing
        : on(from, (side, source) => on(to, (_, target) => side.rename(source, target, options)))

  const watch = (path: FsPath.FsPath): Stream.Stream<WatchEvent, Fault> => {
    const above = (event: WatchEvent): WatchEvent => ({ ...event, path: FsPath.below(at, event.path) })
    const watchInner = (path: FsPath.FsPath) =>
      inner.watch === undefined ? Stream.fromEffect(unsupported("watching")) : Stream.map(inner.watch(path), above)
    const watchOuter =
      outer.watch === undefined
        ? Stream.fromEffect(unsupported("watching"))
        : Stream.filter(outer.watch(path), (event) => !isInside(event.path))
    if (isInside(path)) return watchInner(into(path))
    return isPinned(path) ? Stream.merge(watchOuter, watchInner(FsPath.root)) : watchOuter
  }

  return {
    info: infoOf(outer.info, inner.info),
    stat: (path) => on(path, (side, path) => side.stat(path)),
    list,
    open: (path) => on(path, (side, path) => side.open(path)),
    write: (path, bytes, mode, how) => on(path, (side, path) => side.write(path, bytes, mode, how)),
    makeDirectory: (path) => on(path, (side, path) => side.makeDirectory(path)),
    remove: (path) => (isPinned(path) ? root : on(path, (side, path) => side.remove(path))),
    rename,
    links: hasLinks
      ? {
          read: (path) => on(path, (side, path) => side.links?.read(path) ?? unsupported("symbolic links")),
          follow: (path) =>
            on(path, (side, path) => (side.links === undefined ? unsupported("symbolic links") : follow(side.links, path))),
          relative: (path, target) => on(path, (side, path) => side.links?.relative?.(path, target)),
          make: (path, target) => on(path, (side, path) => side.links?.make(path, target) ?? unsupported("symbolic links"))
        }
      : undefined,
    attributes:
      outer.attributes || inner.attributes
        ? { set: (path, values) => on(path, (side, path) => setOn(side, outer.rules, path, values)) }
        : undefined,
    watch: outer.watch || inner.watch ? watch : undefined,
    rules: rulesOf(outer, inner, map),
    locks: outer.locks || inner.locks ? locksOf(outer, inner, map) : undefined,
    hostRoots: hostRootsOf(outer.hostRoots, inner.hostRoots, at, map),
    calls: outer.calls
  }
}

type Values = Parameters<Attributes["set"]>[1]

/** Sets attributes on one side. The mode of a copy is skipped if the side has no modes or copies do not keep them. */
const setOn = (side: Backend, rules: Rules | undefined, path: FsPath.FsPath, values: Values): Effect.Effect<void, Fault> => {
  const { isCopy, modifiedAt } = values
  const isKept = side.rules?.decidesModeOfCopies === true || rules?.preservePermissions !== false
  const isSkipped = isCopy === true && (side.attributes === undefined || !isKept)
  if (isSkipped && modifiedAt === undefined) return Effect.void
  return side.attributes?.set(path, isSkipped ? { modifiedAt } : values) ?? unsupported("attributes")
}

const decidesModes = ({ attributes, rules }: Backend): boolean =>
  attributes !== undefined && rules?.decidesModeOfCopies === true

const hostRootsOf = (
  outer: Backend["hostRoots"],
  inner: Backend["hostRoots"],
  at: FsPath.FsPath,
  { into, isInside }: Map
): Backend["hostRoots"] =>
  (outer ?? inner) && {
    all: [...(outer?.all ?? []), ...(inner?.all ?? [])],
    originOf: (path) => (isInside(path) ? inner?.originOf(into(path)) : outer?.originOf(path)),
    settle: (permits) =>
      Effect.andThen(
        outer?.settle((path) => isInside(path) || permits(path)) ?? Effect.void,
        inner?.settle((path) => permits(FsPath.below(at, path))) ?? Effect.void
      )
  }

const infoOf = (outer: Info, inner: Info): Info => ({
  ...outer,
  readOnly: outer.readOnly && inner.readOnly,
  confinement: weakest(outer, inner)
})

const permits = ({ info, rules }: Backend, action: "write" | "delete", path?: FsPath.FsPath): boolean =>
  !info.readOnly && (rules?.permits === undefined || rules.permits(action, path))

const rulesOf = (outer: Backend, inner: Backend, { into, isInside, isPinned }: Map): Rules => ({
  permits: (action, path) =>
    path === undefined
      ? permits(outer, action) || permits(inner, action)
      : isInside(path)
        ? permits(inner, action, into(path))
        : permits(outer, action, path),
  pinned: (path) =>
    isPinned(path) || (isInside(path) ? inner.rules?.pinned?.(into(path)) === true : outer.rules?.pinned?.(path) === true),
  policy: outer.rules?.policy,
  symlinks: strictest(outer.rules, inner.rules),
  preservePermissions: outer.rules?.preservePermissions,
  decidesModeOfCopies: decidesModes(outer) || decidesModes(inner)
})

/** Composes the locks: a lock on a directory above the mount point includes the whole mounted side. */
const locksOf = (outer: Backend, inner: Backend, { into, isInside, isPinned }: Map): Locks =>
  composed((paths) => [
    { locks: outer.locks, paths: paths.filter((path) => !isInside(path)) },
    {
      locks: inner.locks,
      paths: paths.flatMap((path) => (isInside(path) ? [into(path)] : isPinned(path) ? [FsPath.root] : []))
    }
  ])
