/**
 * Models miscount, so a hunk whose counts do not fit ends at the first line that cannot belong to it. A hunk at the very end
 * with fewer lines than stated is refused, because the patch may have been cut off.
 */
import type { Refused } from "../definition.ts"
import { linesAboveOf, headingOf, type Hunk, type Line, misformed, refuseLine, quoted, type Sign } from "./model.ts"

const signs: ReadonlySet<string> = new Set([" ", "-", "+"])

/** Lines that may follow a hunk; none begins like a line of a hunk. */
const divider =
  /^(?:@@|diff |Index: |={10}|From [0-9a-f]{7,} |commit [0-9a-f]{7,}|Only in |Binary files |Files |\*\*\* End Patch|```)/

export const isDivider = (line: string): boolean => divider.test(line)

const isSignature = (line: string): boolean => line === "-- " || line === "--"

export const beginsFile = (lines: ReadonlyArray<string>, at: number): boolean =>
  lines[at]!.startsWith("--- ") && lines[at + 1]?.startsWith("+++ ") === true

const isEmpty = (line: string | undefined): boolean => line === "" || line === "\r"

/** Returns the index at which the hunk continues below empty lines, which are then context; -1 if it does not continue. */
const continuationIndex = (lines: ReadonlyArray<string>, at: number): number => {
  let next = at
  while (isEmpty(lines[next])) next++
  const line = lines[next]
  return line !== undefined && signs.has(line[0]!) && !isSignature(line) && !beginsFile(lines, next) ? next : -1
}

interface RemainingLines {
  old: number
  now: number
}

/**
 * Tests whether the hunk ends here. The two name lines of the next file look like lines of a hunk, and are such lines if the
 * counts end with them.
 */
const isHunkEnd = (lines: ReadonlyArray<string>, at: number, remaining: RemainingLines): boolean => {
  if (remaining.old <= 0 && remaining.now <= 0) return isSignature(lines[at]!) || beginsFile(lines, at)
  const isPair = beginsFile(lines, at) && lines[at + 2]?.startsWith("@@") === true
  return isPair && !(remaining.old === 1 && remaining.now === 1)
}

const refuseCutOff = (at: number, old: number, now: number): Refused =>
  refuseLine(
    at,
    `begins a hunk with fewer lines than its header states (${old} old, ${now} new), so the patch may have been cut off`,
    "Nothing was changed; send the whole patch again, complete and with the right numbers."
  )

export const hunkAt = (lines: ReadonlyArray<string>, at: number): { readonly hunk: Hunk; readonly next: number } | Refused => {
  const heading = headingOf(lines[at]!)
  const statedCounts = { old: heading.numbers?.oldCount ?? 0, now: heading.numbers?.newCount ?? 0 }
  const remaining: RemainingLines = { ...statedCounts }
  const body: Array<Line> = []
  let next = at + 1
  let checkedUntil = -1
  for (; next < lines.length; next++) {
    const line = lines[next]!
    const sign = isEmpty(line) ? " " : line[0]!
    if (line.startsWith("\\")) {
      if (body.length > 0) body.push({ ...body.pop()!, lacksNewline: true })
      continue
    }
    if (isDivider(line) || isHunkEnd(lines, next, remaining)) break
    const isFull = remaining.old <= 0 && remaining.now <= 0
    if (isFull && isEmpty(line) && next > checkedUntil && (checkedUntil = continuationIndex(lines, next)) === -1) break
    if (!signs.has(sign)) {
      if (isFull) break
      return refuseLine(next + 1, `is in a hunk and begins with neither a space, - nor +: ${quoted(line)}`)
    }
    body.push({ sign: sign as Sign, text: isEmpty(line) ? line : line.slice(1) })
    if (sign !== "+") remaining.old--
    if (sign !== "-") remaining.now--
  }
  if (next >= lines.length && (remaining.old > 0 || remaining.now > 0))
    return refuseCutOff(at + 1, statedCounts.old, statedCounts.now)
  const { anchor } = heading
  const anchors = anchor === undefined ? [] : [anchor]
  const hunk: Hunk = { patchLine: at + 1, lines: body, anchors, linesAbove: linesAboveOf(heading), isAtEnd: false }
  return misformed(hunk) ?? { hunk, next }
}
