/**
 * Escapes characters that a terminal would act on: those that move its cursor, change its title or turn the text direction.
 * File names and contents may contain them.
 */

/** The unsafe characters: C0 except tab and line feed, DEL, C1, line and paragraph separators, and direction marks. */
const unsafeCharacters = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const unsafeInName = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escaped = (character: string): string => {
  const code = character.charCodeAt(0)
  if (code === 9) return "\\t"
  if (code === 10) return "\\n"
  if (code === 13) return "\\r"
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`
}

export const printableText = (text: string): string => text.replace(unsafeCharacters, escaped)

export const printableName = (name: string): string => name.replace(unsafeInName, escaped)

/** Escapes the text of a file chunk by chunk. A final CR is held back, because it belongs to an LF that may follow. */
export const printableLines = (): ((text: string, isLast: boolean) => string) => {
  let heldReturn = ""
  return (text, isLast) => {
    const all = heldReturn + text
    heldReturn = !isLast && all.endsWith("\r") ? "\r" : ""
    return printableText((heldReturn === "" ? all : all.slice(0, -1)).replaceAll("\r\n", "\n"))
  }
}
