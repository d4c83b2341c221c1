/**
 * Formats matches: on a terminal grouped by file with line numbers, in a pipe one per line with path, line and text. Shared
 * context lines are shown once, and gaps are marked.
 */
import type { GrepMatch } from "../model/Entry.ts"
import type { Lines } from "./answer.ts"
import type { Look } from "./look.ts"

interface Shape {
  readonly head: (path: string, isFirst: boolean, hasContext: boolean) => string
  readonly line: (path: string, line: number, text: string, isMatch: boolean) => string
  readonly gap: string
}

/**
 * Arranges matches and context. Lines after a match are held back until the next match is known, because it may be among them.
 */
const arranged = (
  shape: Shape,
  highlight: (match: GrepMatch) => string,
  context: (text: string) => string
): Lines<GrepMatch> => {
  let path: string | undefined
  let printed = 0
  let held: ReadonlyArray<string> = []

  const flush = (before: number): string => {
    let out = ""
    for (const text of held) {
      if (printed + 1 >= before) break
      out += shape.line(path!, ++printed, context(text), false)
    }
    held = []
    return out
  }
  const one = (match: GrepMatch): string => {
    const hasContext = match.before !== undefined || match.after !== undefined
    let out = ""
    if (match.path !== path) {
      out += flush(Number.POSITIVE_INFINITY) + shape.head(match.path, path === undefined, hasContext)
      path = match.path
      printed = 0
    } else out += flush(match.lineNumber)
    const before = match.before ?? []
    const first = match.lineNumber - before.length
    if (hasContext && printed > 0 && first > printed + 1) out += shape.gap
    before.forEach((text, index) => {
      if (first + index > printed) out += shape.line(match.path, first + index, context(text), false)
    })
    out += shape.line(match.path, match.lineNumber, highlight(match), true)
    printed = match.lineNumber
    held = match.after ?? []
    return out
  }
  return {
    lines: (matches) => matches.map(one).join(""),
    end: () => flush(Number.POSITIVE_INFINITY)
  }
}

export const matched = (look: Look): Lines<GrepMatch> =>
  arranged(
    {
      head: (_, isFirst, hasContext) => (isFirst || !hasContext ? "" : "--\n"),
      line: (path, line, text, isMatch) => {
        const mark = look.dim(isMatch ? ":" : "-")
        return `${look.magenta(path)}${mark}${look.green(`${line}`)}${mark}${text}\n`
      },
      gap: "--\n"
    },
    ({ lineContent, matchEnd, matchStart }) => emphasised(look, lineContent, matchStart, matchEnd),
    look.text
  )

const emphasised = (look: Look, text: string, start: number, end: number): string =>
  look.text(text.slice(0, start)) + look.red(look.bold(look.text(text.slice(start, end)))) + look.text(text.slice(end))

/** The longest line to show, in rows of the terminal; a longer one is cut to the part around its match. */
const longest = 4

const cut = (look: Look, { lineContent, matchEnd, matchStart }: GrepMatch, columns: number): string => {
  const room = columns * longest
  if (lineContent.length <= room) return emphasised(look, lineContent, matchStart, matchEnd)
  const from = Math.max(0, Math.min(matchStart - Math.floor(room / 4), lineContent.length - room))
  const to = Math.min(lineContent.length, from + room)
  const mark = look.dim("…")
  return (
    (from > 0 ? mark : "") +
    emphasised(look, lineContent.slice(from, to), matchStart - from, Math.min(matchEnd, to) - from) +
    (to < lineContent.length ? mark : "")
  )
}

export const grouped = (look: Look, columns: number): Lines<GrepMatch> => {
  const room = columns * longest
  return arranged(
    {
      head: (path, isFirst) => `${isFirst ? "" : "\n"}${look.magenta(look.name(path))}\n`,
      line: (_, line, text, isMatch) => `${look.green(`${line}`)}${look.dim(isMatch ? ":" : "-")}${text}\n`,
      gap: `${look.dim("--")}\n`
    },
    (match) => cut(look, match, columns),
    (text) => (text.length <= room ? look.text(text) : look.text(text.slice(0, room)) + look.dim("…"))
  )
}
