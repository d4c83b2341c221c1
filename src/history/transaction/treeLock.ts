/**
 * Mutual exclusion of transactions on one tree, across all processes of this installation.
 *
 * A transaction must not see the intermediate state of another transaction. Each process creates its own lock before it
 * looks for other locks. So if two processes start at the same time, at least one of the two sees the other's lock, removes
 * its own lock and waits.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { accessDenied, unavailable } from "../../model/Fault.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { randomInt } from "../../runtime/node.ts"
import { pause } from "../../runtime/processLock.ts"
import * as Transactions from "../../runtime/transactions.ts"
import { cannotWriteRecord } from "./record.ts"

/**
 * The minimum pause between two checks, the maximum wait, and the maximum wait for a process of unknown state, in milliseconds.
 */
const [minPauseMillis, maxWaitMillis, maxUnknownWaitMillis] = [10, 120_000, 2_000] as const

/** The age in milliseconds after which the lock of a process of unknown state has expired. */
const leaseMillis = 60 * 60 * 1000

/** The locks that this fiber holds. The fiber ignores its own locks when it takes another lock. */
const HeldLocks: Context.Reference<ReadonlySet<string>> = Context.Reference<ReadonlySet<string>>("fs-algebra/HeldTreeLocks", {
  defaultValue: () => new Set()
})

const busy = located(accessDenied("busy"), FsPath.root)

const unknownOwner = ({ file, header }: Transactions.Entry): Fault =>
  located(
    unavailable(
      `process ${header.owner} may still be changing this directory, but its state cannot be determined from here; ` +
        `if it has ended, remove ${JSON.stringify(file)}`
    ),
    FsPath.root
  )

const publishLock = (id: string, roots: ReadonlyArray<Transactions.Root>): Effect.Effect<void, Fault> =>
  Effect.try({
    try: () => {
      const draft = Transactions.draft(id, Transactions.ownHeader("", roots), false)
      if (draft === undefined) throw new Error("no private directory was found for the record")
      draft.publish("turn")
    },
    catch: (cause) => located(cannotWriteRecord(cause), FsPath.root)
  })

/**
 * Removes the lock. If the removal fails, marks the lock as abandoned, so that it blocks no process and the next process
 * removes it.
 */
const removeLock = (id: string): Effect.Effect<void> =>
  Effect.try(() => Transactions.removeRecord(id, "turn")).pipe(
    Effect.retry({ times: 2 }),
    Effect.catch(() => Effect.sync(() => void Transactions.unfinishedIds.add(id))),
    Effect.ensuring(Effect.sync(() => void Transactions.runningIds.delete(id)))
  )

/** Returns the first record that blocks these roots. Removes expired locks, and locks of dead processes, that come before. */
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
    const isLock = entry.state === "turn"
    if (isAlive === undefined && !(isLock && now - entry.modified > leaseMillis)) return { entry, isKnown: false }
    // Ignore a failure to remove the lock of a dead process. Such a lock blocks no process, and the next process tries again.
    if (isLock) yield* Effect.ignore(Effect.try(() => Transactions.removeFile(entry.file)))
  }
  return undefined
})

/**
 * Runs the effect while no other transaction changes this tree, a part of it, or a tree that contains it. A backend without
 * files on disk needs no lock.
 *
 * Fails with AccessDenied `busy` if another process does not finish in time. Fails with Unavailable if it is unknown whether
 * the other process is alive.
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
            return publishLock(id, roots)
          }),
          () => removeLock(id)
        ),
        () =>
          Effect.gen(function* () {
            const held = yield* HeldLocks
            const found = yield* findBlockingRecord(id, held, roots)
            if (found === undefined) {
              return { value: yield* Effect.provideService(effect, HeldLocks, new Set([...held, id])) }
            }
            return found.isKnown
              ? { fault: busy, maxWait: maxWaitMillis }
              : { fault: unknownOwner(found.entry), maxWait: maxUnknownWaitMillis }
          }),
        () => removeLock(id)
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
