/**
 * Assigns each open request to the leaf in charge of it. The assignment depends on the journal only, so all leaves agree at the same
 * position. The owner of the path serves a request. While the path has no owner, the first leaf waits for one, and finally answers that
 * there is none. When a leaf ends, its requests pass on, so a request stays open only while no leaf runs.
 */
import type { Fault } from "../../model/FsError.ts"
import type * as FsPath from "../../model/FsPath.ts"
import type { Efferent, FileStarted } from "../FileSystemEntry.ts"
import type { Transfer } from "./model.ts"
import { type AnnouncedLeaf, type Registry, supersedes } from "./registry.ts"

export interface OpenRequest {
  /** The request; for a chunked write, its first chunk. */
  readonly intent: Efferent
  readonly givenPath: string
  readonly path: FsPath.FsPath | undefined
  readonly position: number
  readonly transfer: Transfer | undefined
  /** The position at which the request is complete: for a chunked write, that of its last chunk. */
  completeAt: number | undefined
  fault: Fault | undefined
  started: FileStarted | undefined
  leafInCharge: AnnouncedLeaf | undefined
  /** True if the leaf in charge carries out the request. Otherwise that leaf waits for an owner of the path. */
  isServing: boolean
  /** The time of the request, or of the end of its last server, in milliseconds since 1970, from the journal. */
  since: number
  /** True if the whole grace has passed without a server. */
  isDue: boolean
  /** The time in milliseconds that the request has waited for a superseded leaf to end. */
  waitedMillis: number
  /** The leaves that have been in charge of serving the request, in order. */
  readonly triedLeaves: Array<AnnouncedLeaf>
}

const setCharge = (request: OpenRequest, leaf: AnnouncedLeaf | undefined, isServing: boolean, at: number): void => {
  // A change of the waiting leaf does not restart the wait for an owner.
  if (request.isServing || request.leafInCharge === undefined) request.since = at
  request.leafInCharge = leaf
  request.isServing = isServing
  if (isServing && leaf !== undefined) request.triedLeaves.push(leaf)
}

/** Returns the leaf that serves a path: its owner, or the first leaf for an invalid path and for a directory that only holds prefixes. */
const serverOf = (path: FsPath.FsPath | undefined, leaves: Registry): AnnouncedLeaf | undefined => {
  const owner = path === undefined ? undefined : leaves.ownerOf(path)
  return owner ?? (path === undefined || leaves.prefixNamesIn(path).length > 0 ? leaves.firstLeaf() : undefined)
}

export const assign = (request: OpenRequest, leaves: Registry, at: number): void => {
  const first = leaves.firstLeaf()
  const owner = serverOf(request.path, leaves)
  setCharge(request, owner ?? first, owner !== undefined, at)
}

/** Passes a request to a newly announced leaf if that leaf is now in charge. Returns whether the request's assignment changed. */
export const pass = (request: OpenRequest, leaf: AnnouncedLeaf, leaves: Registry, at: number): boolean => {
  const { leafInCharge, path, isServing, since } = request
  const server = serverOf(path, leaves)
  const owns = server?.instance === leaf.instance
  // The successor waits until the leaf in charge has ended. So it takes the request even if it does not own the path.
  const isSuccessor = leafInCharge === undefined || supersedes(leaf, leafInCharge)
  // The first half of the grace only: later, the newcomer and the leaf in charge could answer at the same time.
  const isWithinGrace = leafInCharge !== undefined && !isServing && owns && at - since < leafInCharge.grace / 2
  if (isSuccessor || isWithinGrace) {
    setCharge(request, leaf, owns, at)
    return true
  }
  // The newcomer's prefix has created the directory that was missing.
  const isPathNowServed = !isServing && server !== undefined && server.instance === leafInCharge?.instance
  if (isPathNowServed) setCharge(request, leafInCharge, true, at)
  return isPathNowServed
}
