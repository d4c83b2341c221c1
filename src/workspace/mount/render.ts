/** Mounts as a list that a model reads: where files have come from, and which they are; where on the machine that is, it need not know. */
import { basename, isAbsolute } from "node:path"
import type { Preview } from "./model.ts"

const shown = 10

const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

const units = ["KiB", "MiB", "GiB", "TiB", "PiB"]

/** As the tools say it: exact below 1,024 bytes, else one decimal. */
const size = (bytes: number): string => {
  if (bytes < 1024) return plural(bytes, "byte")
  let value = bytes / 1024
  let unit = 0
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value.toFixed(1)} ${units[unit]!}`
}

/** As code, whatever backticks are in it. */
const code = (text: string): string => {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = "`".repeat(longest + 1)
  return longest > 0 ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`
}

const nameOf = (source: string): string => (isAbsolute(source) ? basename(source) || source : source)

const one = ({ bytes, entries, files, leftOut, source, target }: Preview): string => {
  const named = entries.slice(0, shown)
  const more = files - named.length
  const left = leftOut.count === 0 ? "" : `; ${plural(leftOut.count, "entry", "entries")} left out`
  return [
    `- ${code(nameOf(source))} → ${code(target)}: ${plural(files, "file")}, ${size(bytes)}${left}`,
    ...named.map((entry) => `  - ${code(entry)}`),
    ...(more > 0 ? [`  - +${more} more`] : [])
  ].join("\n")
}

export const render = (previews: ReadonlyArray<Preview>): string => previews.map(one).join("\n")
