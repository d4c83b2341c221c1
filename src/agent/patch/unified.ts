/**
 * Parses unified diffs of git, GNU diff or a model. Text before the first file and between mails is ignored. Any other text
 * outside a hunk is an error, because ignoring it could lose a change.
 */
import type { Refused } from "../definition.ts"
import { beginsFile, hunkAt, isDivider } from "./body.ts"
import { type FilePatch, headingOf, type Hunk, refuseLine, quoted } from "./model.ts"
import { commonName, parseName, parseSideName, namePair } from "./names.ts"

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
  return kind === undefined ? undefined : `makes or changes ${kind}, and only files can be patched`
}

const ignore = (): undefined => undefined
const binaryFault = (): string => "is a change of binary content, and only text can be patched"
const copyFault = (): string => "copies a file; copy it first, and patch the copy as any other file"

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
  [/^diff --(?:cc|combined) |^@@@+ /, "belongs to a combined diff of a merge; send a diff against one side"],
  [/^\*{15}$/, "belongs to a context diff; send a unified one"],
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
  // One name alone does not show its prefix; the `diff --git` line shows it by naming both sides.
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
    "Nothing was changed; name one, or, to move a file, put `diff --git a/old b/new`, `rename from old` and `rename to new` there."
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
  const numbers = line === undefined ? undefined : headingOf(line).numbers
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

export const parseUnified = (lines: ReadonlyArray<string>): ReadonlyArray<FilePatch> | Refused => {
  const files: Array<FilePatch> = []
  /** True where text outside the patch may occur. */
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
