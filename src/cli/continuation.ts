import * as Effect from "effect/Effect"
import { writeRemark } from "./answer.ts"
import { errorStyle } from "./look.ts"
import { Screen } from "./screen.ts"
import { quote } from "./shell.ts"

export const reportContinuation = Effect.fnUntraced(function* (
  result: {
    readonly truncated: boolean
    readonly next?: string | undefined
  },
  max: number
) {
  if (!result.truncated) return
  const { yellow } = errorStyle(yield* Screen)
  // Without a cursor, the same command without --max returns the rest.
  const continueHint = result.next === undefined || max === 0 ? "" : `; continue with --after ${quote(result.next)}`
  yield* writeRemark(`${yellow("more:")} there are more results than --max allows${continueHint}`, {
    truncated: true,
    ...(result.next !== undefined && { next: result.next })
  })
})
