import type { JournalItem } from "../../model.ts"
import { escapeName } from "../components.tsx"

export const escapeLine = escapeName

export const escapeText = (text: string): string => text.replace(/[^\n\t]+/g, escapeName)

export const formatCount = (n: number, one: string, many = `${one}s`): string =>
  `${n.toLocaleString("en")} ${n === 1 ? one : many}`

const padNumber = (n: number, width = 2): string => String(n).padStart(width, "0")

export const millisOf = (time: string | null | undefined): number | undefined => {
  const millis = time === null || time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(millis) ? undefined : millis
}

const dayOf = (date: Date): string => `${date.getFullYear()}-${padNumber(date.getMonth() + 1)}-${padNumber(date.getDate())}`

const clockOf = (date: Date): string =>
  `${padNumber(date.getHours())}:${padNumber(date.getMinutes())}:${padNumber(date.getSeconds())}.${padNumber(date.getMilliseconds(), 3)}`

/** Formats a time as `2026-01-31 23:59:00.123`, in the reader's time zone. */
export const formatAbsolute = (millis: number): string => {
  const date = new Date(millis)
  return `${dayOf(date)} ${clockOf(date)}`
}

/**
 * Formats a time on an axis of `spanMillis`. The longer the axis, the coarser the text: from milliseconds (up to 5 s) to
 * the day alone (over three days).
 */
export const formatClock = (millis: number, spanMillis: number): string => {
  const date = new Date(millis)
  if (spanMillis > 3 * 86_400_000) return dayOf(date)
  const time = clockOf(date)
  if (spanMillis > 86_400_000) return `${dayOf(date).slice(5)} ${time.slice(0, 5)}`
  return spanMillis > 600_000 ? time.slice(0, 5) : spanMillis > 5000 ? time.slice(0, 8) : time
}

const agoUnits: ReadonlyArray<readonly [seconds: number, unit: string]> = [
  [365 * 86_400, "y"],
  [61 * 86_400, "months"],
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"]
]

export const formatAgo = (millis: number, now: number): string => {
  const seconds = Math.round((now - millis) / 1000)
  if (Math.abs(seconds) < 3) return "now"
  const [size, unit] = agoUnits.find(([size]) => Math.abs(seconds) >= size)!
  const text = `${Math.floor(Math.abs(seconds) / (unit === "months" ? 30.44 * 86_400 : size))} ${unit}`
  return seconds < 0 ? `in ${text}` : `${text} ago`
}

/** Tests whether a message is only the size of the original message, and so is not shown. */
export const isOnlySize = (message: string): boolean => /^\d+ characters$/.test(message)

export const formatDuration = (millis: number): string => {
  if (millis < 1) return millis === 0 ? "0 ms" : `${Math.max(1, Math.round(millis * 1000))} µs`
  if (millis < 1000) return `${Math.round(millis)} ms`
  if (millis < 60_000) return `${(millis / 1000).toFixed(millis < 10_000 ? 2 : 1)} s`
  const seconds = Math.round(millis / 1000)
  return seconds < 3600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** Formats the time since a start as `+1.240`, `+2:03.120`, `+1:02:03`. */
export const formatSince = (millis: number): string => {
  const sign = millis < 0 ? "−" : "+"
  const all = Math.abs(Math.round(millis))
  const [hours, minutes, seconds] = [Math.floor(all / 3_600_000), Math.floor(all / 60_000) % 60, Math.floor(all / 1000) % 60]
  if (hours >= 48) return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`
  if (hours > 0) return `${sign}${hours}:${padNumber(minutes)}:${padNumber(seconds)}`
  const rest = padNumber(all % 1000, 3)
  return minutes > 0 ? `${sign}${minutes}:${padNumber(seconds)}.${rest}` : `${sign}${seconds}.${rest}`
}

export const partsOf = (path: string): readonly [directory: string, name: string] => {
  const cut = path.lastIndexOf("/", path.length - 2) + 1
  return [path.slice(0, cut), path.slice(cut)]
}

/** Returns the summary of a journal entry without the path and the fault, which are shown separately. */
export const detailOf = ({ fault, path, summary, to_path }: JournalItem): string => {
  const subject = to_path === undefined ? (path ?? "") : `${path} -> ${to_path}`
  const detail =
    summary === subject
      ? ""
      : subject !== "" && summary.startsWith(`${subject}: `)
        ? summary.slice(subject.length + 2)
        : summary
  return fault !== undefined && detail.startsWith(`${fault}: `) ? detail.slice(fault.length + 2) : detail
}

/** Returns the detail of an entry without the size, if the size is shown separately. */
export const briefOf = (item: JournalItem): string =>
  item.size_bytes === undefined
    ? detailOf(item)
    : detailOf(item)
        .replace(/(^|, )[\d.]+ (?:B|[KMGT]iB)(?: (?=at )|$|, )/, "$1")
        .replace(/, $/, "")
