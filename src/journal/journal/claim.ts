/**
 * Ensures that only one process writes a journal. A writer first creates an entry in a directory beside the file, named after its process,
 * and then looks for entries of others. So of two concurrent writers, the later one sees the earlier. Names are never reused, so a leftover
 * of a dead process is recognized by its name and can be removed safely. For a process that cannot be checked, such as one in another
 * container, the entry's age decides, since living writers refresh their entries.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, join, randomBytes, randomInt } from "../../runtime/node.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { JournalError } from "../errors.ts"
import { codeOf } from "../../model/systemError.ts"
import { attempt, unlinkQuietly } from "./system.ts"

const operation = "Journal.open"

/**
 * The age in milliseconds after which an entry is a leftover, if it is unknown whether its process is alive, and the interval of refreshes.
 */
const [lease, refreshed] = [60_000, 15_000] as const

/** The number of attempts when two writers collide, and the longest pause between attempts in milliseconds. */
const [tries, pauses] = [5, 50] as const

/** The entries of this thread and this copy of the module. Another copy in the same process counts as another writer. */
const held = new Set<string>()

const pattern = /^([0-9a-z-]+)\.[0-9a-f]{24}$/

/** Tests whether the entry's process is dead. Returns `undefined` if only the entry's age can tell. */
const isDead = (name: string): boolean | undefined => {
  if (held.has(name)) return false
  const identity = pattern.exec(name)?.[1] ?? ""
  return identity === Identity.self() ? undefined : Identity.isDead(identity)
}

const isOlder = (directory: string, name: string, own: string): boolean => {
  const [now, old] = [own, name].map((name) => Fs.statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs)
  // The absolute difference counts, because a refresh never sets a time in the future.
  return old === undefined || (now !== undefined && Math.abs(now - old) > lease)
}

/** Tests whether another writer has an entry, and removes leftovers. */
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
    // The directory still has other entries.
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

/** Creates this writer's entry. Retries, because another writer that leaves may remove the directory at the same moment. */
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

/** A random pause in real time, whatever clock the program uses, because it waits for another process. */
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
    // The next refresh tries again. A writer notices changes by others in the file itself.
  }
}

/** Claims the file for this process until the scope closes. Fails with `busy`. */
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
