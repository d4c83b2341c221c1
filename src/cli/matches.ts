/**
 * Formats matches: on a terminal grouped by file with line numbers, in a pipe one per line with path, line and text. Shared
 * context lines are shown once, and gaps are marked.
 */
import type { GrepMatch } from "../model/Entry.ts"
import type { ListFormat } from "./answer.ts"
import type { TextStyle } from "./look.ts"

interface MatchFormat {
  readonly head: (path: string, isFirst: boolean, hasContext: boolean) => string
  readonly line: (path: string, line: number, text: string, isMatch: boolean) => string
  readonly gap: string
}

/**
 * Arranges matches and context. Lines after a match are held back until the next match is known, because it may be among them.
 */
const arrangeMatches = (
  matchFormat: MatchFormat,
  highlight: (match: GrepMatch) => string,
  context: (text: string) => string
): ListFormat<GrepMatch> => {
  let path: string | undefined
  let lastPrintedLine = 0
  let heldContext: ReadonlyArray<string> = []

  const flush = (before: number): string => {
    let out = ""
    for (const text of heldContext) {
      if (lastPrintedLine + 1 >= before) break
      out += matchFormat.line(path!, ++lastPrintedLine, context(text), false)
    }
    heldContext = []
    return out
  }
  const formatMatch = (match: GrepMatch): string => {
    const hasContext = match.before !== undefined || match.after !== undefined
    let out = ""
    if (match.path !== path) {
      out += flush(Number.POSITIVE_INFINITY) + matchFormat.head(match.path, path === undefined, hasContext)
      path = match.path
      lastPrintedLine = 0
    } else out += flush(match.lineNumber)
    const before = match.before ?? []
    const first = match.lineNumber - before.length
    if (hasContext && lastPrintedLine > 0 && first > lastPrintedLine + 1) out += matchFormat.gap
    before.forEach((text, index) => {
      if (first + index > lastPrintedLine) out += matchFormat.line(match.path, first + index, context(text), false)
    })
    out += matchFormat.line(match.path, match.lineNumber, highlight(match), true)
    lastPrintedLine = match.lineNumber
    heldContext = match.after ?? []
    return out
  }
  return {
    lines: (matches) => matches.map(formatMatch).join(""),
    end: () => flush(Number.POSITIVE_INFINITY)
  }
}

export const formatPiped = (look: TextStyle): ListFormat<GrepMatch> =>
  arrangeMatches(
    {
      head: (_, isFirst, hasContext) => (isFirst || !hasContext ? "" : "--\n"),
      line: (path, line, text, isMatch) => {
        const mark = look.dim(isMatch ? ":" : "-")
        return `${look.magenta(path)}${mark}${look.green(`${line}`)}${mark}${text}\n`
      },
      gap: "--\n"
    },
    ({ lineContent, matchEnd, matchStart }) => emphasizeMatch(look, lineContent, matchStart, matchEnd),
    look.text
  )

const emphasizeMatch = (look: TextStyle, text: string, start: number, end: number): string =>
  look.text(text.slice(0, start)) + look.red(look.bold(look.text(text.slice(start, end)))) + look.text(text.slice(end))

/** The longest line to show, in rows of the terminal; a longer one is cut to the part around its match. */
const maxRowsPerLine = 4

const cutAroundMatch = (look: TextStyle, { lineContent, matchEnd, matchStart }: GrepMatch, columns: number): string => {
  const maxCharacters = columns * maxRowsPerLine
  if (lineContent.length <= maxCharacters) return emphasizeMatch(look, lineContent, matchStart, matchEnd)
  const from = Math.max(0, Math.min(matchStart - Math.floor(maxCharacters / 4), lineContent.length - maxCharacters))
  const to = Math.min(lineContent.length, from + maxCharacters)
  const mark = look.dim("…")
  return (
    (from > 0 ? mark : "") +
    emphasizeMatch(look, lineContent.slice(from, to), matchStart - from, Math.min(matchEnd, to) - from) +
    (to < lineContent.length ? mark : "")
  )
}

export const formatGrouped = (look: TextStyle, columns: number): ListFormat<GrepMatch> => {
  const maxCharacters = columns * maxRowsPerLine
  return arrangeMatches(
    {
      head: (path, isFirst) => `${isFirst ? "" : "\n"}${look.magenta(look.name(path))}\n`,
      line: (_, line, text, isMatch) => `${look.green(`${line}`)}${look.dim(isMatch ? ":" : "-")}${text}\n`,
      gap: `${look.dim("--")}\n`
    },
    (match) => cutAroundMatch(look, match, columns),
    (text) => (text.length <= maxCharacters ? look.text(text) : look.text(text.slice(0, maxCharacters)) + look.dim("…"))
  )
}
