import * as Cause from "effect/Cause"
import * as Option from "effect/Option"
import { isFault } from "../../engine/directories.ts"
import { type Fault, type FsError, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { make } from "../entries/kinds.ts"
import { FaultKind, FileFault } from "../FileSystemEntry.ts"

const kinds: ReadonlySet<string> = new Set(FaultKind.literals)

const isKind = (tag: string): tag is FaultKind => kinds.has(tag)

/** Returns the fault of a cause; `undefined` for an interruption or a defect. */
export const faultOf = (cause: Cause.Cause<unknown>): Fault | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return isFault(error) ? error : undefined
}

/** Returns the error of a fault. A backend that breaks its contract may give values that no error accepts; then returns `undefined`. */
const errorOf = (fault: Fault, operation: string, path: FsPath): FsError | undefined => {
  try {
    return promote(fault, operation, path)
  } catch {
    return undefined
  }
}

export const faultAnswer = (correlationId: string, operation: string, path: FsPath, fault: Fault): FileFault => {
  const error = errorOf(fault, operation, path)
  const message = error?.message ?? fault._tag
  const faultKind = isKind(fault._tag) ? fault._tag : "IoError"
  return make(FileFault, { correlationId, faultKind, path, message, error })
}

/** Returns the answer to a change that was interrupted and is known not to be done. */
export const interruptedAnswer = (correlationId: string, path: FsPath, cause: Cause.Cause<unknown>): FileFault =>
  make(FileFault, {
    correlationId,
    faultKind: "IoError",
    path,
    message: Cause.hasInterrupts(cause) ? "it was interrupted, and not done" : "it ended in a defect, and was not done"
  })
