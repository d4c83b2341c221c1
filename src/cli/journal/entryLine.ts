import * as DateTime from "effect/DateTime"
import { said } from "../../journal/entries/said.ts"
import type { Entry, Recorded } from "../../journal/Journal.ts"
import type { Look } from "../look.ts"

const widestTag = "FileMakeDirectory".length

const position = (look: Look, position: number): string => look.yellow(`${position}`.padStart(6))

/** Formats a time as `2026-01-31 23:59:00.123`, in UTC; a number outside the calendar stays a number. */
export const time = (at: number): string => {
  try {
    return DateTime.formatIso(DateTime.makeUnsafe(at)).replace("T", " ").replace("Z", "")
  } catch {
    return `${at}`
  }
}

export const row = (look: Look, at: number, millis: number, cells: ReadonlyArray<string>): string =>
  `${[position(look, at), look.dim(time(millis)), ...cells].join("  ").trimEnd()}\n`

const isFault = (entry: Entry): boolean =>
  entry._tag === "FileFault" || (entry._tag === "DaemonChanged" && entry.failure !== undefined)

export const line = (look: Look, { at, entry, position }: Recorded<Entry>): string => {
  const [subject, detail] = said(entry)
  const paint = isFault(entry) ? look.red : look.cyan
  const id = "correlationId" in entry ? look.dim(look.name(entry.correlationId)) : ""
  const cells = [paint(entry._tag.padEnd(widestTag)), look.name(subject), look.name(detail), id]
  return row(
    look,
    position,
    at,
    cells.filter((cell) => cell !== "")
  )
}
