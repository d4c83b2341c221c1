/**
 * Mounts a filesystem in a directory of another filesystem. Paths, searches, copies and symlinks treat the two filesystems
 * as one tree.
 *
 * A move between the two filesystems is a copy, followed by a removal.
 *
 * @since 0.1.0
 */
import { accessDenied, unsupported, ioError, notADirectory } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { mkdir } from "../engine/directories.ts"
import { resolve } from "../engine/resolve.ts"
import type { FileStat, Kind, WatchEvent } from "../model/Entry.ts"
import type { AlreadyExists, Fault, NotADirectory, StatError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import * as Request from "../port/Request.ts"
import { type Attributes, type Backend, type Child, follow, type Info, type Locks, type Rules } from "../port/Backend.ts"
import { type Algebra, make as makeFilesystem } from "./Filesystem.ts"
import { withSameCaseRule } from "./caseless.ts"
import { composeLocks, strictestSymlinks, weakestConfinement } from "./locking.ts"
import * as Caller from "./operations/call.ts"

// The port over two filesystems, one of which is mounted in a directory of the other.
//
// Each path belongs to one of the two filesystems, whose permissions, locks and faults apply. A rename between the filesystems
// is impossible, so a move needs a copy. The directories above the mount point cannot be removed.

const failCrossDevice: Effect.Effect<never, Fault> = Effect.fail(ioError("the paths are on different filesystems", "EXDEV"))

const failUnsupported = (feature: string): Effect.Effect<never, Fault> => Effect.fail(unsupported(feature))

const toOpaqueKind = (kind: Kind): Kind => (kind === "symlink" ? "other" : kind)

const withoutLinks = (self: Backend): Backend =>
  self.links !== undefined
    ? self
    : {
        ...self,
        stat: (path) =>
          Effect.map(self.stat(path), (stat): FileStat | undefined => stat && { ...stat, kind: toOpaqueKind(stat.kind) }),
        list: (path) =>
          Effect.map(self.list(path), (children) =>
            children.map((child): Child => ({ ...child, kind: toOpaqueKind(child.kind) }))
          )
      }

interface MountMap {
  readonly isInside: (path: FsPath.FsPath) => boolean
  readonly isPinned: (path: FsPath.FsPath) => boolean
  readonly toInnerPath: (path: FsPath.FsPath) => FsPath.FsPath
}

const makeMountMap = (at: FsPath.FsPath, caseSensitive: boolean): MountMap => {
  if (caseSensitive) {
    return {
      isInside: (path) => FsPath.isWithin(at, path),
      isPinned: (path) => FsPath.isWithin(path, at),
      toInnerPath: (path) => FsPath.relative(at, path)
    }
  }
  const foldedMountPoint = FsPath.fold(at)
  const depth = FsPath.segments(at).length
  return {
    isInside: (path) => FsPath.isWithin(foldedMountPoint, FsPath.fold(path)),
    isPinned: (path) => FsPath.isWithin(FsPath.fold(path), foldedMountPoint),
    // Count segments, because a path may have different lengths in upper and lower case.
    toInnerPath: (path) => FsPath.fromSegments(FsPath.segments(path).slice(depth))
  }
}

const make = (outerSide: Backend, at: FsPath.FsPath, innerSide: Backend): Backend => {
  const hasLinks = outerSide.links !== undefined || innerSide.links !== undefined
  const outer = hasLinks ? withoutLinks(outerSide) : outerSide
  const inner = hasLinks ? withoutLinks(innerSide) : innerSide
  const map = makeMountMap(at, outer.info.caseSensitive)
  const { toInnerPath, isInside, isPinned } = map

  const onSide = <A>(path: FsPath.FsPath, use: (side: Backend, path: FsPath.FsPath) => A): A =>
    isInside(path) ? use(inner, toInnerPath(path)) : use(outer, path)

  /** Lists the mount point as a directory, even if it hides an entry of another kind. */
  const withMountPoint = (children: ReadonlyArray<Child>): ReadonlyArray<Child> => {
    const name = FsPath.name(at)
    const isMountPointName = (child: Child): boolean =>
      child.name === name || (!outer.info.caseSensitive && FsPath.fold(child.name) === FsPath.fold(name))
    const shown = children.find(isMountPointName)?.name ?? name
    return [...children.filter((child) => !isMountPointName(child)), { name: shown, kind: "directory", addressable: true }]
  }

  const isParentOfMountPoint = (path: FsPath.FsPath): boolean =>
    isPinned(path) && FsPath.segments(path).length === FsPath.segments(at).length - 1

  const list: Backend["list"] = (path) =>
    isParentOfMountPoint(path) ? Effect.map(outer.list(path), withMountPoint) : onSide(path, (side, path) => side.list(path))

  const rename: Backend["rename"] = (from, to, options) =>
    isPinned(from) || isPinned(to)
      ? Effect.fail(accessDenied("root"))
      : isInside(from) !== isInside(to)
        ? failCrossDevice
        : onSide(from, (side, source) => onSide(to, (_, target) => side.rename(source, target, options)))

  const watch = (path: FsPath.FsPath): Stream.Stream<WatchEvent, Fault> => {
    const toOuterEvent = (event: WatchEvent): WatchEvent => ({ ...event, path: FsPath.below(at, event.path) })
    const watchInner = (path: FsPath.FsPath) =>
      inner.watch === undefined ? Stream.fromEffect(failUnsupported("watching")) : Stream.map(inner.watch(path), toOuterEvent)
    const watchOuter =
      outer.watch === undefined
        ? Stream.fromEffect(failUnsupported("watching"))
        : Stream.filter(outer.watch(path), (event) => !isInside(event.path))
    if (isInside(path)) return watchInner(toInnerPath(path))
    return isPinned(path) ? Stream.merge(watchOuter, watchInner(FsPath.root)) : watchOuter
  }

  return {
    info: infoOf(outer.info, inner.info),
    stat: (path) => onSide(path, (side, path) => side.stat(path)),
    list,
    open: (path) => onSide(path, (side, path) => side.open(path)),
    write: (path, bytes, mode, how) => onSide(path, (side, path) => side.write(path, bytes, mode, how)),
    makeDirectory: (path) => onSide(path, (side, path) => side.makeDirectory(path)),
    remove: (path) => (isPinned(path) ? Effect.fail(accessDenied("root")) : onSide(path, (side, path) => side.remove(path))),
    rename,
    links: hasLinks
      ? {
          read: (path) => onSide(path, (side, path) => side.links?.read(path) ?? failUnsupported("symbolic links")),
          follow: (path) =>
            onSide(path, (side, path) =>
              side.links === undefined ? failUnsupported("symbolic links") : follow(side.links, path)
            ),
          relative: (path, target) => onSide(path, (side, path) => side.links?.relative?.(path, target)),
          make: (path, target) =>
            onSide(path, (side, path) => side.links?.make(path, target) ?? failUnsupported("symbolic links"))
        }
      : undefined,
    attributes:
      outer.attributes || inner.attributes
        ? { set: (path, values) => onSide(path, (side, path) => setAttributesOn(side, outer.rules, path, values)) }
        : undefined,
    watch: outer.watch || inner.watch ? watch : undefined,
    rules: rulesOf(outer, inner, map),
    locks: outer.locks || inner.locks ? locksOf(outer, inner, map) : undefined,
    hostRoots: hostRootsOf(outer.hostRoots, inner.hostRoots, at, map),
    perform: Request.only(
      Request.handlers({
        Read: (request) => onSide(request.path, (side, path) => performOn(side, { ...request, path })),
        ReadMany: (request) => {
          if (!request.paths.some(isInside)) return performOn(outer, request)
          return request.paths.every(isInside) ? performOn(inner, Request.mapPath(request, toInnerPath)) : Request.declined
        }
      }),
      new Set([...(outer.perform?.tags ?? []), ...(inner.perform?.tags ?? [])])
    ),
    calls: outer.calls
  }
}

const performOn = <R extends Request.Plain>(side: Backend, request: R) =>
  Request.performing(side, request._tag)?.(request) ?? Request.declined

type Values = Parameters<Attributes["set"]>[1]

/**
 * Sets attributes in one of the two filesystems. Omits the mode of a copy if this filesystem has no modes, or if its copies do
 * not keep modes.
 */
const setAttributesOn = (
  side: Backend,
  rules: Rules | undefined,
  path: FsPath.FsPath,
  values: Values
): Effect.Effect<void, Fault> => {
  const { isCopy, modifiedAt } = values
  const isKept = side.rules?.decidesModeOfCopies === true || rules?.preservePermissions !== false
  const isSkipped = isCopy === true && (side.attributes === undefined || !isKept)
  if (isSkipped && modifiedAt === undefined) return Effect.void
  return side.attributes?.set(path, isSkipped ? { modifiedAt } : values) ?? failUnsupported("attributes")
}

const decidesModes = ({ attributes, rules }: Backend): boolean =>
  attributes !== undefined && rules?.decidesModeOfCopies === true

const hostRootsOf = (
  outer: Backend["hostRoots"],
  inner: Backend["hostRoots"],
  at: FsPath.FsPath,
  { toInnerPath, isInside }: MountMap
): Backend["hostRoots"] =>
  (outer ?? inner) && {
    all: [...(outer?.all ?? []), ...(inner?.all ?? [])],
    hostPathOf: (path) => (isInside(path) ? inner?.hostPathOf(toInnerPath(path)) : outer?.hostPathOf(path)),
    settleTransactions: (permits) =>
      Effect.andThen(
        outer?.settleTransactions((path) => isInside(path) || permits(path)) ?? Effect.void,
        inner?.settleTransactions((path) => permits(FsPath.below(at, path))) ?? Effect.void
      )
  }

const infoOf = (outer: Info, inner: Info): Info => ({
  ...outer,
  readOnly: outer.readOnly && inner.readOnly,
  confinement: weakestConfinement(outer, inner)
})

const permits = ({ info, rules }: Backend, action: "write" | "delete", path?: FsPath.FsPath): boolean =>
  !info.readOnly && (rules?.permits === undefined || rules.permits(action, path))

const rulesOf = (outer: Backend, inner: Backend, { toInnerPath, isInside, isPinned }: MountMap): Rules => ({
  permits: (action, path) =>
    path === undefined
      ? permits(outer, action) || permits(inner, action)
      : isInside(path)
        ? permits(inner, action, toInnerPath(path))
        : permits(outer, action, path),
  pinned: (path) =>
    isPinned(path) ||
    (isInside(path) ? inner.rules?.pinned?.(toInnerPath(path)) === true : outer.rules?.pinned?.(path) === true),
  policy: outer.rules?.policy,
  symlinks: strictestSymlinks(outer.rules, inner.rules),
  preservePermissions: outer.rules?.preservePermissions,
  decidesModeOfCopies: decidesModes(outer) || decidesModes(inner)
})

/**
 * Composes the locks of both filesystems. A lock on a directory above the mount point includes the whole mounted
 * filesystem.
 */
const locksOf = (outer: Backend, inner: Backend, { toInnerPath, isInside, isPinned }: MountMap): Locks =>
  composeLocks((paths) => [
    { locks: outer.locks, paths: paths.filter((path) => !isInside(path)) },
    {
      locks: inner.locks,
      paths: paths.flatMap((path) => (isInside(path) ? [toInnerPath(path)] : isPinned(path) ? [FsPath.root] : []))
    }
  ])

const rootMountFault: Fault = accessDenied("root")
const noSpaceFault: Fault = ioError("there is no space left to create the mount point", "ENOSPC")

const mountErrorTags: Caller.ErrorTags = new Set([...Caller.errorTags.stat, "NotADirectory", "AlreadyExists"])

const resolveMountPoint = (caller: Caller.Caller, path: FsPath.FsPath): Effect.Effect<FsPath.FsPath, Fault> => {
  const { isPermitted, port } = caller
  if (path === FsPath.root) return Effect.fail(rootMountFault)
  return Effect.flatMap(resolve(port, path), ({ path: at, stat }) => {
    if (stat?.kind === "directory") return at === FsPath.root ? Effect.fail(rootMountFault) : Effect.succeed(at)
    if (stat !== undefined) return Effect.fail(notADirectory)
    if (!isPermitted("write", at)) return Effect.fail(Caller.readOnly)
    return Effect.as(
      Effect.mapError(mkdir(port, path, { parents: true, existOk: true }), (fault) =>
        fault._tag === "DiskFull" ? noSpaceFault : fault
      ),
      at
    )
  })
}

/**
 * Mounts `mounted` in the directory `at`, which is created with its parents if it is missing.
 *
 * The mounted tree hides the old content of the directory. Deleting, moving or replacing this directory or a parent of
 * it fails with AccessDenied `root`. Mounts can be nested.
 *
 * - each filesystem keeps its own permissions, quota and locks
 * - the path policy is that of the outer filesystem; the stricter `symlinks` option of the two applies; names are
 *   case-sensitive only if both filesystems are case-sensitive
 * - a symlink is resolved in the whole tree, so a symlink of the mounted filesystem may lead into the outer filesystem;
 *   in the mounted filesystem alone, this symlink fails as an escape
 * - symlinks, attributes and watching work in each filesystem that supports them, and fail with Unsupported in the
 *   other
 *
 * Fails with NotADirectory if `at` is not a directory or lies below a file, and with AlreadyExists if `at` is a broken
 * symlink.
 *
 * @example
 * ```ts
 * const library = Filesystem.make(yield* InMemory.make({ tree: { "guide.md": "Read it." } }))
 * const both = yield* Mounts.mount("vendor/library", library)(fs)
 * yield* both.readString("vendor/library/guide.md") // => "Read it."
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const mount =
  (at: string, mounted: Algebra) =>
  (self: Algebra): Effect.Effect<Algebra, StatError | NotADirectory | AlreadyExists> => {
    const caller = Caller.make(self.port)
    return caller.call("mount", at, mountErrorTags, Caller.readActions, (path) =>
      Effect.map(resolveMountPoint(caller, path), (at) => {
        const [outer, inner] = withSameCaseRule(self.port, mounted.port)
        return makeFilesystem(make(outer, at, inner))
      })
    )
  }
