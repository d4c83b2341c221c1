/** What replays answer: plain values, which can be shown, compared and written as JSON. */
import type { FsPath } from "../../model/FsPath.ts"
import type { FaultKind } from "../FileSystemEntry.ts"

/**
 * A change that was asked for.
 *
 * @since 0.1.0
 */
export interface Change {
  /** Of what asked for it; of a write in chunks, of the first. */
  readonly position: number
  /** Of the answer, where there is one. */
  readonly answered?: number
  /** Milliseconds since 1970: when it was answered, or asked where it never was. */
  readonly at: number
  readonly correlationId: string
  /** A write in chunks is a FileWrite. */
  readonly kind:
    | "FileWrite"
    | "FileDelete"
    | "FileMakeDirectory"
    | "FileMove"
    | "FileEdit"
    | "FileMakeLink"
    | "FileSetAttributes"
  readonly path: FsPath
  /** Of a move. */
  readonly to?: FsPath
  readonly outcome: "done" | "failed" | "unanswered"
  /** Where it failed. */
  readonly fault?: FaultKind
  readonly message?: string
  /** Bytes written, or moved. */
  readonly bytes?: number
  /** The SHA-256 of the file as it was then, in hex, where the entries tell it. */
  readonly version?: string
}

/**
 * What is at a path. `unknown`: something of which the journal does not know what. `mode`: permission bits, where the journal knows
 * them.
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
 * A path at which the filesystem is not what the journal says.
 *
 * @since 0.1.0
 */
export interface Drift {
  readonly path: FsPath
  readonly expected: State
  readonly actual: State
}

/**
 * An answer that is another than was recorded, each as the fields that are compared.
 *
 * @since 0.1.0
 */
export interface Difference {
  /** Of what was asked. */
  readonly position: number
  readonly correlationId: string
  /** Its tag; a write in chunks is a FileWrite. */
  readonly kind: string
  readonly path: FsPath
  readonly expected: { readonly [field: string]: unknown }
  readonly actual: { readonly [field: string]: unknown }
}
