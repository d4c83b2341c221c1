/**
 * Rewrites a regular expression for single lines so that it searches a text of many lines. The regular-expression engine
 * then runs once per matching line, not once per line.
 *
 * No part of the result can match a line feed, so a match never extends beyond its line. The anchors match at the start
 * and end of every line. In a text without "\r", U+2028 and U+2029, which "^" and "$" also treat as line ends, the
 * result finds exactly the same matches. In other texts the result may find more matches, so each matching line must be
 * tested again by itself.
 *
 * The rewrite is correct because a line feed has the same effect as the end of the text. Every part that consumes a
 * character fails at a line feed and at the end. For "\b", "\B" and the lookarounds of a whole-word search, neither a
 * line feed nor the end of the text is a word character.
 */
import type { Question } from "./scan.ts"

/**
 * Returns the rewritten expression, or `undefined` if the rewrite is not known to be correct.
 *
 * The function refers to no other code, so that its source can run in a worker.
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
    // Other lookarounds could test characters of other lines, and modifiers may change the meaning of an anchor.
    if (isOpening && part === "?") return undefined
    isOpening = part === "("
    // Without the flag `u`, "\p" means a literal "p".
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
