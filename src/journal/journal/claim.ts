/**
 * One process writes a journal. Who wants to makes an entry in a directory beside the file, whose name says which process made it, and
 * looks for those of others second; so of two that come at once the later one sees the earlier. What a process that was killed has
 * left is told by its name and removed by the next: no name is ever used twice, so this cannot hit one that lives. Where a name cannot
 * tell, as of a process in another container, its age does, since whoever lives refreshes it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, join, randomBytes, randomInt } from "../../runtime/node.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { JournalError } from "../errors.ts"
import { attempt, codeOf, unlinkQuietly } from "./system.ts"

const operation = "Journal.open"

/** Milliseconds after which an entry is left over of which it cannot be told whether its process lives, and how often one is refreshed. */
const [lease, refreshed] = [60_000, 15_000] as const

/** How often it is tried where two come at once, and the most milliseconds between. */
const [tries, pauses] = [5, 50] as const

/** Of this thread and copy of this module: what another one holds in the same process is another's. */
const held = new Set<string>()

const pattern = /^([0-9a-z-]+)\.[0-9a-f]{24}$/

/** `undefined` where only its age can tell. */
const isDead = (name: string): boolean | undefined => {
  if (held.has(name)) return false
  const identity = pattern.exec(name)?.[1] ?? ""
  return identity === Identity.self() ? undefined : Identity.isDead(identity)
}

const isOlder = (directory: string, name: string, own: string): boolean => {
  const [now, old] = [own, name].map((name) => Fs.statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs)
  // Nobody who refreshes an entry gives it a time that is yet to come.
  return old === undefined || (now !== undefined && Math.abs(now - old) > lease)
}

/** What the dead have left goes. */
const isTaken = (directory: string, own: string): boolean => {
  let taken = false
  for (const name of Fs.readdirSync(directory)) {
    if (name === own || !pattern.test(name)) continue
    if (isDead(name) ?? isOlder(directory, name, own)) unlinkQuietly(join(directory, name))
    else taken = true
  }
  return taken
}

const removeQuietly = (directory: string): void => {
  try {
    Fs.rmdirSync(directory)
  } catch {
    // Others are in it.
  }
}

const leave = (directory: string, name: string): void => {
  held.delete(name)
  unlinkQuietly(join(directory, name))
  removeQuietly(directory)
}

const linked = new JournalError({
  operation,
  reason: "invalid",
  detail: "the directory by which its writers know each other, the name of the journal with .lock, is a link"
})

/** Another that leaves may remove the directory in between. */
const enrol = (directory: string, name: string): void => {
  for (let looks = 0; ; looks++) {
    try {
      makeDirectories(directory)
      if (Fs.lstatSync(directory).isSymbolicLink()) throw linked
      Fs.closeSync(Fs.openSync(join(directory, name), "wx", 0o600))
      held.add(name)
      return
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || looks > 100) throw error
    }
  }
}

/** The name of the entry, or nothing where another has one. */
const claimOnce = (directory: string): string | undefined => {
  const name = `${Identity.self()}.${randomBytes(12).toString("hex")}`
  enrol(directory, name)
  let isMine = false
  try {
    isMine = !isTaken(directory, name)
  } finally {
    if (!isMine) leave(directory, name)
  }
  return isMine ? name : undefined
}

const busy = new JournalError({ operation, reason: "busy", detail: "it is being written already, by this process or another" })

/** Of the real time, whatever clock the program has: what is waited for is another process. */
const pause = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), 1 + randomInt(pauses))
  return Effect.sync(() => clearTimeout(timer))
})

const claimSoon = (directory: string, left: number): Effect.Effect<string, JournalError> =>
  Effect.flatMap(
    attempt(operation, () => claimOnce(directory)),
    (name) => {
      if (name !== undefined) return Effect.succeed(name)
      return left === 1 ? Effect.fail(busy) : Effect.andThen(pause, claimSoon(directory, left - 1))
    }
  )

const refresh = (path: string): void => {
  try {
    Fs.writeFileSync(path, ".", { flag: "r+" })
  } catch {
    // The next time. A writer sees at the file itself that another one writes it.
  }
}

/** Keeps others from writing the file for as long as the scope is open. Fails with `busy`. */
export const claim = (path: string): Effect.Effect<void, JournalError, Scope.Scope> => {
  const directory = `${path}.lock`
  return Effect.asVoid(
    Effect.acquireRelease(
      Effect.map(claimSoon(directory, tries), (name) => ({
        name,
        timer: setInterval(() => refresh(join(directory, name)), refreshed).unref()
      })),
      ({ name, timer }) =>
        Effect.sync(() => {
          clearInterval(timer)
          leave(directory, name)
        })
    )
  )
}
