/** The largest part of a line that is shown, in UTF-16 units. */
export const maxLineLength = 2000

export interface Excerpt {
  readonly shown: string
  /** The UTF-16 columns of the shown part. */
  readonly start: number
  readonly end: number
  readonly isCut: boolean
}

const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800
const isLowSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00
/** Tests whether a cut at this position divides a surrogate pair. */
export const splitsPair = (text: string, at: number): boolean =>
  at > 0 && at < text.length && isLowSurrogate(text, at) && isHighSurrogate(text, at - 1)

/** Returns at most `width` units of the line, from column `from` on, and a mark that names the range. */
export const excerpt = (text: string, width: number = maxLineLength, from = 0): Excerpt => {
  if (text.length <= width) return { shown: text, start: 0, end: text.length, isCut: false }
  const first = Math.max(0, Math.min(from, text.length - width))
  const start = splitsPair(text, first) ? first - 1 : first
  // Never split a surrogate pair, even if only half of the first one fits.
  const last = Math.min(text.length, Math.max(start + width, start + 1))
  const end = splitsPair(text, last) ? (last - 1 > start ? last - 1 : last + 1) : last
  const shown = `${text.slice(start, end)} [cut: characters ${start + 1}-${end} of ${text.length}]`
  return { shown, start, end, isCut: true }
}

/** Formats a line as `   7 | text`, with a 1-based number. Lines around a match have another mark than the match. */
export const numberLine = (line: number, text: string, mark: "|" | "-" = "|"): string =>
  `${String(line).padStart(4)} ${mark} ${text}`

/** Numbers the lines; `offset` is the 0-based number of the first. */
export const numberLines = (texts: ReadonlyArray<string>, offset = 0): ReadonlyArray<string> =>
  texts.map((text, index) => numberLine(offset + index + 1, excerpt(text).shown))
