/** Counts and sizes as text, in one form for everything that a model reads. */

/** Formats a count with its noun: `1 match`, `0 matches`. */
export const plural = (count: number, one: string, many: string = `${one}s`): string => `${count} ${count === 1 ? one : many}`

const units = ["KiB", "MiB", "GiB", "TiB", "PiB"]

/**
 * Formats a size: exact below 1,024 bytes, otherwise with one decimal in the unit that keeps the number below 1,024.
 */
export const size = (bytes: number): string => {
  if (bytes < 1024) return plural(bytes, "byte")
  let value = bytes / 1024
  let unit = 0
  // 1023.95 would print as 1024.0.
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value.toFixed(1)} ${units[unit]!}`
}
