/**
 * All that the commands may know of the process: what it prints to, reads from and stands in. Only bin.ts makes a real one, so every
 * command runs in a test as it runs in a terminal.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { IoError } from "../model/FsError.ts"

/** Standard output does not take any more; the code is EPIPE when its reader has gone, as `| head` does. */
export class OutputFailed extends Data.TaggedError("OutputFailed")<{ readonly code: string; readonly detail: string }> {}

export interface ScreenShape {
  /** What was typed to get here, and what a suggested command begins with. */
  readonly program: string
  /** The working directory, absolute: what a relative `--root` starts from. */
  readonly directory: string
  /** Where this user's programs keep things, absolute: left out where nobody knows. */
  readonly stateDirectory?: string | undefined
  /** Standard output is a terminal. */
  readonly isTerminal: boolean
  /** Standard input is a terminal. */
  readonly isInteractive: boolean
  /** Standard error is a terminal that can be drawn on. */
  readonly showsProgress: boolean
  /** Standard output shows colours. */
  readonly colors: boolean
  /** Standard error shows colours. */
  readonly errorColors: boolean
  /** Characters of a line of the terminal. */
  readonly columns: number
  /** To standard output; done when it has been taken. */
  readonly write: (content: string | Uint8Array) => Effect.Effect<void, OutputFailed>
  /** One line, or several, to standard error. */
  readonly warn: (line: string) => Effect.Effect<void>
  /** Bytes to standard error as they are; done when they have been taken, or nobody takes them. */
  readonly writeError: (bytes: Uint8Array) => Effect.Effect<void>
  /** Shows a line that the next output, or the next status, takes the place of; "" takes it away. */
  readonly status: (line: string) => Effect.Effect<void>
  readonly input: Stream.Stream<Uint8Array, IoError>
}

export class Screen extends Context.Service<Screen, ScreenShape>()("fs-algebra/cli/Screen") {}
