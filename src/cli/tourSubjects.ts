import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { GlobMatch } from "../model/Entry.ts"
import * as FsPath from "../model/FsPath.ts"
import { printableName } from "./printable.ts"

/** The files of a demonstration, for a directory without suitable files. */
export const demonstration: Readonly<Record<string, string>> = {
  "README.md": "# Greeter\n\nSays hello, in whatever language it is asked to.\n\nTODO: say goodbye, too.\n",
  "src/greet.ts": "export const greet = (name: string): string => `Hello, ${name}!`\n",
  "src/main.ts": 'import { greet } from "./greet.ts"\n\nprocess.stdout.write(greet("world"))\n',
  "docs/languages.md": "- English\n- Deutsch\n- 日本語\n"
}

const extension = (path: FsPath.FsPath): string => {
  const name = FsPath.name(path)
  const dot = name.lastIndexOf(".")
  return dot > 0 ? name.slice(dot) : ""
}

export const commonPattern = (files: ReadonlyArray<GlobMatch>): string => {
  const counts = new Map<string, number>()
  for (const { path } of files) {
    const ending = extension(path)
    if (/^\.\w+$/.test(ending)) counts.set(ending, (counts.get(ending) ?? 0) + 1)
  }
  let best = ""
  for (const [ending, count] of counts) if (count > (counts.get(best) ?? 0)) best = ending
  return `**/*${best}`
}

const patterns = [
  "TODO|FIXME",
  "^export (const|function|class)",
  String.raw`\b(function|class|def|import)\b`,
  String.raw`\w{3,}`
]

export const findablePattern = Effect.fnUntraced(function* (fs: Algebra) {
  for (const pattern of patterns) {
    const { matches } = yield* fs.grep(pattern, { maxMatches: 1 })
    if (matches.length > 0) return pattern
  }
  return "."
})

export interface Passage {
  readonly path: FsPath.FsPath
  readonly line: string
}

const maxEditableBytes = 64 * 1024
const maxCandidateFiles = 200

/** Tests whether a line is long enough to be unique and short enough to show. */
const isShowable = (line: string): boolean => line.trim().length >= 3 && line.length <= 100 && printableName(line) === line

const findUniqueLine = (text: string): string | undefined =>
  text.split(/\r?\n/).find((line) => isShowable(line) && text.split(line).length === 2)

/** Finds a passage, preferably in README.md, else in the first text file that has one. */
export const editablePassage = Effect.fnUntraced(function* (fs: Algebra, files: ReadonlyArray<GlobMatch>) {
  const small = files.filter(({ sizeBytes }) => (sizeBytes ?? 0) <= maxEditableBytes)
  const candidates = [...small.filter(({ path }) => path === "README.md"), ...small].slice(0, maxCandidateFiles)
  for (const { path } of candidates) {
    const text = yield* Effect.option(fs.readString(path))
    const line = Option.isSome(text) ? findUniqueLine(text.value) : undefined
    if (line !== undefined) return { path, line } satisfies Passage
  }
  return undefined
})

/** Returns the path with a typing error: the last two letters before the extension are swapped, or one is added. */
export const misspell = (path: FsPath.FsPath): string => {
  const ending = extension(path)
  const stem = path.slice(0, path.length - ending.length)
  const [a, b] = [stem.at(-2), stem.at(-1)]
  return a === undefined || a === b || a === "/" ? `${stem}x${ending}` : `${stem.slice(0, -2)}${b}${a}${ending}`
}
