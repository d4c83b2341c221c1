/** A patch as data, the same for both forms: files, the hunks of each, and the lines of those, with the line of the patch where each stands. */
import { type Refused, refused } from "../definition.ts"

/** Kept, taken out or put in. */
export type Sign = " " | "-" | "+"

export interface Line {
  readonly sign: Sign
  /** Without its LF; a CR before that is a part of it. */
  readonly text: string
  /** It is the file's last line, and no newline ends it. */
  readonly open?: true
}

export interface Hunk {
  /** 1-based line of the patch. */
  readonly at: number
  readonly lines: ReadonlyArray<Line>
  /** Lines that stand somewhere above the place, each below the one before. */
  readonly anchors: ReadonlyArray<string>
  /** How many lines stand above the place, as the patch has it. */
  readonly above?: number | undefined
  /** The place is the end of the file. */
  readonly atEnd: boolean
}

export interface FilePatch {
  /** 1-based line of the patch. */
  readonly at: number
  readonly form: "v4a" | "unified"
  /** As the patch spells it; without one the file is added. */
  readonly from?: string | undefined
  /** Without one the file is removed; another than `from`: it is moved. */
  readonly to?: string | undefined
  /** What is to be changed may also be missing: it is made then. */
  readonly mayBeNew: boolean
  readonly hunks: ReadonlyArray<Hunk>
  /** The patch would set permissions, which is not done. */
  readonly setsMode: boolean
}

export const again = "Nothing was changed; send the whole patch again, corrected."

export const problem = (line: number, what: string, advice: string = again): Refused =>
  refused(`Line ${line} of the patch ${what}.`, advice)

const maxQuoted = 120

export const quoted = (text: string): string =>
  `${JSON.stringify(text.slice(0, maxQuoted).toWellFormed())}${text.length > maxQuoted ? "…" : ""}`

/** What both sides of a hunk are. */
export const oldLines = (hunk: Hunk): ReadonlyArray<Line> => hunk.lines.filter(({ sign }) => sign !== "+")
export const newLines = (hunk: Hunk): ReadonlyArray<Line> => hunk.lines.filter(({ sign }) => sign !== "-")

/** What no file can become: nothing changes, or something follows the line that has no newline. */
export const misformed = ({ at, lines }: Hunk): Refused | undefined => {
  if (lines.every(({ sign }) => sign === " ")) {
    return problem(at, "begins a hunk that changes nothing: none of its lines begins with - or +")
  }
  for (const skipped of ["+", "-"]) {
    const side = lines.filter(({ sign }) => sign !== skipped)
    if (side.some(({ open }, index) => open === true && index < side.length - 1)) {
      return problem(at, "begins a hunk in which lines follow one that has no newline at its end")
    }
  }
  return undefined
}

export interface Heading {
  readonly anchor?: string
  /** The numbers, where it has them. */
  readonly numbers?: { readonly old: number; readonly oldCount: number; readonly newCount: number }
}

const ranges = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))?(?: @@|\s*$)/

/** The line with @@. Models mix the forms: numbers count wherever they stand, and other text is a line to look for. */
export const headingOf = (line: string): Heading => {
  const found = ranges.exec(line)
  if (found !== null) {
    const [, old, oldCount = "1", , newCount = "1"] = found
    return { numbers: { old: Number(old), oldCount: Number(oldCount), newCount: Number(newCount) } }
  }
  const rest = line.slice(line.startsWith("@@ ") ? 3 : 2).trimEnd()
  const anchor = rest.endsWith("@@") ? rest.slice(0, -2).trimEnd() : rest
  return anchor === "" || anchor.trim() === "..." ? {} : { anchor }
}

/** Lines above the place; a hunk that takes nothing out names the line before. */
export const aboveOf = ({ numbers }: Heading): number | undefined =>
  numbers === undefined ? undefined : numbers.oldCount === 0 ? numbers.old : Math.max(0, numbers.old - 1)
