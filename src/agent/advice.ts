/** A failure as a model reads it: what happened, and what to do next. */
import * as Effect from "effect/Effect"
import type { Call, ToolFailure } from "./definition.ts"

export const describe = (failure: ToolFailure, _call: Call): Effect.Effect<string> =>
  Effect.succeed(failure._tag === "Refused" ? `${failure.happened} ${failure.advice}` : failure.message)
