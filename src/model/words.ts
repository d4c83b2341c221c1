/** Formats numbers and lists as text for people. */
import * as ByteSize from "effect/ByteSize"

/** Formats a count with its noun: `1 match`, `0 matches`. */
export const formatCount = (count: number, singular: string, pluralForm: string = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : pluralForm}`

/** Formats an integer with thousands separators: `1,234,567`. */
export const whole = (count: number): string => {
  // The first call of toLocaleString loads locale data, which delays the start of a program.
  if (!Number.isSafeInteger(count)) return count.toLocaleString("en-US")
  const digits = `${Math.abs(count)}`
  const groups: Array<string> = []
  for (let end = digits.length; end > 0; end -= 3) groups.unshift(digits.slice(Math.max(0, end - 3), end))
  return `${count < 0 ? "-" : ""}${groups.join(",")}`
}

const plurals: Readonly<Record<string, string>> = { directory: "directories", entry: "entries", match: "matches" }

/** Formats a count with thousands separators and its noun: `1 file`, `2,000 directories`. */
export const count = (count: number, noun: string): string =>
  `${whole(count)} ${count === 1 ? noun : (plurals[noun] ?? `${noun}s`)}`

/** Formats a size: exact below 1,024 bytes, otherwise with one decimal, such as `1.5 KiB`. */
export const formatSize = (bytes: number): string =>
  bytes < 1024 ? formatCount(bytes, "byte") : ByteSize.format(ByteSize.bytes(bytes), { precision: 1, trailingZeros: true })

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

/** Formats a byte count: `12 B`, `1.5 KiB`, `340 MiB`. */
export const bytes = (count: number): string => {
  let value = count
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** Joins items as `a`, `a and b`, `a, b and c`. */
export const listed = (items: ReadonlyArray<string | number>, conjunction: "and" | "or" = "and"): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} ${conjunction} ${items.at(-1)}`
