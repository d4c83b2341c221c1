/**
 * Changes one tree into another in a transaction: stages all entries on the same disk, and then renames them to their paths.
 *
 * A failure restores the old tree. On a disk of the host, a killed process leaves a record outside the tree, and the next process
 * completes or discards the transaction by this record.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import { at as locate } from "../engine/directories.ts"
import { ioError, is } from "../model/Fault.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import * as Transactions from "../runtime/transactions.ts"
import { withCopyingRenames, withRetries } from "./transaction/entries.ts"
import * as Plan from "./transaction/plan.ts"
import { inspect, makeStaging, makeToken, probeName, type Region, stagingDirectory } from "./transaction/plan.ts"
import * as Record from "./transaction/record.ts"
import { copyAside, type Mismatch, stage, type StagingSource } from "./transaction/stage.ts"
import { type CrossDeviceRename, swap } from "./transaction/swap.ts"
import type { DirectoryNode } from "./tree.ts"

export type { Content, Mismatch } from "./transaction/stage.ts"

export interface TransactionGoal<E> extends StagingSource<E> {
  readonly before: DirectoryNode
  readonly after: DirectoryNode
}

/** Reports a Mismatch as a change by another program, which is the only possible cause if all contents are byte arrays. */
export const mismatchToFault = (error: Fault | Mismatch): Fault =>
  error._tag === "Mismatch"
    ? located(
        ioError("another program changed the staged file before it could be published; try again", "ECHANGED"),
        error.path
      )
    : error

/**
 * The directories that are on another disk than their parents. The value is true if renames work only inside the directory
 * itself.
 */
type CrossDeviceDirectories = Map<FsPath.FsPath, boolean>

const isCrossDeviceRename = (error: unknown): error is CrossDeviceRename => Predicate.isTagged(error, "CrossDeviceRename")

/**
 * Keeps the record while the effect runs, and removes the record if `cleared` returns true. Otherwise the record stays, and
 * recovery settles the transaction by the state in the record.
 */
const withRecord = <E>(
  record: Record.Record,
  state: () => Transactions.State,
  effect: Effect.Effect<void, E>,
  cleared: Effect.Effect<boolean>
): Effect.Effect<void, E | Fault> =>
  Effect.acquireUseRelease(
    Effect.andThen(
      Effect.sync(() => void Transactions.runningIds.add(record.id)),
      Effect.onError(record.prepare, () => Effect.sync(() => void Transactions.runningIds.delete(record.id)))
    ),
    () => effect,
    () =>
      Effect.flatMap(cleared, (isCleared) => {
        if (!isCleared) Transactions.unfinishedIds.add(record.id)
        Transactions.runningIds.delete(record.id)
        return isCleared ? record.drop(state()) : Effect.void
      })
  )

/** Reads the current time of each disk's clock from the modification time of a new file. */
const readDiskTimes = Effect.fnUntraced(function* (port: Backend, regions: ReadonlyArray<Region>, token: string) {
  const since = new Map<number, number>()
  for (const [index, region] of regions.entries()) {
    if (region.isFlat) continue
    const at = FsPath.join(stagingDirectory(region, token), "begun")
    const { modifiedAt } = yield* locate(region.path, port.write<never, never>(at, new Uint8Array(), "create"))
    if (modifiedAt !== undefined) since.set(index, modifiedAt.epochMilliseconds)
  }
  return since
})

const tryTransaction = <E>(
  port: Backend,
  goal: TransactionGoal<E>,
  plan: Plan.Plan,
  token: string
): Effect.Effect<void, Fault | Mismatch | CrossDeviceRename | E> => {
  const record = Record.make(port, plan, token)
  const { regions } = plan
  let state: Transactions.State = "preparing"
  let isRollbackIncomplete = false
  const advanceTo = (next: Transactions.State): Effect.Effect<void, Fault> =>
    Effect.tap(record.advance(state, next), () => Effect.sync(() => void (state = next)))
  const changed = Effect.gen(function* () {
    yield* makeStaging(port, regions, token)
    const digests = yield* stage(port, plan, token, goal, record.isRecorded)
    yield* copyAside(port, plan, token)
    const since = record.isRecorded ? yield* readDiskTimes(port, regions, token) : new Map<number, number>()
    yield* Effect.uninterruptible(
      Effect.tap(record.recordStaged(digests, since), () => Effect.sync(() => void (state = "forward")))
    )
    yield* swap(port, plan, token, {
      onRollback: Effect.ignoreCause(Effect.suspend(() => advanceTo("back"))),
      onIncompleteRollback: Effect.sync(() => void (isRollbackIncomplete = true))
    })
  })
  const cleared = Effect.suspend(() => {
    if (isRollbackIncomplete) return Effect.succeed(false)
    const settled = state === "preparing" ? Effect.succeed(true) : withRetries(Effect.suspend(() => advanceTo("done")))
    return Effect.andThen(settled, withRetries(Plan.remove(port, regions, token)))
  })
  return withRecord(record, () => state, changed, cleared)
}

const findDiskRoot = (port: Backend, directory: FsPath.FsPath, token: string): Effect.Effect<FsPath.FsPath, Fault> =>
  Effect.suspend(() => {
    const probe = probeName(token)
    const record = Record.make(port, { regions: [], steps: [], modes: [] }, token, [directory])
    let at = directory
    const climb: Effect.Effect<void> = Effect.suspend(() => {
      if (at === FsPath.root) return Effect.void
      const up = FsPath.parent(at)
      const renamed = port.rename(FsPath.join(at, probe), FsPath.join(up, probe), { replace: false })
      return Effect.flatMap(Effect.exit(Effect.uninterruptible(renamed)), (exit) => {
        if (!Exit.isSuccess(exit)) return Effect.void
        at = up
        return climb
      })
    })
    const probed = Effect.acquireUseRelease(
      port.makeDirectory(FsPath.join(directory, probe)),
      () => climb,
      () => Effect.asVoid(withRetries(Effect.suspend(() => port.remove(FsPath.join(at, probe)))))
    )
    return Effect.map(
      withRecord(record, () => "preparing", probed, Effect.succeed(true)),
      () => at
    )
  })

/**
 * Records that a rename into a directory crossed disks. Returns false if renames are already known to work only inside the
 * directory itself.
 */
const recordCrossDevice = Effect.fnUntraced(function* (
  port: Backend,
  crossDeviceDirectories: CrossDeviceDirectories,
  { directory }: CrossDeviceRename,
  token: string
): Effect.fn.Return<boolean, Fault> {
  const known = crossDeviceDirectories.get(directory)
  if (known === true) return false
  const top = known === false ? directory : yield* findDiskRoot(port, directory, token)
  if (top === FsPath.root || crossDeviceDirectories.has(top)) crossDeviceDirectories.set(directory, true)
  else crossDeviceDirectories.set(top, false)
  return true
})

/**
 * Changes the tree `before` into the tree `after`, and touches only the differences. The caller must hold the lock of the
 * port's root.
 *
 * Fails with Mismatch if a content does not have the size or the id of its file. An incomplete rollback fails with IoError, or
 * with the interruption that started the rollback. After any other failure or interruption, nothing has changed.
 */
export const runTransaction = <E>(port: Backend, goal: TransactionGoal<E>): Effect.Effect<void, Fault | Mismatch | E> =>
  Effect.suspend(() => {
    const crossDeviceDirectories: CrossDeviceDirectories = new Map()
    let renamingPort = port
    const attempt: Effect.Effect<void, Fault | Mismatch | E> = Effect.suspend(() => {
      const plan = Plan.make(port, goal.before, goal.after, crossDeviceDirectories)
      if (is(plan)) return Effect.fail(plan)
      if (plan.steps.length === 0 && plan.modes.length === 0) return Effect.void
      const token = makeToken()
      return Effect.andThen(inspect(port, plan), tryTransaction(renamingPort, goal, plan, token)).pipe(
        Effect.as(false),
        Effect.catchIf(isCrossDeviceRename, (error) =>
          Effect.flatMap(recordCrossDevice(port, crossDeviceDirectories, error, token), (isNew) => {
            if (!isNew && renamingPort !== port) return Effect.fail(error.fault)
            // Renames fail even inside one directory, so copy instead.
            if (!isNew) renamingPort = withCopyingRenames(port)
            return Effect.succeed(true)
          })
        ),
        Effect.ensuring(Effect.sync(() => TemporaryNames.forget(token))),
        Effect.flatMap((shouldRetry) => (shouldRetry ? attempt : Effect.void))
      )
    })
    return attempt
  })
