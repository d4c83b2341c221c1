import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { cursorOf } from "../../engine/grep.ts"
import { type Algebra, Filesystem, type GrepOptions } from "../../filesystem/Filesystem.ts"
import { GrepMatch } from "../../model/Entry.ts"
import { list, writeRemark } from "../answer.ts"
import { reportContinuation } from "../continuation.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle } from "../look.ts"
import { formatGrouped, formatPiped } from "../matches.ts"
import { nothingFoundCode, Quit } from "../exit.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { type SearchBase, searchBases } from "../searchBases.ts"
import { Settings } from "../settings.ts"
import { quote } from "../shell.ts"
import * as skipped from "../skipped.ts"
import { subcommand } from "../subcommand.ts"

const FileMatches = Schema.Struct({ path: GrepMatch.fields.path, matches: Schema.Int })

/** Counts the matches of each file. Matches arrive file by file, so a file is complete when the next one begins. */
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
    formatSummary: "Find lines by regular expression",
    description: `Find the lines that match a JavaScript regular expression, in the order of paths and lines. Hidden files are searched;
binary ones and what git ignores are not, unless a path names them. Skipped files are counted at the end.
On a terminal grouped by file, into a pipe as path:line:text. A pattern that begins with - goes after --.`,
    examples: [
      ["'TODO|FIXME'", "In all files that git does not ignore"],
      ["-i readme docs README.md --glob '*.md' -C 2", "In some files of a directory and one more, with two lines around"],
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
    ignoreCase: flags.toggle("ignore-case", "Ignore upper and lower case").pipe(Flag.withAlias("i")),
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
        ? list(FileMatches, countPerFile(countMatches(matches)), (look) => ({
            lines: (items) =>
              items
                .map(({ matches, path }) => `${look.magenta(look.name(path))}${count ? `:${look.green(`${matches}`)}` : ""}\n`)
                .join("")
          }))
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
      // Without path order no cursor can tell which matches were returned.
      yield* reportContinuation(isNested ? { truncated: page.truncated } : page, max)
    }
    if (screen.isTerminal && !json && totals.matches > 0) yield* screen.warn(errorStyle(screen).dim(formatTotals()))
    if (failed !== undefined) return yield* failed
    if (totals.matches > 0) return
    if (!rest.literal && pattern.includes(String.raw`\|`)) {
      const meant = pattern.replaceAll(String.raw`\|`, "|")
      yield* writeRemark(
        String.raw`${errorStyle(screen).yellow("note:")}  \| is the character |; for either of two write ${quote(meant)}`,
        {
          note: String.raw`\| is the character |`,
          meant
        }
      )
    }
    yield* new Quit({ code: nothingFoundCode })
  })
).pipe(
  Command.validate(({ before, context, count, files, following }) =>
    (files && count) || ((before ?? context ?? following) !== undefined && (files || count))
      ? new CliError.ValidationError({ message: "--files, --count and lines of context exclude each other" })
      : Effect.void
  )
)
