/**
 * A unified diff of replacements whose places are known. Only the lines that a replacement touches are compared, so a change of one
 * line costs the same in a large file as in a small one.
 */
import * as TextDiff from "effect/TextDiff"

/** UTF-16 indices into the text before; `end` is exclusive. */
export interface Replacement {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Whole lines of the text before, from one index to another, and the whole lines that they become. */
interface Change {
  readonly from: number
  readonly to: number
  readonly after: string
}

const context = 3

/**
 * Comparing takes steps in proportion to lines times differences. So many are spent on one diff; the changes that they do not suffice
 * for are told whole, or nearly.
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

/** The replacements as changes of lines: those on the same lines are one. */
const coarse = function* (before: string, replacements: ReadonlyArray<Replacement>): Generator<Change> {
  for (let i = 0; i < replacements.length;) {
    const from = lineStart(before, replacements[i]!.start)
    let at = from
    let to = from
    let after = ""
    let whole = true
    do {
      const { end, start, text } = replacements[i]!
      after += before.slice(at, start) + text
      // Whether `after` is whole lines, without looking at all of it again.
      if (text !== "") whole = text.endsWith("\n")
      else if (start > at) whole = isNewline(before, start - 1)
      at = end
      if (end > to) to = whole && isNewline(before, end - 1) ? end : lineEnd(before, end)
      else if (end === to && !whole) to = lineEnd(before, end)
      i++
    } while (i < replacements.length && replacements[i]!.start < to)
    yield { from, to, after: after + before.slice(at, to) }
  }
}

const countLines = (text: string, from: number, to: number): number => {
  let lines = 0
  for (let at = from; at < to; at = lineEnd(text, at)) lines++
  return lines
}

/** What is left to be spent. */
interface Budget {
  steps: number
}

/** The lines of a change that really differ. */
const fine = function* (before: string, { after, from, to }: Change, budget: Budget): Generator<Change> {
  const removed = countLines(before, from, to)
  const added = countLines(after, 0, after.length)
  if (removed < 2 && added < 2) {
    if (before.slice(from, to) !== after) yield { from, to, after }
    return
  }
  const maxEdits = Math.ceil(budget.steps / (removed + added))
  const runs = TextDiff.lines(before.slice(from, to), after, { maxEdits })
  const edits = runs.reduce((sum, { _tag, items }) => (_tag === "Equal" ? sum : sum + items.length), 0)
  budget.steps = Math.max(0, budget.steps - Math.min(edits, maxEdits) * (removed + added))
  let at = from
  for (let i = 0; i < runs.length; i++) {
    const { _tag, items } = runs[i]!
    const text = items.join("")
    if (_tag === "Equal") at += text.length
    else if (_tag === "Insert") yield { from: at, to: at, after: text }
    else {
      const next = runs[i + 1]
      if (next?._tag === "Insert") i++
      yield { from: at, to: at + text.length, after: next?._tag === "Insert" ? next.items.join("") : "" }
      at += text.length
    }
  }
}

const range = (start: number, lines: number): string =>
  lines === 0 ? `${start},0` : lines === 1 ? `${start + 1}` : `${start + 1},${lines}`

/** As git writes names: in quotes where they hold what needs it, with a tab behind where they hold a blank. */
const header = (sign: string, side: string, path: string): string => {
  const name = `${side}/${path}`
  const shown = /["\\]/.test(name) ? `"${name.replaceAll(/["\\]/g, "\\$&")}"` : name
  return `${sign} ${shown}${name.includes(" ") ? "\t" : ""}\n`
}

/** The hunks of a diff with the name of the file that they are of. */
export const named = (path: string, hunks: string): string =>
  hunks === "" ? "" : header("---", "a", path) + header("+++", "b", path) + hunks

/** The hunks alone. A name has no line break. */
export const hunksOf = (diff: string): string => diff.slice(diff.indexOf("\n", diff.indexOf("\n") + 1) + 1)

/**
 * The diff that `patch -p1` and `git apply` take, with three lines of context; empty where the text stays as it is.
 * The replacements are in order and do not overlap.
 */
export const unified = (path: string, before: string, replacements: ReadonlyArray<Replacement>): string => {
  let out = ""
  let hunk = ""
  /** What of the text is behind us, and its lines, before and after; and those in this hunk. */
  let at = 0
  let line = 0
  let newLine = 0
  let removed = 0
  let added = 0
  const put = (sign: string, text: string, from: number, to: number): void => {
    for (let start = from; start < to;) {
      const end = lineEnd(text, start)
      hunk += sign + text.slice(start, end)
      if (!isNewline(text, end - 1)) hunk += "\n\\ No newline at end of file\n"
      if (sign !== "+") removed++
      if (sign !== "-") added++
      start = end
    }
  }
  const keep = (to: number): void => {
    put(" ", before, at, to)
    at = to
  }
  const close = (): void => {
    if (hunk === "") return
    keep(forward(before, at, context))
    out += `@@ -${range(line, removed)} +${range(newLine, added)} @@\n${hunk}`
    line += removed
    newLine += added
    hunk = ""
    removed = 0
    added = 0
  }
  const budget: Budget = { steps: maxSteps }
  for (const block of coarse(before, replacements)) {
    for (const { after, from, to } of fine(before, block, budget)) {
      if (from > forward(before, at, 2 * context)) close()
      if (hunk === "") {
        const start = backward(before, from, context)
        const passed = countLines(before, at, start)
        line += passed
        newLine += passed
        at = start
      }
      keep(from)
      put("-", before, from, to)
      put("+", after, 0, after.length)
      at = to
    }
  }
  close()
  return named(path, out)
}
