/**
 * Searches contents by pattern. The result lists matching lines, files, or counts per file. Each result is a page in order of
 * path and line. The last line of a page says how to get the next page.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { GrepOptions } from "../../engine/options.ts"
import type { GrepMatch, GrepResult, Skipped } from "../../model/Entry.ts"
import type { GrepError } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import { agent } from "../../model/Limits.ts"
import { type Answer, type Call, define, optional, type ToolFailure, touching } from "../definition.ts"
import { countFitting, type Excerpt, excerpt, joinLines, maxLineLength, numberLine } from "../text/fit.ts"
import { formatCount as plural } from "../../model/words.ts"
import type { MountPoint } from "../toolPath.ts"
import * as Searching from "./searching.ts"

const charactersBeforeMatch = 200

const excerptOf = ({ lineContent, matchStart }: GrepMatch): Excerpt =>
  excerpt(lineContent, maxLineLength, Math.max(0, matchStart - charactersBeforeMatch))

interface Line {
  readonly text: string
  readonly isMatch: boolean
}

/**
 * Collects the matches of one file and their context lines, by line number. A line that is both a match and a context line
 * counts as a match.
 */
const linesOf = (matches: ReadonlyArray<GrepMatch>): ReadonlyMap<number, Line> => {
  const found = new Map<number, Line>()
  for (const { after = [], before = [], lineNumber } of matches) {
    before.forEach((text, index) => found.set(lineNumber - before.length + index, { text, isMatch: false }))
    after.forEach((text, index) => found.set(lineNumber + 1 + index, { text, isMatch: false }))
  }
  for (const match of matches) found.set(match.lineNumber, { text: excerptOf(match).shown, isMatch: true })
  return new Map([...found].sort(([a], [b]) => a - b))
}

const hasContext = ({ after = [], before = [] }: GrepMatch): boolean => after.length + before.length > 0

const fileLines = (matches: ReadonlyArray<GrepMatch>): ReadonlyArray<string> => {
  const hasGaps = matches.some(hasContext)
  const out: Array<string> = []
  let previous: number | undefined
  for (const [line, { isMatch, text }] of linesOf(matches)) {
    if (hasGaps && previous !== undefined && line > previous + 1) out.push("     ...")
    out.push(isMatch ? numberLine(line, text) : numberLine(line, excerpt(text).shown, "-"))
    previous = line
  }
  return out
}

export const matchLines = (matches: ReadonlyArray<GrepMatch>): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let at = 0; at < matches.length;) {
    const { path } = matches[at]!
    let end = at + 1
    while (end < matches.length && matches[end]!.path === path) end++
    out.push(path, ...fileLines(matches.slice(at, end)))
    at = end
  }
  return out
}

// Counts the matching lines of each file. The search runs page by page and keeps only the counts. Only completely counted files
// are reported, so the next call continues after the end of a file.

interface FileCount {
  readonly path: string
  readonly count: number
}

interface FileCounts {
  readonly files: ReadonlyArray<FileCount>
  readonly filesSearched: number
  readonly skipped: Skipped
  readonly next: string | undefined
}

const beyondLastLine = 2_000_000_000

const endOf = (path: string): string => `${beyondLastLine}:${path}`

const noneSkipped: Skipped = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }

const maxUnreadablePaths = 100

const sum = (a: Skipped, b: Skipped): Skipped => ({
  ignored: a.ignored + b.ignored,
  binary: a.binary + b.binary,
  tooLarge: a.tooLarge + b.tooLarge,
  unreadable: a.unreadable + b.unreadable,
  unreadablePaths: [...a.unreadablePaths, ...b.unreadablePaths].slice(0, maxUnreadablePaths)
})

const pageSize = 20_000

const matchesIn = (files: ReadonlyArray<FileCount>): number => files.reduce((sum, { count }) => sum + count, 0)

const addCounts = (before: ReadonlyArray<FileCount>, { matches }: GrepResult): ReadonlyArray<FileCount> => {
  const counts = new Map(before.map(({ count, path }) => [path, count]))
  for (const { path } of matches) counts.set(path, (counts.get(path) ?? 0) + 1)
  return [...counts].map(([path, count]) => ({ path, count }))
}

const addPage = (before: FileCounts, page: GrepResult, isFirst: boolean): FileCounts => ({
  files: addCounts(before.files, page),
  filesSearched: before.filesSearched + page.filesSearched - (isFirst || page.filesSearched === 0 ? 0 : 1),
  skipped: sum(before.skipped, page.skipped),
  next: undefined
})

const cutFilesToCount = (found: FileCounts, count: number): FileCounts =>
  count === found.files.length
    ? found
    : { ...found, files: found.files.slice(0, count), next: endOf(found.files[count - 1]!.path) }

/**
 * Counts matches in at most `maxFiles` files, and in fewer if their counts do not fit. After a cut, the page with the cut is
 * searched again up to the cut, so that the numbers of searched and skipped files are correct for the shorter result.
 */
const countByFile = Effect.fnUntraced(function* (
  page: (after: string | undefined, maxMatches: number) => Effect.Effect<GrepResult, GrepError>,
  start: string | undefined,
  maxFiles: number,
  fits: (count: number, found: (count: number) => FileCounts) => number
): Effect.fn.Return<FileCounts, GrepError> {
  const pages: Array<{ readonly before: FileCounts; readonly after: string | undefined }> = []
  let found: FileCounts = { files: [], filesSearched: 0, skipped: noneSkipped, next: undefined }
  let after = start
  do {
    pages.push({ before: found, after })
    const next: GrepResult = yield* page(after, pageSize)
    found = addPage(found, next, pages.length === 1)
    after = next.next
    // The last file may have more matches on the next page, so search until there is one more file than requested.
  } while (after !== undefined && found.files.length <= maxFiles)
  const count = fits(Math.min(maxFiles, found.files.length), (count) => cutFilesToCount(found, count))
  if (count === found.files.length) return found
  const cutCounts = cutFilesToCount(found, count)
  const total = matchesIn(cutCounts.files)
  const last = pages.findLast(({ before }) => matchesIn(before.files) < total) ?? pages[0]!
  const again = yield* page(last.after, total - matchesIn(last.before.files))
  return { ...addPage(last.before, again, last === pages[0]), next: cutCounts.next }
})

const maxContext = 100

const Match = Schema.Struct({
  path: Schema.String,
  line_number: Schema.Int,
  line: Schema.String,
  match_start: Schema.Int,
  match_end: Schema.Int,
  cut_from: Schema.optionalKey(Schema.Int),
  line_length: Schema.optionalKey(Schema.Int),
  before: Schema.optionalKey(Schema.Array(Schema.String)),
  after: Schema.optionalKey(Schema.Array(Schema.String))
})

const Value = Schema.Struct({
  matches: Schema.optionalKey(Schema.Array(Match)),
  files: Schema.optionalKey(Schema.Array(Schema.Struct({ path: Schema.String, count: Schema.Int }))),
  total: Schema.Int,
  files_matched: Schema.Int,
  files_searched: Schema.Int,
  skipped: Searching.Skipped,
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.String)
})

type GrepAnswer = Answer<typeof Value.Type>

const parameters = Schema.Struct({
  pattern: Schema.String.annotate({ description: "JavaScript regular expression, matched line by line" }),
  path: optional(Schema.String, "Directory or file to search. Default: the root"),
  glob: optional(Schema.String, "Only files that match, such as *.ts"),
  mode: optional(
    Schema.Literals(["matches", "files", "count"]),
    "The kind of result: lines, paths of files, or counts by file. Default matches"
  ),
  max_matches: Searching.maxMatches(agent.maxGrepMatches, "matches; in the other modes, of files"),
  ignore_case: optional(Schema.Boolean, "Default false"),
  literal: optional(Schema.Boolean, "The pattern is plain text"),
  whole_word: optional(Schema.Boolean, "Default false"),
  multiline: optional(Schema.Boolean, "Matches may span lines. Default false"),
  context: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxContext })),
    "Lines around each match. Default 0"
  ),
  include_ignored: Searching.parameters.include_ignored,
  after: Searching.parameters.after
})

const found = (matches: number, files: number): string =>
  matches === 0 ? "0 matches" : `${plural(matches, "match", "matches")} in ${plural(files, "file")}`

const countFiles = (matches: ReadonlyArray<GrepMatch>): number => new Set(matches.map(({ path }) => path)).size

const render = ({ matches, next, skipped }: GrepResult): string =>
  joinLines(matchLines(matches), Searching.footer(found(matches.length, countFiles(matches)), skipped, next))

const matchOf = (match: GrepMatch): typeof Match.Type => {
  const { end, isCut, shown, start } = excerptOf(match)
  const { after, before, lineContent, lineNumber, matchEnd, matchStart, path } = match
  const texts = (lines: ReadonlyArray<string>): ReadonlyArray<string> => lines.map((line) => excerpt(line).shown)
  return {
    path,
    line_number: lineNumber,
    line: shown,
    match_start: matchStart - start,
    match_end: Math.min(matchEnd, end) - start,
    ...(isCut && { cut_from: start, line_length: lineContent.length }),
    ...(before !== undefined && { before: texts(before) }),
    ...(after !== undefined && { after: texts(after) })
  }
}

interface Search {
  readonly pattern: string
  readonly path: FsPath
  readonly options: GrepOptions
  readonly matchLimit: number
  readonly call: Call
}

const regexSigns = /[\\^$.*+?()[\]{}|]/

const noMatchHint = ({ options, path, pattern }: Search, skipped: GrepResult["skipped"]): string => {
  const { glob, literal } = options
  const literalHint =
    literal !== true && regexSigns.test(pattern) ? "; to find the pattern as plain text, set literal=true" : ""
  const isPathRepeated = path !== root && typeof glob === "string" && glob.startsWith(`${path}/`)
  return `${Searching.ignoredHint(skipped)}${literalHint}${isPathRepeated ? `; glob is relative to ${path}` : ""}`
}

const linesValue = ({ filesSearched, matches, next, skipped, truncated }: GrepResult): typeof Value.Type => ({
  matches: matches.map(matchOf),
  total: matches.length,
  files_matched: countFiles(matches),
  files_searched: filesSearched,
  skipped: Searching.skippedOf(skipped),
  truncated,
  ...(next !== undefined && { next })
})

const lines = Effect.fnUntraced(function* (search: Search): Effect.fn.Return<GrepAnswer, ToolFailure> {
  const { call, matchLimit, options, pattern } = search
  const page = (maxMatches: number) => call.filesystem.grep(pattern, { ...options, maxMatches })
  const sent = (result: GrepResult): string => call.sent(render(result), () => linesValue(result))
  const nextOf = ({ lineNumber, path }: GrepMatch): string => `${lineNumber}:${path}`
  const result = yield* Searching.searchFitting<GrepResult>(matchLimit, { page, nextOf, sent }, call)
  const hint = result.matches.length === 0 ? noMatchHint(search, result.skipped) : ""
  return { message: `${render(result)}${hint}`, value: linesValue(result) }
})

const renderFiles = ({ files, next, skipped }: FileCounts, mode: "files" | "count"): string =>
  joinLines(
    files.map(({ count, path }) => (mode === "files" ? path : `${path}: ${plural(count, "match", "matches")}`)),
    Searching.footer(found(matchesIn(files), files.length), skipped, next)
  )

const filesValue = ({ files, filesSearched, next, skipped }: FileCounts): typeof Value.Type => ({
  files,
  total: matchesIn(files),
  files_matched: files.length,
  files_searched: filesSearched,
  skipped: Searching.skippedOf(skipped),
  truncated: next !== undefined,
  ...(next !== undefined && { next })
})

const searchByFile = Effect.fnUntraced(function* (
  search: Search,
  mode: "files" | "count"
): Effect.fn.Return<GrepAnswer, ToolFailure> {
  const { call, matchLimit, options, pattern } = search
  const page = (after: string | undefined, maxMatches: number) =>
    call.filesystem.grep(pattern, { ...options, context: 0, after, maxMatches })
  const sent = (found: FileCounts): string => call.sent(renderFiles(found, mode), () => filesValue(found))
  const result = yield* countByFile(page, options.after, matchLimit, (count, found) =>
    countFitting(count, (count) => sent(found(count)), call.settings)
  )
  const hint = result.files.length === 0 ? noMatchHint(search, result.skipped) : ""
  return { message: `${renderFiles(result, mode)}${hint}`, value: filesValue(result) }
})

const optionsOf = (params: typeof parameters.Type, path: FsPath, mountPoint: MountPoint): GrepOptions => ({
  path,
  glob: Searching.globOf(params.glob ?? "", mountPoint) || undefined,
  ignoreCase: params.ignore_case,
  literal: params.literal,
  wholeWord: params.whole_word,
  multiline: params.multiline,
  context: params.context,
  gitignore: params.include_ignored !== true,
  after: params.after || undefined
})

export const grep = define({
  name: "grep",
  description:
    "Search file contents by regular expression, or for a text with literal. Shows lines with numbers; mode files or count for an overview. Leaves out binary files.",
  parameters,
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [
    { pattern: "TODO|FIXME", glob: "*.ts" },
    { pattern: "parse(", literal: true, path: "src", context: 2 },
    { pattern: "import", mode: "count" }
  ],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* (params, call) {
    const { mode = "matches" } = params
    const { limits, mountPoint } = call.settings
    const path = yield* call.path(params.path ?? "", { blank: "root" })
    const matchLimit = Math.min(params.max_matches ?? limits.maxGrepMatches, limits.maxGrepMatches)
    const search: Search = { pattern: params.pattern, path, options: optionsOf(params, path, mountPoint), matchLimit, call }
    return yield* Searching.withProgress(mode === "matches" ? lines(search) : searchByFile(search, mode))
  })
})
