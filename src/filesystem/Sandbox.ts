/**
 * Commands where the files are: what a container runs sees the tree that the Filesystem beside it shows. How it is kept from the rest
 * of the machine is the backend's matter; this is only the service.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { BackendError, InvalidArgument, NotADirectory, NotFound, PathError } from "../model/FsError.ts"

/**
 * Where and how a command runs.
 *
 * @since 0.1.0
 */
export interface ExecOptions {
  /** Relative to the root. @default the root */
  readonly cwd?: string | undefined
  /** Beside what the sandbox itself sets. @default none */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** A stream is read as the command reads it, and no further once the command has ended. @default empty */
  readonly stdin?: string | Uint8Array | Stream.Stream<Uint8Array> | undefined
  /** At least 1 second. For `exec` `Infinity` is no limit; `eval` has at most 120 seconds. @default 30 seconds */
  readonly timeout?: Duration.Input | undefined
  /** Receives all that the command writes, as it comes. The command waits while the effect runs. @default nothing */
  readonly onOutput?: ((bytes: Uint8Array, stream: "stdout" | "stderr") => Effect.Effect<void>) | undefined
  /**
   * Leaves processes running that the command has started and left behind; they end with the container. Without it they end with the
   * command.
   * @default false
   */
  readonly detach?: boolean | undefined
}

/**
 * What a command has written, and its exit code.
 *
 * @since 0.1.0
 */
export interface ExecResult {
  /** 124 when the time was up, 128 and the number of the signal where a signal has ended the command. */
  readonly exitCode: number
  /** Of long output the beginning and the end, with a mark between them. */
  readonly stdout: string
  readonly stderr: string
  /** As they came: all of them, or the first where `stdout` is cut for its length. */
  readonly stdoutBytes: Uint8Array
  readonly durationMillis: number
  readonly timedOut: boolean
  /** Whether one of the streams was cut. */
  readonly truncated: boolean
  /** The number of processes that the container may have; left out unless the command was refused another. */
  readonly processLimit?: number | undefined
}

/**
 * What `exec` can fail with; a command that ends with another code than 0 has not failed.
 *
 * @since 0.1.0
 */
export type ExecError = PathError | BackendError | NotFound | NotADirectory | InvalidArgument

/**
 * Runs commands where the container's files are.
 *
 * @since 0.1.0
 */
export class Sandbox extends Context.Service<
  Sandbox,
  {
    /** A command that fails is a result too; what fails here could not be run. */
    readonly exec: (command: ReadonlyArray<string>, options?: ExecOptions) => Effect.Effect<ExecResult, ExecError>
    readonly eval: (
      code: string,
      options?: ExecOptions & { readonly language?: "javascript" | "python" | "sh" | undefined }
    ) => Effect.Effect<ExecResult, ExecError>
  }
>()("fs-algebra/Sandbox") {}
