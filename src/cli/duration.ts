import * as Duration from "effect/Duration"

const units: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3600],
  ["d", 86_400],
  ["w", 604_800]
])

/** Parses a time such as `90 minutes`, `36h` or `1 day`. Returns `undefined` for any other text. */
export const parseDuration = (text: string): Duration.Duration | undefined => {
  const [, count, word] = /^\s*(\d{1,9})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)\s*$/i.exec(text) ?? []
  return count === undefined ? undefined : Duration.seconds(Number(count) * units.get(word![0]!.toLowerCase())!)
}
