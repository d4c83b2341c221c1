import type { TextStyle } from "./look.ts"

const inHunk = (look: TextStyle, line: string): string => {
  if (line.startsWith("@@")) return look.cyan(line)
  if (line.startsWith("+")) return look.green(line)
  return line.startsWith("-") ? look.red(line) : line
}

/** Colours a difference. The header is recognized by its position, because in a hunk `--- x` may be a removed line `-- x`. */
export const paintDiff = (look: TextStyle, diff: string): string => {
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
