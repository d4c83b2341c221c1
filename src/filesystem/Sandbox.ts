/**
 * The service that runs commands in a container, on the files of a Filesystem. The backend provides the isolation.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { BackendError, InvalidArgument, NotADirectory, NotFound, PathError } from "../model/FsError.ts"

/**
 * The options of a command.
 *
 * @since 0.1.0
 */
export interface ExecOptions {
  /** The working directory, relative to the root. @default the root */
  readonly cwd?: string | undefined
  /** Environment variables in addition to those of the sandbox. @default none */
  readonly env?: Readonly<Record<string, string>> | undefined
  /**
   * The standard input. A stream is read as fast as the command reads its input, until the command ends.
   *
   * @default empty
   */
  readonly stdin?: string | Uint8Array | Stream.Stream<Uint8Array> | undefined
  /**
   * The time limit, at least 1 second. For `exec`, `Infinity` means no limit. For `eval`, the limit is at most 120 seconds, and 5
   * seconds by default.
   *
   * @default 30 seconds
   */
  readonly timeout?: Duration.Input | undefined
  /** Receives all output as it arrives. The command waits while the effect runs. @default nothing */
  readonly onOutput?: ((bytes: Uint8Array, stream: "stdout" | "stderr") => Effect.Effect<void>) | undefined
  /**
   * True if processes that the command leaves behind run until the container ends. Otherwise these processes end with the
   * command.
   *
   * @default false
   */
  readonly detach?: boolean | undefined
}

/**
 * The output and the exit code of a command.
 *
 * @since 0.1.0
 */
export interface ExecResult {
  /** The exit code: 124 after a timeout, 128 plus the signal number after a signal. */
  readonly exitCode: number
  /** The standard output as text. A long output is reduced to its beginning and end, with a mark between them. */
  readonly stdout: string
  readonly stderr: string
  /** The raw bytes of the standard output. If `stdout` is cut, these are only the first bytes. */
  readonly stdoutBytes: Uint8Array
  readonly durationMillis: number
  readonly timedOut: boolean
  /** True if `stdout` or `stderr` was cut. */
  readonly truncated: boolean
  /** The limit on the number of processes; present only if the command reached it. */
  readonly processLimit?: number | undefined
}

/**
 * The errors of `exec`. An exit code other than 0 is not an error.
 *
 * @since 0.1.0
 */
export type ExecError = PathError | BackendError | NotFound | NotADirectory | InvalidArgument

/**
 * The service that runs commands in the container.
 *
 * @example
 * ```ts
 * const sandbox = yield* Sandbox.Sandbox
 * const { exitCode, stdout } = yield* sandbox.exec(["wc", "-l", "todo.md"], { cwd: "notes" })
 * yield* Effect.log(exitCode === 0 ? stdout : "wc failed")
 * ```
 * @category services
 * @since 0.1.0
 */
export class Sandbox extends Context.Service<
  Sandbox,
  {
    /** Runs a command. Returns a result for every exit code. Fails only if the command could not run. */
    readonly exec: (command: ReadonlyArray<string>, options?: ExecOptions) => Effect.Effect<ExecResult, ExecError>
    readonly eval: (
      code: string,
      options?: ExecOptions & { readonly language?: "javascript" | "python" | "sh" | undefined }
    ) => Effect.Effect<ExecResult, ExecError>
  }
>()("fs-algebra/Sandbox") {}
