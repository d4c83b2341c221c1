/**
 * A claim keeps other processes of this user from a file while its version is checked and the next one is published. It is an entry
 * in a directory of the installation's private directory, named after the file's directory (device and inode) and name, so that
 * nobody else can plant one. The entry's name says which process made it. A process makes its entry first and looks for others second,
 * so of two that come at once the later one sees the earlier; it takes its own entry back and tries again a little later. No name is
 * used twice, so removing the entry of a killed process cannot hit one that lives.
 *
 * Chance decides between those who wait, since a queue would wait for a process that is stopped. A process that has waited for long
 * leaves a mark, and those that come after it let it pass.
 *
 * Where the disk permits no claim (there is no private directory, or the disk is full) the version is checked without one. A failure
 * that may pass is not such a case: then the call fails, since without a claim it could overwrite another process's change.
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
import { codeOf } from "./errno.ts"
import { closeQuietly, unlinkQuietly } from "./hostBytes.ts"

/** Milliseconds in all after which a waiting process gives up. */
const patience = 30_000
/** Milliseconds after which a waiting process leaves a mark. */
const politeness = 250
/** Milliseconds between two tries: the most at first, and at last. */
const [shortest, longest] = [2, 20] as const
/** Milliseconds without a sign of life after which an entry is stale whose process cannot be looked up here. */
const lease = 2_000
const refreshed = 500
/** Directories of killed processes that one process removes at its first claim. */
const maxSwept = 256

/** The directory in which the claims of all files lie. */
const top = (): string | undefined => {
  const directory = Installation.directory()
  return directory === undefined ? undefined : join(directory, "claims")
}

/** The directory of one file's claims. Two names that are one file on some disks have one here everywhere. */
const directoryOf = (all: string, { stats }: Place, file: string): string =>
  join(all, sha256(Buffer.from(`${stats.dev}:${stats.ino}:${fold(file.normalize())}`)).slice(0, 32))

/** Names this copy of the module, of which there is one in each thread. */
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

/** None where the directory has just been removed. */
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

/** `undefined` for an entry of another thread or of a process that cannot be looked up here. */
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

/** Gives a sign of life to processes that cannot look this one up. */
const refresh = ({ inside, name }: Claim): void => {
  try {
    Fs.writeFileSync(join(inside, name), ".", { flag: "r+" })
  } catch {
    // The next refresh may succeed.
  }
}

/**
 * Compares two entries by the disk's clock, after a sign of life of this one: a thread can stand still after it made its entry, and then
 * an entry that was made later would have a time in the future, which is no sign of life.
 */
const isStale = (inside: string, entry: Entry, than: string): boolean => {
  refresh({ inside, name: than })
  const [other, own] = [look(join(inside, entry.name)), look(join(inside, than))]
  return other === undefined || (own !== undefined && Math.abs(own.mtimeMs - other.mtimeMs) > lease)
}

/**
 * Returns an entry of another process that keeps the file, and removes those of processes that have ended. `own` is the entry that was
 * made for this try; without it entries that only their age can tell are passed over.
 */
const holderIn = (inside: string, waits: boolean, own?: string): Entry | undefined => {
  let holder: Entry | undefined
  for (const entry of entriesOf(inside)) {
    if (entry.name === own) continue
    const dead = isDead(entry) ?? (own === undefined ? undefined : isStale(inside, entry, own))
    if (dead === true) unlinkQuietly(join(inside, entry.name))
    // Marks are for those who come later, not for each other.
    else if (dead === false && !(entry.isMark && waits)) holder = entry
  }
  return holder
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = Fs.constants

/** Makes an entry; returns `false` where the directory has just been removed. */
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
    // Others are still in it, or have removed it.
  }
}

const strike = (inside: string, name: string): void => {
  held.delete(name)
  unlinkQuietly(join(inside, name))
  removeQuietly(inside)
}

/** Makes an entry in a directory that others may remove at the same time; `undefined` where they do so again and again. */
const enter = (inside: string, kind: "claim" | "wait"): string | undefined => {
  for (let looks = 0; looks < maxLooks; looks++) {
    makeDirectories(inside, 0o700)
    const name = newName(kind)
    if (enrol(inside, name)) return name
  }
  return undefined
}

/** Tries once to claim the file. Returns the claim, or the entry of another process that keeps it, if that is known. */
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

/** Says that this process has waited for long. A failure costs nothing but time. */
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

/** Waits in real time, whatever clock the program has, since another process is waited for. */
const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Interruptible only in the pauses, when it holds nothing but its mark. */
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

/** Removes what killed processes left, once in each process. */
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
    // There is nothing, or something that another process may remove.
  }
}

const permanent: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>([
  "DiskFull",
  "NotADirectory",
  "AlreadyExists",
  "PathTooLong"
])

/** Whether the private directory can take no claim at all, now and at the next try. */
const permitsNone = (fault: Fault): boolean =>
  fault._tag === "AccessDenied" ? fault["why"] !== "busy" : permanent.has(fault._tag)

/** Returns the directory of the claims on a path; `undefined` where the path's directory does not exist or nothing can be claimed. */
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
 * Makes `Locks.claim` for a root. It fails with AccessDenied `busy` when other processes have the file for half a minute, and as the
 * system does when no descriptor is left, or when the private directory's disk has an error.
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
