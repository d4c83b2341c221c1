/**
 * "Nothing found" can be believed only when it is said what was not looked at. Searches end with this, on standard error.
 */
import * as Effect from "effect/Effect"
import type { Skipped } from "../model/Entry.ts"
import { remark } from "./answer.ts"
import * as humanise from "./humanise.ts"
import { errorLook } from "./look.ts"
import { Screen } from "./screen.ts"

export interface Collected {
  readonly onSkip: (path: string, why: "ignored" | "binary" | "tooLarge" | "unreadable") => void
  readonly counts: { ignored: number; binary: number; tooLarge: number; unreadable: number }
  /** At most the first hundred. */
  readonly unreadablePaths: Array<string>
}

export const collect = (): Collected => {
  const counts = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0 }
  const unreadablePaths: Array<string> = []
  return {
    counts,
    unreadablePaths,
    onSkip: (path, why) => {
      counts[why]++
      if (why === "unreadable" && unreadablePaths.length < 100) unreadablePaths.push(path)
    }
  }
}

const words = { ignored: "ignored", binary: "binary", tooLarge: "too large", unreadable: "unreadable" } as const

type Counted = Omit<Skipped, "unreadablePaths"> & { readonly unreadablePaths: ReadonlyArray<string> }

const shown = 3

const sayCounts = Effect.fnUntraced(function* (skipped: Counted) {
  const { name, yellow } = errorLook(yield* Screen)
  const parts = (Object.keys(words) as Array<keyof typeof words>)
    .filter((why) => skipped[why] > 0)
    .map((why) => `${humanise.whole(skipped[why])} ${words[why]}`)
  if (parts.length === 0) return
  const paths = skipped.unreadablePaths.slice(0, shown).map(name)
  const rest = skipped.unreadable > paths.length ? ", …" : ""
  const list = paths.length === 0 ? "" : ` (${paths.join(", ")}${rest})`
  yield* remark(`${yellow("skipped:")} ${parts.join(", ")}${list}`, { skipped })
})

export const say = (skipped: Collected): ReturnType<typeof sayCounts> =>
  Effect.suspend(() => sayCounts({ ...skipped.counts, unreadablePaths: skipped.unreadablePaths }))

/** Of a result that has counted for itself. */
export const sayResult = (skipped: Skipped): ReturnType<typeof sayCounts> => sayCounts(skipped)

/** Where leaving out was asked for, only what could not be read is news. */
export const sayUnreadable = (skipped: Collected): ReturnType<typeof sayCounts> =>
  Effect.suspend(() =>
    sayCounts({
      ignored: 0,
      binary: 0,
      tooLarge: 0,
      unreadable: skipped.counts.unreadable,
      unreadablePaths: skipped.unreadablePaths
    })
  )
