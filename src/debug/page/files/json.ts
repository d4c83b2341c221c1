/** JSON laid out anew by moving its white space alone: no digit, order or comment is another. */
import { format } from "jsonc-parser"

export const formatted = (text: string): string => {
  const edits = format(text, undefined, { insertSpaces: true, tabSize: 2, eol: "\n" }).sort((a, b) => a.offset - b.offset)
  // Put together at once: an edit after the other would copy all of the text for each.
  const parts: Array<string> = []
  let at = 0
  for (const { content, length, offset } of edits) {
    parts.push(text.slice(at, offset), content)
    at = offset + length
  }
  parts.push(text.slice(at))
  return parts.join("")
}
