/** Formats JSON by changing only its white space; digits, order and comments stay. */
import { format } from "jsonc-parser"

export const formatted = (text: string): string => {
  const edits = format(text, undefined, { insertSpaces: true, tabSize: 2, eol: "\n" }).sort((a, b) => a.offset - b.offset)
  // Join once at the end: applying the edits one by one would copy the whole text each time.
  const parts: Array<string> = []
  let at = 0
  for (const { content, length, offset } of edits) {
    parts.push(text.slice(at, offset), content)
    at = offset + length
  }
  parts.push(text.slice(at))
  return parts.join("")
}
