/**
 * Parses the form that begins with `*** Begin Patch`, as leniently as the reference implementation wherever the meaning is
 * clear. A patch without its end marker is refused, because it may have been cut off.
 */
import type { Refused } from "../definition.ts"
import { aboveOf, type FilePatch, headingOf, type Hunk, type Line, misformed, problem, quoted, type Sign } from "./model.ts"

export const begin = "*** Begin Patch"
const end = "*** End Patch"
const endOfFile = "*** End of File"
const moveTo = "*** Move to:"

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === ""
/** Tests for a line that a shell or a chat puts around a patch. */
const isWrapper = (line: string): boolean => isBlank(line) || line.startsWith("```") || line.trim() === "EOF"

type Read<A> = { readonly value: A; readonly next: number }

type Section = (lines: ReadonlyArray<string>, at: number, path: string) => Read<FilePatch> | Refused

const base = { form: "v4a", mayBeNew: false, setsMode: false } as const

const add: Section = (lines, at, to) => {
  const content: Array<Line> = []
  let next = at + 1
  for (; next < lines.length && !lines[next]!.startsWith("***"); next++) {
    const line = lines[next]!
    if (line.startsWith("+")) content.push({ sign: "+", text: line.slice(1) })
    else if (line.startsWith("\\") && content.length > 0) content.push({ ...content.pop()!, open: true })
    else if (!isBlank(line)) return problem(next + 1, `must begin with +, like every line of an added file: ${quoted(line)}`)
    else if (lines[next + 1]?.startsWith("+") === true)
      return problem(next + 1, "is empty; write an empty line of a new file as +")
  }
  const hunks = content.length === 0 ? [] : [{ at: at + 2, lines: content, anchors: [], atEnd: false }]
  const fault = hunks.length === 0 ? undefined : misformed(hunks[0]!)
  return fault ?? { value: { ...base, at: at + 1, to, hunks }, next }
}

const remove: Section = (lines, at, from) => {
  let next = at + 1
  while (next < lines.length && isBlank(lines[next])) next++
  const line = lines[next]
  return line === undefined || line.trim().startsWith("***")
    ? { value: { ...base, at: at + 1, from, hunks: [] }, next }
    : problem(next + 1, `follows a *** Delete File, which has no lines of its own: ${quoted(line)}`)
}

const signs: ReadonlySet<string> = new Set([" ", "-", "+"])

/** Reads the lines up to the next marker. Empty lines are empty context lines, except at the end. */
const bodyOf = (lines: ReadonlyArray<string>, from: number): Read<ReadonlyArray<Line>> | Refused => {
  const body: Array<Line> = []
  let next = from
  let signed = 0
  for (; next < lines.length && !lines[next]!.startsWith("***") && !lines[next]!.startsWith("@@"); next++) {
    const line = lines[next]!
    if (line === "" || line === "\r") body.push({ sign: " ", text: line })
    else if (signs.has(line[0]!)) signed = body.push({ sign: line[0] as Sign, text: line.slice(1) })
    else if (line.startsWith("\\") && signed > 0) body[signed - 1] = { ...body[signed - 1]!, open: true }
    else return problem(next + 1, `is in a hunk and begins with neither a space, - nor +: ${quoted(line)}`)
  }
  return { value: body.slice(0, signed), next }
}

const hunkAt = (lines: ReadonlyArray<string>, at: number, isFirst: boolean): Read<Hunk> | Refused => {
  let next = at
  const anchors: Array<string> = []
  let above: number | undefined
  for (; lines[next]?.startsWith("@@") === true; next++) {
    const heading = headingOf(lines[next]!)
    if (heading.anchor !== undefined) anchors.push(heading.anchor)
    above = aboveOf(heading) ?? above
  }
  if (next === at && !isFirst) return problem(at + 1, `should be a line with @@, which begins a hunk: ${quoted(lines[at]!)}`)
  const body = bodyOf(lines, next)
  if ("_tag" in body) return body
  const atEnd = lines[body.next]?.trimEnd() === endOfFile
  if (body.value.length === 0) return problem(at + 1, "begins a hunk that has no lines")
  const hunk = { at: at + 1, lines: body.value, anchors, above, atEnd }
  return misformed(hunk) ?? { value: hunk, next: body.next + (atEnd ? 1 : 0) }
}

const update: Section = (lines, at, from) => {
  let next = at + 1
  const target = lines[next]?.trim().startsWith(moveTo) === true ? lines[next++]!.trim().slice(moveTo.length).trim() : from
  if (target === "") return problem(next, "names no file")
  const hunks: Array<Hunk> = []
  while (next < lines.length && !lines[next]!.startsWith("***")) {
    if (isBlank(lines[next])) {
      next++
      continue
    }
    const hunk = hunkAt(lines, next, hunks.length === 0)
    if ("_tag" in hunk) return hunk
    hunks.push(hunk.value)
    next = hunk.next
  }
  if (hunks.length === 0 && target === from) return problem(at + 1, "begins a *** Update File without a hunk")
  return { value: { ...base, at: at + 1, from, to: target, hunks }, next }
}

const sections: ReadonlyArray<readonly [marker: string, section: Section]> = [
  ["*** Add File:", add],
  ["*** Delete File:", remove],
  ["*** Update File:", update]
]

const sectionAt = (lines: ReadonlyArray<string>, at: number): Read<FilePatch> | Refused => {
  const line = lines[at]!.trim()
  const found = sections.find(([marker]) => line.startsWith(marker))
  if (found === undefined) {
    const markers = sections.map(([marker]) => `${marker} path`).join(", ")
    return problem(at + 1, `should be one of ${markers}, and is ${quoted(line)}`)
  }
  const [marker, section] = found
  const path = line.slice(marker.length).trim()
  return path === "" ? problem(at + 1, "names no file") : section(lines, at, path)
}

/** Parses the patch; `first` is the index of the begin marker. */
export const parseV4a = (all: ReadonlyArray<string>, first: number): ReadonlyArray<FilePatch> | Refused => {
  let last = all.length - 1
  while (last > first && isWrapper(all[last]!)) last--
  if (all[last]!.trim() !== end) return problem(all.length, `ends the patch without ${end}, so that it may have been cut off`)
  const lines = all.slice(0, last)
  const patches: Array<FilePatch> = []
  for (let at = first + 1; at < lines.length;) {
    if (isBlank(lines[at])) {
      at++
      continue
    }
    const section = sectionAt(lines, at)
    if ("_tag" in section) return section
    patches.push(section.value)
    at = section.next
  }
  return patches
}
