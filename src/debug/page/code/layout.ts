/**
 * Lays out the lines of a text in the editor. If long lines are wrapped, a line of more than 5,000 characters is split into
 * several lines. A browser needs seconds to wrap a line of several megabytes, and repeats this at each change.
 */

const maxPieceCharacters = 5000

export interface Layout {
  readonly text: string
  /**
   * Returns the label for a line of the editor. The label is the line number in the file, or "" for the continuation of a long
   * line. Numbers count from 1.
   */
  readonly labelOf: (shown: number) => string
  readonly fileLineOf: (shown: number) => number
  /** Returns the line of the editor in which a line of the file begins. The result may lie outside the text. */
  readonly editorLineOf: (line: number) => number
}

const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800

const piecesOf = (text: string, start: number, end: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let at = start; at < end;) {
    let stop = Math.min(end, at + maxPieceCharacters)
    if (stop < end && isHighSurrogate(text, stop - 1)) stop--
    pieces.push(text.slice(at, stop))
    at = stop
  }
  return pieces
}

const unsplitLayout = (text: string, firstLine: number): Layout => ({
  text,
  labelOf: (shown) => String(shown + firstLine - 1),
  fileLineOf: (shown) => shown + firstLine - 1,
  editorLineOf: (line) => line - firstLine + 1
})

/** Lays out a text whose first line has the number `firstLine`. The lines of the text must end with LF. */
export const layoutOf = (text: string, firstLine: number, isWrapping: boolean): Layout => {
  if (!isWrapping) return unsplitLayout(text, firstLine)
  const shown: Array<string> = []
  const lines: Array<number> = []
  let line = firstLine
  for (let at = 0; at <= text.length; line++) {
    const found = text.indexOf("\n", at)
    const end = found === -1 ? text.length : found
    const pieces = end - at > maxPieceCharacters ? piecesOf(text, at, end) : [text.slice(at, end)]
    for (const piece of pieces) {
      shown.push(piece)
      lines.push(line)
    }
    at = end + 1
  }
  if (shown.length === line - firstLine) return unsplitLayout(text, firstLine)
  const last = shown.length
  return {
    text: shown.join("\n"),
    labelOf: (number) => (number > 1 && lines[number - 2] === lines[number - 1] ? "" : String(lines[number - 1] ?? "")),
    fileLineOf: (number) => lines[Math.min(number, last) - 1]!,
    editorLineOf: (wanted) => {
      const found = lines.indexOf(wanted)
      return found === -1 ? (wanted < firstLine ? 0 : last + 1) : found + 1
    }
  }
}
