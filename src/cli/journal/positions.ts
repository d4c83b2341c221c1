import * as Effect from "effect/Effect"
import type { Entry, Scrivener } from "../../journal/Journal.ts"
import { usage } from "../exit.ts"
import * as humanise from "../humanise.ts"

/** Refuses a position beyond the end, because it is probably mistyped. */
export const checkPosition = Effect.fnUntraced(function* (journal: Scrivener<Entry>, position: number) {
  const last = yield* journal.last
  if (position <= last) return last
  return yield* usage(
    `there is no position ${position}: the journal has ${humanise.count(last, "entry")}`,
    "List them with journal show; 0 is before the first."
  )
})
