import { type Refused, refused } from "../definition.ts"

type Sign = " " | "-" | "+"

export interface Line {
  readonly sign: Sign
  /** The text of the line without its LF. A CR before the LF is part of the text. */
  readonly text: string
  readonly lacksNewline?: true
}

export interface Hunk {
  readonly patchLine: number
  readonly lines: ReadonlyArray<Line>
  readonly anchors: ReadonlyArray<string>
  readonly linesAbove?: number | undefined
  readonly isAtEnd: boolean
}

export interface FilePatch {
  readonly patchLine: number
  readonly form: "v4a" | "unified"
  /** The old path, without a prefix such as `a/`. Absent if the patch adds the file. */
  readonly from?: string | undefined
  /** The new path. Absent if the patch removes the file. A new path that differs from `from` moves the file. */
  readonly to?: string | undefined
  readonly mayBeNew: boolean
  readonly hunks: ReadonlyArray<Hunk>
  readonly setsMode: boolean
}

export const sendAgainAdvice = "Nothing was changed; send the whole patch again, corrected."

const refuseLine = (line: number, what: string, advice: string = sendAgainAdvice): Refused =>
  refused(`Line ${line} of the patch ${what}.`, advice)

const maxQuoted = 120

export const quoted = (text: string): string =>
  `${JSON.stringify(text.slice(0, maxQuoted).toWellFormed())}${text.length > maxQuoted ? "…" : ""}`

export const oldLines = (hunk: Hunk): ReadonlyArray<Line> => hunk.lines.filter(({ sign }) => sign !== "+")
export const newLines = (hunk: Hunk): ReadonlyArray<Line> => hunk.lines.filter(({ sign }) => sign !== "-")

const misformed = ({ patchLine, lines }: Hunk): Refused | undefined => {
  if (lines.every(({ sign }) => sign === " ")) {
    return refuseLine(patchLine, "begins a hunk that changes nothing: none of its lines begins with - or +")
  }
  for (const skipped of ["+", "-"]) {
    const side = lines.filter(({ sign }) => sign !== skipped)
    if (side.some(({ lacksNewline }, index) => lacksNewline === true && index < side.length - 1)) {
      return refuseLine(patchLine, "begins a hunk in which other lines follow a line without a newline at its end")
    }
  }
  return undefined
}

interface HunkHeader {
  readonly anchor?: string
  readonly numbers?: { readonly old: number; readonly oldCount: number; readonly newCount: number }
}

const rangePattern = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))?(?: @@|\s*$)/

/**
 * Parses a hunk header (`@@ …`) of either patch format, because models mix both formats. Numbers are ranges of lines; other
 * text is a line to search for.
 */
const hunkHeaderOf = (line: string): HunkHeader => {
  const found = rangePattern.exec(line)
  if (found !== null) {
    const [, old, oldCount = "1", , newCount = "1"] = found
    return { numbers: { old: Number(old), oldCount: Number(oldCount), newCount: Number(newCount) } }
  }
  const rest = line.slice(line.startsWith("@@ ") ? 3 : 2).trimEnd()
  const anchor = rest.endsWith("@@") ? rest.slice(0, -2).trimEnd() : rest
  return anchor === "" || anchor.trim() === "..." ? {} : { anchor }
}

/**
 * Returns the number of lines above the place of the hunk, or `undefined` if its header has no numbers. If a hunk has no old
 * lines, its header states the line before the place.
 */
const linesAboveOf = ({ numbers }: HunkHeader): number | undefined =>
  numbers === undefined ? undefined : numbers.oldCount === 0 ? numbers.old : Math.max(0, numbers.old - 1)

interface Name {
  /** The name without quotes; `undefined` for /dev/null. */
  readonly path: string | undefined
  readonly isAbsent: boolean
}

const escapes: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 }

const decoder = new TextDecoder()
const encoder = new TextEncoder()

const unquoteName = (quoted: string): string => {
  const bytes: Array<number> = []
  for (const [part, escape] of quoted.matchAll(/\\([0-7]{3}|.)|[^\\]+/gs)) {
    if (escape === undefined) for (const byte of encoder.encode(part)) bytes.push(byte)
    else bytes.push(escape.length === 3 ? Number.parseInt(escape, 8) & 0xff : (escapes[escape] ?? escape.charCodeAt(0)))
  }
  return decoder.decode(new Uint8Array(bytes))
}

const quotedNames = /^"((?:[^"\\]|\\.)*)"/s

const parseName = (text: string): string => {
  const found = quotedNames.exec(text)
  return found === null ? text.trim() : unquoteName(found[1]!)
}

const parseSideName = (rest: string): Name => {
  const found = quotedNames.exec(rest)
  const tab = found === null ? rest.indexOf("\t") : found[0].length
  const path = parseName(tab === -1 ? rest : rest.slice(0, tab))
  const time = tab === -1 ? "" : rest.slice(tab).trim()
  const isNull = path === "/dev/null"
  return { path: isNull ? undefined : path, isAbsent: isNull || /^(?:1970-01-01|1969-12-31)[ T]/.test(time) }
}

const prefix = /^([abciow])\//

const withoutPrefix = (path: string): string => path.replace(prefix, "")
const withoutFirstSegment = (path: string): string => path.slice(path.indexOf("/") + 1)

type Pair = readonly [from: string | undefined, to: string | undefined]

const commonPair = (from: string, to: string): Pair => {
  if (from === to) return [from, to]
  const [one, other] = [prefix.exec(from)?.[1], prefix.exec(to)?.[1]]
  if (one !== undefined && other !== undefined && one !== other) return [withoutPrefix(from), withoutPrefix(to)]
  if (from.includes("/") && to.includes("/") && withoutFirstSegment(from) === withoutFirstSegment(to))
    return [withoutFirstSegment(from), withoutFirstSegment(to)]
  return /^(?:\.orig|\.bak|\.old|~)$/.test(from.startsWith(to) ? from.slice(to.length) : "") ? [to, to] : [from, to]
}

const namePair = (oldName: Name, newName: Name): Pair => {
  if (oldName.path === undefined || newName.path === undefined) {
    return [oldName.path?.replace(/^a\//, ""), newName.path?.replace(/^b\//, "")]
  }
  const [from, to] = commonPair(oldName.path, newName.path)
  return [oldName.isAbsent ? undefined : from, newName.isAbsent ? undefined : to]
}

const commonName = (rest: string): string | undefined => {
  const first = quotedNames.exec(rest)
  if (first !== null) return withoutPrefix(unquoteName(first[1]!))
  // The two names have the same length and may contain spaces, so split the line at the middle.
  const middle = (rest.length - 1) / 2
  if (!Number.isInteger(middle) || rest[middle] !== " ") return undefined
  const [one, other] = [rest.slice(0, middle), rest.slice(middle + 1)]
  return one === other
    ? one
    : prefix.test(one) && prefix.test(other) && withoutPrefix(one) === withoutPrefix(other)
      ? withoutPrefix(one)
      : undefined
}

// Models miscount. So a hunk ends at the next hunk or file, even if the header states more lines. A hunk with more lines than
// stated ends at the first line that cannot belong to the hunk. Within the stated counts, a line without a sign is an error.
// If the patch ends before the stated counts, the hunk is refused, because the patch may be truncated.

const signs: ReadonlySet<string> = new Set([" ", "-", "+"])

/** The pattern of lines that may follow a hunk and cannot be part of it. */
const divider =
  /^(?:@@|diff |Index: |={10}|From [0-9a-f]{7,} |commit [0-9a-f]{7,}|Only in |Binary files |Files |\*\*\* End Patch|```)/

const isDivider = (line: string): boolean => divider.test(line)

const isSignature = (line: string): boolean => line === "-- " || line === "--"

const beginsFile = (lines: ReadonlyArray<string>, at: number): boolean =>
  lines[at]!.startsWith("--- ") && lines[at + 1]?.startsWith("+++ ") === true

const isEmpty = (line: string | undefined): boolean => line === "" || line === "\r"

/**
 * Returns the index at which the hunk continues after empty lines, or -1 if the hunk ends. Empty lines inside a hunk are
 * context.
 */
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
 * Tests whether the hunk ends at this line. The lines `--- ` and `+++ ` of the next file look like lines of a hunk. If the
 * hunk's counts include exactly these two lines, the lines belong to the hunk.
 */
const isHunkEnd = (lines: ReadonlyArray<string>, at: number, remaining: RemainingLines): boolean => {
  if (remaining.old <= 0 && remaining.now <= 0) return isSignature(lines[at]!) || beginsFile(lines, at)
  const isPair = beginsFile(lines, at) && lines[at + 2]?.startsWith("@@") === true
  return isPair && !(remaining.old === 1 && remaining.now === 1)
}

const refuseCutOff = (at: number, old: number, now: number): Refused =>
  refuseLine(
    at,
    `begins a hunk with fewer lines than its header states (${old} old, ${now} new), so the patch may be truncated`,
    "Nothing was changed; send the whole patch again, complete and with the right numbers."
  )

const hunkAt = (lines: ReadonlyArray<string>, at: number): { readonly hunk: Hunk; readonly next: number } | Refused => {
  const header = hunkHeaderOf(lines[at]!)
  const statedCounts = { old: header.numbers?.oldCount ?? 0, now: header.numbers?.newCount ?? 0 }
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
      return refuseLine(next + 1, `is in a hunk and does not begin with a space, - or +: ${quoted(line)}`)
    }
    body.push({ sign: sign as Sign, text: isEmpty(line) ? line : line.slice(1) })
    if (sign !== "+") remaining.old--
    if (sign !== "-") remaining.now--
  }
  if (next >= lines.length && (remaining.old > 0 || remaining.now > 0))
    return refuseCutOff(at + 1, statedCounts.old, statedCounts.now)
  const { anchor } = header
  const anchors = anchor === undefined ? [] : [anchor]
  const hunk: Hunk = { patchLine: at + 1, lines: body, anchors, linesAbove: linesAboveOf(header), isAtEnd: false }
  return misformed(hunk) ?? { hunk, next }
}

// Parses unified diffs of git, GNU diff or a model. Text before the first file and between the mails of a series is ignored.
// Other text outside a hunk is an error, because it could be a malformed change.

interface FileHeader {
  readonly at: number
  readonly isGit: boolean
  isNew: boolean
  isDeleted: boolean
  setsMode: boolean
  from: string | undefined
  to: string | undefined
  isRename: boolean
}

type Header = readonly [prefix: string, read: (head: FileHeader, rest: string) => string | undefined]

const kinds: Readonly<Record<string, string>> = { 120: "a symbolic link", 160: "a submodule" }

const faultOfMode = (mode: string): string | undefined => {
  const kind = kinds[mode.trim().slice(0, 3)]
  return kind === undefined ? undefined : `creates or changes ${kind}, but only files can be patched`
}

const ignore = (): undefined => undefined
const binaryFault = (): string => "changes binary content, but only text can be patched"
const copyFault = (): string => "copies a file; copy the file first, and then patch the copy"

const readRename =
  (side: "from" | "to") =>
  (head: FileHeader, rest: string): undefined => {
    head.isRename = true
    head[side] = parseName(rest)
  }

const gitHeaders: ReadonlyArray<Header> = [
  ["old mode ", (_, rest) => faultOfMode(rest)],
  [
    "new mode ",
    (head, rest) => {
      head.setsMode = true
      return faultOfMode(rest)
    }
  ],
  [
    "new file mode ",
    (head, rest) => {
      head.isNew = true
      head.setsMode = rest.trim() === "100755"
      return faultOfMode(rest)
    }
  ],
  [
    "deleted file mode ",
    (head, rest) => {
      head.isDeleted = true
      return faultOfMode(rest)
    }
  ],
  ["rename from ", readRename("from")],
  ["rename to ", readRename("to")],
  ["copy from ", copyFault],
  ["copy to ", copyFault],
  ["similarity index ", ignore],
  ["dissimilarity index ", ignore],
  ["index ", (_, rest) => faultOfMode(rest.split(" ")[1] ?? "")],
  ["Binary files ", binaryFault],
  ["GIT binary patch", binaryFault]
]

const unsupportedLines: ReadonlyArray<readonly [pattern: RegExp, what: string]> = [
  [/^diff --(?:cc|combined) |^@@@+ /, "belongs to a combined diff of a merge; send a diff against one parent"],
  [/^\*{15}$/, "belongs to a context diff; send a unified diff"],
  [/^(?:GIT binary patch|Binary files .* differ)$/, binaryFault()]
]

const makeHeader = (at: number, isGit: boolean): FileHeader => ({
  at,
  isGit,
  isNew: false,
  isDeleted: false,
  setsMode: false,
  from: undefined,
  to: undefined,
  isRename: false
})

const readNames = (head: FileHeader, lines: ReadonlyArray<string>, at: number): void => {
  const [from, to] = namePair(parseSideName(lines[at]!.slice(4)), parseSideName(lines[at + 1]!.slice(4)))
  if (head.isRename) return
  // A single name does not show whether `a/` is a prefix. The `diff --git` line names both sides, so it shows the prefix.
  const sharedName = head.isGit ? head.from : undefined
  head.from = from === undefined || to !== undefined ? from : (sharedName ?? from)
  head.to = to === undefined || from !== undefined ? to : (sharedName ?? to)
}

const readHeader = (
  lines: ReadonlyArray<string>,
  at: number
): { readonly head: FileHeader; readonly next: number } | Refused => {
  const isGit = lines[at]!.startsWith("diff --git ")
  const head = makeHeader(at + 1, isGit)
  let next = at
  if (isGit) {
    head.from = head.to = commonName(lines[at]!.slice(11).trimEnd())
    for (next++; next < lines.length; next++) {
      const line = lines[next]!
      const header = gitHeaders.find(([prefix]) => line.startsWith(prefix))
      if (header === undefined) break
      const fault = header[1](head, line.slice(header[0].length))
      if (fault !== undefined) return refuseLine(next + 1, fault)
    }
  }
  if (next < lines.length && beginsFile(lines, next)) {
    readNames(head, lines, next)
    next += 2
  }
  if (head.isNew) head.from = undefined
  if (head.isDeleted) head.to = undefined
  return faultOf(head) ?? { head, next }
}

const faultOf = ({ at, from, isRename, to }: FileHeader): Refused | undefined => {
  if ((from ?? to) === undefined || from === "" || to === "") return refuseLine(at, "names no file")
  if (from === undefined || to === undefined || from === to || isRename) return undefined
  return refuseLine(
    at,
    `names two files, ${quoted(from)} and ${quoted(to)}`,
    "Nothing was changed. Name one file; to move a file, use the lines `diff --git a/old b/new`, `rename from old` and `rename to new`."
  )
}

const filePatch = ({ at, from, setsMode, to }: FileHeader, hunks: ReadonlyArray<Hunk>, mayBeNew: boolean): FilePatch => ({
  patchLine: at,
  form: "unified",
  from,
  to,
  hunks,
  mayBeNew,
  setsMode
})

const statesEmptyFile = (line: string | undefined): boolean => {
  const numbers = line === undefined ? undefined : hunkHeaderOf(line).numbers
  return numbers?.old === 0 && numbers.oldCount === 0
}

const readFilePatch = (
  lines: ReadonlyArray<string>,
  at: number
): { readonly file: FilePatch; readonly next: number } | Refused => {
  const read = readHeader(lines, at)
  if ("_tag" in read) return read
  const { head } = read
  let { next } = read
  const first = next
  const hunks: Array<Hunk> = []
  while (lines[next]?.startsWith("@@") === true) {
    const combinedDiffFault = unsupportedFault(lines, next)
    if (combinedDiffFault !== undefined) return combinedDiffFault
    const hunk = hunkAt(lines, next)
    if ("_tag" in hunk) return hunk
    hunks.push(hunk.hunk)
    next = hunk.next
  }
  const hasChange = hunks.length > 0 || head.isRename || head.isNew || head.isDeleted || head.setsMode
  if (!hasChange) return refuseLine(at + 1, "begins a file without a hunk")
  const mayBeNew = head.from !== undefined && head.from === head.to && hunks.length === 1 && statesEmptyFile(lines[first])
  return { file: filePatch(head, hunks, mayBeNew), next }
}

const unsupportedFault = (lines: ReadonlyArray<string>, at: number): Refused | undefined => {
  const found = unsupportedLines.find(([pattern]) => pattern.test(lines[at]!.trimEnd()))
  return found === undefined ? undefined : refuseLine(at + 1, found[1])
}

const isFile = (lines: ReadonlyArray<string>, at: number): boolean =>
  lines[at]!.startsWith("diff --git ") || beginsFile(lines, at)

const parseUnified = (lines: ReadonlyArray<string>): ReadonlyArray<FilePatch> | Refused => {
  const files: Array<FilePatch> = []
  let isProse = true
  for (let at = 0; at < lines.length;) {
    const line = lines[at]!
    if (isFile(lines, at)) {
      const read = readFilePatch(lines, at)
      if ("_tag" in read) return read
      files.push(read.file)
      at = read.next
      isProse = false
      continue
    }
    const fault = unsupportedFault(lines, at)
    if (fault !== undefined) return fault
    if (line.startsWith("@@ -"))
      return refuseLine(at + 1, "begins a hunk before any file is named; the two lines --- path and +++ path must precede it")
    isProse ||= isDivider(line) || line === "-- " || line === "--"
    if (!isProse && line.trim() !== "") {
      return refuseLine(at + 1, `is neither a line of the hunk above it nor the beginning of another file: ${quoted(line)}`)
    }
    at++
  }
  return files
}

// Parses the format that begins with `*** Begin Patch`. The parser is as lenient as the reference implementation wherever the
// meaning is clear. A patch without the end marker is refused, because it may be truncated.

const beginMarker = "*** Begin Patch"
const endMarker = "*** End Patch"
const endOfFileMarker = "*** End of File"
const moveToMarker = "*** Move to:"

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === ""
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
      return refuseLine(next + 1, "is empty; begin every line of a new file with +, even an empty line")
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

const readHunkLines = (lines: ReadonlyArray<string>, from: number): Parsed<ReadonlyArray<Line>> | Refused => {
  const body: Array<Line> = []
  let next = from
  let signedCount = 0
  for (; next < lines.length && !lines[next]!.startsWith("***") && !lines[next]!.startsWith("@@"); next++) {
    const line = lines[next]!
    if (line === "" || line === "\r") body.push({ sign: " ", text: line })
    else if (signs.has(line[0]!)) signedCount = body.push({ sign: line[0] as Sign, text: line.slice(1) })
    else if (line.startsWith("\\") && signedCount > 0) body[signedCount - 1] = { ...body[signedCount - 1]!, lacksNewline: true }
    else return refuseLine(next + 1, `is in a hunk and does not begin with a space, - or +: ${quoted(line)}`)
  }
  return { value: body.slice(0, signedCount), next }
}

const readHunk = (lines: ReadonlyArray<string>, at: number, isFirst: boolean): Parsed<Hunk> | Refused => {
  let next = at
  const anchors: Array<string> = []
  let above: number | undefined
  for (; lines[next]?.startsWith("@@") === true; next++) {
    const header = hunkHeaderOf(lines[next]!)
    if (header.anchor !== undefined) anchors.push(header.anchor)
    above = linesAboveOf(header) ?? above
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
    return refuseLine(at + 1, `should be one of ${markers}, but is ${quoted(line)}`)
  }
  const [marker, section] = found
  const path = line.slice(marker.length).trim()
  return path === "" ? refuseLine(at + 1, "names no file") : section(lines, at, path)
}

const parseV4a = (all: ReadonlyArray<string>, first: number): ReadonlyArray<FilePatch> | Refused => {
  let last = all.length - 1
  while (last > first && isWrapper(all[last]!)) last--
  if (all[last]!.trim() !== endMarker)
    return refuseLine(all.length, `ends the patch without ${endMarker}, so the patch may be truncated`)
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

const formsAdvice = "A patch is either a unified diff, or begins with *** Begin Patch and ends with *** End Patch."

/**
 * The pattern of the structural lines of a patch. If all structural lines end in a CR, the CRs are line endings of the patch
 * and not content of the files.
 */
const structuralLine = /^(?:--- |\+\+\+ |@@|diff --git |\*\*\* )/

const linesOf = (patch: string): ReadonlyArray<string> => {
  const lines = patch.split("\n")
  if (lines.at(-1) === "") lines.pop()
  if (!patch.includes("\r")) return lines
  const isOwn = lines.every((line) => line.endsWith("\r") || !structuralLine.test(line))
  return isOwn ? lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)) : lines
}

export const parse = (patch: string): ReadonlyArray<FilePatch> | Refused => {
  if (patch.trim() === "") return refused("The patch is empty.", formsAdvice)
  const lines = linesOf(patch)
  const first = lines.findIndex((line) => line.trim() === beginMarker)
  const isV4a = first !== -1 && lines.slice(0, first).every((line) => !/^(?:diff --git |--- |\+\+\+ |@@)/.test(line))
  const files = isV4a ? parseV4a(lines, first) : parseUnified(lines)
  if ("_tag" in files || files.length > 0) return files
  return refused("The patch names no file, so there is nothing to do.", `${formsAdvice} ${sendAgainAdvice}`)
}
