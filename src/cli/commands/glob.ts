import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { GlobMatch } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { list } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { nothingFoundCode, Quit } from "../exit.ts"
import { toPathInRoot, toPatternInRoot } from "../paths.ts"
import { withProgress } from "../progress.ts"
import { appliesGitignore } from "../searchBases.ts"
import * as skipped from "../skipped.ts"
import { subcommand } from "../subcommand.ts"
import { reportContinuation } from "../continuation.ts"

const sizeWidth = 8

export const glob = subcommand(
  "glob",
  {
    formatSummary: "Find paths by pattern",
    description: `Find files by glob, in the order of their paths, hidden ones too, without those git ignores. A pattern without /
matches names at any depth, one with / starts at --path; * stays within a name, ** crosses directories, {a,b} and
[a-z] choose. Quote patterns, or the shell expands them first.`,
    examples: [
      ["'*.ts'", "By name, at any depth"],
      ["'src/**/*.ts' -x '*.test.ts'", "By path, without tests"],
      ["'**/node_modules' --kinds directory --no-ignore", "Directories, also those that git ignores"],
      ["'*' --max 100 --json", "The first hundred, as JSON"]
    ]
  },
  {
    patterns: Argument.String("pattern").pipe(
      Argument.withDescription("The pattern; of several, a path must match one"),
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
      list(GlobMatch, countMatches(matches), (look) => ({
        lines: (matches) =>
          matches
            .map(({ kind, path, sizeBytes }) => {
              const size = !options.sizes ? "" : kind === "file" && sizeBytes !== undefined ? humanise.bytes(sizeBytes) : "-"
              return `${options.sizes ? `${look.green(size.padStart(sizeWidth))}  ` : ""}${look.entry(path, kind)}\n`
            })
            .join("")
      }))
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
