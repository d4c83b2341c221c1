/**
 * Searches the text of one file. The function `scan` has no outside references, so that its source can run in a worker.
 *
 * `scan` returns no context lines, because a worker would have to copy each line, while the caller can slice the text.
 */
import type { LineMatch, SearchPattern } from "../model/search.ts"

export type { LineMatch as Found, SearchPattern as Question } from "../model/search.ts"

/** Returns up to `limit` matching lines from line `from` (1-based) on, with the first match of each. */
export const scan = (question: SearchPattern, text: string, from: number, limit: number): Array<LineMatch> => {
  const { literal, multiline } = question
  if (literal !== undefined && !multiline && literal.includes("\n")) return []
  const regex = new RegExp(question.source, multiline ? `${question.flags}g` : question.flags)
  const size = text.length
  const start = text.charCodeAt(0) === 0xfeff ? 1 : 0
  const found: Array<LineMatch> = []

  const lineEnds = (at: number): readonly [content: number, next: number] => {
    const lf = text.indexOf("\n", at)
    if (lf === -1) return [size, size]
    return [lf > at && text.charCodeAt(lf - 1) === 13 ? lf - 1 : lf, lf + 1]
  }
  const add = (lineNumber: number, line: number, matchStart: number, matchEnd: number): number => {
    const [end, next] = lineEnds(line)
    const lineContent = text.slice(line, end)
    found.push({ lineNumber, lineContent, matchStart, matchEnd: Math.min(matchEnd, lineContent.length) })
    return next
  }

  let line = start
  let lineNumber = 1
  const advanceTo = (index: number): void => {
    for (let lf = text.indexOf("\n", line); lf !== -1 && lf < index; lf = text.indexOf("\n", line)) {
      line = lf + 1
      lineNumber++
    }
  }

  /**
   * Returns a function that finds `needle` in linear time.
   *
   * `String.indexOf` is linear for short needles. For a needle of more than 200 characters, `indexOf` finds the first 200,
   * and the Knuth-Morris-Pratt algorithm compares the others.
   */
  const finder = (needle: string): ((from: number) => number) => {
    const head = needle.slice(0, 200)
    if (head === needle) return (from) => text.indexOf(needle, from)
    const borderLengths = new Int32Array(needle.length)
    for (let i = 1, matchedLength = 0; i < needle.length; borderLengths[i++] = matchedLength) {
      while (matchedLength > 0 && needle.charCodeAt(i) !== needle.charCodeAt(matchedLength))
        matchedLength = borderLengths[matchedLength - 1]!
      if (needle.charCodeAt(i) === needle.charCodeAt(matchedLength)) matchedLength++
    }
    return (from) => {
      let at = from
      for (let matchedLength = 0; matchedLength < needle.length;) {
        if (matchedLength === 0) {
          const index = text.indexOf(head, at)
          if (index === -1) return -1
          at = index + head.length
          matchedLength = head.length
        } else if (at === size) return -1
        else if (text.charCodeAt(at) === needle.charCodeAt(matchedLength)) {
          at++
          matchedLength++
        } else matchedLength = borderLengths[matchedLength - 1]!
      }
      return at - needle.length
    }
  }
  const find = literal === undefined ? undefined : finder(literal)

  if (multiline) {
    const findNext = (from: number): readonly [index: number, length: number] | undefined => {
      if (find !== undefined) {
        const index = find(from)
        return index === -1 ? undefined : [index, literal!.length]
      }
      regex.lastIndex = from
      const match = regex.exec(text)
      return match === null ? undefined : [match.index, match[0].length]
    }
    for (let at = start; found.length < limit;) {
      const match = findNext(at)
      if (match === undefined) break
      const [index, length] = match
      if (index < start || (index >= size && size > start)) break
      advanceTo(index)
      const [, next] = lineEnds(line)
      if (lineNumber >= from && size > start) add(lineNumber, line, index - line, index - line + length)
      if (next >= size) break
      at = Math.max(next, index + length)
    }
    return found
  }

  if (literal !== undefined && find !== undefined) {
    for (let index = find(line); index !== -1 && found.length < limit; index = find(line)) {
      advanceTo(index)
      const [content, next] = lineEnds(line)
      if (index + literal.length <= content && lineNumber >= from) {
        add(lineNumber, line, index - line, index - line + literal.length)
      }
      if (next >= size) break
      line = next
      lineNumber++
    }
    return found
  }

  while (line < size && found.length < limit) {
    const [end, next] = lineEnds(line)
    if (lineNumber >= from) {
      const match = regex.exec(text.slice(line, end))
      if (match !== null) add(lineNumber, line, match.index, match.index + match[0].length)
    }
    line = next
    lineNumber++
  }
  return found
}

interface ContextLines {
  readonly before: ReadonlyArray<string>
  readonly after: ReadonlyArray<string>
}

const lineOf = (text: string, begin: number, lf: number): string =>
  text.slice(begin, lf > begin && text.charCodeAt(lf - 1) === 13 ? lf - 1 : lf)

const linesAbove = (text: string, start: number, at: number, limit: number): Array<string> => {
  const lines: Array<string> = []
  for (let end = at; lines.length < limit && end > start;) {
    // `lastIndexOf` treats a negative index as 0, where an empty first line has its line feed. So avoid such an index.
    const begin = end < 2 ? start : Math.max(text.lastIndexOf("\n", end - 2) + 1, start)
    lines.push(lineOf(text, begin, end - 1))
    end = begin
  }
  return lines.reverse()
}

const linesBelow = (text: string, at: number, limit: number): Array<string> => {
  const lines: Array<string> = []
  for (let begin = at; lines.length < limit && begin < text.length;) {
    const lf = text.indexOf("\n", begin)
    lines.push(lf === -1 ? text.slice(begin) : lineOf(text, begin, lf))
    begin = lf === -1 ? text.length : lf + 1
  }
  return lines
}

/**
 * Yields the matches one at a time, each with its context lines. All context lines together can be many times as long
 * as the text.
 */
export const withContextLines = function* <M extends LineMatch>(
  text: string,
  found: Iterable<M>,
  before: number,
  after: number
): Generator<M & ContextLines, void> {
  const start = text.charCodeAt(0) === 0xfeff ? 1 : 0
  let line = start
  let lineNumber = 1
  for (const match of found) {
    for (; lineNumber < match.lineNumber; lineNumber++) line = text.indexOf("\n", line) + 1
    const below = text.indexOf("\n", line) + 1 || text.length
    yield { ...match, before: linesAbove(text, start, line, before), after: linesBelow(text, below, after) }
  }
}
