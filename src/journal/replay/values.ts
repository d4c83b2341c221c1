import * as Schema from "effect/Schema"
import type { FsPath } from "../../model/FsPath.ts"
import type { FaultKind } from "../FileSystemEntry.ts"

/**
 * The failure of a replay that needs unrecorded data: the former state of a path, or the earlier content of an edited file.
 *
 * @since 0.1.0
 */
export class NotRecorded extends Schema.TaggedError<NotRecorded>("fs-algebra/NotRecorded")("NotRecorded", {
  operation: Schema.String,
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation} ${JSON.stringify(this.path)}: ${this.detail}`
  }
}

/**
 * A requested change and its outcome.
 *
 * @since 0.1.0
 */
export interface Change {
  /** The position of the request. For a chunked write, the position of its first chunk. */
  readonly position: number
  /** The position of the answer. Absent if the request is unanswered. */
  readonly answered?: number
  /** The time of the answer, or of an unanswered request, in milliseconds since 1970. */
  readonly at: number
  readonly correlationId: string
  /** The tag of the request. A chunked write counts as FileWrite. */
  readonly kind:
    | "FileWrite"
    | "FileDelete"
    | "FileMakeDirectory"
    | "FileMove"
    | "FileEdit"
    | "FileMakeLink"
    | "FileSetAttributes"
  readonly path: FsPath
  readonly to?: FsPath
  readonly outcome: "done" | "failed" | "unanswered"
  readonly fault?: FaultKind
  readonly message?: string
  /** The number of bytes written or moved. */
  readonly bytes?: number
  /** The SHA-256 of the resulting file in hexadecimal, if the entries contain it. */
  readonly version?: string
}

/**
 * The state of a path. `unknown` means that the path has an entry whose kind or content is not known. `mode` contains the
 * permission bits, if they were compared.
 *
 * @since 0.1.0
 */
export type State =
  | { readonly kind: "nothing" }
  | { readonly kind: "file"; readonly sizeBytes: number; readonly version: string; readonly mode?: number }
  | { readonly kind: "directory"; readonly mode?: number }
  | { readonly kind: "symlink"; readonly target: string }
  | { readonly kind: "other" }
  | { readonly kind: "unknown"; readonly mode?: number }

/**
 * A path whose state differs from its last state in the journal.
 *
 * @since 0.1.0
 */
export interface Drift {
  readonly path: FsPath
  readonly expected: State
  readonly actual: State
}

/**
 * An answer that differs from the recorded answer, with the compared fields of both answers.
 *
 * @since 0.1.0
 */
export interface Difference {
  /** The position of the request. */
  readonly position: number
  readonly correlationId: string
  /** The tag of the request. A chunked write counts as FileWrite. */
  readonly kind: string
  readonly path: FsPath
  readonly expected: { readonly [field: string]: unknown }
  readonly actual: { readonly [field: string]: unknown }
}
