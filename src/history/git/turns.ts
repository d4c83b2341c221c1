/**
 * Turns: a process registers its use of a store as a file in the store's directory `turns`.
 *
 * The file name gives the role and the process. A process creates its own file before it looks for others, so of two
 * processes that start at once, the later one sees the earlier. The next process that looks removes the file of a dead
 * one.
 */
import * as Effect from "effect/Effect"
import { Fs, join, randomBytes } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"

/**
 * The role of a turn.
 *
 * A `holder` relies on every object that it has seen in the store. A `collector` repacks objects; there is one at a
 * time. A `remover` is a collector during the few milliseconds in which it deletes objects.
 */
export type Role = "holder" | "collector" | "remover"

/** Milliseconds after which an unrefreshed file is a leftover, if the state of its process is unknown. */
const lease = 120_000
const refreshed = 20_000

/** Returns the owner part of this thread's file names. Each thread, and each copy of this module, has its own. */
const owner = (): string => (ownName ??= `${Identity.self()}.${randomBytes(6).toString("hex")}`)
let ownName: string | undefined

const held = new Set<string>()
let count = 0

const pattern = /^(([0-9a-z-]+)\.[0-9a-f]{12})\.[0-9a-z]+\.(holder|collector|remover)$/

export const directoryOf = (store: string): string => join(store, "turns")

const isDead = (path: string, owned: string, identity: string): boolean | undefined => {
  if (owned === owner()) return !held.has(path)
  // Another thread of this process may have ended.
  return identity === Identity.self() ? undefined : Identity.isDead(identity)
}

const changed = (path: string): number | undefined => Fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs

/**
 * Tests whether a turn is a leftover by the disk's clock: refreshing our own file gives the current time. A time in the
 * future is forged.
 */
const isOlder = (path: string, than: string): boolean => {
  touch(than)
  const [old, now] = [changed(path), changed(than)]
  return old === undefined || (now !== undefined && Math.abs(now - old) > lease)
}

const touch = (path: string): void => {
  try {
    Fs.writeFileSync(path, "\n", { flag: "r+" })
  } catch {
    // The file is gone or the disk is full. In both cases the turn ages.
  }
}

export interface Turn {
  readonly role: Role
  readonly path: string
  readonly timer: ReturnType<typeof setInterval>
}

/** Creates a turn and refreshes it until `leave`. Throws system errors. */
export const enter = (store: string, role: Role): Turn => {
  const path = join(directoryOf(store), `${owner()}.${(count++).toString(36)}.${role}`)
  held.add(path)
  try {
    Fs.closeSync(Fs.openSync(path, "wx", 0o600))
  } catch (error) {
    held.delete(path)
    throw error
  }
  return { role, path, timer: setInterval(() => touch(path), refreshed).unref() }
}

export const leave = ({ path, timer }: Turn): void => {
  clearInterval(timer)
  held.delete(path)
  removeQuietly(path)
}

const removeQuietly = (path: string): void => {
  try {
    Fs.unlinkSync(path)
  } catch {
    // The next process that looks removes the file.
  }
}

/**
 * Returns the file name of another process's turn in this role, if there is one. Ignores everything but regular files.
 */
export const somebody = (store: string, role: Role, self: Turn): string | undefined => {
  let found: string | undefined
  for (const name of Fs.readdirSync(directoryOf(store))) {
    const [, owned, identity, what] = pattern.exec(name) ?? []
    const path = join(directoryOf(store), name)
    if (owned === undefined || identity === undefined || what !== role || path === self.path) continue
    if (Fs.lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) continue
    if (isDead(path, owned, identity) ?? isOlder(path, self.path)) removeQuietly(path)
    else found = name
  }
  return found
}

export const isAnybody = (store: string, role: Role, self: Turn): boolean => somebody(store, role, self) !== undefined

/** Waits in real time, even under a test clock, because another process is waited for. */
export const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })
