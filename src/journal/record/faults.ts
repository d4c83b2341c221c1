/** What went wrong, as an entry: one of the eleven kinds, and the whole error beside it. */
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import { isFault } from "../../engine/directories.ts"
import { type Fault, type FsError, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { FaultKind, type FileFault } from "../FileSystemEntry.ts"
import { fileFault } from "./entries.ts"

const kinds: ReadonlySet<string> = new Set(FaultKind.literals)

const isKind = (tag: string): tag is FaultKind => kinds.has(tag)

/** The fault that a cause holds; an interruption or a defect has none. */
export const faultOf = (cause: Cause.Cause<unknown>): Fault | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return isFault(error) ? error : undefined
}

/** A backend out of contract may say what no error can hold. */
const errorOf = (fault: Fault, operation: string, path: FsPath): FsError | undefined => {
  try {
    return promote(fault, operation, path)
  } catch {
    return undefined
  }
}

export const answer = (correlationId: string, operation: string, path: FsPath, fault: Fault): FileFault => {
  const error = errorOf(fault, operation, path)
  const message = error?.message ?? fault._tag
  const faultKind = isKind(fault._tag) ? fault._tag : "IoError"
  return fileFault(
    error === undefined ? { correlationId, faultKind, path, message } : { correlationId, faultKind, path, message, error }
  )
}

/** Of what was broken off and has certainly not been done. */
export const brokenOff = (correlationId: string, path: FsPath, cause: Cause.Cause<unknown>): FileFault =>
  fileFault({
    correlationId,
    faultKind: "IoError",
    path,
    message: Cause.hasInterrupts(cause) ? "it was interrupted, and not done" : "it ended in a defect, and was not done"
  })
