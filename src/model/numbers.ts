/** Numbers as people read them, in what is shown and not in what programs are told. */

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

/** `12 B`, `1.5 KiB`, `340 MiB`: three digits at most, except for bytes. */
export const bytes = (count: number): string => {
  let value = count
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** `1,234,567` */
export const whole = (count: number): string => count.toString().replace(/\B(?=(\d{3})+$)/g, ",")

const plurals: Readonly<Record<string, string>> = { directory: "directories", entry: "entries", match: "matches" }

/** `1 file`, `2 directories` */
export const count = (count: number, noun: string): string =>
  `${whole(count)} ${count === 1 ? noun : (plurals[noun] ?? `${noun}s`)}`
