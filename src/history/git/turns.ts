/**
 * Who is at a store at this moment, in any process: one file each in its directory `turns`, whose name says what for and which process
 * made it. Whoever comes makes its own file first and looks second, so of two that come at once the later one sees the earlier. What a
 * process that was killed has left is told by its name, and removed by the next that looks.
 */
import * as Effect from "effect/Effect"
import { Fs, join, randomBytes } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"

/**
 * A `holder` counts on every object that it has seen in the store. A `collector` packs objects anew, and there is one at a time. A
 * `remover` is a collector in the few milliseconds in which objects go.
 */
export type Role = "holder" | "collector" | "remover"

/** Milliseconds after which a file is left over that nobody has refreshed, where it cannot be told whether its process lives. */
const lease = 120_000
const refreshed = 20_000

/** One of these per thread and copy of this module: what another one holds in the same process is another's. */
const owner = (): string => (ownName ??= `${Identity.self()}.${randomBytes(6).toString("hex")}`)
let ownName: string | undefined

const held = new Set<string>()
let count = 0

const pattern = /^(([0-9a-z-]+)\.[0-9a-f]{12})\.[0-9a-z]+\.(holder|collector|remover)$/

export const directoryOf = (store: string): string => join(store, "turns")

/** `undefined` where only its age can tell. */
const isDead = (path: string, owned: string, identity: string): boolean | undefined => {
  if (owned === owner()) return !held.has(path)
  // Another thread of this process, which may have been ended.
  return identity === Identity.self() ? undefined : Identity.isDead(identity)
}

const changed = (path: string): number | undefined => Fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs

/** Returns whether a turn is left over, by the disk's clock: a file that was refreshed just now has the time. A time to come is forged. */
const isOlder = (path: string, than: string): boolean => {
  touch(than)
  const [old, now] = [changed(path), changed(than)]
  return old === undefined || (now !== undefined && Math.abs(now - old) > lease)
}

const touch = (path: string): void => {
  try {
    Fs.writeFileSync(path, "\n", { flag: "r+" })
  } catch {
    // It is gone, or the disk is full; then it ages.
  }
}

export interface Turn {
  readonly role: Role
  readonly path: string
  readonly timer: ReturnType<typeof setInterval>
}

/** Throws what the system throws. */
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
    // The next that looks removes it.
  }
}

/** Returns the name of a turn of somebody else in this role, if there is one. What is no file is no turn. */
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

/** Returns whether somebody else has a turn in this role. */
export const isAnybody = (store: string, role: Role, self: Turn): boolean => somebody(store, role, self) !== undefined

/** Of the real time, whatever clock the program has: what is waited for is another process. */
export const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })
