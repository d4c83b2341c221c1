import { type Refused, refused } from "../definition.ts"

export type Sign = " " | "-" | "+"

export interface Line {
  readonly sign: Sign
  /** The text without its LF; a CR before the LF belongs to the text. */
  readonly text: string
  /** Set for the last line of a file that does not end in a newline. */
  readonly lacksNewline?: true
}

export interface Hunk {
  /** The line number in the patch, from 1. */
  readonly patchLine: number
  readonly lines: ReadonlyArray<Line>
  /** Lines that must stand above the place, each below the one before. */
  readonly anchors: ReadonlyArray<string>
  /** The number of lines above the place, according to the patch. */
  readonly linesAbove?: number | undefined
  /** True if the place is the end of the file. */
  readonly isAtEnd: boolean
}

export interface FilePatch {
  readonly patchLine: number
  readonly form: "v4a" | "unified"
  /** The old path as the patch spells it; absent if the file is added. */
  readonly from?: string | undefined
  /** The new path; absent if the file is removed. A path other than `from` moves the file. */
  readonly to?: string | undefined
  /** True if the file may be missing; it is then created. */
  readonly mayBeNew: boolean
  readonly hunks: ReadonlyArray<Hunk>
  /** True if the patch sets permissions, which are ignored. */
  readonly setsMode: boolean
}

export const sendAgainAdvice = "Nothing was changed; send the whole patch again, corrected."

export const refuseLine = (line: number, what: string, advice: string = sendAgainAdvice): Refused =>
  refused(`Line ${line} of the patch ${what}.`, advice)

const maxQuoted = 120

export const quoted = (text: string): string =>
  `${JSON.stringify(text.slice(0, maxQuoted).toWellFormed())}${text.length > maxQuoted ? "…" : ""}`

export const oldLines = (hunk: Hunk): ReadonlyArray<Line> => hunk.lines.filter(({ sign }) => sign !== "+")
export const newLines = (hunk: Hunk): ReadonlyArray<Line> => hunk.lines.filter(({ sign }) => sign !== "-")

/** Refuses a hunk that changes nothing, or that has lines after one without a newline. */
export const misformed = ({ patchLine, lines }: Hunk): Refused | undefined => {
  if (lines.every(({ sign }) => sign === " ")) {
    return refuseLine(patchLine, "begins a hunk that changes nothing: none of its lines begins with - or +")
  }
  for (const skipped of ["+", "-"]) {
    const side = lines.filter(({ sign }) => sign !== skipped)
    if (side.some(({ lacksNewline }, index) => lacksNewline === true && index < side.length - 1)) {
      return refuseLine(patchLine, "begins a hunk in which lines follow one that has no newline at its end")
    }
  }
  return undefined
}

export interface Heading {
  readonly anchor?: string
  readonly numbers?: { readonly old: number; readonly oldCount: number; readonly newCount: number }
}

const rangePattern = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))?(?: @@|\s*$)/

/** Parses a heading with @@. Models mix the two forms: numbers count in either, and other text is a line to search for. */
export const headingOf = (line: string): Heading => {
  const found = rangePattern.exec(line)
  if (found !== null) {
    const [, old, oldCount = "1", , newCount = "1"] = found
    return { numbers: { old: Number(old), oldCount: Number(oldCount), newCount: Number(newCount) } }
  }
  const rest = line.slice(line.startsWith("@@ ") ? 3 : 2).trimEnd()
  const anchor = rest.endsWith("@@") ? rest.slice(0, -2).trimEnd() : rest
  return anchor === "" || anchor.trim() === "..." ? {} : { anchor }
}

/** Returns the number of lines above the place; a hunk that removes no line states the line before its place. */
export const linesAboveOf = ({ numbers }: Heading): number | undefined =>
  numbers === undefined ? undefined : numbers.oldCount === 0 ? numbers.old : Math.max(0, numbers.old - 1)
