/** Shows no absolute paths of the machine to a model. */
import { basename, isAbsolute } from "../../runtime/node.ts"
import { plural, size } from "../../model/words.ts"
import type { Preview } from "./model.ts"

const shown = 10

/** Formats text as Markdown code, with a fence longer than any run of backticks in it. */
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
