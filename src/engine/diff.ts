/**
 * Produces a unified diff of replacements at known places.
 *
 * Only the lines that a replacement touches are compared, so a small change costs the same in a large file as in a
 * small one.
 */
import { unitsPerItem, type Steps, maxUnitsPerStep, TextBuilder } from "../runtime/steps.ts"
import { findCommonBlocks, type Lines, makeLineNumbering } from "./lineDiff.ts"

/** A replacement of a range of the old text: UTF-16 indices, `end` exclusive. */
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
 * The step budget of one diff. A comparison takes steps in proportion to lines times differences.
 *
 * Changes beyond the budget are shown as whole or nearly whole blocks.
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

/**
 * Yields the replacements as changes of whole lines, merging those on the same lines. Yielded numbers are work units.
 */
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
 * Formats a file header as git does: quotes a name with special characters, and adds a tab after a name with a blank.
 */
const header = (sign: string, side: string, path: string): string => {
  const name = `${side}/${path}`
  const shown = /["\\]/.test(name) ? `"${name.replaceAll(/["\\]/g, "\\$&")}"` : name
  return `${sign} ${shown}${name.includes(" ") ? "\t" : ""}\n`
}

/** Puts the two header lines before the hunks. A missing side is /dev/null, so that `git apply` creates or removes the file. */
export const withFileHeader = (path: string, hunks: string, { isGone = false, isNew = false } = {}): string => {
  if (hunks === "") return ""
  const from = isNew ? "--- /dev/null\n" : header("---", "a", path)
  return from + (isGone ? "+++ /dev/null\n" : header("+++", "b", path)) + hunks
}

export const hunksOf = (diff: string): string => diff.slice(diff.indexOf("\n", diff.indexOf("\n") + 1) + 1)

/** Counts the lines of the hunks that begin with the sign. */
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
 * Produces the diff that `patch -p1` and `git apply` accept; empty if nothing changes.
 *
 * The replacements must be in order and must not overlap.
 */
export const unified = function* (path: string, before: string, replacements: ReadonlyArray<Replacement>): Steps<string> {
  return withFileHeader(path, yield* hunks(before, replacements))
}
