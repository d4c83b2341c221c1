import { FsError, IoError, promote, type Fault } from "../../model/FsError.ts"
import * as Schema from "effect/Schema"
import { kinds, make } from "../entries/kinds.ts"
import { FaultKind, FileFault, type Efferent } from "../FileSystemEntry.ts"

const faultKinds: ReadonlySet<string> = new Set(FaultKind.literals)

export const kindOf = (error: FsError): FaultKind => (faultKinds.has(error._tag) ? (error._tag as FaultKind) : "IoError")

export const isFsError = Schema.is(FsError)

export const errorOf = (fault: Fault, intent: Efferent, path: string): FsError =>
  promote(fault, kinds[intent._tag].operation, path)

export const ioError = (detail: string, intent: Efferent, path: string): IoError =>
  new IoError({ operation: kinds[intent._tag].operation, path, detail })

export const faultAnswer = (error: FsError, correlationId: string, path: string, extended: boolean): FileFault =>
  make(FileFault, {
    correlationId,
    faultKind: kindOf(error),
    path,
    message: error.message,
    error: extended ? error : undefined
  })
