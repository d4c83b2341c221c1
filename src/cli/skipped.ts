/** Reports on standard error which files a search skipped, because "nothing found" is credible only with that list. */
import * as Effect from "effect/Effect"
import type { Skipped } from "../model/Entry.ts"
import { remark } from "./answer.ts"
import * as humanise from "./humanise.ts"
import { errorLook } from "./look.ts"
import { Screen } from "./screen.ts"

export interface Collected {
  readonly onSkip: (path: string, why: "ignored" | "binary" | "tooLarge" | "unreadable") => void
  readonly add: (skipped: Skipped) => void
  readonly counts: { ignored: number; binary: number; tooLarge: number; unreadable: number }
  readonly unreadablePaths: Array<string>
}

const maxPaths = 100

export const collect = (): Collected => {
  const counts = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0 }
  const unreadablePaths: Array<string> = []
  return {
    counts,
    unreadablePaths,
    onSkip: (path, why) => {
      counts[why]++
      if (why === "unreadable" && unreadablePaths.length < maxPaths) unreadablePaths.push(path)
    },
    add: (skipped) => {
      for (const why of reasons) counts[why] += skipped[why]
      unreadablePaths.push(...skipped.unreadablePaths.slice(0, maxPaths - unreadablePaths.length))
    }
  }
}

const words = {
  ignored: "ignored (--no-ignore includes them)",
  binary: "binary",
  tooLarge: "too large",
  unreadable: "unreadable"
} as const

const reasons = Object.keys(words) as ReadonlyArray<keyof typeof words>

const shown = 3

export const say = Effect.fnUntraced(function* ({ counts, unreadablePaths }: Collected) {
  const { name, yellow } = errorLook(yield* Screen)
  const parts = reasons.filter((why) => counts[why] > 0).map((why) => `${humanise.whole(counts[why])} ${words[why]}`)
  if (parts.length === 0) return
  const paths = unreadablePaths.slice(0, shown).map(name)
  const rest = counts.unreadable > paths.length ? ", …" : ""
  const list = paths.length === 0 ? "" : ` (${paths.join(", ")}${rest})`
  yield* remark(`${yellow("skipped:")} ${parts.join(", ")}${list}`, { skipped: { ...counts, unreadablePaths } })
})
