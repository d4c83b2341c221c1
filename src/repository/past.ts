/** The place of a commit in its history, by which `verify` recognizes a store of heads that has lost a commit. */
import * as DateTime from "effect/DateTime"
import { Buffer } from "../runtime/buffer.ts"
import { sha256 } from "../runtime/hash.ts"
import { maxRecent, type Past, type Root } from "./format/nodes.ts"
import type { Head } from "./HeadStore.ts"

/** A commit: the head, and the root node to which the head refers. */
export interface Commit {
  readonly head: Head
  readonly root: Root
}

/** Returns the id of the history to which a commit belongs. The id is the hash of the workspace's first head. */
export const originOf = ({ head, root }: Commit): string => {
  const named = head.sequence === 1 ? undefined : root.past?.origin
  if (named !== undefined) return named
  const first = [head.root, head.author, head.message, DateTime.toEpochMillis(head.committedAt)]
  return sha256(Buffer.from(JSON.stringify(first))).slice(0, 32)
}

/** Returns the name of the history of a commit, or `undefined` if its root is of version 1, which does not tell. */
export const lineageOf = (commit: Commit): string | undefined =>
  commit.head.sequence === 1 || commit.root.past?.origin !== undefined ? originOf(commit) : undefined

/** Tests whether two commits are of different histories, because somebody has deleted the workspace and made it again. */
export const areUnrelated = (self: Commit, that: Commit): boolean => {
  const [one, other] = [lineageOf(self), lineageOf(that)]
  return one !== undefined && other !== undefined && one !== other
}

/** A commit that a store of heads has confirmed. */
export interface Won {
  readonly commit: Commit
  readonly id: string
}

/** Tests whether the history of `present` lacks a commit that was confirmed earlier. */
export const hasLost = (present: Commit, { commit, id }: Won): boolean => {
  // The histories of commits of version 1 are not known.
  if (originOf(present) !== originOf(commit)) return false
  const since = present.head.sequence - commit.head.sequence
  return since < 0 || (since < maxRecent && present.root.recent[since] !== id)
}

/** Returns the `Past` of the commit that follows `base`. */
export const pastOf = (base: Commit | undefined, won: Won | undefined): Past => {
  if (base === undefined) return { sequence: 1, parent: undefined, origin: undefined, lost: undefined }
  const lost =
    won !== undefined && hasLost(base, won) ? { sequence: won.commit.head.sequence, root: won.commit.head.root } : undefined
  return {
    sequence: base.head.sequence + 1,
    parent: base.head.root,
    origin: originOf(base),
    lost: base.root.past?.lost ?? lost
  }
}
