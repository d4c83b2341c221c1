import { FsError, IoError, promote, type Fault } from "../../model/FsError.ts"
import * as Schema from "effect/Schema"
import { FaultKind, FileFault, type Efferent } from "../FileSystemEntry.ts"

const kinds: ReadonlySet<string> = new Set(FaultKind.literals)

export const kindOf = (error: FsError): FaultKind => (kinds.has(error._tag) ? (error._tag as FaultKind) : "IoError")

export const isFsError = Schema.is(FsError)

const operations: Record<Efferent["_tag"], string> = {
  FileRead: "read",
  FileWrite: "write",
  FileWriteChunk: "write",
  FileList: "list",
  FileDelete: "delete",
  FileStat: "stat",
  FileMakeDirectory: "mkdir",
  FileMove: "move",
  FileEdit: "edit",
  FileMakeLink: "symlink",
  FileSetAttributes: "setAttributes"
}

export const errorOf = (fault: Fault, intent: Efferent, path: string): FsError => promote(fault, operations[intent._tag], path)

export const ioError = (detail: string, intent: Efferent, path: string): IoError =>
  new IoError({ operation: operations[intent._tag], path, detail })

export const answer = (error: FsError, correlationId: string, path: string, extended: boolean): FileFault =>
  new FileFault(
    {
      correlationId,
      faultKind: kindOf(error),
      path,
      message: error.message,
      ...(extended ? { error } : {})
    },
    { disableChecks: true }
  )
