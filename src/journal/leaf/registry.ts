/**
 * The registry of the leaves at a position of the journal. The registry depends on the journal only, so all leaves agree. The
 * leaf with the longest matching prefix owns a path. The first leaf answers requests for paths without an owner.
 */
import * as FsPath from "../../model/FsPath.ts"
import type { DaemonChanged } from "../entries/status.ts"
import type { Fault } from "../../model/FsError.ts"
import type { Efferent, FileStarted } from "../FileSystemEntry.ts"
import type { Transfer } from "./model.ts"
import { defaultGraceMillis } from "./settings.ts"

export interface AnnouncedLeaf {
  readonly daemon: string
  readonly instance: string
  readonly prefix: FsPath.FsPath
  readonly extended: boolean
  /** The time, in milliseconds, that the leaf lets a request wait if its path has no owner. */
  readonly grace: number
  readonly position: number
}

export interface Registry {
  readonly observe: (changed: DaemonChanged, position: number) => AnnouncedLeaf | undefined
  readonly ownerOf: (path: FsPath.FsPath) => AnnouncedLeaf | undefined
  readonly firstLeaf: () => AnnouncedLeaf | undefined
  /** The leaves that are running and were not replaced, in the order of their announcement. */
  readonly running: () => ReadonlyArray<AnnouncedLeaf>
  /** The leaves that were announced and have not completed, even if they were replaced. */
  readonly unfinished: ReadonlyMap<string, AnnouncedLeaf>
  /** The leaves that have ended and were not replaced. */
  readonly down: () => ReadonlyArray<AnnouncedLeaf>
  /** Returns the names in a directory that lead to the prefixes of leaves. The prefixes of leaves that have ended count too. */
  readonly prefixNamesIn: (path: FsPath.FsPath) => ReadonlyArray<string>
  /**
   * Tests whether the path is the prefix of a leaf, or leads to a prefix. Such a directory always exists. Returns false for
   * the root.
   */
  readonly isPrefixDirectory: (path: FsPath.FsPath) => boolean
  readonly copy: () => Registry
}

/** Tests whether one leaf replaces the other: both have the same name or the same prefix. */
export const supersedes = (
  self: Pick<AnnouncedLeaf, "daemon" | "prefix">,
  that: Pick<AnnouncedLeaf, "daemon" | "prefix">
): boolean => self.daemon === that.daemon || self.prefix === that.prefix

export const make = (from: {
  readonly running: Array<AnnouncedLeaf>
  readonly unfinished: Map<string, AnnouncedLeaf>
  readonly down: Array<AnnouncedLeaf>
}): Registry => {
  const { unfinished } = from
  let { down, running } = from
  const allLeaves = (): ReadonlyArray<AnnouncedLeaf> => [...running, ...down]
  return {
    observe: (changed, position) => {
      const prefix = changed.prefix === undefined ? undefined : FsPath.parse(changed.prefix, "branch")
      if (typeof prefix !== "string") return undefined
      const { daemon, instance } = changed
      if (changed.status !== "Running") {
        down = [...down, ...running.filter((other) => other.instance === instance)]
        running = running.filter((other) => other.instance !== instance)
        unfinished.delete(instance)
        return undefined
      }
      const announced = {
        daemon,
        instance,
        prefix,
        extended: changed.extended === true,
        grace: changed.grace ?? defaultGraceMillis,
        position
      }
      running = [...running.filter((other) => !supersedes(announced, other)), announced]
      down = down.filter((other) => !supersedes(announced, other))
      unfinished.set(instance, announced)
      return announced
    },
    ownerOf: (path) => {
      let found: AnnouncedLeaf | undefined
      for (const leaf of running) {
        if (FsPath.isWithin(leaf.prefix, path) && (found === undefined || FsPath.isWithin(found.prefix, leaf.prefix)))
          found = leaf
      }
      return found
    },
    firstLeaf: () => running[0],
    running: () => running,
    unfinished,
    down: () => down,
    prefixNamesIn: (path) => {
      const depth = FsPath.segments(path).length
      const below = allLeaves().flatMap(({ prefix }) =>
        prefix !== path && FsPath.isWithin(path, prefix) ? [FsPath.segments(prefix)[depth]!] : []
      )
      return [...new Set(below)].sort()
    },
    isPrefixDirectory: (path) => path !== FsPath.root && allLeaves().some(({ prefix }) => FsPath.isWithin(path, prefix)),
    copy: () => make({ running: [...running], unfinished: new Map(unfinished), down: [...down] })
  }
}

export const empty = (): Registry => make({ running: [], unfinished: new Map(), down: [] })

// Assigns each open request to a leaf, which is then in charge of the request. The assignment depends on the journal only, so
// all leaves agree at the same position. The owner of the path serves a request. If the path has no owner, the leaf that has
// run longest waits for an owner, and finally answers that no leaf serves the path. When a leaf ends, its requests pass to
// other leaves.

export interface OpenRequest {
  /** The request. For a chunked write, the first chunk. */
  readonly intent: Efferent
  readonly givenPath: string
  readonly path: FsPath.FsPath | undefined
  readonly position: number
  readonly transfer: Transfer | undefined
  /** The position at which the request is complete. For a chunked write, the position of its last chunk. */
  completeAt: number | undefined
  fault: Fault | undefined
  started: FileStarted | undefined
  leafInCharge: AnnouncedLeaf | undefined
  /** True if the leaf in charge carries out the request. Otherwise that leaf waits for an owner of the path. */
  isServing: boolean
  /**
   * The start of the wait, in milliseconds since 1970: the time of the request, or the time at which the last serving leaf ended
   * or was replaced.
   */
  since: number
  /** True if the leaf in charge has waited its whole `grace` for an owner of the path. */
  isDue: boolean
  /** The time that the request has waited for the end of another leaf, in milliseconds. */
  waitedMillis: number
  /** The leaves that have served the request, in order. */
  readonly triedLeaves: Array<AnnouncedLeaf>
}

const setCharge = (request: OpenRequest, leaf: AnnouncedLeaf | undefined, isServing: boolean, at: number): void => {
  // The wait for an owner continues if another leaf takes charge during the wait.
  if (request.isServing || request.leafInCharge === undefined) request.since = at
  request.leafInCharge = leaf
  request.isServing = isServing
  if (isServing && leaf !== undefined) request.triedLeaves.push(leaf)
}

/**
 * Returns the owner of a path. If no leaf owns the path, returns the first leaf for an invalid path and for a directory that
 * contains prefixes, and `undefined` for any other path.
 */
const serverOf = (path: FsPath.FsPath | undefined, leaves: Registry): AnnouncedLeaf | undefined => {
  const owner = path === undefined ? undefined : leaves.ownerOf(path)
  return owner ?? (path === undefined || leaves.prefixNamesIn(path).length > 0 ? leaves.firstLeaf() : undefined)
}

export const assign = (request: OpenRequest, leaves: Registry, at: number): void => {
  const first = leaves.firstLeaf()
  const owner = serverOf(request.path, leaves)
  setCharge(request, owner ?? first, owner !== undefined, at)
}

/**
 * Puts a newly announced leaf in charge of a request if the leaf is responsible now. Returns whether the assignment of the
 * request changed.
 */
export const pass = (request: OpenRequest, leaf: AnnouncedLeaf, leaves: Registry, at: number): boolean => {
  const { leafInCharge, path, isServing, since } = request
  const server = serverOf(path, leaves)
  const owns = server?.instance === leaf.instance
  // A successor takes any request, because a successor waits until the replaced leaf has ended.
  const isSuccessor = leafInCharge === undefined || supersedes(leaf, leafInCharge)
  // Let a new owner take the request only in the first half of the grace. Later, both leaves could answer at the same time.
  const isWithinGrace = leafInCharge !== undefined && !isServing && owns && at - since < leafInCharge.grace / 2
  if (isSuccessor || isWithinGrace) {
    setCharge(request, leaf, owns, at)
    return true
  }
  // The path now leads to the prefix of the new leaf, so the leaf in charge can serve the path.
  const isPathNowServed = !isServing && server !== undefined && server.instance === leafInCharge?.instance
  if (isPathNowServed) setCharge(request, leafInCharge, true, at)
  return isPathNowServed
}
