/**
 * Builds two trees of the affected paths, before and after, as a transaction needs them. Files are placed one by one, as
 * writes would be: the last one wins, and the same entries are obstacles.
 */
import * as Effect from "effect/Effect"
import { noPlace, resolve } from "../../engine/resolve.ts"
import type { DirectoryNode, FileNode, Node } from "../../history/tree.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"

export interface End {
  readonly path: FsPath.FsPath
  /** The POSIX permission bits, if they are known. */
  readonly mode: number | undefined
  readonly sizeBytes: number
  /** The mount of the file. Files of one mount may not replace each other. */
  readonly group: number
}

interface Spot<A extends End> {
  readonly at: FsPath.FsPath
  readonly stat: FileStat | undefined
  readonly below: Map<string, Spot<A>>
  /** The target, for a link. */
  leads?: Spot<A>
  end?: A
}

export interface Places<A extends End> {
  /** The files by their real path, without files that later ones have replaced. */
  readonly ends: ReadonlyMap<FsPath.FsPath, A>
  readonly before: DirectoryNode
  /** Returns the tree after the copy. `idOf` returns the id of git's blob for a file. */
  readonly after: (idOf: (end: A) => string) => DirectoryNode
}

const notAFile: Fault = { _tag: "NotAFile" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const alreadyExists: Fault = { _tag: "AlreadyExists" }

class Finding<A extends End> {
  readonly #port: Backend
  readonly #top: Spot<A>

  constructor(port: Backend, top: Spot<A>) {
    this.#port = port
    this.#top = top
  }

  readonly put = Effect.fnUntraced({ self: this }, function* (end: A): Effect.fn.Return<void, Fault> {
    const spot = yield* this.#walk(end.path)
    const { stat } = spot
    if (spot === this.#top || spot.below.size > 0 || (stat !== undefined && stat.kind !== "file")) {
      return yield* Effect.fail(notAFile)
    }
    if (spot.end?.group === end.group) return yield* Effect.fail(alreadyExists)
    spot.end = end
  })

  readonly #walk: (path: FsPath.FsPath) => Effect.Effect<Spot<A>, Fault> = Effect.fnUntraced(
    { self: this },
    function* (path: FsPath.FsPath): Effect.fn.Return<Spot<A>, Fault> {
      let spot = this.#top
      for (const segment of FsPath.segments(path)) {
        const next = yield* this.#below(spot, segment)
        spot = next.stat?.kind === "symlink" ? (next.leads ??= yield* this.#through(next.at)) : next
      }
      return spot
    }
  )

  /** Resolves a link. The result has no link on its path. */
  readonly #through = Effect.fnUntraced({ self: this }, function* (at: FsPath.FsPath): Effect.fn.Return<Spot<A>, Fault> {
    const found = yield* resolve(this.#port, at)
    const fault = noPlace(found) ?? (found.stat === undefined ? FsPath.checkLimits(found.path, yield* Limits) : undefined)
    // A backend without links to follow treats a link as an entry of its own.
    return fault !== undefined || found.path === at ? yield* Effect.fail(fault ?? notAFile) : yield* this.#walk(found.path)
  })

  readonly #below = Effect.fnUntraced({ self: this }, function* (above: Spot<A>, segment: string): Effect.fn.Return<
    Spot<A>,
    Fault
  > {
    const key = this.#port.info.caseSensitive ? segment : FsPath.fold(segment)
    const known = above.below.get(key)
    if (known !== undefined) return known
    const isNew = above.stat === undefined
    if (above.end !== undefined || (!isNew && above.stat.kind !== "directory")) return yield* Effect.fail(notADirectory)
    const at = FsPath.join(above.at, segment)
    const spot: Spot<A> = { at, stat: isNew ? undefined : yield* this.#port.stat(at), below: new Map() }
    above.below.set(key, spot)
    return spot
  })
}

/** Returns the node of an existing file. Its id only needs to differ from the id of the new content. */
const fileBefore = ({ mode, sizeBytes }: FileStat): FileNode => ({
  kind: "file",
  ...(mode !== undefined && { mode: mode & 0o777 }),
  sizeBytes,
  id: ""
})

const entriesOf = <A extends End>(spot: Spot<A>, nodeOf: (spot: Spot<A>) => Node | undefined): Map<string, Node> => {
  const entries = new Map<string, Node>()
  for (const child of spot.below.values()) {
    const node = nodeOf(child)
    if (node !== undefined) entries.set(FsPath.name(child.at), node)
  }
  return entries
}

/** Returns the node before the copy. Directories have no mode, so that their modes stay unchanged. */
const nodeBefore = <A extends End>(spot: Spot<A>): Node | undefined => {
  const { end, stat } = spot
  if (stat?.kind === "directory") return { kind: "directory", entries: entriesOf(spot, nodeBefore<A>) }
  return stat === undefined || end === undefined ? undefined : fileBefore(stat)
}

const nodeAfter = <A extends End>(idOf: (end: A) => string) => {
  const nodeOf = (spot: Spot<A>): Node | undefined => {
    const { end, stat } = spot
    if (end !== undefined) {
      const mode = end.mode ?? (stat?.mode === undefined ? undefined : stat.mode & 0o777)
      return { kind: "file", ...(mode !== undefined && { mode }), sizeBytes: end.sizeBytes, id: idOf(end) }
    }
    const entries = entriesOf(spot, nodeOf)
    return stat?.kind === "directory" || entries.size > 0 ? { kind: "directory", entries } : undefined
  }
  return nodeOf
}

const endsOf = <A extends End>(top: Spot<A>): ReadonlyMap<FsPath.FsPath, A> => {
  const ends = new Map<FsPath.FsPath, A>()
  const pending = [top]
  for (let spot = pending.pop(); spot !== undefined; spot = pending.pop()) {
    if (spot.end !== undefined) ends.set(spot.at, spot.end)
    pending.push(...spot.below.values())
  }
  return ends
}

/**
 * Places all files. Fails as a write would, with NotAFile, NotADirectory and the faults of links. Fails with AlreadyExists for two files of
 * one group at one place. Each fault has the path of the file.
 */
export const find = Effect.fnUntraced(function* <A extends End>(
  port: Backend,
  ends: ReadonlyArray<A>
): Effect.fn.Return<Places<A>, Fault> {
  const top: Spot<A> = { at: FsPath.root, stat: yield* port.stat(FsPath.root), below: new Map() }
  const finding = new Finding(port, top)
  for (const end of ends) yield* Effect.mapError(finding.put(end), (fault) => located(fault, end.path))
  return {
    ends: endsOf(top),
    before: nodeBefore(top) as DirectoryNode,
    after: (idOf) => nodeAfter(idOf)(top) as DirectoryNode
  }
})
