/**
 * Commands where the files are: what a container runs sees the tree that the Filesystem beside it shows. How it is kept from the rest
 * of the machine is the backend's matter; this is only the service.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
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
  /** @default empty */
  readonly stdin?: string | Uint8Array | undefined
  /** From 1 to 120 seconds; what lies outside is taken to the nearer end. @default 30 seconds */
  readonly timeout?: Duration.Input | undefined
}

/**
 * What a command has said, and its exit code.
 *
 * @since 0.1.0
 */
export interface ExecResult {
  /** 124 when the time was up. */
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** As they came, up to the cut. */
  readonly stdoutBytes: Uint8Array
  readonly durationMillis: number
  readonly timedOut: boolean
  /** Whether one of the streams was cut. */
  readonly truncated: boolean
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
