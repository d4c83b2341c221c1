/** The exit codes, their meanings and their errors. The help, the error reports and the tests use this table. */
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { FsError } from "../model/FsError.ts"
import { OutputFailed, type ScreenShape } from "./screen.ts"

interface ExitCode {
  readonly code: number
  readonly meaning: string
  readonly tags: ReadonlyArray<FsError["_tag"]>
}

export const exitCodes: ReadonlyArray<ExitCode> = [
  { code: 0, meaning: "done", tags: [] },
  { code: 1, meaning: "nothing was found (glob, grep), or the journal or a workspace is damaged (verify)", tags: [] },
  { code: 2, meaning: "wrong usage, or an invalid argument or path", tags: ["InvalidArgument", "InvalidPath"] },
  { code: 3, meaning: "there is no such file, directory, snapshot, record, workspace or store", tags: ["NotFound"] },
  { code: 4, meaning: "the file, directory or workspace exists already", tags: ["AlreadyExists"] },
  { code: 5, meaning: "access denied", tags: ["AccessDenied"] },
  { code: 6, meaning: "the file or workspace does not have the expected version", tags: ["Conflict"] },
  {
    code: 7,
    meaning: "not a file, not a directory, not text, not a sound archive, journal or store, or a directory that is not empty",
    tags: ["NotAFile", "NotADirectory", "NotText", "DirectoryNotEmpty"]
  },
  { code: 8, meaning: "too large, too long, or no space left", tags: ["LimitExceeded", "PathTooLong", "DiskFull"] },
  { code: 9, meaning: "the system failed, took too long or is not available", tags: ["IoError", "Timeout", "Unavailable"] },
  { code: 10, meaning: "the backend does not support the operation", tags: ["Unsupported"] },
  { code: 70, meaning: "a bug in fs-algebra", tags: [] },
  { code: 130, meaning: "interrupted; a change that had begun was completed or undone", tags: [] }
]

export const nothingFoundCode = 1
export const damagedCode = 1
export const usageErrorCode = 2
export const systemErrorCode = 9
const internalErrorCode = 70

export const exitCodeOf = (tag: FsError["_tag"]): number => exitCodes.find((row) => row.tags.includes(tag))!.code

export class Quit extends Data.TaggedError("Quit")<{ readonly code: number }> {}

export class Complaint extends Data.TaggedError("Complaint")<{
  readonly error: { readonly _tag: string; readonly [field: string]: unknown }
  readonly message: string
  readonly hint: string
  readonly code: number
}> {}

export const usage = (message: string, hint: string): Complaint =>
  new Complaint({ error: { _tag: "UsageError" }, message, hint, code: usageErrorCode })

/**
 * Makes an error about a host path. The caller gives the hint, because the default hints suggest paths below the root.
 */
export const hostPathError = (tag: FsError["_tag"], operation: string, path: string, what: string, hint: string): Complaint =>
  new Complaint({ error: { _tag: tag, operation, path }, message: `"${path}" ${what}`, hint, code: exitCodeOf(tag) })

const outputFailed = (screen: ScreenShape, error: OutputFailed): Effect.Effect<number> =>
  error.code === "EPIPE"
    ? Effect.succeed(0)
    : Effect.as(
        screen.warn(
          `error: the output could not be written, ${error.detail} (${error.code})\nhint:  Check the file or pipe that the output goes to.`
        ),
        systemErrorCode
      )

/**
 * Finds a failed write to the output among the defects. The printers of effect/cli cannot fail, so a failed write of the help
 * or the version is a defect.
 */
const findOutputFailure = ({ reasons }: Cause.Cause<unknown>): OutputFailed | undefined =>
  reasons
    .filter(Cause.isDieReason)
    .map(({ defect }) => defect)
    .find((defect): defect is OutputFailed => defect instanceof OutputFailed)

/**
 * Converts the outcome of a command to its exit code. A typed failure other than `Quit` and `OutputFailed` is a usage error,
 * which effect/cli has reported. An interruption is not converted.
 */
export const ended =
  (screen: ScreenShape) =>
  <R>(self: Effect.Effect<unknown, OutputFailed | Quit | { readonly _tag: string }, R>): Effect.Effect<number, never, R> =>
    self.pipe(
      Effect.as(0),
      Effect.catch((error) => {
        if (error._tag === "Quit") return Effect.succeed((error as Quit).code)
        if (error._tag === "OutputFailed") return outputFailed(screen, error as OutputFailed)
        return Effect.succeed(usageErrorCode)
      }),
      Effect.catchCause((cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
        const failed = findOutputFailure(cause)
        return failed === undefined
          ? Effect.as(screen.warn(`error: this is a bug in fs-algebra\n${Cause.pretty(cause)}`), internalErrorCode)
          : outputFailed(screen, failed)
      })
    )
