/** Numbers for display; programs read the raw values. */

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

/** Formats a byte count: `12 B`, `1.5 KiB`, `340 MiB`. At most three digits, except for bytes. */
export const bytes = (count: number): string => {
  let value = count
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** Formats an integer with thousands separators: `1,234,567`. */
export const whole = (count: number): string => count.toString().replace(/\B(?=(\d{3})+$)/g, ",")

const plurals: Readonly<Record<string, string>> = { directory: "directories", entry: "entries", match: "matches" }

/** Formats a count with its noun: `1 file`, `2 directories`. */
export const count = (count: number, noun: string): string =>
  `${whole(count)} ${count === 1 ? noun : (plurals[noun] ?? `${noun}s`)}`
