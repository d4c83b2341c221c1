/**
 * Where the files of a backend lie on this machine. A transaction is recorded by what its directories really are, outside of them, so
 * that it can be finished after its process was killed, whoever opens them next and by whatever combinators it was made.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"

/** A directory of the machine that is the root of a host, with all links on its path resolved. */
export interface HostRoot {
  readonly path: string
  readonly device: string
  readonly inode: string
  /** Whether records are written to disk before anything is changed. */
  readonly isDurable: boolean
}

/** A path of a backend as the host knows it. */
export interface Origin {
  readonly root: HostRoot
  readonly path: FsPath
}

/** The directories of the machine in which the files of a backend lie. */
export interface HostRoots {
  readonly all: ReadonlyArray<HostRoot>
  /** `undefined` for what lies on no disk of this machine. */
  readonly originOf: (path: FsPath) => Origin | undefined
  /**
   * Finishes what killed processes have left, as far as it concerns these directories; where `permits` refuses a path of it, it is
   * reported instead. Fails with Unavailable where a process that lives is exchanging names and does not come to an end.
   */
  readonly settle: (permits: (path: FsPath) => boolean) => Effect.Effect<void, Fault>
}

/** What has become of a transaction that a killed process has left. */
export interface Settled {
  /** The directory in which it was made. */
  readonly root: string
  /** `cleared`: nothing had changed yet, or only what was staged was left of it. `left`: it stays as it is, for the reason given. */
  readonly outcome: "finished" | "cleared" | "left"
  /** The identity of the process. */
  readonly owner: string
  /** The paths that it was to change, below `root`; the first few of them. */
  readonly paths: ReadonlyArray<string>
  /** How many there are. */
  readonly count: number
  readonly detail?: string | undefined
}

/** Says in one sentence what has become of a transaction. */
export const sentence = ({ count, detail, outcome, owner, paths, root }: Settled): string => {
  const much = count === 0 ? "" : count === 1 ? " of one path" : ` of ${count} paths`
  const what = `the unfinished change${much} in ${JSON.stringify(root)}`
  const which = paths.length === 0 ? "" : ` (${paths.join(", ")}${count > paths.length ? ", …" : ""})`
  const whose = ` by process ${owner}`
  return outcome === "finished"
    ? `finished ${what}${which}${whose}, which was killed`
    : outcome === "cleared"
      ? `removed the staged files of ${what}${which}${whose}, ${detail ?? "which was killed before it changed anything"}`
      : `left ${what}${which}${whose} as it is: ${detail ?? "nothing is known of its process"}`
}

/** What may be done about unfinished transactions when a root is opened, and who is told. */
export interface Recovery {
  /** Whether a path of the root that is opened may be changed. */
  readonly permits: (path: FsPath) => boolean
  readonly report: (settled: Settled) => Effect.Effect<void>
}

/** Everything may be finished, and is logged as a warning, unless the program that opens a root says otherwise. */
export const Recovery: Context.Reference<Recovery> = Context.Reference<Recovery>("fs-algebra/Recovery", {
  defaultValue: () => ({
    permits: () => true,
    report: (settled) => Effect.logWarning(`fs-algebra: ${sentence(settled)}`)
  })
})
