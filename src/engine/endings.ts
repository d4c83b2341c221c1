/**
 * Keeps the line endings of a file when an edit replaces text.
 *
 * In an edit text without a CR, each LF matches an LF or a whole CRLF. The replacement takes the endings of the lines
 * that it replaces. If these endings differ, unchanged lines keep their endings, and a new line takes the ending of the
 * line before it.
 *
 * If the replaced text contains no LF, the replacement takes the ending of its line. The last line takes the ending of
 * the line before it.
 *
 * An edit text with a CR is matched literally, and its replacement is written literally.
 */

import { unitsPerItem, type Steps, maxUnitsPerStep, TextBuilder } from "../runtime/steps.ts"

export interface Match {
  readonly start: number
  readonly end: number
}

const hasCarriageReturn = (oldText: string): boolean => oldText.includes("\r")

/**
 * Finds the non-overlapping matches from left to right. Stops after `limit` matches, or after the first match that
 * `isEnough` accepts. A match that is as long as `oldText` is exact.
 */
export type FindMatches = (oldText: string, limit: number, isEnough?: (match: Match) => boolean) => Steps<ReadonlyArray<Match>>

export const makeFinder = (text: string): FindMatches => {
  const crlf = text.includes("\r\n")
  let lfText: string | undefined
  return function* (oldText, limit, isEnough = () => false) {
    const isPlain = !crlf || hasCarriageReturn(oldText) || !oldText.includes("\n")
    const searched = isPlain ? text : (lfText ??= yield* mapPieces(text, (piece) => piece.replaceAll("\r\n", "\n")))
    const toOriginalIndex = isPlain ? undefined : makeOriginalIndex(text)
    const found: Array<Match> = []
    let unitsSpent = 0
    for (let from = 0; found.length < limit;) {
      const at = yield* indexOf(searched, oldText, from)
      if (at === -1) break
      const next = at + oldText.length
      const match =
        toOriginalIndex === undefined
          ? { start: at, end: next }
          : { start: yield* toOriginalIndex(at), end: yield* toOriginalIndex(next) }
      found.push(match)
      if (isEnough(match)) break
      unitsSpent += next - from + unitsPerItem
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
      from = next
    }
    yield unitsSpent
    return found
  }
}

/** Applies `make` to consecutive pieces of a text. No piece ends between CR and LF. */
const mapPieces = function* (text: string, make: (piece: string) => string): Steps<string> {
  const out: Array<string> = []
  for (let at = 0; at < text.length;) {
    const end = at + maxUnitsPerStep
    const next = text.charCodeAt(end - 1) === 13 && text.charCodeAt(end) === 10 ? end + 1 : end
    out.push(make(text.slice(at, next)))
    yield 4 * maxUnitsPerStep
    at = next
  }
  return out.join("")
}

/**
 * The maximum length, in UTF-16 units, of a needle that V8 searches in linear time. For a longer needle, the
 * time of `indexOf` may grow with the product of both lengths.
 */
const maxNativeNeedle = 250

/**
 * Finds a text like `String.prototype.indexOf`, but in linear time.
 *
 * Searches only the first `maxNativeNeedle` units of a long needle with `indexOf`, and compares the other units with
 * the Knuth-Morris-Pratt algorithm.
 */
export const indexOf = function* (text: string, sought: string, from = 0): Steps<number> {
  const head = sought.length <= maxNativeNeedle ? sought : sought.slice(0, maxNativeNeedle)
  let borders: Int32Array | undefined
  let at = from
  /** The number of units of the needle that match directly before `at`. No match starts before these units. */
  let matched = 0
  let unitsSpent = 0
  while (at - matched + sought.length <= text.length) {
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
    if (matched === sought.length) return at - matched
    if (matched === 0) {
      const begin = text.slice(at, at + maxUnitsPerStep + head.length - 1).indexOf(head)
      if (begin === -1) {
        at += maxUnitsPerStep
        unitsSpent += maxUnitsPerStep
        continue
      }
      matched = head.length
      at += begin + matched
      unitsSpent += begin + matched
    } else if (text.charCodeAt(at) === sought.charCodeAt(matched)) {
      at++
      matched++
      unitsSpent++
    } else {
      borders ??= yield* bordersOf(sought)
      matched = borders[matched]!
      unitsSpent++
    }
  }
  return -1
}

/**
 * Computes the border lengths of all prefixes of a text. The border of a prefix is its longest proper prefix that is
 * also its suffix.
 */
const bordersOf = function* (text: string): Steps<Int32Array> {
  const borders = new Int32Array(text.length + 1)
  let border = 0
  for (let i = 1; i < text.length; i++) {
    while (border > 0 && text.charCodeAt(i) !== text.charCodeAt(border)) border = borders[border]!
    if (text.charCodeAt(i) === text.charCodeAt(border)) border++
    borders[i + 1] = border
    if (i % maxUnitsPerStep === 0) yield 2 * maxUnitsPerStep
  }
  return borders
}

/**
 * Returns a function that converts an index into the text with LF endings to an index into the original text. Calls
 * must be in ascending order.
 */
const makeOriginalIndex = (text: string): ((index: number) => Steps<number>) => {
  let crlf = text.indexOf("\r\n")
  let dropped = 0
  return function* (index) {
    let unitsSpent = 0
    while (crlf !== -1 && crlf - dropped < index) {
      dropped++
      crlf = text.indexOf("\r\n", crlf + 2)
      unitsSpent += unitsPerItem
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
    }
    return index + dropped
  }
}

const bareNewline = /(?<!\r)\n/g

/**
 * Returns a function that computes the replacement text for a match. Calls must be in the order of the matches.
 */
export const makeReplacer = function* (
  text: string,
  oldText: string,
  newText: string
): Steps<(match: Match) => string | Steps<string>> {
  const literal = (): string => newText
  if (hasCarriageReturn(oldText) || !newText.includes("\n") || !text.includes("\r\n")) return literal
  const crlf = yield* mapPieces(newText, (piece) => piece.replaceAll(bareNewline, "\r\n"))
  const before = yield* bareLines(oldText)
  const newlines = before.length - 1
  if (newlines === 0) {
    const isCrlf = endsWithCrlf(text)
    return ({ end }) => (isCrlf(end) ? crlf : newText)
  }
  let after: ReadonlyArray<string> | undefined
  const alignLazily = function* (matched: string): Steps<string> {
    after ??= yield* bareLines(newText)
    return yield* alignReplacement(matched, before, after)
  }
  return ({ end, start }) => {
    const carriageReturns = end - start - oldText.length
    if (carriageReturns === 0) return newText
    return carriageReturns === newlines ? crlf : alignLazily(text.slice(start, end))
  }
}

const bareLines = function* (text: string): Steps<ReadonlyArray<string>> {
  const out: Array<string> = []
  let from = 0
  let unitsSpent = 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    unitsSpent += unitsPerItem
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
    if (text.charCodeAt(at - 1) === 13) continue
    out.push(text.slice(from, at))
    from = at + 1
  }
  out.push(text.slice(from))
  return out
}

/**
 * Returns a function that tests whether the line at an index ends in CRLF. The indices must ascend, so that a long line
 * is scanned only once.
 */
const endsWithCrlf = (text: string): ((index: number) => boolean) => {
  const last = text.lastIndexOf("\n")
  let newline = 0
  return (index) => {
    if (newline < index || newline === 0) newline = index > last ? last : text.indexOf("\n", index)
    return text.charCodeAt(newline - 1) === 13
  }
}

const endingsOf = function* (text: string): Steps<ReadonlyArray<string>> {
  const out: Array<string> = []
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (out.push(text.charCodeAt(at - 1) === 13 ? "\r\n" : "\n") % 1024 === 0) yield 1024 * unitsPerItem
  }
  return out
}

const alignReplacement = function* (
  matched: string,
  before: ReadonlyArray<string>,
  after: ReadonlyArray<string>
): Steps<string> {
  const endings = yield* endingsOf(matched)
  const maxCommonLines = Math.min(before.length, after.length)
  let head = 0
  while (head < maxCommonLines && before[head] === after[head]) {
    if (++head % 1024 === 0) yield 1024 * unitsPerItem
  }
  let tail = 0
  while (tail < maxCommonLines - head && before.at(-1 - tail) === after.at(-1 - tail)) {
    if (++tail % 1024 === 0) yield 1024 * unitsPerItem
  }
  const out = new TextBuilder()
  out.add(after[0]!)
  let ending = endings[0]!
  for (let i = 1; i < after.length; i++) {
    const kept = i <= head ? i - 1 : i >= after.length - tail ? i - 1 - after.length + before.length : -1
    ending = endings[kept] ?? ending
    out.add(ending + after[i]!)
    if (i % 1024 === 0) yield 2 * 1024 * unitsPerItem
  }
  yield (endings.length + after.length) % 1024
  return out.take()
}
