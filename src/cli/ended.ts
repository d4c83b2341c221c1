import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { internalErrorCode, type Quit, systemErrorCode, usageErrorCode } from "./exit.ts"
import { OutputFailed, type ScreenShape } from "./screen.ts"

const outputFailed = (screen: ScreenShape, error: OutputFailed): Effect.Effect<number> =>
  error.code === "EPIPE"
    ? Effect.succeed(0)
    : Effect.as(
        screen.warn(
          `error: the answer could not be written, ${error.detail} (${error.code})\nhint:  Check the file or pipe that the output goes to.`
        ),
        systemErrorCode
      )

/** Finds a failed output among the defects: effect/cli prints help and versions, and its printers cannot fail. */
const findOutputFailure = ({ reasons }: Cause.Cause<unknown>): OutputFailed | undefined =>
  reasons
    .filter(Cause.isDieReason)
    .map(({ defect }) => defect)
    .find((defect): defect is OutputFailed => defect instanceof OutputFailed)

/**
 * Converts the outcome. Any other failure is an error of usage that has been reported. An interruption stays an interruption.
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
