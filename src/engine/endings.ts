/**
 * Line endings are the file's. An edit text without a CR matches with each of its LFs an LF or a CRLF, whole, and what takes its place
 * is written with the endings of the lines that it replaces: where those differ, lines that stay keep theirs and a new one ends as the
 * line before it. A text that had no LF is replaced with the ending of the line in which it stood, the last line's being that of the
 * line before. A text with a CR speaks for itself: it is matched literally, and so is written what replaces it.
 */

/** UTF-16 indices; `end` is exclusive. */
export interface Match {
  readonly start: number
  readonly end: number
}

const speaks = (oldText: string): boolean => oldText.includes("\r")

/** Answers the matches in order, without overlap, from the left; no more than `limit`. Those that are no longer than the text sought are exact. */
export type Find = (oldText: string, limit: number) => ReadonlyArray<Match>

export const finder = (text: string): Find => {
  const crlf = text.includes("\r\n")
  let unix: string | undefined
  return (oldText, limit) => {
    if (!crlf || speaks(oldText) || !oldText.includes("\n")) return search(text, oldText, limit, (index) => index)
    unix ??= text.replaceAll("\r\n", "\n")
    return search(unix, oldText, limit, original(text))
  }
}

const search = (text: string, oldText: string, limit: number, back: (index: number) => number): ReadonlyArray<Match> => {
  const found: Array<Match> = []
  for (let at = indexOf(text, oldText); at !== -1 && found.length < limit;) {
    const next = at + oldText.length
    found.push({ start: back(at), end: back(next) })
    at = indexOf(text, oldText, next)
  }
  return found
}

/** V8 prepares for no more of what it seeks; for a longer text the time that it takes is the product of both lengths. */
const maxHead = 250

/** As the method of strings, but in linear time: of a long text its beginning is sought so, and the rest as Knuth, Morris and Pratt do. */
export const indexOf = (text: string, sought: string, from = 0): number => {
  if (sought.length <= maxHead) return text.indexOf(sought, from)
  const head = sought.slice(0, maxHead)
  let borders: Int32Array | undefined
  let at = from
  /** So much of what is sought stands before `at`; no place before that is left. */
  let matched = 0
  while (at - matched + sought.length <= text.length) {
    if (matched === sought.length) return at - matched
    if (matched === 0) {
      const begin = text.indexOf(head, at)
      if (begin === -1) return -1
      matched = head.length
      at = begin + matched
    } else if (text.charCodeAt(at) === sought.charCodeAt(matched)) {
      at++
      matched++
    } else {
      borders ??= bordersOf(sought)
      matched = borders[matched]!
    }
  }
  return -1
}

/** For each length of a beginning of the text the longest shorter one that it ends with. */
const bordersOf = (text: string): Int32Array => {
  const borders = new Int32Array(text.length + 1)
  let border = 0
  for (let i = 1; i < text.length; i++) {
    while (border > 0 && text.charCodeAt(i) !== text.charCodeAt(border)) border = borders[border]!
    if (text.charCodeAt(i) === text.charCodeAt(border)) border++
    borders[i + 1] = border
  }
  return borders
}

/** From indices into the text with its CRLFs made LFs to those in the text itself, which must be asked in ascending order. */
const original = (text: string): ((index: number) => number) => {
  let crlf = text.indexOf("\r\n")
  let dropped = 0
  return (index) => {
    while (crlf !== -1 && crlf - dropped < index) {
      dropped++
      crlf = text.indexOf("\r\n", crlf + 2)
    }
    return index + dropped
  }
}

const bareNewline = /(?<!\r)\n/g

/** What is put in for the matches of one edit, which must be asked in order. */
export const writer = (text: string, oldText: string, newText: string): ((match: Match) => string) => {
  const literal = () => newText
  if (speaks(oldText) || newText.search(bareNewline) === -1 || !text.includes("\r\n")) return literal
  const crlf = newText.replaceAll(bareNewline, "\r\n")
  const newlines = oldText.split("\n").length - 1
  if (newlines === 0) {
    const isCrlf = endsWithCrlf(text)
    return ({ end }) => (isCrlf(end) ? crlf : newText)
  }
  return ({ end, start }) => {
    const carriageReturns = end - start - oldText.length
    if (carriageReturns === 0) return newText
    return carriageReturns === newlines ? crlf : aligned(text.slice(start, end), oldText, newText)
  }
}

/** Whether the line at an index ends in CRLF; ascending, so that a long line is looked through once. */
const endsWithCrlf = (text: string): ((index: number) => boolean) => {
  const last = text.lastIndexOf("\n")
  let newline = 0
  return (index) => {
    if (newline < index || newline === 0) newline = index > last ? last : text.indexOf("\n", index)
    return text.charCodeAt(newline - 1) === 13
  }
}

/** `newText` where the lines that `oldText` matched end differently. */
const aligned = (matched: string, oldText: string, newText: string): string => {
  const endings = matched.match(/\r?\n/g)!
  const before = oldText.split("\n")
  const after = newText.split(bareNewline)
  const most = Math.min(before.length, after.length)
  let head = 0
  while (head < most && before[head] === after[head]) head++
  let tail = 0
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  let out = after[0]!
  let ending = endings[0]!
  for (let i = 1; i < after.length; i++) {
    const kept = i <= head ? i - 1 : i >= after.length - tail ? i - 1 - after.length + before.length : -1
    ending = endings[kept] ?? ending
    out += ending + after[i]!
  }
  return out
}
