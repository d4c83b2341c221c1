/**
 * Indexes a file by its lines: equal lines get the same id. Each level compares lines more loosely, and is built only when the
 * level before has found nothing.
 */

import { unitsPerItem, type Steps, maxUnitsPerStep } from "../../runtime/steps.ts"

/**
 * The looseness of a comparison. 0: exact; 1: ignores line endings; 2: also ignores blanks at the end of a line; 3: also
 * ignores blanks at its beginning.
 */
export type Level = 0 | 1 | 2 | 3

export interface Lines {
  readonly text: string
  readonly count: number
  /** Returns the index of the first UTF-16 unit of a line; for the line count, the end of the text. */
  readonly lineStart: (line: number) => number
  readonly lineEnding: (line: number) => "" | "\n" | "\r\n"
  /** Returns a line without its ending. */
  readonly lineText: (line: number) => string
  readonly index: (level: Level) => Steps<Index>
}

export interface Index {
  /** Returns the id of a line of the patch; -1 if the file has no such line. */
  readonly idOf: (text: string, open: boolean) => number
  readonly ids: Int32Array
  readonly countOf: (id: number) => number
  /** Returns the numbers of the lines with the id, ascending. */
  readonly places: (id: number) => Int32Array
}

export const withoutCr = (text: string): string => (text.endsWith("\r") ? text.slice(0, -1) : text)

const comparisonKeys: ReadonlyArray<(text: string, open: boolean) => string> = [
  (text, open) => (open ? text : `${text}\n`),
  withoutCr,
  (text) => text.trimEnd(),
  (text) => text.trim()
]

const indexOf = function* (lines: Omit<Lines, "index">, level: Level): Steps<Index> {
  const key = comparisonKeys[level]!
  const known = new Map<string, number>()
  const ids = new Int32Array(lines.count)
  const counts: Array<number> = []
  let steps = 0
  for (let line = 0; line < lines.count; line++) {
    const end = lines.lineStart(line + 1)
    const open = lines.text.charCodeAt(end - 1) !== 10
    const text = key(lines.text.slice(lines.lineStart(line), open ? end : end - 1), open)
    let id = known.get(text)
    if (id === undefined) known.set(text, (id = counts.push(0) - 1))
    counts[id]!++
    ids[line] = id
    steps += 2 * unitsPerItem + text.length
    if (steps > maxUnitsPerStep) {
      yield steps
      steps = 0
    }
  }
  yield steps + 2 * (lines.count + counts.length)
  const firsts = new Int32Array(counts.length + 1)
  for (const [id, count] of counts.entries()) firsts[id + 1] = firsts[id]! + count
  const nextSlots = firsts.slice()
  const places = new Int32Array(lines.count)
  for (let line = 0; line < lines.count; line++) places[nextSlots[ids[line]!]!++] = line
  return {
    ids,
    countOf: (id) => counts[id]!,
    idOf: (text, open) => known.get(key(text, open)) ?? -1,
    places: (id) => places.subarray(firsts[id]!, firsts[id + 1]!)
  }
}

const startsOf = function* (text: string, first: number): Steps<ReadonlyArray<number>> {
  const starts = [first]
  for (let at = text.indexOf("\n", first); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (starts.push(at + 1) % 1024 === 0) yield 1024 * unitsPerItem
  }
  if (starts.at(-1) !== text.length) starts.push(text.length)
  return starts
}

/** Splits a text into lines at LF. By default a byte order mark is not part of the first line. */
export const linesOf = function* (text: string, byteOrderMark: "apart" | "within" = "apart"): Steps<Lines> {
  const starts = yield* startsOf(text, byteOrderMark === "apart" && text.startsWith("\uFEFF") ? 1 : 0)
  const lineStart = (line: number): number => starts[line]!
  const lineEnding = (line: number): "" | "\n" | "\r\n" => {
    const end = lineStart(line + 1)
    if (text.charCodeAt(end - 1) !== 10) return ""
    return end - 2 >= lineStart(line) && text.charCodeAt(end - 2) === 13 ? "\r\n" : "\n"
  }
  const lines = {
    text,
    count: starts.length - 1,
    lineStart,
    lineEnding,
    lineText: (line: number) => text.slice(lineStart(line), lineStart(line + 1) - lineEnding(line).length)
  }
  const indexes: Array<Index | undefined> = []
  return {
    ...lines,
    index: function* (level) {
      return (indexes[level] ??= yield* indexOf(lines, level))
    }
  }
}
