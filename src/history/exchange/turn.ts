/**
 * Mutual exclusion of transactions on one tree, across all processes of this installation.
 *
 * A transaction must not see the intermediate state of another. Each process creates a record of its own before it
 * looks for others. So of two that start at once, at least one sees the other and gives way.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { randomInt } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { pause } from "../../runtime/processLock.ts"
import * as Transactions from "../../runtime/transactions.ts"

/**
 * Milliseconds: the least pause between two checks, the longest wait, and the longest wait for a process of unknown
 * state.
 */
const [minPauseMillis, maxWaitMillis, maxUnknownWaitMillis] = [10, 120_000, 2_000] as const

/** Milliseconds after which a turn of a process of unknown state has expired. */
const staleTurnMillis = 60 * 60 * 1000

/** The turns that this fiber holds; they do not exclude it. */
const HeldTurns: Context.Reference<ReadonlySet<string>> = Context.Reference<ReadonlySet<string>>("fs-algebra/exchange/Held", {
  defaultValue: () => new Set()
})

const busy: Fault = { _tag: "AccessDenied", path: FsPath.root, why: "busy" }

const unknownOwner = ({ file, header }: Transactions.Entry): Fault => ({
  _tag: "Unavailable",
  path: FsPath.root,
  detail:
    `process ${header.owner}, of which nothing can be told from here, has not ended a change of this directory; ` +
    `where it has ended, remove ${JSON.stringify(file)}`
})

const cannotKeepRecord: Fault = {
  _tag: "Unavailable",
  path: FsPath.root,
  detail:
    "the record of this change cannot be kept, so nothing was changed; this user needs a private directory, " +
    "in XDG_STATE_HOME, ~/.local/state or the temporary directory, and space on its disk"
}

const publishTurn = (id: string, roots: ReadonlyArray<Transactions.Root>): Effect.Effect<void, Fault> =>
  Effect.try({
    try: () => {
      const draft = Transactions.draft(id, Transactions.ownHeader("", roots), false)
      if (draft === undefined) throw new Error("there is no private directory")
      draft.publish("turn")
    },
    catch: (cause) => ({ ...cannotKeepRecord, cause })
  })

/**
 * Removes the turn. If the removal fails, the turn is marked as abandoned, so that it blocks nobody and the next
 * process removes it.
 */
const removeTurn = (id: string): Effect.Effect<void> =>
  Effect.try(() => Transactions.removeRecord(id, "turn")).pipe(
    Effect.retry({ times: 2 }),
    Effect.catch(() => Effect.sync(() => void Transactions.unfinishedIds.add(id))),
    Effect.ensuring(Effect.sync(() => void Transactions.runningIds.delete(id)))
  )

/** Returns the first record that blocks these roots. Removes turns of dead processes. */
const findBlockingRecord = Effect.fnUntraced(function* (
  own: string,
  held: ReadonlySet<string>,
  roots: ReadonlyArray<Transactions.Root>
): Effect.fn.Return<{ readonly entry: Transactions.Entry; readonly isKnown: boolean } | undefined, Fault> {
  const now = yield* Clock.currentTimeMillis
  for (const entry of (yield* Transactions.list(now)).entries) {
    if (entry.id === own || held.has(entry.id)) continue
    if (!entry.header.roots.some((one) => roots.some((root) => Transactions.isRelated(one, root)))) continue
    const isAlive = Transactions.isAlive(entry)
    if (isAlive === true) return { entry, isKnown: true }
    const isTurn = entry.state === "turn"
    if (isAlive === undefined && !(isTurn && now - entry.modified > staleTurnMillis)) return { entry, isKnown: false }
    // A dead turn that cannot be removed blocks nobody, and the next process tries again.
    if (isTurn) yield* Effect.ignore(Effect.try(() => Transactions.removeFile(entry.file)))
  }
  return undefined
})

/**
 * Runs the effect while no other transaction changes this tree, a part of it, or a tree around it. Without files on
 * disk, no lock is needed.
 *
 * Fails with AccessDenied `busy` if another process takes too long, and with Unavailable if the state of its process is
 * unknown.
 */
export const withTreeLock = <A, E, R>(port: Backend, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> => {
  const roots = port.hostRoots?.all ?? []
  return roots.length === 0 ? effect : withRootLocks(roots, effect)
}

export const withRootLocks = <A, E, R>(
  hostRoots: ReadonlyArray<Transactions.Root>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => {
  const roots = hostRoots.map(({ device, inode, path }) => ({ path, device, inode }))
  const attempt = (waited: number): Effect.Effect<A, E | Fault, R> => {
    const id = Transactions.makeId()
    const lockedRun: Effect.Effect<{ readonly value: A } | { readonly fault: Fault; readonly maxWait: number }, E | Fault, R> =
      Effect.acquireUseRelease(
        Effect.onError(
          Effect.suspend(() => {
            Transactions.runningIds.add(id)
            return publishTurn(id, roots)
          }),
          () => removeTurn(id)
        ),
        () =>
          Effect.gen(function* () {
            const held = yield* HeldTurns
            const found = yield* findBlockingRecord(id, held, roots)
            if (found === undefined) {
              return { value: yield* Effect.provideService(effect, HeldTurns, new Set([...held, id])) }
            }
            return found.isKnown
              ? { fault: busy, maxWait: maxWaitMillis }
              : { fault: unknownOwner(found.entry), maxWait: maxUnknownWaitMillis }
          }),
        () => removeTurn(id)
      )
    return Effect.flatMap(lockedRun, (done) => {
      if ("value" in done) return Effect.succeed(done.value)
      if (waited > done.maxWait) return Effect.fail(done.fault)
      const wait = minPauseMillis + randomInt(Math.min(500, minPauseMillis + waited))
      return Effect.andThen(pause(wait), attempt(waited + wait))
    })
  }
  return Effect.suspend(() => attempt(0))
}
