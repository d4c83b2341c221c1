/**
 * A page of a text. Its message and its value hold the same lines. A page over the budget ends earlier, and all its fields give
 * that end.
 */
import * as Text from "../../engine/text.ts"
import { countFitting, joinLines, type PageBudget } from "./fit.ts"
import { type Excerpt, excerpt, maxLineLength, numberLine } from "./lines.ts"
import { plural } from "./words.ts"

export type Encoding = "utf-8" | "utf-16le" | "utf-16be"

export interface Window {
  readonly path: string
  /** The lines as in the file, without the last one's terminator. */
  readonly content: string
  /** The 0-based number of the first line. */
  readonly offset: number
  readonly limit: number
  readonly totalLines: number
  readonly endsWithNewline: boolean
  /** Returns the range of bytes from a column to the end of a line's text; `line` counts from 0 in the file. */
  readonly bytesOf?: ((line: number, column: number) => { readonly offset: number; readonly length: number }) | undefined
}

export interface Page {
  readonly message: string
  readonly value: {
    readonly content: string
    readonly offset: number
    readonly limit: number
    readonly total_lines: number
    readonly truncated: boolean
    readonly ends_with_newline: boolean
    readonly next?: number
    readonly cut_lines?: ReadonlyArray<number>
  }
}

const lineStart = (text: string, line: number): number => {
  let at = 0
  for (let linesLeft = line; linesLeft > 0; linesLeft--) at = text.indexOf("\n", at) + 1
  return at
}

const encoder = new TextEncoder()

export const windowOf = (path: string, text: string, encoding: Encoding, offset: number, limit: number): Window => {
  const sizeOf = (part: string): number => (encoding === "utf-8" ? encoder.encode(part).length : 2 * part.length)
  return {
    path,
    ...Text.page(text, offset, limit),
    bytesOf: (line, column) => {
      const from = lineStart(text, line) + column
      const newline = text.indexOf("\n", from)
      const end = newline === -1 ? text.length : newline
      const isCrlf = newline > from && text.charCodeAt(newline - 1) === 13
      return { offset: sizeOf(text.slice(0, from)), length: sizeOf(text.slice(from, isCrlf ? end - 1 : end)) }
    }
  }
}

interface Line {
  readonly excerpt: Excerpt
  readonly terminator: string
}

/** Returns the lines of a window, each cut to `width`. The window's last line has no terminator, so a CR at its end is text. */
const linesOf = ({ content, limit }: Window, width: number): ReadonlyArray<Line> => {
  if (limit === 0) return []
  const pieces = content.split("\n")
  return pieces.map((piece, index) => {
    const isCrlf = index < pieces.length - 1 && piece.endsWith("\r")
    return { excerpt: excerpt(isCrlf ? piece.slice(0, -1) : piece, width), terminator: isCrlf ? "\r\n" : "\n" }
  })
}

const contentOf = (lines: ReadonlyArray<Line>): string =>
  lines
    .map(({ excerpt, terminator }, index) => (index < lines.length - 1 ? excerpt.shown + terminator : excerpt.shown))
    .join("")

const cutLines = ({ offset }: Window, lines: ReadonlyArray<Line>): ReadonlyArray<number> =>
  lines.flatMap(({ excerpt }, index) => (excerpt.isCut ? [offset + index + 1] : []))

/** Says how to read the rest of the first cut line; no page of lines can hold it. */
const restOfLine = (window: Window, lines: ReadonlyArray<Line>): string => {
  const cut = cutLines(window, lines)
  const first = cut[0]
  if (first === undefined) return ""
  const { end } = lines[first - 1 - window.offset]!.excerpt
  const bytes = window.bytesOf?.(first - 1, end)
  const cutDescription =
    cut.length === 1 ? `line ${first} is cut` : `${plural(cut.length, "line")} are cut, the first is line ${first}`
  return bytes === undefined
    ? cutDescription
    : `${cutDescription}; its rest: encoding="base64", offset=${bytes.offset}, limit=${bytes.length} (bytes)`
}

const footer = (window: Window, lines: ReadonlyArray<Line>): string => {
  const { offset, totalLines } = window
  const next = offset + lines.length
  const range = `lines ${offset + 1}-${next} of ${totalLines}`
  const rest = restOfLine(window, lines)
  return joinLines([next < totalLines ? `${range}; continue with offset=${next}` : range], rest)
}

const render = (window: Window, lines: ReadonlyArray<Line>): string =>
  joinLines(
    lines.map(({ excerpt }, index) => numberLine(window.offset + index + 1, excerpt.shown)),
    footer(window, lines)
  )

const emptyMessage = ({ path, totalLines }: Window, requestedOffset: number): string =>
  totalLines === 0
    ? `${path} is empty`
    : `no lines from offset ${requestedOffset} on: ${path} has ${plural(totalLines, "line")}`

const valueOf = (window: Window, lines: ReadonlyArray<Line>): Page["value"] => {
  const { endsWithNewline, offset, totalLines } = window
  const next = offset + lines.length
  const truncated = next < totalLines
  const cut = cutLines(window, lines)
  return {
    content: contentOf(lines),
    offset,
    limit: lines.length,
    total_lines: totalLines,
    truncated,
    ends_with_newline: lines.length > 0 && (truncated || endsWithNewline),
    ...(truncated ? { next } : {}),
    ...(cut.length > 0 ? { cut_lines: cut } : {})
  }
}

/** Returns the lines that fit. If not even the first line fits, returns as much of it as fits. */
const fittingLines = (window: Window, settings: PageBudget): ReadonlyArray<Line> => {
  const all = linesOf(window, maxLineLength)
  const sent = (lines: ReadonlyArray<Line>): string => settings.sent(render(window, lines), () => valueOf(window, lines))
  const shown = all.slice(
    0,
    countFitting(all.length, (count) => sent(all.slice(0, count)), settings)
  )
  if (shown.length !== 1 || settings.measure(sent(shown)) <= settings.budget) return shown
  const { content } = window
  const newline = content.indexOf("\n")
  const first = { ...window, content: newline === -1 ? content : content.slice(0, newline + 1) }
  const cutFirstLine = (width: number): ReadonlyArray<Line> => linesOf(first, width).slice(0, 1)
  const maxWidth = Math.min(maxLineLength, first.content.length)
  return cutFirstLine(countFitting(maxWidth, (width) => sent(cutFirstLine(width)), settings))
}

/** Makes the page. The requested offset may be past the end. */
export const page = (window: Window, requestedOffset: number, settings: PageBudget): Page => {
  const lines = fittingLines(window, settings)
  return {
    message: lines.length === 0 ? emptyMessage(window, requestedOffset) : render(window, lines),
    value: valueOf(window, lines)
  }
}
