import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { cursorOf } from "../../engine/grep.ts"
import { type Algebra, Filesystem, type GrepOptions } from "../../filesystem/Filesystem.ts"
import { GlobMatch, GrepMatch } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { list, listLines, type ListFormat, withProgress, writeRemark } from "../answer.ts"
import { nothingFoundCode, Quit } from "../exit.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle, quote, type TextStyle } from "../look.ts"
import { toPathInRoot, toPatternInRoot } from "../paths.ts"
import { Screen } from "../screen.ts"
import * as skipped from "../searching.ts"
import { appliesGitignore, type SearchBase, searchBases } from "../searching.ts"
import { Settings } from "../settings.ts"
import { refuseFlags, subcommand } from "../subcommand.ts"

const reportContinuation = Effect.fnUntraced(function* (
  result: {
    readonly truncated: boolean
    readonly next?: string | undefined
  },
  max: number
) {
  if (!result.truncated) return
  const { yellow } = errorStyle(yield* Screen)
  // Without a cursor, and after `--max 0`, `--after` would not continue the search.
  const continueHint = result.next === undefined || max === 0 ? "" : `; continue with --after ${quote(result.next)}`
  yield* writeRemark(`${yellow("more:")} there are more results than --max allows${continueHint}`, {
    truncated: true,
    ...(result.next !== undefined && { next: result.next })
  })
})

// Formats matches. A terminal shows matches grouped by file, with line numbers. A pipe gets one line for each match, with path,
// line number and text. Shared context lines are shown once, and gaps are marked.

interface MatchFormat {
  readonly head: (path: string, isFirst: boolean, hasContext: boolean) => string
  readonly line: (path: string, line: number, text: string, isMatch: boolean) => string
  readonly gap: string
}

/**
 * Arranges matches and context lines in order. Keeps the lines after a match until the next match is known, because one of
 * these lines may be the next match.
 */
const arrangeMatches = (
  matchFormat: MatchFormat,
  highlight: (match: GrepMatch) => string,
  context: (text: string) => string
): ListFormat<GrepMatch> => {
  let path: string | undefined
  let lastPrintedLine = 0
  let heldContext: ReadonlyArray<string> = []

  const flush = (before: number): string => {
    let out = ""
    for (const text of heldContext) {
      if (lastPrintedLine + 1 >= before) break
      out += matchFormat.line(path!, ++lastPrintedLine, context(text), false)
    }
    heldContext = []
    return out
  }
  const formatMatch = (match: GrepMatch): string => {
    const hasContext = match.before !== undefined || match.after !== undefined
    let out = ""
    if (match.path !== path) {
      out += flush(Number.POSITIVE_INFINITY) + matchFormat.head(match.path, path === undefined, hasContext)
      path = match.path
      lastPrintedLine = 0
    } else out += flush(match.lineNumber)
    const before = match.before ?? []
    const first = match.lineNumber - before.length
    if (hasContext && lastPrintedLine > 0 && first > lastPrintedLine + 1) out += matchFormat.gap
    before.forEach((text, index) => {
      if (first + index > lastPrintedLine) out += matchFormat.line(match.path, first + index, context(text), false)
    })
    out += matchFormat.line(match.path, match.lineNumber, highlight(match), true)
    lastPrintedLine = match.lineNumber
    heldContext = match.after ?? []
    return out
  }
  return {
    lines: (matches) => matches.map(formatMatch).join(""),
    end: () => flush(Number.POSITIVE_INFINITY)
  }
}

const formatPiped = (look: TextStyle): ListFormat<GrepMatch> =>
  arrangeMatches(
    {
      head: (_, isFirst, hasContext) => (isFirst || !hasContext ? "" : "--\n"),
      line: (path, line, text, isMatch) => {
        const mark = look.dim(isMatch ? ":" : "-")
        return `${look.magenta(path)}${mark}${look.green(`${line}`)}${mark}${text}\n`
      },
      gap: "--\n"
    },
    ({ lineContent, matchEnd, matchStart }) => emphasizeMatch(look, lineContent, matchStart, matchEnd),
    look.text
  )

const emphasizeMatch = (look: TextStyle, text: string, start: number, end: number): string =>
  look.text(text.slice(0, start)) + look.red(look.bold(look.text(text.slice(start, end)))) + look.text(text.slice(end))

/** The largest number of terminal rows for one line. A longer line is cut, a matching line around its match. */
const maxRowsPerLine = 4

const cutAroundMatch = (look: TextStyle, { lineContent, matchEnd, matchStart }: GrepMatch, columns: number): string => {
  const maxCharacters = columns * maxRowsPerLine
  if (lineContent.length <= maxCharacters) return emphasizeMatch(look, lineContent, matchStart, matchEnd)
  const from = Math.max(0, Math.min(matchStart - Math.floor(maxCharacters / 4), lineContent.length - maxCharacters))
  const to = Math.min(lineContent.length, from + maxCharacters)
  const mark = look.dim("…")
  return (
    (from > 0 ? mark : "") +
    emphasizeMatch(look, lineContent.slice(from, to), matchStart - from, Math.min(matchEnd, to) - from) +
    (to < lineContent.length ? mark : "")
  )
}

const formatGrouped = (look: TextStyle, columns: number): ListFormat<GrepMatch> => {
  const maxCharacters = columns * maxRowsPerLine
  return arrangeMatches(
    {
      head: (path, isFirst) => `${isFirst ? "" : "\n"}${look.magenta(look.name(path))}\n`,
      line: (_, line, text, isMatch) => `${look.green(`${line}`)}${look.dim(isMatch ? ":" : "-")}${text}\n`,
      gap: `${look.dim("--")}\n`
    },
    (match) => cutAroundMatch(look, match, columns),
    (text) => (text.length <= maxCharacters ? look.text(text) : look.text(text.slice(0, maxCharacters)) + look.dim("…"))
  )
}

const sizeWidth = 8

export const glob = subcommand(
  "glob",
  {
    summary: "Find paths by pattern",
    description: `Find files by glob, in the order of their paths, including hidden files but not the files that git ignores. A pattern
without / matches names at any depth; a pattern with / starts at --path. * matches within a name, ** crosses
directories, {a,b} and [a-z] match alternatives. Quote patterns, or the shell expands them first.`,
    examples: [
      ["'*.ts'", "By name, at any depth"],
      ["'src/**/*.ts' -x '*.test.ts'", "By path, without tests"],
      ["'**/node_modules' --kinds directory --no-ignore", "Directories, also those that git ignores"],
      ["'*' --max 100 --json", "The first hundred matches, as JSON"]
    ]
  },
  {
    patterns: Argument.String("pattern").pipe(
      Argument.withDescription("The pattern; with several, a path must match at least one"),
      Argument.variadic({ min: 1 })
    ),
    path: flags.text("path", "DIR", "The directory to start in (default: the root)"),
    exclude: flags.exclude,
    gitignore: flags.gitignore,
    kinds: flags.kinds,
    sizes: flags.toggle("long", "With sizes").pipe(Flag.withAlias("l")),
    max: flags.max,
    after: flags.after
  },
  Effect.fnUntraced(function* ({ max, patterns: givenPatterns, ...flags }) {
    const fs = yield* Filesystem
    const path = yield* toPathInRoot(flags.path ?? ".")
    const options = { ...flags, path, gitignore: flags.gitignore && (yield* appliesGitignore(fs, path)) }
    const patterns = path === FsPath.root ? yield* Effect.forEach(givenPatterns, toPatternInRoot) : givenPatterns
    const skippedFiles = skipped.makeCollector()
    let matchCount = 0
    const countMatches = <E, R>(matches: Stream.Stream<GlobMatch, E, R>) =>
      Stream.mapArray(matches, (all) => {
        matchCount += all.length
        return all
      })
    const print = <E, R>(matches: Stream.Stream<GlobMatch, E, R>) =>
      listLines(GlobMatch, countMatches(matches), (look, { kind, path, sizeBytes }) => {
        const size = kind === "file" && sizeBytes !== undefined ? humanise.bytes(sizeBytes) : "-"
        return `${options.sizes ? `${look.green(size.padStart(sizeWidth))}  ` : ""}${look.entry(path, kind)}\n`
      })
    const searching = withProgress("Searching", () => humanise.count(matchCount, "match"))
    if (max === undefined) {
      yield* print(fs.globStream(patterns, { ...options, onSkip: skippedFiles.onSkip })).pipe(searching)
      yield* skipped.report(skippedFiles)
    } else {
      const result = yield* fs.glob(patterns, { ...options, maxMatches: max }).pipe(searching)
      yield* print(Stream.fromArray(result.matches))
      skippedFiles.add(result.skipped)
      yield* skipped.report(skippedFiles)
      yield* reportContinuation(result, max)
    }
    if (matchCount === 0) yield* new Quit({ code: nothingFoundCode })
  })
)

const FileMatches = Schema.Struct({ path: GrepMatch.fields.path, matches: Schema.Int })

/**
 * Counts the matches of each file. Matches arrive file by file, so a count is complete when the first match of another file
 * arrives.
 */
const countPerFile = <E, R>(matches: Stream.Stream<GrepMatch, E, R>) =>
  matches.pipe(
    Stream.groupAdjacentBy((match) => match.path),
    Stream.map(([path, group]) => ({ path, matches: group.length }))
  )

const firstMatches = Effect.fnUntraced(function* (
  fs: Algebra,
  pattern: string,
  options: GrepOptions & { readonly maxMatches: number },
  bases: ReadonlyArray<SearchBase>
) {
  const skippedFiles = skipped.makeCollector()
  const matches: Array<GrepMatch> = []
  for (const { gitignore, path } of bases) {
    const maxMatches = options.maxMatches - matches.length
    const result = yield* fs.grep(pattern, { ...options, path, gitignore, maxMatches })
    matches.push(...result.matches)
    skippedFiles.add(result.skipped)
    if (!result.truncated) continue
    const last = matches.at(-1)
    return { matches, skipped: skippedFiles, truncated: true, next: last === undefined ? result.next : cursorOf(last) }
  }
  return { matches, skipped: skippedFiles, truncated: false }
})

export const grep = subcommand(
  "grep",
  {
    summary: "Find lines by regular expression",
    description: `Find the lines that match a JavaScript regular expression, in the order of paths and lines. Hidden files are searched.
Binary files and files that git ignores are not, unless a path names them. The last line counts the skipped files.
A terminal shows matches grouped by file; a pipe gets path:line:text. A pattern that begins with - goes after --.`,
    examples: [
      ["'TODO|FIXME'", "In all files that git does not ignore"],
      [
        "-i readme docs README.md --glob '*.md' -C 2",
        "In the Markdown files of docs and in README.md, with two lines of context"
      ],
      ["-F 'a.b(' --files", "Plain text; only the names of the files"],
      ["'^import' --count --json", "The number of matches in each file, as JSON"]
    ]
  },
  {
    pattern: Argument.String("pattern").pipe(Argument.withDescription("The regular expression")),
    paths: flags.path("The directories and files to search (default: the root)").pipe(Argument.variadic()),
    glob: flags.repeated("glob", "GLOB", "Only files that match; !GLOB excludes (may be repeated)").pipe(Flag.withAlias("g")),
    exclude: flags.exclude,
    gitignore: flags.gitignore,
    ignoreCase: flags.toggle("ignore-case", "Ignore the difference between upper and lower case").pipe(Flag.withAlias("i")),
    literal: flags.toggle("literal", "The pattern is plain text").pipe(Flag.withAlias("F")),
    wholeWord: flags.toggle("word", "Only whole words").pipe(Flag.withAlias("w")),
    context: flags.natural("context", "N", "Lines to show before and after each match").pipe(Flag.withAlias("C")),
    before: flags.natural("before-context", "N", "Lines to show before each match").pipe(Flag.withAlias("B")),
    following: flags.natural("after-context", "N", "Lines to show after each match").pipe(Flag.withAlias("A")),
    multiline: flags.toggle("multiline", "A match may span lines").pipe(Flag.withAlias("U")),
    files: flags.toggle("files", "Only the names of files with a match").pipe(Flag.withAlias("l")),
    count: flags.toggle("count", "Only the number of matching lines in each file").pipe(Flag.withAlias("c")),
    max: flags.max,
    after: flags.after
  },
  Effect.fnUntraced(function* ({ before, context, count, files, following, gitignore, glob, max, paths, pattern, ...rest }) {
    const fs = yield* Filesystem
    const { bases, failed, isNested } = yield* searchBases(fs, paths.length === 0 ? ["."] : paths, gitignore)
    const screen = yield* Screen
    const { json } = yield* Settings
    const skippedFiles = skipped.makeCollector()
    const contextLines = [before ?? context ?? 0, following ?? context ?? 0] as const
    const options = {
      ...rest,
      context: contextLines[0] + contextLines[1] === 0 ? undefined : contextLines,
      glob: glob.length === 0 ? undefined : glob
    }
    const totals = { matches: 0, files: 0 }
    const countMatches = <E, R>(matches: Stream.Stream<GrepMatch, E, R>) => {
      let last: string | undefined
      return Stream.mapArray(matches, (matches) => {
        for (const { path } of matches) {
          if (path !== last) totals.files++
          last = path
        }
        totals.matches += matches.length
        return matches
      })
    }
    const print = <E, R>(matches: Stream.Stream<GrepMatch, E, R>) =>
      files || count
        ? listLines(
            FileMatches,
            countPerFile(countMatches(matches)),
            (look, { matches, path }) => `${look.magenta(look.name(path))}${count ? `:${look.green(`${matches}`)}` : ""}\n`
          )
        : list(GrepMatch, countMatches(matches), (look) =>
            screen.isTerminal ? formatGrouped(look, screen.columns) : formatPiped(look)
          )
    const formatTotals = () => `${humanise.count(totals.matches, "match")} in ${humanise.count(totals.files, "file")}`
    const searching = withProgress("Searching", formatTotals)
    if (max === undefined) {
      const matches = Stream.flatMap(Stream.fromIterable(bases), ({ gitignore, path }) =>
        fs.grepStream(pattern, { ...options, path, gitignore, onSkip: skippedFiles.onSkip })
      )
      yield* print(matches).pipe(searching)
      yield* skipped.report(skippedFiles)
    } else {
      const page = yield* firstMatches(fs, pattern, { ...options, maxMatches: max }, bases).pipe(searching)
      yield* print(Stream.fromArray(page.matches))
      yield* skipped.report(page.skipped)
      // If matches are not in path order, a cursor cannot describe the position of the last match.
      yield* reportContinuation(isNested ? { truncated: page.truncated } : page, max)
    }
    if (screen.isTerminal && !json && totals.matches > 0) yield* screen.warn(errorStyle(screen).dim(formatTotals()))
    if (failed !== undefined) return yield* failed
    if (totals.matches > 0) return
    if (!rest.literal && pattern.includes(String.raw`\|`)) {
      const meant = pattern.replaceAll(String.raw`\|`, "|")
      yield* writeRemark(
        String.raw`${errorStyle(screen).yellow("note:")}  \| matches the character |; for alternatives write ${quote(meant)}`,
        {
          note: String.raw`\| is the character |`,
          meant
        }
      )
    }
    yield* new Quit({ code: nothingFoundCode })
  })
).pipe(
  refuseFlags(({ before, context, count, files, following }) =>
    [files, count, (before ?? context ?? following) !== undefined].filter(Boolean).length > 1
      ? "--files, --count and lines of context exclude each other"
      : undefined
  )
)
