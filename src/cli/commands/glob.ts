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
import { nothingFound, Quit } from "../exit.ts"
import { located, locatedPattern } from "../paths.ts"
import { withProgress } from "../progress.ts"
import { obeysGitignore } from "../searchBases.ts"
import * as skipped from "../skipped.ts"
import { subcommand } from "../subcommand.ts"
import { sayContinuation } from "../continuation.ts"

const sizeWidth = 8

export const glob = subcommand(
  "glob",
  {
    summary: "Find paths by pattern",
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
  Effect.fnUntraced(function* ({ max, patterns: given, ...flags }) {
    const fs = yield* Filesystem
    const path = yield* located(flags.path ?? ".")
    const options = { ...flags, path, gitignore: flags.gitignore && (yield* obeysGitignore(fs, path)) }
    const patterns = path === FsPath.root ? yield* Effect.forEach(given, locatedPattern) : given
    const passedOver = skipped.collect()
    let found = 0
    const counted = <E, R>(matches: Stream.Stream<GlobMatch, E, R>) =>
      Stream.mapArray(matches, (all) => {
        found += all.length
        return all
      })
    const print = <E, R>(matches: Stream.Stream<GlobMatch, E, R>) =>
      list(GlobMatch, counted(matches), (look) => ({
        lines: (matches) =>
          matches
            .map(({ kind, path, sizeBytes }) => {
              const size = !options.sizes ? "" : kind === "file" && sizeBytes !== undefined ? humanise.bytes(sizeBytes) : "-"
              return `${options.sizes ? `${look.green(size.padStart(sizeWidth))}  ` : ""}${look.entry(path, kind)}\n`
            })
            .join("")
      }))
    const searching = withProgress("Searching", () => humanise.count(found, "match"))
    if (max === undefined) {
      yield* print(fs.globStream(patterns, { ...options, onSkip: passedOver.onSkip })).pipe(searching)
      yield* skipped.say(passedOver)
    } else {
      const result = yield* fs.glob(patterns, { ...options, maxMatches: max }).pipe(searching)
      yield* print(Stream.fromArray(result.matches))
      passedOver.add(result.skipped)
      yield* skipped.say(passedOver)
      yield* sayContinuation(result, max)
    }
    if (found === 0) yield* new Quit({ code: nothingFound })
  })
)
