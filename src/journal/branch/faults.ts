import { type Fault, located, toFault } from "../../model/FsError.ts"
import type { FaultKind, FileFault } from "../FileSystemEntry.ts"
import type { RequestError } from "./model.ts"

const faultsByKind: Record<FaultKind, (detail: string) => Fault> = {
  NotFound: () => ({ _tag: "NotFound" }),
  AlreadyExists: () => ({ _tag: "AlreadyExists" }),
  AccessDenied: () => ({ _tag: "AccessDenied", why: "permission" }),
  InvalidPath: (detail) => ({ _tag: "InvalidPath", detail }),
  DirectoryNotEmpty: () => ({ _tag: "DirectoryNotEmpty" }),
  NotADirectory: () => ({ _tag: "NotADirectory" }),
  NotAFile: () => ({ _tag: "NotAFile" }),
  DiskFull: () => ({ _tag: "DiskFull" }),
  IoError: (detail) => ({ _tag: "IoError", detail }),
  PathTooLong: (detail) => ({ _tag: "PathTooLong", detail }),
  Timeout: (detail) => ({ _tag: "Timeout", detail })
}

/** Removes the operation and the path from the leaf's message, because the error of this side adds them again. */
const detailOf = ({ message, path }: FileFault): string => {
  const prefix = `${JSON.stringify(path)}: `
  const at = message.indexOf(prefix)
  return at < 0 ? message : message.slice(at + prefix.length)
}

export const faultOf = (fault: FileFault): Fault =>
  fault.error === undefined ? faultsByKind[fault.faultKind](detailOf(fault)) : toFault(fault.error)

export const locatedFaultOf = (fault: FileFault): Fault => located(faultOf(fault), fault.error?.path ?? fault.path)

export const faultOfRequestError = (error: RequestError): Fault =>
  error._tag === "Timeout"
    ? { _tag: "Timeout", detail: error.detail }
    : error._tag === "JournalError"
      ? { _tag: "Unavailable", detail: error.message }
      : { _tag: "IoError", detail: error.message }

export const unsupported = (feature: string): Fault => ({
  _tag: "Unsupported",
  feature,
  detail: `the thirteen entries have no ${feature}; give both ends \`extended\``
})
