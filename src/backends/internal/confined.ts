/**
 * From a path to a place on the host, and nowhere else. What the other modules of a host need of it is here; how it is done, and what
 * can be promised of it, is the matter of two walks: `descriptorWalk.ts`, which no other process can lead astray, where the system
 * shows open descriptors as files, and `checkedWalk.ts` everywhere.
 *
 * Neither follows a link: a link on the way ends it, so nothing that a link leads to is ever touched, and what is outside cannot be
 * learnt from an error. Links are resolved by the engine, from their text.
 */
import { Fs, platform } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Info } from "../../port/Backend.ts"
import { codeOf } from "./errno.ts"
import { below, type HostPath } from "./hostNames.ts"

/**
 * A directory inside the root that has been reached. To be released when the calls that use its paths have ended, those of the thread
 * pool too; after that it has none.
 */
export interface Place {
  /** A path of the system to it. */
  readonly directory: HostPath
  readonly stats: Fs.Stats
  /** The path of the system to a name in it. */
  at(segment: string): HostPath
  /** A directory in it. */
  enter(segment: string): Place | Fault
  /** Whether what was read by its paths meanwhile was its. */
  held(): boolean
  /** Whether the path that it was asked for by still leads to it. */
  isSame(): boolean
  /** Opened for reading. */
  open(): number
  release(): void
  /** Set by whoever has taken away what killed writers have left in it. */
  isSwept: boolean
}

export interface Owner {
  readonly uid: number
  readonly gid: number
}

export interface Confined {
  readonly level: Info["confinement"]
  readonly caseSensitive: boolean
  /** NotFound where nothing is, NotADirectory where the way leads through a file or a link, Unavailable when the root is gone. */
  readonly directory: (path: FsPath) => Place | Fault
  /** Whether an open file is the one of that name, here. One that has been removed or replaced since it was opened still is. */
  readonly holds: (descriptor: number, place: Place, segment: string) => boolean
  /** Removes a file that was made by this name but is not where it should be, wherever it is; never another one. */
  readonly withdraw: (descriptor: number, place: Place, segment: string) => void
  /** To whom what is made is given, where that is not this process's own user; only root may give anything away. */
  readonly owner?: Owner | undefined
  /** A path to an open file, whatever becomes of its name; left out where the system has none. */
  readonly alias?: ((descriptor: number) => string) | undefined
  readonly close: () => void
}

export const notFound: Fault = { _tag: "NotFound" }
export const notADirectory: Fault = { _tag: "NotADirectory" }
export const closed: Fault = { _tag: "Unavailable", detail: "this filesystem has been closed" }

/** How often a call looks again when what it found changes under its hands. */
export const maxLooks = 8

export const unstable: Fault = { _tag: "IoError", detail: "the directories on the way keep changing" }

const quietly = { throwIfNoEntry: false } as const

/** Of the name itself, never of what a link leads to. */
export const look = (at: HostPath): Fs.Stats | undefined => {
  try {
    return Fs.lstatSync(at, quietly)
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return undefined
    throw error
  }
}

export const isSameFile = (self: Fs.Stats, that: Fs.Stats): boolean => self.ino === that.ino && self.dev === that.dev

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = Fs.constants

/** For holding what may be neither read nor written; only Linux has it, and Node does not name it. */
export const O_PATH = 0o10000000

/** Opens a directory, itself and no link, only to hold it. */
export const holding = (platform === "linux" ? O_PATH : O_RDONLY | O_NONBLOCK) | O_DIRECTORY | O_NOFOLLOW

/** Gives away what was made here by its name just now, itself and not what it may lead to; where that fails it is unmade. */
export const giveAway = ({ owner }: Confined, at: HostPath, unmake: (at: HostPath) => void): undefined => {
  if (owner === undefined) return undefined
  try {
    Fs.lchownSync(at, owner.uid, owner.gid)
  } catch (error) {
    unmake(at)
    throw error
  }
  return undefined
}

/** Gives away an open file that was made just now. */
export const giveAwayOpen = ({ owner }: Confined, descriptor: number): void => {
  if (owner !== undefined) Fs.fchownSync(descriptor, owner.uid, owner.gid)
}

/** The path of the system that a path has under `top`. */
export const hostPath = (top: HostPath, path: FsPath): HostPath =>
  typeof top === "string" && !path.includes("\0")
    ? top.length === 1
      ? top + path
      : `${top}/${path}`
    : path.split("/").reduce<HostPath>(below, top)
