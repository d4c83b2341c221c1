/**
 * The leaf that is in charge of each open request. It follows from the journal alone, so that all leaves agree at the same position: the
 * owner of the path serves a request; while the path has no owner, the first leaf waits for one and then says that there is none. When a
 * leaf ends, what it was in charge of passes on, so a request stays open only while no leaf runs.
 */
import type { Fault } from "../../model/FsError.ts"
import type * as FsPath from "../../model/FsPath.ts"
import type { Efferent, FileStarted } from "../FileSystemEntry.ts"
import type { Transfer } from "./model.ts"
import { type Announced, type Registry, supersedes } from "./registry.ts"

/** A request without an answer, of this leaf or of another. */
export interface Open {
  /** Of a write in parts the first part. */
  readonly intent: Efferent
  /** As the caller wrote it. */
  readonly shown: string
  readonly path: FsPath.FsPath | undefined
  /** The position of the request. */
  readonly position: number
  readonly transfer: Transfer | undefined
  /** The position from which the request is whole: of a write in parts the last part's, once that is there. */
  wholeAt: number | undefined
  /** Why the request cannot be carried out, whichever leaf has it. */
  fault: Fault | undefined
  /** The last announcement that a leaf has begun it. */
  started: FileStarted | undefined
  charge: Announced | undefined
  /** The leaf in charge carries it out; otherwise that leaf waits for an owner of the path. */
  serves: boolean
  /** When it was asked, or lost the leaf that served it, in milliseconds since the epoch, by the journal. */
  since: number
  /** Nobody has come to serve it for a whole grace. */
  isDue: boolean
  /** How long it has waited for a superseded leaf to end, in milliseconds. */
  heldFor: number
  /** The leaves that were to carry it out, in order. */
  readonly tried: Array<Announced>
}

const give = (request: Open, leaf: Announced | undefined, serves: boolean, at: number): void => {
  // One that waits for an owner waits no longer because the leaf that speaks for it has changed.
  if (request.serves || request.charge === undefined) request.since = at
  request.charge = leaf
  request.serves = serves
  if (serves && leaf !== undefined) request.tried.push(leaf)
}

/** The leaf that serves a path: its owner, or the first leaf for a directory that only holds prefixes, and for what is no path. */
const serverOf = (path: FsPath.FsPath | undefined, leaves: Registry): Announced | undefined => {
  const owner = path === undefined ? undefined : leaves.ownerOf(path)
  return owner ?? (path === undefined || leaves.namesIn(path).length > 0 ? leaves.first() : undefined)
}

/** Gives a request to the leaf that serves its path, or to the first leaf. */
export const assign = (request: Open, leaves: Registry, at: number): void => {
  const first = leaves.first()
  const owner = serverOf(request.path, leaves)
  give(request, owner ?? first, owner !== undefined, at)
}

/** Passes a request to a leaf that was just announced, if it is that leaf's from now on. Returns whether it is. */
export const pass = (request: Open, leaf: Announced, leaves: Registry, at: number): boolean => {
  const { charge, path, serves, since } = request
  const server = serverOf(path, leaves)
  const owns = server?.instance === leaf.instance
  // The successor waits until the leaf in charge has ended, so the request is the successor's, even if the path is not.
  const succeeds = charge === undefined || supersedes(leaf, charge)
  // The second half of the grace keeps the newcomer and the leaf in charge from answering at the same time.
  const inTime = charge !== undefined && !serves && owns && at - since < charge.grace / 2
  if (succeeds || inTime) {
    give(request, leaf, owns, at)
    return true
  }
  // The directory that holds the newcomer's prefix is there now.
  const isFound = !serves && server !== undefined && server.instance === charge?.instance
  if (isFound) give(request, charge, true, at)
  return isFound
}
