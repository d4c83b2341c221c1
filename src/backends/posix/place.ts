/**
 * Maps paths of the port to host paths, confined to the root.
 *
 * `confinement.ts` has a race-free implementation for systems that expose descriptors as files, and another
 * implementation for all other systems.
 *
 * Neither implementation follows a symlink, so the target of a symlink is never touched, and errors reveal nothing about
 * files outside the root. The engine resolves symlinks from their text.
 */
import { directoriesKeepChanging } from "../faults.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { is as isFault } from "../../model/Fault.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { codeOf } from "../../model/realms.ts"
import type { Child, Info } from "../../port/Backend.ts"
import { escapeName } from "../../runtime/escapedName.ts"
import { Fs, isUtf8, platform } from "../../runtime/node.ts"

// Converts between names on disk, which are bytes, and segments of paths, which are text.
//
// A name that no path can express (not UTF-8, or with control characters) gets a key: NUL followed by the bytes in
// hexadecimal. No caller's path and no name on disk contains NUL. So the port can list, move and remove every entry,
// and never confuses two entries.

export type HostPath = string | Buffer

const keyPrefix = "\u0000"
const control = /[\u0000-\u001f\u007f]/

/** Tests whether a name contains the replacement character. Such a name may be the lossy decoding of other bytes. */
export const mayBeLossy = (name: string): boolean => name.includes("\ufffd")

const keyOf = (name: Buffer): string => keyPrefix + name.toString("hex")

/**
 * Returns the name on disk of a segment.
 *
 * An invalid key keeps its NUL, and an invalid name becomes NUL. Node refuses a name with NUL before it calls the
 * system.
 */
const diskNameOf = (segment: string): HostPath => {
  if (segment === "" || segment === "." || segment === "..") return keyPrefix
  if (!segment.startsWith(keyPrefix)) return segment
  const name = Buffer.from(segment.slice(1), "hex")
  return keyOf(name) === segment && isInexpressible(name) ? fromBytes(name) : segment
}

const isInexpressible = (name: Buffer): boolean =>
  !name.includes(0) && !name.includes("/") && (!isUtf8(name) || control.test(name.toString()))

export const below = (directory: HostPath, segment: string): HostPath => {
  const name = diskNameOf(segment)
  const isTop = directory.length === 1
  return typeof directory === "string" && typeof name === "string"
    ? isTop
      ? directory + name
      : `${directory}/${name}`
    : Buffer.concat([Buffer.from(directory), Buffer.from(isTop ? "" : "/"), Buffer.from(name)])
}

export const fromBytes = (path: Buffer): HostPath => (isUtf8(path) ? path.toString() : path)

export const isPlainText = (name: string): boolean => !control.test(name)

export const childOf = (name: HostPath, kind: Kind): Child => {
  if (typeof name === "string" && isPlainText(name)) return { name, kind, addressable: true }
  const bytes = Buffer.from(name)
  return { name: escapeName(bytes), kind, addressable: false, key: keyOf(bytes) }
}

/**
 * An open directory inside the root.
 *
 * The caller must release the directory after the calls that use its paths have ended, including calls in the thread
 * pool.
 */
export interface HostDirectory {
  readonly directory: HostPath
  readonly stats: Fs.Stats
  at(segment: string): HostPath
  openChild(segment: string): HostDirectory | Fault
  isReadReliable(): boolean
  isSame(): boolean
  open(): number
  release(): void
  isCleared: boolean
}

/** Uses a directory, and then releases it. Returns a fault instead of a directory unchanged. */
export const withPlace = <A>(place: HostDirectory | Fault, use: (place: HostDirectory) => A | Fault): A | Fault => {
  if (isFault(place)) return place
  try {
    return use(place)
  } finally {
    place.release()
  }
}

export interface Owner {
  readonly uid: number
  readonly gid: number
}

export interface Confined {
  readonly level: Info["confinement"]
  readonly rootPath: () => HostPath
  readonly caseSensitive: boolean
  /**
   * Opens a directory. Returns NotFound if the directory is missing, NotADirectory if a component is another entry, such as a
   * symlink, and Unavailable if the root is gone or the filesystem is closed.
   */
  readonly directory: (path: FsPath) => HostDirectory | Fault
  /**
   * Tests whether an open file was opened by this name in this directory. May also return true for a file that was
   * removed or replaced after it was opened.
   */
  readonly holds: (descriptor: number, place: HostDirectory, segment: string) => boolean
  /** Removes a new file with a wrong directory or owner. Removes nothing if the name now belongs to another file. */
  readonly withdraw: (descriptor: number, place: HostDirectory, segment: string) => void
  readonly owner?: Owner | undefined
  /** Returns a path to an open file that stays valid if the file is renamed. Absent if the system has no such paths. */
  readonly descriptorPath?: ((descriptor: number) => string) | undefined
  readonly close: () => void
}

export const maxAttempts = 8

/**
 * Runs a function until it returns a value, at most `maxAttempts` times. The function returns `undefined` if an entry
 * was replaced after it was inspected.
 */
export const retryChanged = <A>(run: () => A | Fault | undefined): A | Fault => {
  for (let left = maxAttempts; left > 0; left--) {
    const found = run()
    if (found !== undefined) return found
  }
  return directoriesKeepChanging
}

const lstatOptions = { throwIfNoEntry: false } as const

export const lstatEntry = (at: HostPath): Fs.Stats | undefined => {
  try {
    return Fs.lstatSync(at, lstatOptions)
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return undefined
    throw error
  }
}

export const isSameFile = (self: Fs.Stats, that: Fs.Stats): boolean => self.ino === that.ino && self.dev === that.dev

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants

/** The Linux flag that opens a file as a reference only, without read or write access. Node has no constant for it. */
export const O_PATH = 0o10000000

export const holdFlags = (platform === "linux" ? O_PATH : O_RDONLY | O_NONBLOCK) | O_DIRECTORY | O_NOFOLLOW

/**
 * Changes the owner of a new entry, without following a symlink. If the change fails, `removeCreated` removes the entry.
 */
export const changeOwner = ({ owner }: Confined, at: HostPath, removeCreated: (at: HostPath) => void): undefined => {
  if (owner === undefined) return undefined
  try {
    Fs.lchownSync(at, owner.uid, owner.gid)
  } catch (error) {
    removeCreated(at)
    throw error
  }
  return undefined
}

export const changeOwnerOfOpen = ({ owner }: Confined, descriptor: number): void => {
  if (owner !== undefined) Fs.fchownSync(descriptor, owner.uid, owner.gid)
}

export const hostPath = (top: HostPath, path: FsPath): HostPath =>
  typeof top === "string" && !path.includes("\0")
    ? top.length === 1
      ? top + path
      : `${top}/${path}`
    : path.split("/").reduce<HostPath>(below, top)
