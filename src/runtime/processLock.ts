/**
 * Mutual exclusion between processes by entries in a directory.
 *
 * An entry is a file whose name gives its process and its role. A process creates its own entry before it looks for
 * other entries. So if two processes start at the same time, at least one of the two sees the other's entry.
 *
 * Names are never reused, so the entry of a dead process can be removed safely. For a process that cannot be looked up, the
 * age of its entry decides, because a living process refreshes its entries.
 */
import * as Effect from "effect/Effect"
import { codeOf } from "../model/realms.ts"
import { makeDirectories } from "./directories.ts"
import { closeQuietly, unlinkQuietly, writeAndClose } from "./host.ts"
import { Fs, join, randomBytes } from "./node.ts"
import * as Identity from "./processIdentity.ts"

/**
 * The settings of one kind of entry, such as claims. Processes with other versions of this library read the names and
 * times, so both must stay compatible.
 */
export interface Settings {
  /**
   * The number of milliseconds after its last refresh when an entry becomes a leftover. Applies only if the state of its
   * process is unknown.
   */
  readonly leaseMillis: number
  readonly refreshMillis: number
  readonly nameOf: (owner: string, role: string) => string
  /**
   * The form of an entry's name. Captures the owner, the identity of its process and, if there are several roles, the
   * role.
   */
  readonly pattern: RegExp
  /**
   * The mode with which a missing directory is created. Such a directory exists only while it has entries. Without a mode,
   * the directory must already exist.
   */
  readonly directoryMode?: number
}

export interface Entry {
  readonly directory: string
  readonly name: string
  readonly role: string
  readonly owner: string
  readonly identity: string
}

/** An entry of this thread, which is refreshed until it is removed. */
export interface Held {
  readonly directory: string
  readonly path: string
  readonly name: string
  readonly role: string
  readonly content: Uint8Array
  readonly timer: ReturnType<typeof setInterval>
}

export interface ProcessLock {
  /**
   * Creates an entry, with the given content. Throws system errors. ENOENT also means that other processes kept removing the
   * directory.
   */
  readonly add: (directory: string, role: string, content?: Uint8Array) => Held
  /** Makes an entry of a file with the given content, by a rename. Throws system errors. The directory must exist. */
  readonly adopt: (directory: string, role: string, file: string, content: Uint8Array) => Held
  readonly remove: (held: Held) => void
  /** Gives the file of an entry another path, which ends the entry. Throws ENOENT if another process has removed the entry. */
  readonly publish: (held: Held, path: string) => void
  /**
   * Returns the entries of living processes except `own`, and removes the entries of dead processes. Ignores everything but
   * regular files.
   *
   * If the state of a process is unknown, its entry counts as dead if it is older than the lease, by the clock of
   * `own`. Without `own`, such an entry is ignored.
   */
  readonly others: (directory: string, own?: Held, role?: string) => ReadonlyArray<Entry>
  /** Removes the entries of dead processes, and the directory if no entry is left. */
  readonly sweep: (directory: string) => void
}

/** Returns the part of an entry's name that identifies this process, this thread and this copy of the module. */
const owner = (): string => (ownName ??= `${Identity.self()}.${randomBytes(6).toString("hex")}`)
let ownName: string | undefined

/** The paths of this thread's entries. */
const paths = new Set<string>()
let count = 0

/** Returns the form of names with one of the given roles: `<owner>.<number>.<role>`. */
export const rolesOf = (...roles: ReadonlyArray<string>): Pick<Settings, "nameOf" | "pattern"> => ({
  nameOf: (owner, role) => `${owner}.${(count++).toString(36)}.${role}`,
  pattern: new RegExp(`^(([0-9a-z-]+)\\.[0-9a-f]{12})\\.[0-9a-z]+\\.(${roles.join("|")})$`)
})

/** The maximum number of retries when other processes remove the directory in which an entry is created. */
const maxTries = 32

const isDead = ({ directory, identity, name, owner: entryOwner }: Entry): boolean | undefined => {
  if (entryOwner === owner()) return !paths.has(join(directory, name))
  // The entry may belong to another thread of this process. Whether that thread has ended is unknown.
  return identity === Identity.self() ? undefined : Identity.isDead(identity)
}

const noContent = new Uint8Array()
const mark = new TextEncoder().encode(".")

/** Writes the first byte of an entry again. So the disk, whose clock counts, sets the time of the entry. */
const touch = (path: string, content: Uint8Array): void => {
  try {
    Fs.writeFileSync(path, content.length === 0 ? mark : content.subarray(0, 1), { flag: "r+" })
  } catch {
    // The file is gone or the disk is full. The next refresh may succeed.
  }
}

const changed = (path: string): number | undefined => Fs.lstatSync(path, { throwIfNoEntry: false })?.mtimeMs

/**
 * Tests whether the last refresh of an entry is longer ago than the lease. Compares the time of the entry with the time
 * of our own entry, which is refreshed first. A missing entry counts as older, and so does a forged entry, whose time is later
 * by more than the lease.
 */
const isOlder = (path: string, than: Held, lease: number): boolean => {
  touch(than.path, than.content)
  const [old, now] = [changed(path), changed(than.path)]
  return old === undefined || (now !== undefined && Math.abs(now - old) > lease)
}

export const make = ({ directoryMode, leaseMillis: lease, nameOf, pattern, refreshMillis }: Settings): ProcessLock => {
  const isTemporary = directoryMode !== undefined

  const create = (directory: string, name: string): number => {
    for (let left = isTemporary ? maxTries : 0; ; left--) {
      if (isTemporary) makeDirectories(directory, directoryMode)
      try {
        return Fs.openSync(join(directory, name), "wx", 0o600)
      } catch (error) {
        if (codeOf(error) !== "ENOENT" || left === 0) throw error
      }
    }
  }

  const fill = (descriptor: number, path: string, content: Uint8Array): void => {
    if (content.length === 0) return closeQuietly(descriptor)
    try {
      writeAndClose(descriptor, content)
    } catch (error) {
      unlinkQuietly(path)
      throw error
    }
  }

  const removeEmpty = (directory: string): void => {
    if (!isTemporary) return
    try {
      Fs.rmdirSync(directory)
    } catch {
      // The directory still has other entries or was already removed.
    }
  }

  const namesIn = (directory: string): ReadonlyArray<string> => {
    try {
      return Fs.readdirSync(directory, "utf8")
    } catch (error) {
      if (!isTemporary || codeOf(error) !== "ENOENT") throw error
      return []
    }
  }

  const others: ProcessLock["others"] = (directory, own, role) => {
    const living: Array<Entry> = []
    for (const name of namesIn(directory)) {
      const [, owner, identity, found = ""] = pattern.exec(name) ?? []
      const path = join(directory, name)
      if (owner === undefined || identity === undefined || path === own?.path) continue
      if ((role !== undefined && role !== found) || Fs.lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) continue
      const entry = { directory, name, role: found, owner, identity }
      const dead = isDead(entry) ?? (own === undefined ? undefined : isOlder(path, own, lease))
      if (dead === true) unlinkQuietly(path)
      else if (dead === false) living.push(entry)
    }
    return living
  }

  const hold = (directory: string, role: string, content: Uint8Array, make: (path: string, name: string) => void): Held => {
    const name = nameOf(owner(), role)
    const path = join(directory, name)
    paths.add(path)
    try {
      make(path, name)
    } catch (error) {
      paths.delete(path)
      throw error
    }
    return { directory, path, name, role, content, timer: setInterval(() => touch(path, content), refreshMillis).unref() }
  }

  return {
    add: (directory, role, content = noContent) =>
      hold(directory, role, content, (path, name) => fill(create(directory, name), path, content)),
    adopt: (directory, role, file, content) =>
      hold(directory, role, content, (path) => {
        Fs.renameSync(file, path)
        // The file may be older than the lease.
        touch(path, content)
      }),
    publish: ({ path, timer }, target) => {
      Fs.renameSync(path, target)
      clearInterval(timer)
      paths.delete(path)
    },
    remove: ({ directory, path, timer }) => {
      clearInterval(timer)
      paths.delete(path)
      unlinkQuietly(path)
      removeEmpty(directory)
    },
    others,
    sweep: (directory) => {
      others(directory)
      removeEmpty(directory)
    }
  }
}

/** Waits in real time, even under a test clock, because other processes do not use the test clock. */
export const pause = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })
