/**
 * A claim keeps other processes from a file while its version is checked and the next one published. It is an entry in a hidden
 * directory beside the file, whose name says which process made it. Whoever wants the file makes its entry first and looks second, so
 * of two that want it at once the later one sees the earlier; who sees another that lives takes its own back and tries again a little
 * later. What a process that was killed has left is told by its name, and removed by the next: no name is ever used twice, so this
 * cannot hit one that lives.
 *
 * Chance decides between those who wait, since a queue would wait for a process that is busy with something else or was stopped. But
 * whoever has waited for long leaves a mark, and who comes after it lets it pass.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import type { Fault } from "../../model/FsError.ts"
import { fold, type FsPath, name, parent } from "../../model/FsPath.ts"
import type { Locks } from "../../port/Backend.ts"
import { sha256 } from "../../runtime/hash.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, look, maxLooks, type Place } from "./confined.ts"
import { codeOf } from "./errno.ts"
import { closeQuietly, unlinkQuietly } from "./hostBytes.ts"
import type { HostPath } from "./hostNames.ts"

const busy: Fault = { _tag: "AccessDenied", why: "busy" }
const obstructed: Fault = { _tag: "IoError", detail: "something else has the hidden name under which processes take turns" }

/** Milliseconds in all, after which whoever waits gives up. */
const patience = 30_000
/** Milliseconds after which whoever waits says so. */
const politeness = 250
/** Milliseconds between two tries: the most at first, and at last. */
const [shortest, longest] = [2, 20] as const
/** Milliseconds after which an entry is left over that nobody has refreshed, where it cannot be told whether its process lives. */
const lease = 60_000
const refreshed = 20_000

/** The hidden directory of a file's claims. Where case or composition do not distinguish files they must not here; elsewhere they may. */
const directoryOf = (file: string): string => `.~fsa-claim-${sha256(Buffer.from(fold(file.normalize()))).slice(0, 18)}.tmp`

/** Whether a hidden directory of this name is one of claims. */
export const isClaims = (name: string): boolean => /^\.~fsa-claim-[0-9a-f]{18}\.tmp$/.test(name)

/** One of these per thread and copy of this module: what another one holds in the same process is another's. */
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

const entriesOf = (inside: Place): ReadonlyArray<Entry> =>
  Fs.readdirSync(inside.directory, "utf8").flatMap((name) => {
    const found = pattern.exec(name)
    return found === null ? [] : [{ name, owner: found[1]!, identity: found[2]!, isMark: found[3] === "wait" }]
  })

/** `undefined` where only its age can tell. */
const isDead = (entry: Entry): boolean | undefined =>
  entry.owner === owner()
    ? !held.has(entry.name)
    : // Another thread of this process, which may have been ended.
      entry.identity === Identity.self()
      ? undefined
      : Identity.isDead(entry.identity)

/** Against another entry, whose time comes from the same clock as its own: the disk's. */
const isOlder = (inside: Place, entry: Entry, than: string): boolean => {
  const [old, now] = [look(inside.at(entry.name)), look(inside.at(than))]
  return old === undefined || (now !== undefined && now.mtimeMs - old.mtimeMs > lease)
}

/**
 * Whether others keep the file; what the dead have left goes. `own` is the entry that was made for this try; without it those are
 * passed over whose age would have to be compared with its.
 */
const isTaken = (inside: Place, waits: boolean, own?: string): boolean => {
  let taken = false
  for (const entry of entriesOf(inside)) {
    if (entry.name === own) continue
    const dead = isDead(entry) ?? (own === undefined ? undefined : isOlder(inside, entry, own))
    if (dead === true) unlinkQuietly(inside.at(entry.name))
    // Marks are for those who come later, not for each other.
    else if (dead === false && !(entry.isMark && waits)) taken = true
  }
  return taken
}

/** Whether it was done; not when it fails with this code. */
const done = (run: () => void, code: string): boolean => {
  try {
    run()
    return true
  } catch (error) {
    if (codeOf(error) !== code) throw error
    return false
  }
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = Fs.constants

/** Not, where the directory has just been removed. */
const enrol = (inside: Place, name: string): boolean => {
  const isMade = done(
    () => closeQuietly(Fs.openSync(inside.at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)),
    "ENOENT"
  )
  if (isMade) held.add(name)
  return isMade
}

const strike = (inside: Place, name: string): void => {
  held.delete(name)
  unlinkQuietly(inside.at(name))
}

const removeQuietly = (directory: HostPath): void => {
  try {
    Fs.rmdirSync(directory)
  } catch {
    // Others are still in it, or have removed it.
  }
}

/** Whoever may write beside the file may claim it, and remove what was left: not only who made the directory first. */
const share = (above: Place, inside: Place): void => {
  const user = process.geteuid?.()
  if (((above.stats.mode & 0o022) === 0 && above.stats.uid === user) || inside.stats.uid !== user) return
  const descriptor = inside.open()
  try {
    if (Fs.readdirSync(inside.directory).length === 0) Fs.fchmodSync(descriptor, 0o777)
  } finally {
    closeQuietly(descriptor)
  }
}

/** The directory of claims, made where it is not there; `undefined` when it is removed at the same time. */
const enter = (above: Place, segment: string): { readonly inside: Place; readonly isNew: boolean } | Fault | undefined => {
  const isNew = done(() => Fs.mkdirSync(above.at(segment)), "EEXIST")
  let inside: Place | Fault | undefined
  try {
    inside = above.enter(segment)
    if (isFault(inside)) return inside._tag === "NotFound" ? undefined : inside._tag === "NotADirectory" ? obstructed : inside
    if (isNew) share(above, inside)
    return { inside, isNew }
  } catch (error) {
    if (inside !== undefined && !isFault(inside)) inside.release()
    removeQuietly(above.at(segment))
    throw error
  }
}

interface Claim {
  readonly inside: Place
  readonly name: string
}

/** One try in a directory of claims; `undefined` where it has just been removed. */
const claimIn = (inside: Place, isNew: boolean, waits: boolean): string | "taken" | undefined => {
  if (!isNew && isTaken(inside, waits)) return "taken"
  const name = newName("claim")
  if (!enrol(inside, name)) return undefined
  let isMine = false
  try {
    isMine = !isTaken(inside, waits, name)
    return isMine ? name : "taken"
  } finally {
    if (!isMine) strike(inside, name)
  }
}

const forbidden = new Set(["EACCES", "EPERM"])

/** One try. `undefined` where others have the file, or want it now, or have made a directory of claims that is not yet open to all. */
const claimOnce = (above: Place, segment: string, waits: boolean): Claim | Fault | undefined => {
  try {
    return claimNow(above, segment, waits)
  } catch (error) {
    if (!forbidden.has(codeOf(error) ?? "") || look(above.at(segment)) === undefined) throw error
    removeQuietly(above.at(segment))
    return undefined
  }
}

const claimNow = (above: Place, segment: string, waits: boolean): Claim | Fault | undefined => {
  for (let looks = 0; looks < maxLooks; looks++) {
    const entered = enter(above, segment)
    if (entered === undefined) continue
    if (isFault(entered)) return entered
    const { inside, isNew } = entered
    let claim: Claim | undefined
    try {
      const name = claimIn(inside, isNew, waits)
      if (name === undefined) continue
      if (name !== "taken") claim = { inside, name }
      return claim
    } finally {
      if (claim === undefined) {
        inside.release()
        removeQuietly(above.at(segment))
      }
    }
  }
  return undefined
}

/** Says that somebody has waited for long. What may go wrong with that only costs time. */
const mark = (above: Place, segment: string): Claim | undefined => {
  let inside: Place | undefined
  let marked: Claim | undefined
  try {
    const entered = enter(above, segment)
    if (entered === undefined || isFault(entered)) return undefined
    inside = entered.inside
    const name = newName("wait")
    if (enrol(inside, name)) marked = { inside, name }
  } catch {
    // It goes on waiting without.
  } finally {
    if (marked === undefined && inside !== undefined) {
      inside.release()
      removeQuietly(above.at(segment))
    }
  }
  return marked
}

const leave = (above: Place, segment: string, { inside, name }: Claim): void => {
  strike(inside, name)
  inside.release()
  removeQuietly(above.at(segment))
}

/** Of the real time, whatever clock the program has: what is waited for is another process. */
const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Interruptible only in the pauses, when it holds nothing but its mark. */
const acquire = (above: Place, segment: string, restore: Restore): Effect.Effect<Claim, Fault> =>
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
      attempt(() => claimOnce(above, segment, marked !== undefined)),
      (claim) => {
        if (claim !== undefined) return Effect.succeed(claim)
        if (waited >= patience) return Effect.fail(busy)
        if (waited >= politeness) marked ??= mark(above, segment)
        return Effect.andThen(waiting, next)
      }
    )
    return Effect.ensuring(
      next,
      Effect.sync(() => {
        if (marked !== undefined) leave(above, segment, marked)
      })
    )
  })

/** Tells those who can tell nothing else of this process that it lives. */
const refresh = ({ inside, name }: Claim): void => {
  try {
    Fs.writeFileSync(inside.at(name), ".", { flag: "r+" })
  } catch {
    // The next time, or never: only others on the same disk, elsewhere, would see it.
  }
}

const using = <A, E, R>(
  above: Place,
  segment: string,
  claim: Claim,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const timer = setInterval(() => refresh(claim), refreshed).unref()
  return Effect.ensuring(
    effect,
    Effect.sync(() => {
      clearInterval(timer)
      leave(above, segment, claim)
    })
  )
}

/** Where nothing can be made beside the file, what depends on its version may still be possible: appending to it, or removing it. */
const isImpossible = (fault: Fault): boolean =>
  fault._tag === "DiskFull" || (fault._tag === "AccessDenied" && fault["why"] !== "busy")

/**
 * The claims on the files of a root, for `Locks.claim`. Where the file's directory is not there, nor is the file, and nothing is
 * claimed; where nothing can be made in it, the check is as late as it can be without. Fails with AccessDenied `busy` when others have
 * the file for half a minute.
 */
export const make =
  (confined: Confined): NonNullable<Locks["claim"]> =>
  <A, E, R>(path: FsPath, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        attempt(() => {
          const above = confined.directory(parent(path))
          return isFault(above) && (above._tag === "NotFound" || above._tag === "NotADirectory") ? undefined : above
        }),
        (above): Effect.Effect<A, E | Fault, R> => {
          if (above === undefined) return restore(effect)
          const segment = directoryOf(name(path))
          return Effect.ensuring(
            Effect.matchEffect(acquire(above, segment, restore), {
              onSuccess: (claim) => using(above, segment, claim, restore(effect)),
              onFailure: (fault): Effect.Effect<A, E | Fault, R> => (isImpossible(fault) ? restore(effect) : Effect.fail(fault))
            }),
            Effect.sync(() => above.release())
          )
        }
      )
    )

/**
 * Takes away what processes that were killed have left in a directory of claims, and the directory when nothing else is in it; whether
 * that was so. `now` in milliseconds, for what only its age can tell.
 */
export const sweep = (above: Place, segment: string, now: number): boolean => {
  let inside: Place | undefined
  try {
    const found = above.enter(segment)
    if (isFault(found)) return false
    inside = found
    for (const entry of entriesOf(inside)) {
      const found = look(inside.at(entry.name))
      const dead = isDead(entry) ?? (found !== undefined && now - found.mtimeMs > 60 * lease)
      if (dead) unlinkQuietly(inside.at(entry.name))
    }
    Fs.rmdirSync(above.at(segment))
    return true
  } catch {
    return false
  } finally {
    inside?.release()
  }
}
