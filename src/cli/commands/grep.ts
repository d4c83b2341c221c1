/**
 * `grep`: lines by regular expression, written as they are found, the way ripgrep shows them.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { GrepMatch } from "../../model/Entry.ts"
import { list } from "../answer.ts"
import { sayContinuation } from "../continuation.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorLook } from "../look.ts"
import { grouped, matched } from "../matches.ts"
import { sayNothingFound } from "../nothing.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import * as skipped from "../skipped.ts"
import { subcommand } from "../subcommand.ts"

/** One file with a match, for --files and --count. */
const FileMatches = Schema.Struct({ path: GrepMatch.fields.path, matches: Schema.Int })

/** Matches come file after file, so a file is complete when the next one begins. */
const perFile = <E, R>(matches: Stream.Stream<GrepMatch, E, R>) =>
  matches.pipe(
    Stream.groupAdjacentBy((match) => match.path),
    Stream.map(([path, group]) => ({ path, matches: group.length }))
  )

export const grep = subcommand(
  "grep",
  {
    summary: "Find lines by regular expression",
    description: `Find the lines that match a JavaScript regular expression, in the order of paths and lines. Hidden files are searched,
binary ones are not; what was passed over is said at the end. On a terminal grouped by file, into a pipe as
path:line:text. A pattern that begins with - goes after --.`,
    examples: [
      ["'TODO|FIXME' --gitignore", "In everything but what git ignores"],
      ["-i readme docs --glob '*.md' -C 2", "In some files of a directory, with two lines around"],
      ["-F 'a.b(' --files", "Plain text; only the names of the files"],
      ["'^import' --count --json", "How often in each file, as JSON"]
    ]
  },
  {
    pattern: Argument.String("pattern").pipe(Argument.withDescription("The regular expression")),
    path: flags.directory("Where to search, a directory or one file"),
    glob: flags.repeated("glob", "GLOB", "Only files that match; !GLOB takes out (may be repeated)").pipe(Flag.withAlias("g")),
    exclude: flags.exclude,
    gitignore: flags.gitignore,
    ignoreCase: flags.toggle("ignore-case", "Upper and lower case are the same").pipe(Flag.withAlias("i")),
    literal: flags.toggle("literal", "The pattern is plain text").pipe(Flag.withAlias("F")),
    wholeWord: flags.toggle("word", "Only whole words").pipe(Flag.withAlias("w")),
    context: flags.natural("context", "N", "Lines to show before and after each match").pipe(Flag.withAlias("C")),
    before: flags.natural("before-context", "N", "Lines to show before each match").pipe(Flag.withAlias("B")),
    following: flags.natural("after-context", "N", "Lines to show after each match").pipe(Flag.withAlias("A")),
    multiline: flags.toggle("multiline", "A match may span lines").pipe(Flag.withAlias("U")),
    files: flags.toggle("files", "Only the names of files with a match").pipe(Flag.withAlias("l")),
    count: flags.toggle("count", "Only how many lines match in each file").pipe(Flag.withAlias("c")),
    max: flags.max,
    after: flags.after
  },
  Effect.fnUntraced(function* ({ before, context, count, files, following, glob, max, pattern, ...rest }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { json } = yield* Settings
    const passedOver = skipped.collect()
    const around = [before ?? context ?? 0, following ?? context ?? 0] as const
    const options = {
      ...rest,
      context: around[0] + around[1] === 0 ? undefined : around,
      glob: glob.length === 0 ? undefined : glob
    }
    const totals = { matches: 0, files: 0 }
    const counting = <E, R>(matches: Stream.Stream<GrepMatch, E, R>) => {
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
        ? list(FileMatches, perFile(counting(matches)), (look) => ({
            lines: (items) =>
              items
                .map(({ matches, path }) => `${look.magenta(look.name(path))}${count ? `:${look.green(`${matches}`)}` : ""}\n`)
                .join("")
          }))
        : list(GrepMatch, counting(matches), (look) => (screen.isTerminal ? grouped(look, screen.columns) : matched(look)))
    const searching = withProgress(
      "Searching",
      () => `${humanise.count(totals.matches, "match")} in ${humanise.count(totals.files, "file")}`
    )
    if (max === undefined) {
      yield* print(fs.grepStream(pattern, { ...options, onSkip: passedOver.onSkip })).pipe(searching)
      yield* skipped.say(passedOver)
    } else {
      const result = yield* fs.grep(pattern, { ...options, maxMatches: max }).pipe(searching)
      yield* print(Stream.fromArray(result.matches))
      yield* skipped.sayResult(result.skipped)
      yield* sayContinuation(result, max)
    }
    if (screen.isTerminal && !json && totals.matches > 0) {
      const found = `${humanise.count(totals.matches, "match")} in ${humanise.count(totals.files, "file")}`
      yield* screen.warn(errorLook(screen).dim(found))
    }
    if (totals.matches === 0) yield* sayNothingFound("grep", rest.path)
  })
).pipe(
  Command.validate(({ before, context, count, files, following }) =>
    (files && count) || ((before ?? context ?? following) !== undefined && (files || count))
      ? new CliError.ValidationError({ message: "of --files, --count and lines of context only one goes at a time" })
      : Effect.void
  )
)
