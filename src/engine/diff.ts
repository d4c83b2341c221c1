/**
 * Produces a unified diff of replacements at known positions.
 *
 * Only the lines that a replacement touches are compared. All other lines are only counted.
 */
import { maxUnitsPerStep, type Steps, TextBuilder, unitsPerItem } from "../runtime/steps.ts"

interface Block {
  readonly before: number
  readonly after: number
  readonly length: number
}

interface Region {
  readonly aLo: number
  readonly aHi: number
  readonly bLo: number
  readonly bHi: number
}

interface Snake {
  readonly x: number
  readonly y: number
  readonly u: number
  readonly v: number
}

export interface Lines {
  /** The number of each line. Two lines with the same number are equal, including their terminators. */
  readonly ids: ReadonlyArray<number>
  /** The start index of each line, followed by the end index of the last line. */
  readonly starts: ReadonlyArray<number>
}

/**
 * The maximum length of a map key. V8 hashes strings above 16,383 units by their length alone, so a map would compare
 * each such string with all others of its length.
 */
const maxKeyLength = 4096

export const makeLineNumbering = (): ((text: string) => Steps<Lines>) => {
  const known = new Map<string, number>()
  const idOf = (key: string): number => {
    let id = known.get(key)
    if (id === undefined) known.set(key, (id = known.size))
    return id
  }
  return function* (text) {
    const ids: Array<number> = []
    const starts: Array<number> = [0]
    let unitsSpent = 0
    for (let at = 0; at < text.length;) {
      const newline = text.indexOf("\n", at)
      const end = newline === -1 ? text.length : newline + 1
      let id = 0
      if (end - at <= maxKeyLength) id = idOf(text.slice(at, end))
      else {
        for (let from = at; from < end; from += maxKeyLength) {
          // The key of a piece begins with an LF and the previous piece's number, so it never equals the key of a line.
          id = idOf(`\n${from === at ? "" : id}\n${text.slice(from, Math.min(end, from + maxKeyLength))}`)
          yield maxKeyLength
        }
      }
      ids.push(id)
      unitsSpent += unitsPerItem + Math.min(end - at, maxKeyLength)
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
      starts.push((at = end))
    }
    yield unitsSpent
    return { ids, starts }
  }
}

/**
 * Returns the common blocks in order, with as many lines as possible.
 *
 * If there are more than `maxEdits` added and removed lines, the result may contain fewer common lines.
 */
export const findCommonBlocks = function* (
  a: ReadonlyArray<number>,
  b: ReadonlyArray<number>,
  maxEdits: number
): Steps<ReadonlyArray<Block>> {
  const out: Array<Block> = []
  const push = (before: number, after: number, length: number): void => {
    if (length === 0) return
    const last = out[out.length - 1]
    if (last !== undefined && last.before + last.length === before && last.after + last.length === after) {
      out[out.length - 1] = { before: last.before, after: last.after, length: last.length + length }
    } else out.push({ before, after, length })
  }
  const maxD = Math.ceil(Math.max(0, maxEdits) / 2)
  // The furthest x on each diagonal, forwards and backwards. The number of edits bounds the number of diagonals.
  const offset = Math.min(a.length + b.length, maxD) + 1
  const forward = new Int32Array(2 * offset + 1)
  const backward = new Int32Array(2 * offset + 1)
  // Loops inside a generator are slow, so the inner loops are functions that count their comparisons here.
  let compared = 0

  const searchForward = ({ aHi, aLo, bHi, bLo }: Region, d: number): Snake | undefined => {
    const n = aHi - aLo
    const m = bHi - bLo
    const delta = n - m
    const isOdd = (delta & 1) === 1
    for (let k = -d; k <= d; k += 2) {
      const left = forward[offset + k - 1]!
      const right = forward[offset + k + 1]!
      let x = k === -d || (k !== d && left < right) ? right : left + 1
      let y = x - k
      const x0 = x
      while (x < n && y < m && a[aLo + x] === b[bLo + y]) {
        x++
        y++
      }
      forward[offset + k] = x
      compared += x - x0 + 1
      if (isOdd && k >= delta - (d - 1) && k <= delta + (d - 1) && x + backward[offset + delta - k]! >= n) {
        return { x: aLo + x0, y: bLo + x0 - k, u: aLo + x, v: bLo + y }
      }
    }
    return undefined
  }

  const searchBackward = ({ aHi, aLo, bHi, bLo }: Region, d: number): Snake | undefined => {
    const n = aHi - aLo
    const m = bHi - bLo
    const delta = n - m
    const isEven = (delta & 1) === 0
    for (let k = -d; k <= d; k += 2) {
      const left = backward[offset + k - 1]!
      const right = backward[offset + k + 1]!
      let x = k === -d || (k !== d && left < right) ? right : left + 1
      let y = x - k
      const x0 = x
      while (x < n && y < m && a[aHi - x - 1] === b[bHi - y - 1]) {
        x++
        y++
      }
      backward[offset + k] = x
      compared += x - x0 + 1
      if (isEven && k >= delta - d && k <= delta + d && x + forward[offset + delta - k]! >= n) {
        return { x: aHi - x, y: bHi - y, u: aHi - x0, v: bHi - x0 + k }
      }
    }
    return undefined
  }

  /**
   * Returns the furthest point within `limit` edits, from which the region is divided into two smaller parts. Returns
   * `undefined` if the point is a corner of the region.
   */
  const furthest = ({ aHi, aLo, bHi, bLo }: Region, limit: number): Snake | undefined => {
    const n = aHi - aLo
    const m = bHi - bLo
    let best = 0
    let x = 0
    let y = 0
    for (let k = -limit; k <= limit; k += 2) {
      const xf = forward[offset + k]!
      const yf = xf - k
      if (xf <= n && yf >= 0 && yf <= m && xf + yf > best) {
        best = xf + yf
        x = aLo + xf
        y = bLo + yf
      }
      const xb = backward[offset + k]!
      const yb = xb - k
      if (xb <= n && yb >= 0 && yb <= m && xb + yb > best) {
        best = xb + yb
        x = aHi - xb
        y = bHi - yb
      }
    }
    compared += limit
    return best > 0 && best < n + m ? { x, y, u: x, v: y } : undefined
  }

  const splitRegion = function* (region: Region): Steps<Snake | undefined> {
    const limit = Math.min((region.aHi - region.aLo + region.bHi - region.bLo + 1) >> 1, maxD)
    forward[offset + 1] = 0
    backward[offset + 1] = 0
    for (let d = 0; d <= limit; d++) {
      const snake = searchForward(region, d) ?? searchBackward(region, d)
      if (snake !== undefined) return snake
      if (compared > maxUnitsPerStep) {
        yield compared
        compared = 0
      }
    }
    return furthest(region, limit)
  }

  const countEqual = (x: number, y: number, step: 1 | -1, most: number): number => {
    let same = 0
    while (same < most && a[x + step * same] === b[y + step * same]) same++
    compared += same + 1
    return same
  }

  // The regions may be nested too deeply for the call stack, so this stack replaces recursion.
  const stack: Array<Region | Block> = [{ aLo: 0, aHi: a.length, bLo: 0, bHi: b.length }]
  while (stack.length > 0) {
    const task = stack.pop()!
    if ("length" in task) {
      push(task.before, task.after, task.length)
      continue
    }
    let { aHi, aLo, bHi, bLo } = task
    const prefix = countEqual(aLo, bLo, 1, Math.min(aHi - aLo, bHi - bLo))
    push(aLo, bLo, prefix)
    aLo += prefix
    bLo += prefix
    const suffix = countEqual(aHi - 1, bHi - 1, -1, Math.min(aHi - aLo, bHi - bLo))
    aHi -= suffix
    bHi -= suffix
    stack.push({ before: aHi, after: bHi, length: suffix })
    const snake = aLo < aHi && bLo < bHi ? yield* splitRegion({ aLo, aHi, bLo, bHi }) : undefined
    if (snake !== undefined) {
      stack.push(
        { aLo: snake.u, aHi, bLo: snake.v, bHi },
        { before: snake.x, after: snake.y, length: snake.u - snake.x },
        { aLo, aHi: snake.x, bLo, bHi: snake.y }
      )
    }
    compared += unitsPerItem
    if (compared > maxUnitsPerStep) {
      yield compared
      compared = 0
    }
  }
  yield compared
  return out
}

/** A replacement of a range of the old text. The indices count UTF-16 units, and `end` is exclusive. */
export interface Replacement {
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Change {
  readonly from: number
  readonly to: number
  readonly after: string
}

const contextLines = 3

/**
 * The budget of one diff: for each comparison, the number of lines multiplied by the number of differences. Beyond the budget,
 * the diff shows changes as whole or nearly whole blocks.
 */
const maxSteps = 10_000_000

const isNewline = (text: string, at: number): boolean => text.charCodeAt(at) === 10

const lineStart = (text: string, at: number): number => (at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1)

const lineEnd = (text: string, at: number): number => {
  const newline = text.indexOf("\n", at)
  return newline === -1 ? text.length : newline + 1
}

const skipForward = (text: string, at: number, lines: number): number => {
  let end = at
  for (let i = 0; i < lines && end < text.length; i++) end = lineEnd(text, end)
  return end
}

const skipBackward = (text: string, at: number, lines: number): number => {
  let start = at
  for (let i = 0; i < lines && start > 0; i++) start = lineStart(text, start - 1)
  return start
}

const wholeLineChanges = function* (
  before: string,
  replacements: ReadonlyArray<Replacement>
): Generator<Change | number, void> {
  const after = new TextBuilder()
  let unitsSpent = 0
  for (let i = 0; i < replacements.length;) {
    const from = lineStart(before, replacements[i]!.start)
    let at = from
    let to = from
    let whole = true
    do {
      const { end, start, text } = replacements[i]!
      after.add(before.slice(at, start) + text)
      if (text !== "") whole = text.endsWith("\n")
      else if (start > at) whole = isNewline(before, start - 1)
      at = end
      if (end > to) to = whole && isNewline(before, end - 1) ? end : lineEnd(before, end)
      else if (end === to && !whole) to = lineEnd(before, end)
      i++
      unitsSpent += 2 * unitsPerItem
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
    } while (i < replacements.length && replacements[i]!.start < to)
    after.add(before.slice(at, to))
    yield { from, to, after: after.take() }
  }
  yield unitsSpent
}

const countLines = function* (text: string, from: number, to: number): Steps<number> {
  let lines = 0
  for (let at = from; at < to; at = lineEnd(text, at)) if (++lines % 1024 === 0) yield 1024 * unitsPerItem
  yield (lines % 1024) * unitsPerItem
  return lines
}

const hasManyLines = (text: string, from: number, to: number): boolean => from < to && lineEnd(text, from) < to

interface Budget {
  steps: number
}

const textOfLines = (text: string, { starts }: Lines, from: number, to: number): string => text.slice(starts[from], starts[to])

const differingChanges = function* (before: string, change: Change, budget: Budget): Generator<Change | number, void> {
  const { after, from, to } = change
  if (!hasManyLines(before, from, to) && !hasManyLines(after, 0, after.length)) {
    if (before.slice(from, to) !== after) yield change
    return
  }
  const number = makeLineNumbering()
  const text = before.slice(from, to)
  const old = yield* number(text)
  const now = yield* number(after)
  const lines = old.ids.length + now.ids.length
  const maxEdits = Math.ceil(budget.steps / lines)
  const common = yield* findCommonBlocks(old.ids, now.ids, maxEdits)
  let edits = lines
  let [removed, added] = [0, 0]
  for (const block of [...common, { before: old.ids.length, after: now.ids.length, length: 0 }]) {
    if (block.before > removed || block.after > added) {
      yield {
        from: from + old.starts[removed]!,
        to: from + old.starts[block.before]!,
        after: textOfLines(after, now, added, block.after)
      }
    }
    edits -= 2 * block.length
    removed = block.before + block.length
    added = block.after + block.length
  }
  budget.steps = Math.max(0, budget.steps - Math.min(edits, maxEdits) * lines)
}

const range = (start: number, lines: number): string =>
  lines === 0 ? `${start},0` : lines === 1 ? `${start + 1}` : `${start + 1},${lines}`

/**
 * Formats a file header that `git apply` accepts. Quotes a name that contains a quotation mark or a backslash, and adds a tab
 * after a name that contains a space.
 */
const header = (sign: string, side: string, path: string): string => {
  const name = `${side}/${path}`
  const shown = /["\\]/.test(name) ? `"${name.replaceAll(/["\\]/g, "\\$&")}"` : name
  return `${sign} ${shown}${name.includes(" ") ? "\t" : ""}\n`
}

/**
 * Puts the two header lines before the hunks. The name of a missing file is /dev/null, so that `git apply` creates or
 * removes the file.
 */
export const withFileHeader = (path: string, hunks: string, { isGone = false, isNew = false } = {}): string => {
  if (hunks === "") return ""
  const from = isNew ? "--- /dev/null\n" : header("---", "a", path)
  return from + (isGone ? "+++ /dev/null\n" : header("+++", "b", path)) + hunks
}

export const hunksOf = (diff: string): string => diff.slice(diff.indexOf("\n", diff.indexOf("\n") + 1) + 1)

export const countSigned = function* (hunks: string, sign: "+" | "-"): Steps<number> {
  let count = 0
  for (let at = hunks.indexOf(`\n${sign}`); at !== -1; at = hunks.indexOf(`\n${sign}`, at + 1)) {
    if (++count % 1024 === 0) yield 1024 * unitsPerItem
  }
  return count
}

/** Produces the hunks of a diff. The replacements must be in order and must not overlap. */
export const hunks = function* (before: string, replacements: ReadonlyArray<Replacement>): Steps<string> {
  const out = new TextBuilder()
  const hunk = new TextBuilder()
  let at = 0
  let line = 0
  let newLine = 0
  let removed = 0
  let added = 0
  const addLines = function* (sign: string, text: string, from: number, to: number): Steps<void> {
    let unitsSpent = 0
    for (let start = from; start < to;) {
      const end = lineEnd(text, start)
      hunk.add(sign + text.slice(start, end))
      if (!isNewline(text, end - 1)) hunk.add("\n\\ No newline at end of file\n")
      if (sign !== "+") removed++
      if (sign !== "-") added++
      start = end
      unitsSpent += 2 * unitsPerItem
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
    }
    yield unitsSpent
  }
  const addContext = function* (to: number): Steps<void> {
    yield* addLines(" ", before, at, to)
    at = to
  }
  const closeHunk = function* (): Steps<void> {
    if (hunk.length === 0) return
    yield* addContext(skipForward(before, at, contextLines))
    out.add(`@@ -${range(line, removed)} +${range(newLine, added)} @@\n`)
    out.add(hunk.take())
    line += removed
    newLine += added
    removed = 0
    added = 0
  }
  const budget: Budget = { steps: maxSteps }
  for (const block of wholeLineChanges(before, replacements)) {
    if (typeof block === "number") {
      yield block
      continue
    }
    for (const change of differingChanges(before, block, budget)) {
      if (typeof change === "number") {
        yield change
        continue
      }
      const { after, from, to } = change
      if (from > skipForward(before, at, 2 * contextLines)) yield* closeHunk()
      if (hunk.length === 0) {
        const start = skipBackward(before, from, contextLines)
        const skippedLines = yield* countLines(before, at, start)
        line += skippedLines
        newLine += skippedLines
        at = start
      }
      yield* addContext(from)
      yield* addLines("-", before, from, to)
      yield* addLines("+", after, 0, after.length)
      at = to
    }
  }
  yield* closeHunk()
  return out.take()
}

/**
 * Produces a diff that `patch -p1` and `git apply` accept. The diff is empty if nothing changes.
 *
 * The replacements must be in order and must not overlap.
 */
export const unified = function* (path: string, before: string, replacements: ReadonlyArray<Replacement>): Steps<string> {
  return withFileHeader(path, yield* hunks(before, replacements))
}
