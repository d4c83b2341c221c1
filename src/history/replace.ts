/** Makes a filesystem equal to a tree. The module scans the current tree under a lock and changes only the differences. */
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Fault } from "../model/FsError.ts"
import { type FsPath, root } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { BringingBack } from "../port/Rules.ts"
import { runTransaction, type Mismatch } from "./transaction.ts"
import { withTreeLock } from "./transaction/treeLock.ts"
import { scan, type ScanOptions } from "./scan.ts"
import type { Unpack } from "./unpack.ts"
import { type Change, differences, type DirectoryNode, type FileNode, graft } from "./tree.ts"

interface ReplaceGoal<E> {
  readonly after: DirectoryNode
  readonly content: (
    path: FsPath,
    file: FileNode
  ) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, E | Fault>, E | Fault>
  /** The paths to replace, with everything below them. @default everything */
  readonly paths?: ReadonlyArray<FsPath> | undefined
  readonly dryRun?: boolean | undefined
  readonly unpack?: Unpack | undefined
  readonly onProgress?: ((done: number, of: number) => Effect.Effect<void>) | undefined
  readonly scan?: Pick<ScanOptions<E>, "previous" | "excludes" | "threads"> | undefined
}

export const withExclusiveLock = <A, E, R>(port: Backend, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  port.locks?.alone?.([root], effect) ?? effect

/** Tests whether both writing and deleting are permitted, because a replacement needs both. */
export const isPermitted = ({ info, rules }: Backend): boolean =>
  !info.readOnly && (rules?.permits === undefined || (rules.permits("write") && rules.permits("delete")))

/** Completes or discards the transactions of killed processes, if writing and deleting are permitted. */
export const recoverTransactions = (port: Backend): Effect.Effect<void, Fault> =>
  isPermitted(port) ? (port.hostRoots?.settleTransactions(() => true) ?? Effect.void) : Effect.void

/** Makes the filesystem equal to a tree and returns the changes in path order. A dry run changes nothing. */
export const replaceTree = <E>(
  port: Backend,
  goal: ReplaceGoal<E>
): Effect.Effect<ReadonlyArray<Change>, Fault | Mismatch | E> =>
  isPermitted(port)
    ? withExclusiveLock(
        port,
        goal.dryRun === true ? replaceUnderLock(port, goal) : withTreeLock(port, replaceUnderLock(port, goal))
      )
    : Effect.fail<Fault>({ _tag: "AccessDenied", path: root, why: "readOnly" })

const replaceUnderLock = Effect.fnUntraced(function* <E>(
  port: Backend,
  goal: ReplaceGoal<E>
): Effect.fn.Return<ReadonlyArray<Change>, Fault | Mismatch | E> {
  yield* recoverTransactions(port)
  const before = (yield* scan(port, goal.scan)).tree
  const after = goal.paths === undefined ? goal.after : graft(before, goal.after, goal.paths, port.info.caseSensitive)
  const changes = differences(before, after, port.info.caseSensitive)
  if (goal.dryRun !== true && changes.length > 0)
    yield* Effect.provideService(
      runTransaction(port, { before, after, content: goal.content, unpack: goal.unpack, onProgress: goal.onProgress }),
      BringingBack,
      true
    )
  return changes
})
