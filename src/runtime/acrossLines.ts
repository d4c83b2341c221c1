/**
 * An expression that means one line, rewritten for a text of many lines, so that the engine is asked once for a text and not once for
 * a line. Nothing in the rewritten one can match a line feed, so that it never leaves a line, and its anchors hold at every edge of a
 * line. It finds the very same in a text without "\r" whose other line ends "^" and "$" know too (U+2028, U+2029) are missing; in
 * others it finds at least as much, and each line is to be looked at by itself.
 *
 * Why that is so: at the edge of a line the expression meets a line feed where it would have met the end of the text. All that
 * consumes a character fails at either; for "\b", "\B" and the lookarounds of a whole word either is no word character.
 */
import type { Question } from "./scan.ts"

/** Undefined where that is not known to be so. It uses nothing from outside itself, so that its source can be given to a worker. */
export const acrossLines = (question: Question): RegExp | undefined => {
  const { flags, multiline, source } = question
  // Nested classes of the flag `v` are not understood here.
  if (multiline || /[^imsu]/.test(flags) || source.includes("\n")) return undefined
  const wordEdge = /\(\?<?!\[A-Za-z0-9_\]\)/
  const piece = new RegExp(
    `${wordEdge.source}|\\\\(?:[pP]\\{[^}]*\\}|[^])|\\[(?:\\\\[^]|[^\\]\\\\])*\\]|\\(\\?(?:<(?![=!])|:)|[^]`,
    "g"
  )
  let out = ""
  let isOpening = false
  for (const part of source.match(piece) ?? []) {
    // Other lookarounds see beyond the line, and modifiers may change what an anchor means.
    if (isOpening && part === "?") return undefined
    isOpening = part === "("
    // Without `u` that is a "p" and what follows it.
    if (/^\\[pP]/.test(part) && !flags.includes("u")) return undefined
    if (part === ".") out += flags.includes("s") ? "[^\\n]" : "."
    else if (part === "\\s") out += "[^\\S\\n]"
    else if (part === "[^]") out += "[^\\n]"
    else if (/^\\[WDpP]/.test(part) || (part.length > 1 && part.startsWith("["))) {
      // A class of plain signs holds no line feed.
      out += /^\[[\w \-.,:;/@#%&"'$+*|()]+\]$/.test(part) && !part.includes("-") ? part : `(?:(?!\\n)${part})`
    }
    // Backreferences, characters by number, and "\n" itself.
    else if (/^\\[^dwSbBtvfr^$\\.*+?()[\]{}|/-]/.test(part)) return undefined
    else out += part
  }
  try {
    return new RegExp(out, `${flags.replace("m", "")}gm`)
  } catch {
    return undefined
  }
}
