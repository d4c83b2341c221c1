import * as Effect from "effect/Effect"
import { remark } from "./answer.ts"
import { errorLook } from "./look.ts"
import { Screen } from "./screen.ts"
import { quote } from "./shell.ts"

export const sayContinuation = Effect.fnUntraced(function* (
  result: {
    readonly truncated: boolean
    readonly next?: string | undefined
  },
  max: number
) {
  if (!result.truncated) return
  const { yellow } = errorLook(yield* Screen)
  // Without a cursor, the same command without --max returns the rest.
  const how = result.next === undefined || max === 0 ? "" : `; continue with --after ${quote(result.next)}`
  yield* remark(`${yellow("more:")} there are more results than --max allows${how}`, {
    truncated: true,
    ...(result.next !== undefined && { next: result.next })
  })
})
