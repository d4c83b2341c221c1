/**
 * The matching of one file, by itself: no import, nothing from outside the function, so that its own source can be given to a worker.
 */

export interface Question {
  readonly source: string
  readonly flags: string
  readonly literal: string | undefined
  readonly multiline: boolean
  /** Lines of context. */
  readonly before: number
  readonly after: number
}

export interface Found {
  /** 1-based. */
  readonly lineNumber: number
  readonly lineContent: string
  readonly matchStart: number
  readonly matchEnd: number
  readonly before?: ReadonlyArray<string>
  readonly after?: ReadonlyArray<string>
}

/** At most `most` lines with a match, from line `from` (1-based) on; the first match of each. */
export const scan = (question: Question, text: string, from: number, most: number): Array<Found> => {
  const { after, before, literal, multiline } = question
  const regex = new RegExp(question.source, multiline ? `${question.flags}g` : question.flags)
  const size = text.length
  const start = text.charCodeAt(0) === 0xfeff ? 1 : 0
  const found: Array<Found> = []

  /** Where the line that starts at `at` ends, without and with its terminator. */
  const ends = (at: number): readonly [content: number, next: number] => {
    const lf = text.indexOf("\n", at)
    if (lf === -1) return [size, size]
    return [lf > at && text.charCodeAt(lf - 1) === 13 ? lf - 1 : lf, lf + 1]
  }
  const above = (at: number): Array<string> => {
    const lines: Array<string> = []
    for (let end = at; lines.length < before && end > start;) {
      const begin = Math.max(text.lastIndexOf("\n", end - 2) + 1, start)
      lines.unshift(text.slice(begin, ends(begin)[0]))
      end = begin
    }
    return lines
  }
  const below = (at: number): Array<string> => {
    const lines: Array<string> = []
    for (let begin = at; lines.length < after && begin < size;) {
      const [end, next] = ends(begin)
      lines.push(text.slice(begin, end))
      begin = next
    }
    return lines
  }
  const add = (lineNumber: number, line: number, matchStart: number, matchEnd: number): number => {
    const [end, next] = ends(line)
    const lineContent = text.slice(line, end)
    const match = { lineNumber, lineContent, matchStart, matchEnd: Math.min(matchEnd, lineContent.length) }
    found.push(before + after === 0 ? match : { ...match, before: above(line), after: below(next) })
    return next
  }

  let line = start
  let lineNumber = 1
  /** Goes on to the line that holds `index`. */
  const goTo = (index: number): void => {
    for (let lf = text.indexOf("\n", line); lf !== -1 && lf < index; lf = text.indexOf("\n", line)) {
      line = lf + 1
      lineNumber++
    }
  }

  if (multiline) {
    regex.lastIndex = start
    while (found.length < most) {
      const match = regex.exec(text)
      if (match === null || match.index < start || (match.index >= size && size > start)) break
      goTo(match.index)
      const [, next] = ends(line)
      if (lineNumber >= from && size > start) {
        add(lineNumber, line, match.index - line, match.index - line + match[0].length)
      }
      if (next >= size) break
      regex.lastIndex = Math.max(next, match.index + match[0].length)
    }
    return found
  }

  if (literal !== undefined) {
    for (let index = text.indexOf(literal, line); index !== -1 && found.length < most; index = text.indexOf(literal, line)) {
      goTo(index)
      const [content, next] = ends(line)
      if (index + literal.length <= content && lineNumber >= from) {
        add(lineNumber, line, index - line, index - line + literal.length)
      }
      if (next >= size) break
      line = next
      lineNumber++
    }
    return found
  }

  while (line < size && found.length < most) {
    const [end, next] = ends(line)
    if (lineNumber >= from) {
      const match = regex.exec(text.slice(line, end))
      if (match !== null) add(lineNumber, line, match.index, match.index + match[0].length)
    }
    line = next
    lineNumber++
  }
  return found
}
