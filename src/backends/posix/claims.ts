/**
 * Excludes other processes of this user from a file while its version is checked and a new version is published.
 *
 * A claim is an entry in the installation's private directory, so other users cannot create a claim. Each file has its
 * own directory for such entries. The name of this directory is a hash of the file's name and of the device and inode
 * of the file's directory. The name of an entry identifies its process.
 *
 * Waiting processes retry at random times, because a queue would wait for a stopped process. After a long wait, a
 * process leaves a mark. Processes that arrive later then wait for this process.
 *
 * If claims are impossible (for example without a private directory, or on a full disk), the version is checked without a
 * claim. If a claim fails for a temporary reason, the call fails, because a write without a claim could overwrite the change of
 * another process.
 */
import { accessDenied, is as isFault } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, name, parent } from "../../model/FsPath.ts"
import type { Locks } from "../../port/Backend.ts"
import { sha256 } from "../../runtime/hash.ts"
import * as Installation from "../../runtime/installation.ts"
import { Fs, join } from "../../runtime/node.ts"
import * as ProcessLock from "../../runtime/processLock.ts"
import { attempt } from "./errors.ts"
import { type Confined, type HostDirectory, withPlace } from "./place.ts"

const maxWaitMillis = 30_000
const markAfterMillis = 250
/**
 * The upper bound of the random delay between two attempts, in milliseconds. The bound grows from the first limit to the last.
 */
const [firstDelayLimitMillis, lastDelayLimitMillis] = [2, 20] as const
/** The maximum number of files whose claims by killed processes a process removes at its first claim. */
const maxSwept = 256

const claimsDirectory = (): string | undefined => {
  const directory = Installation.directory()
  return directory === undefined ? undefined : join(directory, "claims")
}

/**
 * Returns the directory of the claims on one file. Names that differ in a way that some disks ignore, such as case,
 * share a directory.
 */
const directoryOf = (all: string, { stats }: HostDirectory, file: string): string =>
  join(all, sha256(Buffer.from(`${stats.dev}:${stats.ino}:${fold(file.normalize())}`)).slice(0, 32))

const lock = ProcessLock.make({
  ...ProcessLock.rolesOf("claim", "wait"),
  leaseMillis: 2_000,
  refreshMillis: 500,
  directoryMode: 0o700
})

/**
 * Returns a claim or mark of another process on this file, or `undefined` if there is none. A process with a mark of its
 * own ignores other marks.
 */
const findHolder = (claimPath: string, isWaiting: boolean, own?: ProcessLock.Held): ProcessLock.Entry | undefined =>
  lock.others(claimPath, own).findLast(({ role }) => role === "claim" || !isWaiting)

interface Attempt {
  readonly claim?: ProcessLock.Held
  readonly holder?: ProcessLock.Entry
}

const claimOnce = (claimPath: string, isWaiting: boolean): Attempt => {
  const known = findHolder(claimPath, isWaiting)
  if (known !== undefined) return { holder: known }
  const claim = lock.add(claimPath, "claim")
  let isMine = false
  try {
    const holder = findHolder(claimPath, isWaiting, claim)
    isMine = holder === undefined
    return holder === undefined ? { claim } : { holder }
  } finally {
    if (!isMine) lock.remove(claim)
  }
}

/**
 * Adds a mark, so that processes that arrive later wait for this process. Ignores failures: without a mark, the process
 * only waits longer.
 */
const leaveMark = (claimPath: string): ProcessLock.Held | undefined => {
  try {
    return lock.add(claimPath, "wait")
  } catch {
    return undefined
  }
}

const pid = ({ identity }: ProcessLock.Entry): number => Number.parseInt(identity.split("-")[1] ?? "", 36)

const busyFault = (holder: ProcessLock.Entry | undefined): Fault =>
  accessDenied("busy", holder && `process ${pid(holder)} is checking or writing the file (claim ${holder.name})`)

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Acquires a claim. The wait is interruptible only during its pauses, in which the process has no claim. */
const acquire = (claimPath: string, restore: Restore): Effect.Effect<ProcessLock.Held, Fault> =>
  Effect.suspend(() => {
    let waitedMillis = 0
    let delayLimit: number = firstDelayLimitMillis
    let marked: ProcessLock.Held | undefined
    const waiting = Effect.flatMap(Random.next, (random) => {
      const milliseconds = 1 + random * (delayLimit - 1)
      delayLimit = Math.min(lastDelayLimitMillis, delayLimit * 1.5)
      waitedMillis += milliseconds
      return restore(ProcessLock.pause(milliseconds))
    })
    const next: Effect.Effect<ProcessLock.Held, Fault> = Effect.flatMap(
      attempt(() => claimOnce(claimPath, marked !== undefined)),
      ({ claim, holder }) => {
        if (claim !== undefined) return Effect.succeed(claim)
        if (waitedMillis >= maxWaitMillis) return Effect.fail(busyFault(holder))
        if (waitedMillis >= markAfterMillis) marked ??= leaveMark(claimPath)
        return Effect.andThen(waiting, next)
      }
    )
    return Effect.ensuring(
      next,
      Effect.sync(() => {
        if (marked !== undefined) lock.remove(marked)
      })
    )
  })

let isSwept = false

const sweepOnce = (all: string): void => {
  if (isSwept) return
  isSwept = true
  try {
    for (const directory of Fs.readdirSync(all, "utf8").slice(0, maxSwept)) lock.sweep(join(all, directory))
  } catch {
    // Ignore the error: there are no claims yet, or another process removes the leftovers later.
  }
}

const permanentTags: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>([
  "DiskFull",
  "NotADirectory",
  "AlreadyExists",
  "PathTooLong"
])

const forbidsClaims = (fault: Fault): boolean =>
  fault._tag === "AccessDenied" ? fault["why"] !== "busy" : permanentTags.has(fault._tag)

const claimPathOf = (confined: Confined, path: FsPath): string | Fault | undefined => {
  const all = claimsDirectory()
  if (all === undefined) return undefined
  sweepOnce(all)
  const found = withPlace(confined.directory(parent(path)), (above) => directoryOf(all, above, name(path)))
  return isFault(found) && (found._tag === "NotFound" || found._tag === "NotADirectory") ? undefined : found
}

/**
 * Creates `Locks.claim` for a root.
 *
 * A claim fails with AccessDenied `busy` if other processes claim the file for 30 seconds. A claim also fails if no
 * descriptor is left, or with the error of the private directory's disk.
 */
export const make =
  (confined: Confined): NonNullable<Locks["claim"]> =>
  <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        attempt(() => claimPathOf(confined, path)),
        (claimPath): Effect.Effect<A, E | Fault, R> =>
          claimPath === undefined
            ? restore(effect)
            : Effect.matchEffect(acquire(claimPath, restore), {
                onSuccess: (claim) =>
                  Effect.ensuring(
                    restore(effect),
                    Effect.sync(() => lock.remove(claim))
                  ),
                onFailure: (fault): Effect.Effect<A, E | Fault, R> =>
                  forbidsClaims(fault) ? restore(effect) : Effect.fail(fault)
              })
      )
    )
