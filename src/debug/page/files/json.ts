/** Formats JSON by changing only white space. Preserves numbers, comments and the order of keys. */
import { format } from "jsonc-parser"

export const formatted = (text: string): string => {
  const edits = format(text, undefined, { insertSpaces: true, tabSize: 2, eol: "\n" }).sort((a, b) => a.offset - b.offset)
  // Join the parts once at the end, because each single edit would copy the whole text.
  const parts: Array<string> = []
  let at = 0
  for (const { content, length, offset } of edits) {
    parts.push(text.slice(at, offset), content)
    at = offset + length
  }
  parts.push(text.slice(at))
  return parts.join("")
}
