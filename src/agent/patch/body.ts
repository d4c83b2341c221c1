/**
 * Models miscount, so a hunk whose counts do not fit ends at the first line that cannot belong to it. A hunk at the very end
 * with fewer lines than stated is refused, because the patch may have been cut off.
 */
import type { Refused } from "../definition.ts"
import { aboveOf, headingOf, type Hunk, type Line, misformed, problem, quoted, type Sign } from "./model.ts"

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
const goesOn = (lines: ReadonlyArray<string>, at: number): number => {
  let next = at
  while (isEmpty(lines[next])) next++
  const line = lines[next]
  return line !== undefined && signs.has(line[0]!) && !isSignature(line) && !beginsFile(lines, next) ? next : -1
}

interface Left {
  old: number
  now: number
}

/**
 * Tests whether the hunk ends here. The two name lines of the next file look like lines of a hunk, and are such lines if the
 * counts end with them.
 */
const endsHere = (lines: ReadonlyArray<string>, at: number, left: Left): boolean => {
  if (left.old <= 0 && left.now <= 0) return isSignature(lines[at]!) || beginsFile(lines, at)
  const isPair = beginsFile(lines, at) && lines[at + 2]?.startsWith("@@") === true
  return isPair && !(left.old === 1 && left.now === 1)
}

const cutOff = (at: number, old: number, now: number): Refused =>
  problem(
    at,
    `begins a hunk with fewer lines than its header states (${old} old, ${now} new), so the patch may have been cut off`,
    "Nothing was changed; send the whole patch again, complete and with the right numbers."
  )

export const hunkAt = (lines: ReadonlyArray<string>, at: number): { readonly hunk: Hunk; readonly next: number } | Refused => {
  const heading = headingOf(lines[at]!)
  const stated = { old: heading.numbers?.oldCount ?? 0, now: heading.numbers?.newCount ?? 0 }
  const left: Left = { ...stated }
  const body: Array<Line> = []
  let next = at + 1
  let known = -1
  for (; next < lines.length; next++) {
    const line = lines[next]!
    const sign = isEmpty(line) ? " " : line[0]!
    if (line.startsWith("\\")) {
      if (body.length > 0) body.push({ ...body.pop()!, open: true })
      continue
    }
    if (isDivider(line) || endsHere(lines, next, left)) break
    const isFull = left.old <= 0 && left.now <= 0
    if (isFull && isEmpty(line) && next > known && (known = goesOn(lines, next)) === -1) break
    if (!signs.has(sign)) {
      if (isFull) break
      return problem(next + 1, `is in a hunk and begins with neither a space, - nor +: ${quoted(line)}`)
    }
    body.push({ sign: sign as Sign, text: isEmpty(line) ? line : line.slice(1) })
    if (sign !== "+") left.old--
    if (sign !== "-") left.now--
  }
  if (next >= lines.length && (left.old > 0 || left.now > 0)) return cutOff(at + 1, stated.old, stated.now)
  const { anchor } = heading
  const anchors = anchor === undefined ? [] : [anchor]
  const hunk: Hunk = { at: at + 1, lines: body, anchors, above: aboveOf(heading), atEnd: false }
  return misformed(hunk) ?? { hunk, next }
}
