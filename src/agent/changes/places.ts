/** Resolves the paths of changes to two trees of the affected entries, before and after, as a transaction needs them. */
import * as Effect from "effect/Effect"
import { noPlace, resolve, resolveLink } from "../../engine/resolve.ts"
import * as Version from "../../engine/version.ts"
import { blobId, type DirectoryNode, type FileNode, type Node } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"

export interface End {
  /** The path as the caller wrote it. */
  readonly path: FsPath.FsPath
  readonly before: string | null
  readonly after: Uint8Array | null
  /** The file whose permissions a new file gets. */
  readonly from?: FsPath.FsPath | undefined
}

export interface Place {
  readonly end: End
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
}

interface Spot {
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
  readonly below: Map<string, Spot>
  end?: End
}

export interface Trees {
  readonly before: DirectoryNode
  readonly after: DirectoryNode
  /** The places, in path order. */
  readonly places: ReadonlyArray<Place>
}

const invalid = (detail: string): Fault => ({ _tag: "InvalidArgument", argument: "changes", detail })
const notAFile: Fault = { _tag: "NotAFile" }
const quoted = (path: string): string => JSON.stringify(path)

const spotBelow = Effect.fnUntraced(function* (port: Backend, above: Spot, segment: string): Effect.fn.Return<Spot, Fault> {
  const { caseSensitive } = port.info
  const key = caseSensitive ? segment : FsPath.fold(segment)
  const known = above.below.get(key)
  if (known !== undefined) return known
  const isThere = above.stat?.kind === "directory"
  const at = FsPath.join(above.at, segment)
  const spot: Spot = { at, stat: isThere ? yield* port.stat(at) : undefined, below: new Map() }
  above.below.set(key, spot)
  return spot
})

/** Resolves the path of an end. A write follows a link at the path; a removal removes the link itself. */
const placeOf = Effect.fnUntraced(function* (port: Backend, { after, path }: End): Effect.fn.Return<FsPath.FsPath, Fault> {
  const found = yield* after === null ? resolveLink(port, path) : resolve(port, path)
  // A file that blocks the path may itself be removed by these changes.
  const fault = found.blocked ? undefined : noPlace(found)
  if (fault !== undefined) return yield* Effect.fail(fault)
  const isNew = found.stat === undefined && found.path !== path
  const beyond = isNew ? FsPath.checkLimits(found.path, yield* Limits) : undefined
  return beyond === undefined ? found.path : yield* Effect.fail(beyond)
})

const put = Effect.fnUntraced(function* (port: Backend, top: Spot, end: End): Effect.fn.Return<void, Fault> {
  let spot = top
  for (const segment of FsPath.segments(yield* placeOf(port, end))) spot = yield* spotBelow(port, spot, segment)
  if (spot.end !== undefined) {
    const both = spot.end.path === end.path ? quoted(end.path) : `${quoted(spot.end.path)} and ${quoted(end.path)}`
    return yield* Effect.fail(invalid(`${both}: one file is changed twice; combine both changes`))
  }
  if (spot === top || (spot.stat !== undefined && spot.stat.kind !== "file")) return yield* Effect.fail(notAFile)
  spot.end = end
})

const permissions = (stat: FileStat | undefined): { readonly mode?: number } =>
  stat?.mode === undefined ? {} : { mode: stat.mode & 0o777 }

/** Describes the current file. Its id equals that of the new content only if the content stays the same. */
const fileBefore = (stat: FileStat, { after, before }: End): FileNode => ({
  kind: "file",
  ...permissions(stat),
  sizeBytes: stat.sizeBytes,
  id: after !== null && Version.ofBytes(after) === before ? blobId(after) : (before ?? "")
})

const fileAfter = (bytes: Uint8Array, mode: { readonly mode?: number }): FileNode => ({
  kind: "file",
  ...mode,
  sizeBytes: bytes.length,
  id: blobId(bytes)
})

const entriesOf = (spot: Spot, nodeOf: (spot: Spot) => Node | undefined): Map<string, Node> => {
  const entries = new Map<string, Node>()
  for (const child of spot.below.values()) {
    const node = nodeOf(child)
    if (node !== undefined) entries.set(FsPath.name(child.at), node)
  }
  return entries
}

/** Describes the current tree. Directories have no modes here, because their modes do not change. */
const nodeBefore = (spot: Spot): Node | undefined => {
  const { end, stat } = spot
  if (stat?.kind === "directory") return { kind: "directory", entries: entriesOf(spot, nodeBefore) }
  return stat === undefined || end === undefined ? undefined : fileBefore(stat, end)
}

const nodeAfter =
  (modeOf: (end: End) => { readonly mode?: number }) =>
  (spot: Spot): Node | undefined => {
    const { end, stat } = spot
    const bytes = end?.after ?? null
    if (bytes !== null) return fileAfter(bytes, stat === undefined ? modeOf(end!) : permissions(stat))
    const entries = entriesOf(spot, nodeAfter(modeOf))
    return stat?.kind === "directory" || entries.size > 0 ? { kind: "directory", entries } : undefined
  }

const misplaced = (spot: Spot): Fault | undefined => {
  if (spot.below.size === 0 || spot.stat?.kind === "directory") return undefined
  const [below] = spot.below.values()
  if (spot.end !== undefined && spot.end.after !== null) {
    return invalid(`${quoted(spot.end.path)} cannot be a file and have ${quoted(FsPath.name(below!.at))} below it`)
  }
  return spot.stat === undefined || spot.end !== undefined ? undefined : { _tag: "NotADirectory" }
}

const placesOf = (top: Spot): ReadonlyArray<Place> | Fault => {
  const places: Array<Place> = []
  const pending = [top]
  for (let spot = pending.pop(); spot !== undefined; spot = pending.pop()) {
    const fault = misplaced(spot)
    if (fault !== undefined) return located(fault, spot.at)
    if (spot.end !== undefined) places.push({ end: spot.end, at: spot.at, stat: spot.stat })
    pending.push(...spot.below.values())
  }
  return places.sort((a, b) => FsPath.compare(a.at, b.at))
}

/**
 * Resolves every end. Fails with InvalidArgument if two ends are the same file or exclude each other, and with NotAFile or
 * NotADirectory for entries of another kind. Also fails with the errors of links. Faults have the caller's path.
 */
export const find = Effect.fnUntraced(function* (port: Backend, ends: ReadonlyArray<End>): Effect.fn.Return<Trees, Fault> {
  const stat = yield* port.stat(FsPath.root)
  // The root directory of a backend can be moved away at any time.
  if (stat?.kind !== "directory") return yield* Effect.fail(located({ _tag: "NotFound" }, FsPath.root))
  const top: Spot = { at: FsPath.root, stat, below: new Map() }
  for (const end of ends) yield* Effect.mapError(put(port, top, end), (fault) => located(fault, end.path))
  const places = placesOf(top)
  if ("_tag" in places) return yield* Effect.fail(places)
  const stats = new Map(places.map(({ end, stat }) => [end.path, stat]))
  const modeOf = ({ from }: End) => (from === undefined ? {} : permissions(stats.get(from)))
  return { places, before: nodeBefore(top) as DirectoryNode, after: nodeAfter(modeOf)(top) as DirectoryNode }
})
