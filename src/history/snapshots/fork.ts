/**
 * A fork is a writable filesystem that begins with a captured tree. A merge applies all changes of the fork to the original,
 * or none.
 */
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
 * The options of a merge.
 *
 * @since 0.1.0
 */
export interface MergeOptions {
  /**
   * The resolution of conflicts. `fail` fails with MergeConflicts and changes nothing. `ours` takes the version of the
   * original for each conflict, and `theirs` the version of the fork. Both also merge all other changes.
   *
   * @default "fail"
   */
  readonly conflicts?: "fail" | "ours" | "theirs" | undefined
  /** True to return the changes without making them. @default false */
  readonly dryRun?: boolean | undefined
}

/**
 * The result of a merge.
 *
 * @since 0.1.0
 */
export interface MergeResult {
  /** The changes in path order, including changes of directories. */
  readonly changes: ReadonlyArray<Change>
  /** The conflicts that `ours` or `theirs` resolved. */
  readonly conflicts: ReadonlyArray<Conflict>
}

/**
 * The failure of a merge with conflicts. Nothing has changed.
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

const notAFork = storeFault("refused", "this filesystem is not a fork of a snapshot of this service")

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
    // The list of changes contains every changed entry below the directory, so keep the old entries here.
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
