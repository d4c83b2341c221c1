/** The commits of a history. Each root node has the place of its commit, so that `verify` detects a lost commit. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Buffer } from "../runtime/buffer.ts"
import { sha256 } from "../runtime/hash.ts"
import { BlobStore } from "./BlobStore.ts"
import { missingWorkspace, StoreError } from "./errors.ts"
import { maxRecent, maxReplacedBytes, type Past, type Root } from "./format/nodes.ts"
import * as Objects from "./format/objects.ts"
import { type Head, HeadStore, type Operations as Heads } from "./HeadStore.ts"

/** A commit: the head, and the root node to which the head refers. */
export interface Commit {
  readonly head: Head
  readonly root: Root
}

/** Tests whether two heads are equal. Stores keep times in whole milliseconds. */
export const isSameHead = (self: Head | undefined, that: Head | undefined): boolean =>
  self === that ||
  (self !== undefined &&
    that !== undefined &&
    self.root === that.root &&
    self.sequence === that.sequence &&
    self.author === that.author &&
    self.message === that.message &&
    DateTime.toEpochMillis(self.committedAt) === DateTime.toEpochMillis(that.committedAt))

/** Returns the id of the history to which a commit belongs. The id is the hash of the workspace's first head. */
export const originOf = ({ head, root }: Commit): string => {
  const named = head.sequence === 1 ? undefined : root.past?.origin
  if (named !== undefined) return named
  const first = [head.root, head.author, head.message, DateTime.toEpochMillis(head.committedAt)]
  return sha256(Buffer.from(JSON.stringify(first))).slice(0, 32)
}

/**
 * Returns the id of the history to which a commit belongs. Returns `undefined` for a commit after the first whose root is of
 * version 1, because such a root does not contain the id.
 */
export const lineageOf = (commit: Commit): string | undefined =>
  commit.head.sequence === 1 || commit.root.past?.origin !== undefined ? originOf(commit) : undefined

/** Tests whether two commits are of different histories, because somebody has deleted the workspace and made it again. */
export const areUnrelated = (self: Commit, that: Commit): boolean => {
  const [one, other] = [lineageOf(self), lineageOf(that)]
  return one !== undefined && other !== undefined && one !== other
}

/** Returns the head of a workspace. Fails with `missing` if there is no such workspace. */
export const headOf = (heads: Heads, workspace: string): Effect.Effect<Head, StoreError> =>
  Effect.flatMap(heads.get(workspace), (head) =>
    head === undefined ? Effect.fail(missingWorkspace(workspace)) : Effect.succeed(head)
  )

/** A commit that a store of heads has confirmed. */
export interface Won {
  readonly commit: Commit
  readonly id: string
}

/** Tests whether the history of `present` lacks a commit that was confirmed earlier. */
const hasLost = (present: Commit, { commit, id }: Won): boolean => {
  // A commit of another history, or of version 1, does not show whether the confirmed commit is lost.
  if (originOf(present) !== originOf(commit)) return false
  const since = present.head.sequence - commit.head.sequence
  return since < 0 || (since < maxRecent && present.root.recent[since] !== id)
}

/** Returns the start of a long text, because a root node has a maximum size. */
const shortened = (text: string): string => {
  const bytes = Buffer.from(text.toWellFormed())
  if (bytes.length <= maxReplacedBytes) return bytes.toString()
  const start = bytes.subarray(0, maxReplacedBytes - Buffer.byteLength("…")).toString()
  return `${start.replace(/\uFFFD+$/, "")}…`
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
    lost: base.root.past?.lost ?? lost,
    replaced: {
      author: shortened(base.head.author),
      message: shortened(base.head.message),
      committedAt: Math.trunc(DateTime.toEpochMillis(base.head.committedAt))
    }
  }
}

/**
 * A commit of a workspace.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommitInfo {
  /** The number of the commit, from 1. */
  readonly sequence: number
  /** The hash of the root node. */
  readonly root: string
  /**
   * The author. Authors of earlier commits are cut to 1,024 bytes. `undefined` if an earlier version of the format did not
   * record the author.
   */
  readonly author: string | undefined
  /** The message, with the same limits as the author. */
  readonly message: string | undefined
  /** The time of the commit. `undefined` if an earlier version of the format did not record the time. */
  readonly committedAt: DateTime.Utc | undefined
  /** False if the root node is no longer in the store. The earlier commits are then unknown. */
  readonly isStored: boolean
}

export const damagedHistory = (workspace: string, detail: string): StoreError =>
  new StoreError({ reason: "corrupt", detail: `the history of ${JSON.stringify(workspace)} is damaged: ${detail}` })

interface Step {
  readonly commit: Omit<CommitInfo, "isStored">
  /** The root of the next commit, and its hash. The newest commit has none. */
  readonly next: { readonly hash: string; readonly root: Root } | undefined
}

const pageOf = (commit: CommitInfo, before: Option.Option<Step>) => [[commit], before] as const

/** Returns why a root does not belong to the commit of the step, or `undefined` if it belongs to the commit. */
const problemOf = ({ commit, next }: Step, { past, recent }: Root): string | undefined => {
  // The first root of a fork belongs to another workspace.
  if (commit.sequence > 1 && past !== undefined) {
    if (next === undefined && past.sequence !== commit.sequence) {
      return `the commit ${commit.sequence} has the root ${commit.root} of the commit ${past.sequence}`
    }
    if (past.sequence !== commit.sequence || (next !== undefined && past.origin !== next.root.past?.origin)) {
      return `the root ${commit.root}, the parent of the commit ${commit.sequence + 1}, is not the commit ${commit.sequence}`
    }
  }
  return next?.root.recent.slice(1).some((id, i) => id !== recent[i])
    ? `the root ${next.hash} lists other recent commits than its parent ${commit.root}`
    : undefined
}

/** Returns the commits from a head, the newest first. The numbers decrease by one, so the stream ends. */
export const commitsFrom = (
  objects: Objects.Objects,
  workspace: string,
  { author, committedAt, message, root, sequence }: Head
): Stream.Stream<CommitInfo, StoreError> => {
  const first: Step = { commit: { sequence, root, author, message, committedAt }, next: undefined }
  return Stream.paginate(first, (step) =>
    Effect.gen(function* () {
      const { commit, next } = step
      const root = yield* Effect.catch(objects.root(commit.root), (error) =>
        error.reason === "missing" && next !== undefined ? Effect.succeed(undefined) : Effect.fail(error)
      )
      if (root === undefined) return pageOf({ ...commit, isStored: false }, Option.none())
      const problem = problemOf(step, root)
      if (problem !== undefined) return yield* Effect.fail(damagedHistory(workspace, problem))
      const { parent, replaced } = root.past ?? {}
      const before: Option.Option<Step> =
        commit.sequence === 1 || parent === undefined
          ? Option.none()
          : Option.some({
              commit: {
                sequence: commit.sequence - 1,
                root: parent,
                author: replaced?.author,
                message: replaced?.message,
                committedAt: replaced === undefined ? undefined : DateTime.makeUnsafe(replaced.committedAt)
              },
              next: { hash: commit.root, root }
            })
      return pageOf({ ...commit, isStored: true }, before)
    })
  )
}

export const commits = (workspace: string): Stream.Stream<CommitInfo, StoreError, BlobStore | HeadStore> =>
  Stream.unwrap(
    Effect.gen(function* () {
      // Each root is read once, so a cache would only use memory.
      const objects = Objects.make(yield* BlobStore, { cacheBytes: 0 })
      return commitsFrom(objects, workspace, yield* headOf(yield* HeadStore, workspace))
    })
  )
