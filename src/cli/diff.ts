/**
 * A unified difference in the colours that git gives it.
 */
import type { Look } from "./look.ts"

const inHunk = (look: Look, line: string): string => {
  if (line.startsWith("@@")) return look.cyan(line)
  if (line.startsWith("+")) return look.green(line)
  return line.startsWith("-") ? look.red(line) : line
}

/** In a hunk `--- x` is a line `-- x` that was removed, so the head is told by where it stands. */
export const paintDiff = (look: Look, diff: string): string => {
  let isHead = true
  return look
    .lines(diff)
    .split("\n")
    .map((line) => {
      isHead &&= !line.startsWith("@@")
      return isHead ? look.bold(line) : inHunk(look, line)
    })
    .join("\n")
}
