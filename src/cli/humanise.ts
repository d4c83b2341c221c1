import * as DateTime from "effect/DateTime"

export { bytes, count, whole } from "../model/words.ts"

/** Formats a duration as `0.74 ms`, `12 ms`, `3.4 s`, `2 min 5 s`. */
export const duration = (nanos: bigint): string => {
  const micros = Number(nanos) / 1000
  if (micros < 1000) return `${(micros / 1000).toFixed(2)} ms`
  if (micros < 10_000) return `${(micros / 1000).toFixed(1)} ms`
  if (micros < 1_000_000) return `${Math.round(micros / 1000)} ms`
  if (micros < 59_950_000) return `${(micros / 1_000_000).toFixed(1)} s`
  const seconds = Math.round(micros / 1_000_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Formats a time as `2026-01-31 23:59 UTC`. */
export const time = (at: DateTime.Utc): string => {
  const iso = DateTime.formatIso(at)
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`
}

const permissionLetters = ["---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"]

/** Formats permissions as `rw-r--r--`. */
export const mode = (bits: number): string =>
  `${permissionLetters[(bits >> 6) & 7]}${permissionLetters[(bits >> 3) & 7]}${permissionLetters[bits & 7]}`
