import {
  accessDenied,
  alreadyExists,
  type Fault,
  invalidArgument,
  invalidPath,
  ioError,
  notADirectory,
  notAFile,
  notFound,
  unavailable
} from "../model/Fault.ts"
import type { Mode } from "./writing.ts"

export const isRoot = accessDenied("root")
export const permission = accessDenied("permission")
export const hardLinkRefused = accessDenied("link")
export const notALink = invalidArgument("path", "it is not a symbolic link")
export const linkMode = invalidArgument("mode", "a link has no permission bits of its own")
export const intoItself = invalidArgument("to", "a directory cannot be moved into itself")
export const undecodableTarget = invalidPath("the target of a symbolic link on this path is not UTF-8")
export const fileClosed = ioError("the file has been closed")
export const filesystemClosed = unavailable("this filesystem has been closed")
export const rootGone = unavailable("the root directory has been moved, replaced or removed")
export const directoriesKeepChanging = ioError("the directories above the entry keep changing; try again")

/**
 * Converts NotADirectory to NotFound for operations that only look up a path, because nothing exists below a file or
 * symlink.
 */
export const notFoundBelowFile = (fault: Fault): Fault => (fault._tag === "NotADirectory" ? notFound : fault)

export const rootWriteFault = (mode: Mode): Fault => (mode === "create" ? alreadyExists : notAFile)

/** Returns the fault of a rename over an entry, if only one of the two is a directory. */
export const kindFault = (isDirectory: boolean, isTargetDirectory: boolean): Fault | undefined =>
  isDirectory === isTargetDirectory ? undefined : isDirectory ? notADirectory : notAFile
