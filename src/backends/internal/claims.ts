/**
 * Claims files against other processes of this user while a version is checked and the next one is published.
 *
 * A claim is an entry in the installation's private directory, so nobody else can create one. It is named after the
 * file's directory (device and inode) and name, and its own name identifies the process.
 *
 * A process first creates its entry and then looks for others. Of two concurrent processes, the later one sees the
 * earlier entry, removes its own and retries. Names are unique, so removing the entry of a killed process cannot remove
 * a live one.
 *
 * Waiting processes retry at random times, because a queue would wait for a stopped process. A process that has waited
 * long leaves a mark, and later ones let it pass.
 *
 * If claims are impossible (no private directory, or its disk is full), the version is checked without one. A transient
 * failure fails the call, because an unclaimed write could overwrite the change of another process.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { Fs, join, randomBytes } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, name, parent } from "../../model/FsPath.ts"
import type { Locks } from "../../port/Backend.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { sha256 } from "../../runtime/hash.ts"
import * as Installation from "../../runtime/installation.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, look, maxLooks, type Place } from "./confined.ts"
import { codeOf } from "../../model/systemError.ts"
import { closeQuietly, unlinkQuietly } from "./hostBytes.ts"

const patience = 30_000
const politeness = 250
/** Milliseconds, at most, between two attempts, at first and at last. */
const [shortest, longest] = [2, 20] as const
/** Milliseconds without a refresh after which an entry is stale, if its process cannot be looked up here. */
const lease = 2_000
const refreshed = 500
/** Directories of killed processes that one process removes at its first claim. */
const maxSwept = 256

const top = (): string | undefined => {
  const directory = Installation.directory()
  return directory === undefined ? undefined : join(directory, "claims")
}

/**
 * Returns the directory of the claims on one file. Names that are one file on some disks share a directory everywhere.
 */
const directoryOf = (all: string, { stats }: Place, file: string): string =>
  join(all, sha256(Buffer.from(`${stats.dev}:${stats.ino}:${fold(file.normalize())}`)).slice(0, 32))

const owner = (): string => (ownName ??= `${Identity.self()}.${randomBytes(6).toString("hex")}`)
let ownName: string | undefined

const held = new Set<string>()
let count = 0

const newName = (kind: "claim" | "wait"): string => `${owner()}.${(count++).toString(36)}.${kind}`

interface Entry {
  readonly name: string
  readonly owner: string
  readonly identity: string
  readonly isMark: boolean
}

const pattern = /^(([0-9a-z-]+)\.[0-9a-f]{12})\.[0-9a-z]+\.(claim|wait)$/

const namesIn = (inside: string): ReadonlyArray<string> => {
  try {
    return Fs.readdirSync(inside, "utf8")
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error
    return []
  }
}

const entriesOf = (inside: string): ReadonlyArray<Entry> =>
  namesIn(inside).flatMap((name) => {
    const found = pattern.exec(name)
    return found === null ? [] : [{ name, owner: found[1]!, identity: found[2]!, isMark: found[3] === "wait" }]
  })

/**
 * Tests whether the owner of an entry has ended. Returns `undefined` for another thread, and for a process that cannot
 * be looked up.
 */
const isDead = (entry: Entry): boolean | undefined =>
  entry.owner === owner()
    ? !held.has(entry.name)
    : entry.identity === Identity.self()
      ? undefined
      : Identity.isDead(entry.identity)

interface Claim {
  readonly inside: string
  readonly name: string
}

/** Updates the time of an entry, for processes that cannot look this process up. */
const refresh = ({ inside, name }: Claim): void => {
  try {
    Fs.writeFileSync(join(inside, name), ".", { flag: "r+" })
  } catch {
    // Ignore the failure: the next refresh may succeed.
  }
}

/**
 * Tests whether an entry is stale, by the clock of its disk.
 *
 * Refreshes the own entry first. A thread may stop after creating its entry, and then a later entry would have a time
 * in its future.
 */
const isStale = (inside: string, entry: Entry, than: string): boolean => {
  refresh({ inside, name: than })
  const [other, own] = [look(join(inside, entry.name)), look(join(inside, than))]
  return other === undefined || (own !== undefined && Math.abs(own.mtimeMs - other.mtimeMs) > lease)
}

/**
 * Returns an entry of another live process on this file, and removes entries of ended processes.
 *
 * `own` is the entry of this attempt. Without it, entries that only their age can identify are ignored.
 */
const holderIn = (inside: string, waits: boolean, own?: string): Entry | undefined => {
  let holder: Entry | undefined
  for (const entry of entriesOf(inside)) {
    if (entry.name === own) continue
    const dead = isDead(entry) ?? (own === undefined ? undefined : isStale(inside, entry, own))
    if (dead === true) unlinkQuietly(join(inside, entry.name))
    // Marks apply only to later processes, not to other waiting ones.
    else if (dead === false && !(entry.isMark && waits)) holder = entry
  }
  return holder
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = Fs.constants

const enrol = (inside: string, name: string): boolean => {
  try {
    closeQuietly(Fs.openSync(join(inside, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600))
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error
    return false
  }
  held.add(name)
  return true
}

const removeQuietly = (inside: string): void => {
  try {
    Fs.rmdirSync(inside)
  } catch {
    // The directory still has other entries or was already removed.
  }
}

const strike = (inside: string, name: string): void => {
  held.delete(name)
  unlinkQuietly(join(inside, name))
  removeQuietly(inside)
}

const enter = (inside: string, kind: "claim" | "wait"): string | undefined => {
  for (let looks = 0; looks < maxLooks; looks++) {
    makeDirectories(inside, 0o700)
    const name = newName(kind)
    if (enrol(inside, name)) return name
  }
  return undefined
}

const claimOnce = (inside: string, waits: boolean): { readonly claim?: Claim; readonly holder?: Entry | undefined } => {
  const known = holderIn(inside, waits)
  if (known !== undefined) return { holder: known }
  const name = enter(inside, "claim")
  if (name === undefined) return {}
  let holder: Entry | undefined
  let isMine = false
  try {
    holder = holderIn(inside, waits, name)
    isMine = holder === undefined
    return isMine ? { claim: { inside, name } } : { holder }
  } finally {
    if (!isMine) strike(inside, name)
  }
}

/** Leaves the mark of a process that has waited long. A failure costs only time. */
const mark = (inside: string): Claim | undefined => {
  try {
    const name = enter(inside, "wait")
    return name === undefined ? undefined : { inside, name }
  } catch {
    return undefined
  }
}

const pid = ({ identity }: Entry): number => Number.parseInt(identity.split("-")[1] ?? "", 36)

const busy = (holder: Entry | undefined): Fault => ({
  _tag: "AccessDenied",
  why: "busy",
  ...(holder && { detail: `process ${pid(holder)} checks or writes it (claim ${holder.name})` })
})

/** Waits in real time even under a test clock, because another process is involved. */
const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Acquires a claim. The wait is interruptible only in the pauses, while the process holds at most its mark. */
const acquire = (inside: string, restore: Restore): Effect.Effect<Claim, Fault> =>
  Effect.suspend(() => {
    let waited = 0
    let most: number = shortest
    let marked: Claim | undefined
    const waiting = Effect.flatMap(Random.next, (random) => {
      const milliseconds = 1 + random * (most - 1)
      most = Math.min(longest, most * 1.5)
      waited += milliseconds
      return restore(pause(milliseconds))
    })
    const next: Effect.Effect<Claim, Fault> = Effect.flatMap(
      attempt(() => claimOnce(inside, marked !== undefined)),
      ({ claim, holder }) => {
        if (claim !== undefined) return Effect.succeed(claim)
        if (waited >= patience) return Effect.fail(busy(holder))
        if (waited >= politeness) marked ??= mark(inside)
        return Effect.andThen(waiting, next)
      }
    )
    return Effect.ensuring(
      next,
      Effect.sync(() => {
        if (marked !== undefined) strike(marked.inside, marked.name)
      })
    )
  })

const using = <A, E, R>(claim: Claim, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const timer = setInterval(() => refresh(claim), refreshed).unref()
  return Effect.ensuring(
    effect,
    Effect.sync(() => {
      clearInterval(timer)
      strike(claim.inside, claim.name)
    })
  )
}

let isSwept = false

const sweepOnce = (all: string): void => {
  if (isSwept) return
  isSwept = true
  try {
    for (const directory of Fs.readdirSync(all, "utf8").slice(0, maxSwept)) {
      const inside = join(all, directory)
      for (const entry of entriesOf(inside)) if (isDead(entry) === true) unlinkQuietly(join(inside, entry.name))
      removeQuietly(inside)
    }
  } catch {
    // There are no claims yet, or only some that another process must remove.
  }
}

const permanent: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>([
  "DiskFull",
  "NotADirectory",
  "AlreadyExists",
  "PathTooLong"
])

const permitsNone = (fault: Fault): boolean =>
  fault._tag === "AccessDenied" ? fault["why"] !== "busy" : permanent.has(fault._tag)

const placeOf = (confined: Confined, path: FsPath): string | Fault | undefined => {
  const all = top()
  if (all === undefined) return undefined
  sweepOnce(all)
  const above = confined.directory(parent(path))
  if (isFault(above)) return above._tag === "NotFound" || above._tag === "NotADirectory" ? undefined : above
  try {
    return directoryOf(all, above, name(path))
  } finally {
    above.release()
  }
}

/**
 * Creates `Locks.claim` for a root.
 *
 * A claim fails with AccessDenied `busy` if other processes hold the file for 30 seconds. It also fails with the
 * system's error if no descriptor is left or the private directory's disk has an error.
 */
export const make =
  (confined: Confined): NonNullable<Locks["claim"]> =>
  <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        attempt(() => placeOf(confined, path)),
        (inside): Effect.Effect<A, E | Fault, R> =>
          inside === undefined
            ? restore(effect)
            : Effect.matchEffect(acquire(inside, restore), {
                onSuccess: (claim) => using(claim, restore(effect)),
                onFailure: (fault): Effect.Effect<A, E | Fault, R> =>
                  permitsNone(fault) ? restore(effect) : Effect.fail(fault)
              })
      )
    )
