/**
 * The host directories that contain the files of a backend.
 *
 * A transaction has a record outside of the directories that it changes. The record identifies each directory by path,
 * device and inode. So any process that later opens such a directory, through any combinators, can finish the
 * transaction of a killed process.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"

/** A directory on the machine that is the root of a backend. `path` contains no symlinks. */
export interface HostRoot {
  readonly path: string
  readonly device: string
  readonly inode: string
  /** True if transaction records are flushed to disk before any change. */
  readonly isDurable: boolean
}

export interface HostPath {
  readonly root: HostRoot
  readonly path: FsPath
}

export interface HostRoots {
  readonly all: ReadonlyArray<HostRoot>
  /** Returns the host path of a file, or `undefined` if the file is not on a disk of this machine. */
  readonly hostPathOf: (path: FsPath) => HostPath | undefined
  /**
   * Settles the transactions that killed processes left in these directories.
   *
   * A transaction with a path that `permits` refuses is only reported. Fails with Unavailable if a live process is
   * renaming entries and does not finish.
   */
  readonly settleTransactions: (permits: (path: FsPath) => boolean) => Effect.Effect<void, Fault>
}

export interface TransactionOutcome {
  readonly root: string
  /**
   * The outcome:
   *
   * - `finished`: the transaction was completed or rolled back
   * - `cleared`: nothing had changed, or only staged files were left, which were removed
   * - `left`: nothing was done, for the reason in `detail`
   */
  readonly outcome: "finished" | "cleared" | "left"
  readonly owner: string
  /** The first few paths that the transaction would change, below `root`. */
  readonly paths: ReadonlyArray<string>
  readonly count: number
  readonly detail?: string | undefined
}

export const describeOutcome = ({ count, detail, outcome, owner, paths, root }: TransactionOutcome): string => {
  const countText = count === 0 ? "" : count === 1 ? " of one path" : ` of ${count} paths`
  const changeText = `the unfinished change${countText} in ${JSON.stringify(root)}`
  const pathsText = paths.length === 0 ? "" : ` (${paths.join(", ")}${count > paths.length ? ", …" : ""})`
  const processText = ` by process ${owner}`
  return outcome === "finished"
    ? `completed or rolled back ${changeText}${pathsText}${processText}, which was killed`
    : outcome === "cleared"
      ? `removed the staged files of ${changeText}${pathsText}${processText}, ${detail ?? "which was killed before it changed anything"}`
      : `left ${changeText}${pathsText}${processText} as it is: ${detail ?? "the state of the process is unknown"}`
}

export interface Recovery {
  readonly permits: (path: FsPath) => boolean
  readonly report: (settled: TransactionOutcome) => Effect.Effect<void>
}

/**
 * The service that handles unfinished transactions. By default, all transactions may be settled, and a warning reports
 * each outcome.
 */
export const Recovery: Context.Reference<Recovery> = Context.Reference<Recovery>("fs-algebra/Recovery", {
  defaultValue: () => ({
    permits: () => true,
    report: (settled) => Effect.logWarning(`fs-algebra: ${describeOutcome(settled)}`)
  })
})
