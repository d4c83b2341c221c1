/** Shows a context line once, even if it belongs to several matches. */
import type { GrepMatch } from "../../model/Entry.ts"
import { type Excerpt, excerpt, maxLineLength, numberLine } from "./lines.ts"

/** The number of UTF-16 units shown before a match in a cut line. */
const charactersBeforeMatch = 200

export const excerptOf = ({ lineContent, matchStart }: GrepMatch): Excerpt =>
  excerpt(lineContent, maxLineLength, Math.max(0, matchStart - charactersBeforeMatch))

interface Line {
  readonly text: string
  readonly isMatch: boolean
}

/** Collects the lines of one file's matches and their context, by number. A line that is both counts as a match. */
const linesOf = (matches: ReadonlyArray<GrepMatch>): ReadonlyMap<number, Line> => {
  const found = new Map<number, Line>()
  for (const { after = [], before = [], lineNumber } of matches) {
    before.forEach((text, index) => found.set(lineNumber - before.length + index, { text, isMatch: false }))
    after.forEach((text, index) => found.set(lineNumber + 1 + index, { text, isMatch: false }))
  }
  for (const match of matches) found.set(match.lineNumber, { text: excerptOf(match).shown, isMatch: true })
  return new Map([...found].sort(([a], [b]) => a - b))
}

const hasContext = ({ after = [], before = [] }: GrepMatch): boolean => after.length + before.length > 0

const fileLines = (matches: ReadonlyArray<GrepMatch>): ReadonlyArray<string> => {
  const hasGaps = matches.some(hasContext)
  const out: Array<string> = []
  let previous: number | undefined
  for (const [line, { isMatch, text }] of linesOf(matches)) {
    if (hasGaps && previous !== undefined && line > previous + 1) out.push("     ...")
    out.push(isMatch ? numberLine(line, text) : numberLine(line, excerpt(text).shown, "-"))
    previous = line
  }
  return out
}

/** Lists each file's path and then its matches. The matches must be in order of path and line. */
export const matchLines = (matches: ReadonlyArray<GrepMatch>): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let at = 0; at < matches.length;) {
    const { path } = matches[at]!
    let end = at + 1
    while (end < matches.length && matches[end]!.path === path) end++
    out.push(path, ...fileLines(matches.slice(at, end)))
    at = end
  }
  return out
}
