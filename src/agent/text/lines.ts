/** Lines as every tool shows them: with their numbers, and cut where one is very long. */

/** UTF-16 units of a line that are shown. */
export const maxLine = 2000

/** What is shown of a line. */
export interface Excerpt {
  /** With the mark where it is cut. */
  readonly shown: string
  /** The UTF-16 columns of what is shown. */
  readonly start: number
  readonly end: number
  readonly isCut: boolean
}

const isHigh = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800
const isLow = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00
const splitsPair = (text: string, at: number): boolean => at > 0 && at < text.length && isLow(text, at) && isHigh(text, at - 1)

/** At most `width` units of the line, from column `from` on, and a mark that says which. */
export const excerpt = (text: string, width: number = maxLine, from = 0): Excerpt => {
  if (text.length <= width) return { shown: text, start: 0, end: text.length, isCut: false }
  const first = Math.max(0, Math.min(from, text.length - width))
  const start = splitsPair(text, first) ? first - 1 : first
  // A pair is never split, also where only one half of the first one would fit.
  const last = Math.min(text.length, Math.max(start + width, start + 1))
  const end = splitsPair(text, last) ? (last - 1 > start ? last - 1 : last + 1) : last
  const shown = `${text.slice(start, end)} [cut: characters ${start + 1}-${end} of ${text.length}]`
  return { shown, start, end, isCut: true }
}

/** `   7 | text`: the number is 1-based. Another mark tells lines around a match from the match. */
export const numbered = (line: number, text: string, mark: "|" | "-" = "|"): string =>
  `${String(line).padStart(4)} ${mark} ${text}`

/** Lines with their numbers; `offset` is the 0-based number of the first. */
export const lines = (texts: ReadonlyArray<string>, offset = 0): ReadonlyArray<string> =>
  texts.map((text, index) => numbered(offset + index + 1, excerpt(text).shown))
