/** Shows no absolute paths of the machine to a model. */
import { basename, isAbsolute } from "../../runtime/node.ts"
import { formatCount, formatSize } from "../../model/words.ts"
import type { Preview } from "./model.ts"

const maxShownEntries = 10

/** Formats text as Markdown code, with a fence longer than any run of backticks in it. */
const code = (text: string): string => {
  const longestFence = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = "`".repeat(longestFence + 1)
  return longestFence > 0 ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`
}

const nameOf = (source: string): string => (isAbsolute(source) ? basename(source) || source : source)

const renderMount = ({ bytes, entries, files, leftOut, source, target }: Preview): string => {
  const shownEntries = entries.slice(0, maxShownEntries)
  const more = files - shownEntries.length
  const skippedText = leftOut.count === 0 ? "" : `; ${formatCount(leftOut.count, "entry", "entries")} left out`
  return [
    `- ${code(nameOf(source))} → ${code(target)}: ${formatCount(files, "file")}, ${formatSize(bytes)}${skippedText}`,
    ...shownEntries.map((entry) => `  - ${code(entry)}`),
    ...(more > 0 ? [`  - +${more} more`] : [])
  ].join("\n")
}

export const render = (previews: ReadonlyArray<Preview>): string => previews.map(renderMount).join("\n")
