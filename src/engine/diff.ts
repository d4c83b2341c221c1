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

const context = 3

/** How many differing lines are searched for the smallest diff; beyond, it is a good one. */
const maxEdits = 500

/** Lines that replacements touch, with what they become. */
interface Block {
  readonly from: number
  readonly to: number
  readonly after: string
}

type Line = TextDiff.Edit<string>

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

const split = (text: string, from: number, to: number): Array<string> => {
  const lines: Array<string> = []
  for (let at = from; at < to;) {
    const end = lineEnd(text, at)
    lines.push(text.slice(at, end))
    at = end
  }
  return lines
}

/** Replacements on the same lines are one block. */
const blocks = function* (before: string, replacements: ReadonlyArray<Replacement>): Generator<Block> {
  for (let i = 0; i < replacements.length;) {
    const from = lineStart(before, replacements[i]!.start)
    let at = from
    let to = from
    let after = ""
    let closed = true
    do {
      const { end, start, text } = replacements[i]!
      after += before.slice(at, start) + text
      // Whether `after` is whole lines, without looking at all of it again.
      if (text !== "") closed = text.endsWith("\n")
      else if (start > at) closed = isNewline(before, start - 1)
      at = end
      if (end > to) to = closed && isNewline(before, end - 1) ? end : lineEnd(before, end)
      else if (end === to && !closed) to = lineEnd(before, end)
      i++
    } while (i < replacements.length && replacements[i]!.start < to)
    yield { from, to, after: after + before.slice(at, to) }
  }
}

const isNewline = (text: string, at: number): boolean => text.charCodeAt(at) === 10

const count = (edits: ReadonlyArray<Line>, not: Line["_tag"]): number => {
  let lines = 0
  for (const edit of edits) if (edit._tag !== not) lines += edit.items.length
  return lines
}

/** As git writes names: in quotes where they hold what needs it, with a tab behind where they hold a blank. */
const header = (sign: string, side: string, path: string): string => {
  const name = `${side}/${path}`
  const shown = /["\\]/.test(name) ? `"${name.replaceAll(/["\\]/g, "\\$&")}"` : name
  return `${sign} ${shown}${name.includes(" ") ? "\t" : ""}\n`
}

/**
 * The diff that `patch -p1` and `git apply` take, with three lines of context; empty where the text stays as it is.
 * The replacements are in order and do not overlap.
 */
export const unified = (path: string, before: string, replacements: ReadonlyArray<Replacement>): string => {
  const hunks: Array<string> = []
  /** What of the text is behind us, and at which line, before and after, that is. */
  let at = 0
  let line = 0
  let shift = 0
  let group: Array<Line> = []
  let reach = 0
  const flush = (): void => {
    if (group.length === 0) return
    group.push({ _tag: "Equal", items: split(before, at, forward(before, at, context)) })
    hunks.push(moved(TextDiff.unified(group, { context }), line, shift))
    line += count(group.slice(0, -1), "Insert")
    shift += count(group, "Delete") - count(group, "Insert")
    group = []
  }
  for (const block of blocks(before, replacements)) {
    if (group.length > 0 && block.from > reach) flush()
    if (group.length === 0) {
      const start = Math.max(at, backward(before, block.from, context))
      for (; at < start; at = lineEnd(before, at)) line++
    }
    group.push({ _tag: "Equal", items: split(before, at, block.from) })
    group.push(...TextDiff.lines(before.slice(block.from, block.to), block.after, { maxEdits }))
    at = block.to
    reach = forward(before, at, 2 * context)
  }
  flush()
  const body = hunks.join("")
  return body === "" ? "" : header("---", "a", path) + header("+++", "b", path) + body
}

/** The hunks with their line numbers moved. No line of content begins as a hunk's header does. */
const moved = (hunks: string, line: number, shift: number): string =>
  hunks.replaceAll(
    /(^|\n)@@ -(\d+)(,\d+)? \+(\d+)/g,
    (_, before: string, from: string, length: string | undefined, to: string) =>
      `${before}@@ -${Number(from) + line}${length ?? ""} +${Number(to) + line + shift}`
  )
