/**
 * Rewrites an expression for single lines into one for a text of many lines, so that the engine runs once per text.
 *
 * No part of the result can match a line feed, so a match never leaves its line, and the anchors hold at every line
 * edge. In a text without "\r", U+2028 and U+2029, which "^" and "$" also treat as line ends, the result finds exactly
 * the same. In other texts it may find more, and each matching line must be tested by itself.
 *
 * The rewrite is correct because a line feed replaces the end of the text at the edge of a line. Everything that
 * consumes a character fails at both. For "\b", "\B" and the lookarounds of a whole word, neither is a word character.
 */
import type { Question } from "./scan.ts"

/**
 * Returns the rewritten expression, or `undefined` if the rewrite is not known to be correct.
 *
 * The function uses nothing from outside, so that its source can run in a worker.
 */
export const acrossLines = (question: Question): RegExp | undefined => {
  const { flags, multiline, source } = question
  // The rewrite does not understand the nested classes of the flag `v`.
  if (multiline || /[^imsu]/.test(flags) || source.includes("\n")) return undefined
  const wordEdge = /\(\?<?!\[A-Za-z0-9_\]\)/
  const piece = new RegExp(
    `${wordEdge.source}|\\\\(?:[pP]\\{[^}]*\\}|[^])|\\[(?:\\\\[^]|[^\\]\\\\])*\\]|\\(\\?(?:<(?![=!])|:)|[^]`,
    "g"
  )
  let out = ""
  let isOpening = false
  for (const part of source.match(piece) ?? []) {
    // Other lookarounds see beyond the line, and modifiers may change the meaning of an anchor.
    if (isOpening && part === "?") return undefined
    isOpening = part === "("
    // Without `u` this is a literal "p" and the text after it.
    if (/^\\[pP]/.test(part) && !flags.includes("u")) return undefined
    if (part === ".") out += flags.includes("s") ? "[^\\n]" : "."
    else if (part === "\\s") out += "[^\\S\\n]"
    else if (part === "[^]") out += "[^\\n]"
    else if (/^\\[WDpP]/.test(part) || (part.length > 1 && part.startsWith("["))) {
      out += /^\[[\w \-.,:;/@#%&"'$+*|()]+\]$/.test(part) && !part.includes("-") ? part : `(?:(?!\\n)${part})`
    } else if (/^\\[^dwSbBtvfr^$\\.*+?()[\]{}|/-]/.test(part)) return undefined
    else out += part
  }
  try {
    return new RegExp(out, `${flags.replace("m", "")}gm`)
  } catch {
    return undefined
  }
}
