/**
 * A name or a line out of a file is data, and a terminal takes data for commands: whatever could move its cursor, change its title or
 * turn the reading direction is shown as an escape instead.
 */

/** C0 but tab and line feed, DEL, C1, the line and paragraph separators, and the marks that turn the reading direction. */
const unsafe = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const unsafeInName = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escaped = (character: string): string => {
  const code = character.charCodeAt(0)
  if (code === 9) return "\\t"
  if (code === 10) return "\\n"
  if (code === 13) return "\\r"
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`
}

/** Text that keeps its lines and tabs. */
export const printableText = (text: string): string => text.replace(unsafe, escaped)

/** Text that stays on one line. */
export const printableName = (name: string): string => name.replace(unsafeInName, escaped)

/** As much of a file's text as is printed at once; a CR belongs to the LF after it, so one at the end waits for what follows. */
export const printableLines = (): ((text: string, isLast: boolean) => string) => {
  let held = ""
  return (text, isLast) => {
    const all = held + text
    held = !isLast && all.endsWith("\r") ? "\r" : ""
    return printableText((held === "" ? all : all.slice(0, -1)).replaceAll("\r\n", "\n"))
  }
}
