/**
 * Parses the form that begins with `*** Begin Patch`, as leniently as the reference implementation wherever the meaning is
 * clear. A patch without its end marker is refused, because it may have been cut off.
 */
import type { Refused } from "../definition.ts"
import {
  linesAboveOf,
  type FilePatch,
  headingOf,
  type Hunk,
  type Line,
  misformed,
  refuseLine,
  quoted,
  type Sign
} from "./model.ts"

export const beginMarker = "*** Begin Patch"
const endMarker = "*** End Patch"
const endOfFileMarker = "*** End of File"
const moveToMarker = "*** Move to:"

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === ""
/** Tests for a line that a shell or a chat puts around a patch. */
const isWrapper = (line: string): boolean => isBlank(line) || line.startsWith("```") || line.trim() === "EOF"

type Parsed<A> = { readonly value: A; readonly next: number }

type Section = (lines: ReadonlyArray<string>, at: number, path: string) => Parsed<FilePatch> | Refused

const commonFields = { form: "v4a", mayBeNew: false, setsMode: false } as const

const add: Section = (lines, at, to) => {
  const content: Array<Line> = []
  let next = at + 1
  for (; next < lines.length && !lines[next]!.startsWith("***"); next++) {
    const line = lines[next]!
    if (line.startsWith("+")) content.push({ sign: "+", text: line.slice(1) })
    else if (line.startsWith("\\") && content.length > 0) content.push({ ...content.pop()!, lacksNewline: true })
    else if (!isBlank(line)) return refuseLine(next + 1, `must begin with +, like every line of an added file: ${quoted(line)}`)
    else if (lines[next + 1]?.startsWith("+") === true)
      return refuseLine(next + 1, "is empty; write an empty line of a new file as +")
  }
  const hunks = content.length === 0 ? [] : [{ patchLine: at + 2, lines: content, anchors: [], isAtEnd: false }]
  const fault = hunks.length === 0 ? undefined : misformed(hunks[0]!)
  return fault ?? { value: { ...commonFields, patchLine: at + 1, to, hunks }, next }
}

const parseDelete: Section = (lines, at, from) => {
  let next = at + 1
  while (next < lines.length && isBlank(lines[next])) next++
  const line = lines[next]
  return line === undefined || line.trim().startsWith("***")
    ? { value: { ...commonFields, patchLine: at + 1, from, hunks: [] }, next }
    : refuseLine(next + 1, `follows a *** Delete File, which has no lines of its own: ${quoted(line)}`)
}

const signs: ReadonlySet<string> = new Set([" ", "-", "+"])

/** Reads the lines up to the next marker. Empty lines are empty context lines, except at the end. */
const readHunkLines = (lines: ReadonlyArray<string>, from: number): Parsed<ReadonlyArray<Line>> | Refused => {
  const body: Array<Line> = []
  let next = from
  let signedCount = 0
  for (; next < lines.length && !lines[next]!.startsWith("***") && !lines[next]!.startsWith("@@"); next++) {
    const line = lines[next]!
    if (line === "" || line === "\r") body.push({ sign: " ", text: line })
    else if (signs.has(line[0]!)) signedCount = body.push({ sign: line[0] as Sign, text: line.slice(1) })
    else if (line.startsWith("\\") && signedCount > 0) body[signedCount - 1] = { ...body[signedCount - 1]!, lacksNewline: true }
    else return refuseLine(next + 1, `is in a hunk and begins with neither a space, - nor +: ${quoted(line)}`)
  }
  return { value: body.slice(0, signedCount), next }
}

const readHunk = (lines: ReadonlyArray<string>, at: number, isFirst: boolean): Parsed<Hunk> | Refused => {
  let next = at
  const anchors: Array<string> = []
  let above: number | undefined
  for (; lines[next]?.startsWith("@@") === true; next++) {
    const heading = headingOf(lines[next]!)
    if (heading.anchor !== undefined) anchors.push(heading.anchor)
    above = linesAboveOf(heading) ?? above
  }
  if (next === at && !isFirst) return refuseLine(at + 1, `should be a line with @@, which begins a hunk: ${quoted(lines[at]!)}`)
  const body = readHunkLines(lines, next)
  if ("_tag" in body) return body
  const isAtEnd = lines[body.next]?.trimEnd() === endOfFileMarker
  if (body.value.length === 0) return refuseLine(at + 1, "begins a hunk that has no lines")
  const hunk = { patchLine: at + 1, lines: body.value, anchors, linesAbove: above, isAtEnd }
  return misformed(hunk) ?? { value: hunk, next: body.next + (isAtEnd ? 1 : 0) }
}

const parseUpdate: Section = (lines, at, from) => {
  let next = at + 1
  const target =
    lines[next]?.trim().startsWith(moveToMarker) === true ? lines[next++]!.trim().slice(moveToMarker.length).trim() : from
  if (target === "") return refuseLine(next, "names no file")
  const hunks: Array<Hunk> = []
  while (next < lines.length && !lines[next]!.startsWith("***")) {
    if (isBlank(lines[next])) {
      next++
      continue
    }
    const hunk = readHunk(lines, next, hunks.length === 0)
    if ("_tag" in hunk) return hunk
    hunks.push(hunk.value)
    next = hunk.next
  }
  if (hunks.length === 0 && target === from) return refuseLine(at + 1, "begins a *** Update File without a hunk")
  return { value: { ...commonFields, patchLine: at + 1, from, to: target, hunks }, next }
}

const sections: ReadonlyArray<readonly [marker: string, section: Section]> = [
  ["*** Add File:", add],
  ["*** Delete File:", parseDelete],
  ["*** Update File:", parseUpdate]
]

const readSection = (lines: ReadonlyArray<string>, at: number): Parsed<FilePatch> | Refused => {
  const line = lines[at]!.trim()
  const found = sections.find(([marker]) => line.startsWith(marker))
  if (found === undefined) {
    const markers = sections.map(([marker]) => `${marker} path`).join(", ")
    return refuseLine(at + 1, `should be one of ${markers}, and is ${quoted(line)}`)
  }
  const [marker, section] = found
  const path = line.slice(marker.length).trim()
  return path === "" ? refuseLine(at + 1, "names no file") : section(lines, at, path)
}

/** Parses the patch; `first` is the index of the begin marker. */
export const parseV4a = (all: ReadonlyArray<string>, first: number): ReadonlyArray<FilePatch> | Refused => {
  let last = all.length - 1
  while (last > first && isWrapper(all[last]!)) last--
  if (all[last]!.trim() !== endMarker)
    return refuseLine(all.length, `ends the patch without ${endMarker}, so that it may have been cut off`)
  const lines = all.slice(0, last)
  const patches: Array<FilePatch> = []
  for (let at = first + 1; at < lines.length;) {
    if (isBlank(lines[at])) {
      at++
      continue
    }
    const section = readSection(lines, at)
    if ("_tag" in section) return section
    patches.push(section.value)
    at = section.next
  }
  return patches
}
