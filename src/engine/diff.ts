/**
 * Produces a unified diff of replacements at known places.
 *
 * Only the lines that a replacement touches are compared, so a small change costs the same in a large file as in a
 * small one.
 */
import { perItem, type Steps, stride, TextBuilder } from "../runtime/steps.ts"
import { blocks, type Lines, numbering } from "./lineDiff.ts"

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

const context = 3

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

const forward = (text: string, at: number, lines: number): number => {
  let end = at
  for (let i = 0; i < lines && end < text.length; i++) end = lineEnd(text, end)
  return end
}

const backward = (text: string, at: number, lines: number): number => {
  let start = at
  for (let i = 0; i < lines && start > 0; i++) start = lineStart(text, start - 1)
  return start
}

/**
 * Yields the replacements as changes of whole lines, merging those on the same lines. Yielded numbers are work units.
 */
const coarse = function* (before: string, replacements: ReadonlyArray<Replacement>): Generator<Change | number, void> {
  const after = new TextBuilder()
  let spent = 0
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
      spent += 2 * perItem
      if (spent > stride) {
        yield spent
        spent = 0
      }
    } while (i < replacements.length && replacements[i]!.start < to)
    after.add(before.slice(at, to))
    yield { from, to, after: after.take() }
  }
  yield spent
}

const countLines = function* (text: string, from: number, to: number): Steps<number> {
  let lines = 0
  for (let at = from; at < to; at = lineEnd(text, at)) if (++lines % 1024 === 0) yield 1024 * perItem
  yield (lines % 1024) * perItem
  return lines
}

const isMany = (text: string, from: number, to: number): boolean => from < to && lineEnd(text, from) < to

interface Budget {
  steps: number
}

const partOf = (text: string, { starts }: Lines, from: number, to: number): string => text.slice(starts[from], starts[to])

const fine = function* (before: string, change: Change, budget: Budget): Generator<Change | number, void> {
  const { after, from, to } = change
  if (!isMany(before, from, to) && !isMany(after, 0, after.length)) {
    if (before.slice(from, to) !== after) yield change
    return
  }
  const number = numbering()
  const text = before.slice(from, to)
  const old = yield* number(text)
  const now = yield* number(after)
  const lines = old.ids.length + now.ids.length
  const maxEdits = Math.ceil(budget.steps / lines)
  const common = yield* blocks(old.ids, now.ids, maxEdits)
  let edits = lines
  let [removed, added] = [0, 0]
  for (const block of [...common, { before: old.ids.length, after: now.ids.length, length: 0 }]) {
    if (block.before > removed || block.after > added) {
      yield {
        from: from + old.starts[removed]!,
        to: from + old.starts[block.before]!,
        after: partOf(after, now, added, block.after)
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
export const named = (path: string, hunks: string, { isGone = false, isNew = false } = {}): string => {
  if (hunks === "") return ""
  const from = isNew ? "--- /dev/null\n" : header("---", "a", path)
  return from + (isGone ? "+++ /dev/null\n" : header("+++", "b", path)) + hunks
}

export const hunksOf = (diff: string): string => diff.slice(diff.indexOf("\n", diff.indexOf("\n") + 1) + 1)

/** Counts the lines of the hunks that begin with the sign. */
export const countSigned = function* (hunks: string, sign: "+" | "-"): Steps<number> {
  let count = 0
  for (let at = hunks.indexOf(`\n${sign}`); at !== -1; at = hunks.indexOf(`\n${sign}`, at + 1)) {
    if (++count % 1024 === 0) yield 1024 * perItem
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
  const put = function* (sign: string, text: string, from: number, to: number): Steps<void> {
    let spent = 0
    for (let start = from; start < to;) {
      const end = lineEnd(text, start)
      hunk.add(sign + text.slice(start, end))
      if (!isNewline(text, end - 1)) hunk.add("\n\\ No newline at end of file\n")
      if (sign !== "+") removed++
      if (sign !== "-") added++
      start = end
      spent += 2 * perItem
      if (spent > stride) {
        yield spent
        spent = 0
      }
    }
    yield spent
  }
  const keep = function* (to: number): Steps<void> {
    yield* put(" ", before, at, to)
    at = to
  }
  const close = function* (): Steps<void> {
    if (hunk.length === 0) return
    yield* keep(forward(before, at, context))
    out.add(`@@ -${range(line, removed)} +${range(newLine, added)} @@\n`)
    out.add(hunk.take())
    line += removed
    newLine += added
    removed = 0
    added = 0
  }
  const budget: Budget = { steps: maxSteps }
  for (const block of coarse(before, replacements)) {
    if (typeof block === "number") {
      yield block
      continue
    }
    for (const change of fine(before, block, budget)) {
      if (typeof change === "number") {
        yield change
        continue
      }
      const { after, from, to } = change
      if (from > forward(before, at, 2 * context)) yield* close()
      if (hunk.length === 0) {
        const start = backward(before, from, context)
        const passed = yield* countLines(before, at, start)
        line += passed
        newLine += passed
        at = start
      }
      yield* keep(from)
      yield* put("-", before, from, to)
      yield* put("+", after, 0, after.length)
      at = to
    }
  }
  yield* close()
  return out.take()
}

/**
 * Produces the diff that `patch -p1` and `git apply` accept; empty if nothing changes.
 *
 * The replacements must be in order and must not overlap.
 */
export const unified = function* (path: string, before: string, replacements: ReadonlyArray<Replacement>): Steps<string> {
  return named(path, yield* hunks(before, replacements))
}
