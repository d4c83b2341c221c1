/** Reports on standard error which files a search skipped, because "nothing found" is credible only with that list. */
import * as Effect from "effect/Effect"
import type { Skipped } from "../model/Entry.ts"
import { writeRemark } from "./answer.ts"
import * as humanise from "./humanise.ts"
import { errorStyle } from "./look.ts"
import { Screen } from "./screen.ts"

export interface SkippedFiles {
  readonly onSkip: (path: string, why: "ignored" | "binary" | "tooLarge" | "unreadable") => void
  readonly add: (skipped: Skipped) => void
  readonly counts: { ignored: number; binary: number; tooLarge: number; unreadable: number }
  readonly unreadablePaths: Array<string>
}

const maxKeptPaths = 100

export const makeCollector = (): SkippedFiles => {
  const counts = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0 }
  const unreadablePaths: Array<string> = []
  return {
    counts,
    unreadablePaths,
    onSkip: (path, why) => {
      counts[why]++
      if (why === "unreadable" && unreadablePaths.length < maxKeptPaths) unreadablePaths.push(path)
    },
    add: (skipped) => {
      for (const why of reasons) counts[why] += skipped[why]
      unreadablePaths.push(...skipped.unreadablePaths.slice(0, maxKeptPaths - unreadablePaths.length))
    }
  }
}

const reasonLabels = {
  ignored: "ignored (--no-ignore includes them)",
  binary: "binary",
  tooLarge: "too large",
  unreadable: "unreadable"
} as const

const reasons = Object.keys(reasonLabels) as ReadonlyArray<keyof typeof reasonLabels>

const maxShownPaths = 3

export const report = Effect.fnUntraced(function* ({ counts, unreadablePaths }: SkippedFiles) {
  const { name, yellow } = errorStyle(yield* Screen)
  const parts = reasons.filter((why) => counts[why] > 0).map((why) => `${humanise.whole(counts[why])} ${reasonLabels[why]}`)
  if (parts.length === 0) return
  const paths = unreadablePaths.slice(0, maxShownPaths).map(name)
  const rest = counts.unreadable > paths.length ? ", …" : ""
  const list = paths.length === 0 ? "" : ` (${paths.join(", ")}${rest})`
  yield* writeRemark(`${yellow("skipped:")} ${parts.join(", ")}${list}`, { skipped: { ...counts, unreadablePaths } })
})
