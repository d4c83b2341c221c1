/**
 * Parses unified diffs of git, GNU diff or a model. Text before the first file and between mails is ignored. Any other text
 * outside a hunk is an error, because ignoring it could lose a change.
 */
import type { Refused } from "../definition.ts"
import { beginsFile, hunkAt, isDivider } from "./body.ts"
import { type FilePatch, headingOf, type Hunk, problem, quoted } from "./model.ts"
import { commonName, nameIn, nameOf, pairOf } from "./names.ts"

interface Head {
  readonly at: number
  readonly git: boolean
  isNew: boolean
  isGone: boolean
  setsMode: boolean
  from: string | undefined
  to: string | undefined
  renamed: boolean
}

type Header = readonly [prefix: string, read: (head: Head, rest: string) => string | undefined]

const kinds: Readonly<Record<string, string>> = { 120: "a symbolic link", 160: "a submodule" }

const unlikeFile = (mode: string): string | undefined => {
  const kind = kinds[mode.trim().slice(0, 3)]
  return kind === undefined ? undefined : `makes or changes ${kind}, and only files can be patched`
}

const ignore = (): undefined => undefined
const binary = (): string => "is a change of binary content, and only text can be patched"
const copied = (): string => "copies a file; copy it first, and patch the copy as any other file"

const named =
  (side: "from" | "to") =>
  (head: Head, rest: string): undefined => {
    head.renamed = true
    head[side] = nameIn(rest)
  }

const headers: ReadonlyArray<Header> = [
  ["old mode ", (_, rest) => unlikeFile(rest)],
  [
    "new mode ",
    (head, rest) => {
      head.setsMode = true
      return unlikeFile(rest)
    }
  ],
  [
    "new file mode ",
    (head, rest) => {
      head.isNew = true
      head.setsMode = rest.trim() === "100755"
      return unlikeFile(rest)
    }
  ],
  [
    "deleted file mode ",
    (head, rest) => {
      head.isGone = true
      return unlikeFile(rest)
    }
  ],
  ["rename from ", named("from")],
  ["rename to ", named("to")],
  ["copy from ", copied],
  ["copy to ", copied],
  ["similarity index ", ignore],
  ["dissimilarity index ", ignore],
  ["index ", (_, rest) => unlikeFile(rest.split(" ")[1] ?? "")],
  ["Binary files ", binary],
  ["GIT binary patch", binary]
]

const foreign: ReadonlyArray<readonly [pattern: RegExp, what: string]> = [
  [/^diff --(?:cc|combined) |^@@@+ /, "belongs to a combined diff of a merge; send a diff against one side"],
  [/^\*{15}$/, "belongs to a context diff; send a unified one"],
  [/^(?:GIT binary patch|Binary files .* differ)$/, binary()]
]

const start = (at: number, git: boolean): Head => ({
  at,
  git,
  isNew: false,
  isGone: false,
  setsMode: false,
  from: undefined,
  to: undefined,
  renamed: false
})

const readNames = (head: Head, lines: ReadonlyArray<string>, at: number): void => {
  const [from, to] = pairOf(nameOf(lines[at]!.slice(4)), nameOf(lines[at + 1]!.slice(4)))
  if (head.renamed) return
  // One name alone does not show its prefix; the `diff --git` line shows it by naming both sides.
  const both = head.git ? head.from : undefined
  head.from = from === undefined || to !== undefined ? from : (both ?? from)
  head.to = to === undefined || from !== undefined ? to : (both ?? to)
}

const headAt = (lines: ReadonlyArray<string>, at: number): { readonly head: Head; readonly next: number } | Refused => {
  const git = lines[at]!.startsWith("diff --git ")
  const head = start(at + 1, git)
  let next = at
  if (git) {
    head.from = head.to = commonName(lines[at]!.slice(11).trimEnd())
    for (next++; next < lines.length; next++) {
      const line = lines[next]!
      const header = headers.find(([prefix]) => line.startsWith(prefix))
      if (header === undefined) break
      const fault = header[1](head, line.slice(header[0].length))
      if (fault !== undefined) return problem(next + 1, fault)
    }
  }
  if (next < lines.length && beginsFile(lines, next)) {
    readNames(head, lines, next)
    next += 2
  }
  if (head.isNew) head.from = undefined
  if (head.isGone) head.to = undefined
  return faultOf(head) ?? { head, next }
}

const faultOf = ({ at, from, renamed, to }: Head): Refused | undefined => {
  if ((from ?? to) === undefined || from === "" || to === "") return problem(at, "names no file")
  if (from === undefined || to === undefined || from === to || renamed) return undefined
  return problem(
    at,
    `names two files, ${quoted(from)} and ${quoted(to)}`,
    "Nothing was changed; name one, or, to move a file, put `diff --git a/old b/new`, `rename from old` and `rename to new` there."
  )
}

const filePatch = ({ at, from, setsMode, to }: Head, hunks: ReadonlyArray<Hunk>, mayBeNew: boolean): FilePatch => ({
  at,
  form: "unified",
  from,
  to,
  hunks,
  mayBeNew,
  setsMode
})

const emptyBefore = (line: string | undefined): boolean => {
  const numbers = line === undefined ? undefined : headingOf(line).numbers
  return numbers?.old === 0 && numbers.oldCount === 0
}

const fileAt = (lines: ReadonlyArray<string>, at: number): { readonly file: FilePatch; readonly next: number } | Refused => {
  const read = headAt(lines, at)
  if ("_tag" in read) return read
  const { head } = read
  let { next } = read
  const first = next
  const hunks: Array<Hunk> = []
  while (lines[next]?.startsWith("@@") === true) {
    const merge = foreignAt(lines, next)
    if (merge !== undefined) return merge
    const hunk = hunkAt(lines, next)
    if ("_tag" in hunk) return hunk
    hunks.push(hunk.hunk)
    next = hunk.next
  }
  const says = hunks.length > 0 || head.renamed || head.isNew || head.isGone || head.setsMode
  if (!says) return problem(at + 1, "begins a file without a hunk")
  const mayBeNew = head.from !== undefined && head.from === head.to && hunks.length === 1 && emptyBefore(lines[first])
  return { file: filePatch(head, hunks, mayBeNew), next }
}

const foreignAt = (lines: ReadonlyArray<string>, at: number): Refused | undefined => {
  const found = foreign.find(([pattern]) => pattern.test(lines[at]!.trimEnd()))
  return found === undefined ? undefined : problem(at + 1, found[1])
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
      const read = fileAt(lines, at)
      if ("_tag" in read) return read
      files.push(read.file)
      at = read.next
      isProse = false
      continue
    }
    const fault = foreignAt(lines, at)
    if (fault !== undefined) return fault
    if (line.startsWith("@@ -"))
      return problem(at + 1, "begins a hunk before any file is named; the two lines --- path and +++ path must precede it")
    isProse ||= isDivider(line) || line === "-- " || line === "--"
    if (!isProse && line.trim() !== "") {
      return problem(at + 1, `is neither a line of the hunk above it nor the beginning of another file: ${quoted(line)}`)
    }
    at++
  }
  return files
}
