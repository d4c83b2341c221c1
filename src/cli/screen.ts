/**
 * The interface between commands and the process: streams, terminal and directories. start.ts implements the interface for the
 * process; tests implement it in memory.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { IoError } from "../model/FsError.ts"

/** A failed write to standard output. The code is EPIPE if the reader has gone, as with `| head`. */
export class OutputFailed extends Data.TaggedError("OutputFailed")<{ readonly code: string; readonly detail: string }> {}

export interface ScreenShape {
  /** The command that starts this program, for suggested command lines. */
  readonly program: string
  readonly directory: string
  /** The absolute directory for the state of this user's programs; absent if unknown. */
  readonly stateDirectory?: string | undefined
  readonly isTerminal: boolean
  readonly isInteractive: boolean
  /** True if standard error is a terminal that can show a status line. */
  readonly showsProgress: boolean
  readonly colors: boolean
  readonly errorColors: boolean
  readonly columns: number
  /** Writes to standard output. Completes when the stream has accepted the content. */
  readonly write: (content: string | Uint8Array) => Effect.Effect<void, OutputFailed>
  readonly warn: (line: string) => Effect.Effect<void>
  /**
   * Writes bytes unchanged to standard error. Completes when the stream has accepted the bytes, or when its reader has gone.
   */
  readonly writeError: (bytes: Uint8Array) => Effect.Effect<void>
  /** Shows a status line, which the next output or status replaces. "" removes the line. */
  readonly status: (line: string) => Effect.Effect<void>
  readonly input: Stream.Stream<Uint8Array, IoError>
}

export class Screen extends Context.Service<Screen, ScreenShape>()("fs-algebra/cli/Screen") {}
