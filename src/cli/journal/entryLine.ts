import * as DateTime from "effect/DateTime"
import { describeEntry } from "../../journal/entries/said.ts"
import type { Entry, Recorded } from "../../journal/Journal.ts"
import type { TextStyle } from "../look.ts"

const tagColumns = "FileMakeDirectory".length

const position = (look: TextStyle, position: number): string => look.yellow(`${position}`.padStart(6))

/** Formats a time as `2026-01-31 23:59:00.123`, in UTC; a number outside the calendar stays a number. */
export const formatTime = (at: number): string => {
  try {
    return DateTime.formatIso(DateTime.makeUnsafe(at)).replace("T", " ").replace("Z", "")
  } catch {
    return `${at}`
  }
}

export const formatRow = (look: TextStyle, at: number, millis: number, cells: ReadonlyArray<string>): string =>
  `${[position(look, at), look.dim(formatTime(millis)), ...cells].join("  ").trimEnd()}\n`

const isFault = (entry: Entry): boolean =>
  entry._tag === "FileFault" || (entry._tag === "DaemonChanged" && entry.failure !== undefined)

export const formatEntry = (look: TextStyle, { at, entry, position }: Recorded<Entry>): string => {
  const [subject, detail] = describeEntry(entry)
  const applyColour = isFault(entry) ? look.red : look.cyan
  const id = "correlationId" in entry ? look.dim(look.name(entry.correlationId)) : ""
  const cells = [applyColour(entry._tag.padEnd(tagColumns)), look.name(subject), look.name(detail), id]
  return formatRow(
    look,
    position,
    at,
    cells.filter((cell) => cell !== "")
  )
}
