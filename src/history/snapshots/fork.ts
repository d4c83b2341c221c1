/** Forks: a writable filesystem that starts as a captured tree, and the merge of its changes back, all or nothing. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as InMemory from "../../backends/InMemory.ts"
import { wholeAt } from "../../engine/read.ts"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import * as Overlay from "../../filesystem/Overlay.ts"
import { type Fault, toFault } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { storeFault } from "../errors.ts"
import { runTransaction } from "../transaction.ts"
import { merge, type Source } from "../merge.ts"
import { Conflict } from "../mergeText.ts"
import { withTreeLock } from "../transaction/treeLock.ts"
import { withExclusiveLock, isPermitted, recoverTransactions } from "../replace.ts"
import { idOf } from "../scan.ts"
import { findNode, type Change, type DirectoryNode, type Node, withNode } from "../tree.ts"
import type { Problem, StoredSnapshot, Strategy } from "./strategy.ts"

/**
 * The handling of conflicts in a merge.
 *
 * @since 0.1.0
 */
export interface MergeOptions {
  /**
   * The resolution of places that both sides changed differently: fail and change nothing, or take one side. All other
   * changes are merged in any case.
   *
   * @default "fail"
   */
  readonly conflicts?: "fail" | "ours" | "theirs" | undefined
  /** Set to return the changes without making them. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * The changes of a merge and the conflicts that it resolved.
 *
 * @since 0.1.0
 */
export interface MergeResult {
  /** The changes in path order, directories included. */
  readonly changes: ReadonlyArray<Change>
  /** The conflicts, resolved as the options say. */
  readonly conflicts: ReadonlyArray<Conflict>
}

/**
 * The failure of a merge in which both sides changed the same places. Nothing has changed.
 *
 * @since 0.1.0
 */
export class MergeConflicts extends Schema.TaggedError<MergeConflicts>("fs-algebra/MergeConflicts")("MergeConflicts", {
  /** The conflicts in path order. */
  conflicts: Schema.Array(Conflict)
}) {
  override get message(): string {
    const [first, ...more] = this.conflicts
    return `merge: ${first?.message ?? "conflicts"}${more.length === 0 ? "" : `; and ${more.length} more`}`
  }
}

const origins = new WeakMap<Backend, { readonly strategy: Strategy; readonly kept: StoredSnapshot }>()

export const fork = Effect.fnUntraced(function* (
  strategy: Strategy,
  port: Backend,
  kept: StoredSnapshot
): Effect.fn.Return<Algebra, Problem> {
  const snapshotView = yield* strategy.view(kept)
  const upper = yield* InMemory.make({ caseInsensitive: !port.info.caseSensitive }).pipe(Effect.mapError(toFault))
  const forked = Overlay.overlay(makeAlgebra(upper))(makeAlgebra(snapshotView))
  origins.set(forked.port, { strategy, kept })
  return forked
})

const notAFork = storeFault("refused", "this filesystem is not a fork of one of these snapshots")

const nodeAt = Effect.fnUntraced(function* (port: Backend, path: FsPath): Effect.fn.Return<Node | undefined, Fault> {
  const stat = yield* port.stat(path)
  const mode = stat?.mode === undefined ? undefined : { mode: stat.mode & 0o777 }
  if (stat?.kind === "directory") return { kind: "directory", entries: new Map(), ...mode }
  if (stat?.kind === "symlink" && port.links !== undefined) return { kind: "symlink", target: yield* port.links.read(path) }
  if (stat?.kind !== "file") return undefined
  const found = yield* idOf(port, path)
  return found && { kind: "file", ...found, ...mode }
})

const treeOf = Effect.fnUntraced(function* (forked: Algebra, base: DirectoryNode): Effect.fn.Return<DirectoryNode, Problem> {
  let tree = base
  for (const { _tag, path } of yield* Effect.mapError(Overlay.changes(forked), toFault)) {
    const before = findNode(tree, path)
    if (_tag === "Removed") {
      if (before !== undefined) tree = withNode(tree, path, undefined)
      continue
    }
    const node = yield* nodeAt(forked.port, path)
    // Changed entries of the directory have changes of their own in the list.
    const inside = node?.kind === "directory" && before?.kind === "directory" ? { ...node, entries: before.entries } : node
    if (path !== root) tree = withNode(tree, path, inside)
  }
  return tree
})

const readerOf =
  (port: Backend): Source<Problem>["read"] =>
  (path, file) =>
    Effect.map(wholeAt(port, path, file.sizeBytes), ({ bytes }) => bytes)

export const mergeFork = (
  strategy: Strategy,
  port: Backend,
  forked: Algebra,
  options: MergeOptions
): Effect.Effect<MergeResult, Problem | MergeConflicts> =>
  Effect.gen(function* () {
    if (!isPermitted(port)) return yield* Effect.fail<Fault>({ _tag: "AccessDenied", why: "readOnly" })
    const origin = origins.get(forked.port)
    if (origin?.strategy !== strategy) return yield* Effect.fail(notAFork)
    const { kept } = origin
    const snapshotView = yield* strategy.view(kept)
    const base = yield* strategy.tree(kept)
    const theirs = yield* treeOf(forked, base)
    const { conflicts: policy = "fail", dryRun = false } = options
    const lockUnlessDryRun = <A, E, R>(effect: Effect.Effect<A, E, R>) => (dryRun ? effect : withTreeLock(port, effect))
    return yield* withExclusiveLock(
      port,
      Effect.gen(function* () {
        yield* recoverTransactions(port)
        const ours = yield* strategy.now
        const merged = yield* merge<Problem>({
          base: { tree: base, read: readerOf(snapshotView) },
          ours: { tree: ours, read: readerOf(port) },
          theirs: { tree: theirs, read: readerOf(forked.port) },
          caseSensitive: port.info.caseSensitive,
          conflicts: policy
        })
        const { after, changes, conflicts, content } = merged
        if (policy === "fail" && conflicts.length > 0) return yield* Effect.fail(new MergeConflicts({ conflicts }))
        if (!dryRun && changes.length > 0) yield* runTransaction<Problem>(port, { before: ours, after, content })
        return { changes, conflicts }
      }).pipe(lockUnlessDryRun)
    )
  })
