/**
 * Recovers the transactions that killed processes left in the root of a host, at opening and on request. Without any,
 * the check is one system call.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../../model/FsError.ts"
import type { Backend } from "../../port/Backend.ts"
import { type HostRoot, type HostRoots, Recovery } from "../../port/hostRoots.ts"
import * as Transactions from "../../runtime/transactions.ts"

export interface RecoveryRoot {
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

/** Returns the port with its host location. Fails with Unavailable if transactions of other processes do not end. */
export const withRecovery = (port: Backend, { open, ...root }: RecoveryRoot): Effect.Effect<Backend, Fault> =>
  Effect.gen(function* () {
    const { permits, report } = yield* Recovery
    const reported = new Set<string>()
    const settle: HostRoots["settleTransactions"] = (permitted) =>
      Effect.flatMap(hasTransactionIn(root), (hasTransaction) =>
        hasTransaction
          ? Effect.flatMap(
              Effect.promise(() => import("../../history/exchange/settle.ts")),
              ({ settle }) =>
                settle({ root, port, open, reported, report, permits: (path) => permits(path) && permitted(path) })
            )
          : Effect.void
      )
    yield* settle(() => true)
    const hostRoots: HostRoots = { all: [root], hostPathOf: (path) => ({ root, path }), settleTransactions: settle }
    return { ...port, hostRoots }
  })
