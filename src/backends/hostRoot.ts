/**
 * The options of filesystems on the host, and the recovery of the transactions that killed processes left in a root.
 *
 * The recovery runs when the root is opened and on request. If there are no transactions, the check costs one system call.
 */
import { accessDenied, ioError, unsupported } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Fault, type NotADirectory, promote, type StatError, type Unsupported } from "../model/FsError.ts"
import { codeOf } from "../model/realms.ts"
import type { Backend, Info } from "../port/Backend.ts"
import type { CommonOptions } from "../port/Rules.ts"
import { type HostRoot, type HostRoots, Recovery } from "../port/hostRoots.ts"
import * as Transactions from "../runtime/transactions.ts"

/**
 * The options of a filesystem in a directory on the host: root, durability and confinement.
 *
 * @since 0.1.0
 */
export interface HostOptions extends CommonOptions {
  /**
   * The absolute path of the root. The root must be an existing directory, unless `createRoot` is true. If the root is a
   * symlink, it is resolved once, when the filesystem is opened.
   */
  readonly root: string
  /** True to create the root and its parents if they are missing. @default false */
  readonly createRoot?: boolean | undefined
  /**
   * The events that a completed write survives. `none`: a crash of the program, not of the machine. `file`: the file's
   * bytes are on disk. `full`: the file's name is also on disk, except on Windows, which cannot flush a directory.
   * @default "none"
   */
  readonly durability?: "none" | "file" | "full" | undefined
  /** The minimum level of confinement. Creation fails if the machine provides less. @default "best-effort" */
  readonly requireConfinement?: Info["confinement"] | undefined
}

/**
 * The options of a directory on a POSIX system.
 *
 * @since 0.1.0
 */
export interface PosixHostOptions extends HostOptions {
  /**
   * The treatment of symlinks. `follow`: follows symlinks that stay inside the root. `report`: `stat` describes the
   * symlink itself, and other calls follow it. `refuse`: refuses every path through a symlink.
   * @default "follow"
   */
  readonly symlinks?: "follow" | "report" | "refuse" | undefined
  /**
   * The treatment of hard links. `reject`: files with several hard links are not read or appended to, and their
   * attributes are not set.
   * @default "allow"
   */
  readonly hardlinks?: "allow" | "reject" | undefined
  /** True if a copy keeps permission bits. @default true */
  readonly preservePermissions?: boolean | undefined
}

/**
 * The options of a directory on Windows.
 *
 * @since 0.1.0
 */
export interface WindowsHostOptions extends HostOptions {
  /** True to accept paths above 260 characters, which many other programs cannot open. @default true */
  readonly useLongPaths?: boolean | undefined
}

export type RootError = StatError | NotADirectory | Unsupported

export const inStore: Fault = accessDenied("policy")

export const tooWeakConfinement = (required: Info["confinement"] | undefined): Fault =>
  unsupported(`${required} confinement on this machine`)

const rootErrorTags = new Set<Fault["_tag"]>([
  "AccessDenied",
  "InvalidPath",
  "IoError",
  "NotADirectory",
  "NotFound",
  "PathTooLong",
  "Timeout",
  "Unavailable",
  "Unsupported"
])

export const promoteRoot = (fault: Fault, backend: string, path: string): RootError =>
  promote(
    rootErrorTags.has(fault._tag) ? fault : ioError("the root cannot be created or opened", codeOf(fault["cause"])),
    backend,
    path
  ) as RootError

interface RecoveryRoot {
  readonly path: string
  readonly device: string
  readonly inode: string
  readonly isDurable: boolean
  readonly open: (path: string) => Effect.Effect<Backend, Fault, Scope.Scope>
}

const hasTransactionIn = (root: HostRoot): Effect.Effect<boolean, Fault> =>
  Effect.map(Transactions.list(), ({ entries }) =>
    entries.some(({ header, state }) => state !== "turn" && header.roots.some((one) => Transactions.isRelated(one, root)))
  )

/**
 * Adds the host path of the root to the port, after recovering its transactions. Fails with Unavailable if the
 * transaction of another process does not end.
 */
export const withRecovery = (port: Backend, { open, ...root }: RecoveryRoot): Effect.Effect<Backend, Fault> =>
  Effect.gen(function* () {
    const { permits, report } = yield* Recovery
    const reported = new Set<string>()
    const settle: HostRoots["settleTransactions"] = (permitted) =>
      Effect.flatMap(hasTransactionIn(root), (hasTransaction) =>
        hasTransaction
          ? Effect.flatMap(
              Effect.promise(() => import("../history/transaction/settle.ts")),
              ({ settle }) =>
                settle({ root, port, open, reported, report, permits: (path) => permits(path) && permitted(path) })
            )
          : Effect.void
      )
    yield* settle(() => true)
    const hostRoots: HostRoots = { all: [root], hostPathOf: (path) => ({ root, path }), settleTransactions: settle }
    return { ...port, hostRoots }
  })
