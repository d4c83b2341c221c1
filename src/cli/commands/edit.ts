import * as Effect from "effect/Effect"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { EditResult } from "../../model/Entry.ts"
import { writeDocument } from "../answer.ts"
import { paintDiff } from "../diff.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle } from "../look.ts"
import { toPathInRoot } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { subcommand } from "../subcommand.ts"

export const edit = subcommand(
  "edit",
  {
    formatSummary: "Replace text in a file and show the difference",
    description: `Replace a text that occurs exactly once in the file, and print the difference. Everything else keeps its bytes:
line endings, encoding, byte order mark. The difference goes to standard output, the rest to standard error.`,
    examples: [
      ["src/main.ts --old 'port = 80' --new 'port = 8080'", "One passage"],
      ["README.md --old colour --new color --all --dry-run", "Show all changes without making them"],
      ["config.yml --old=- --new='* ' --first", "A text that begins with a dash"]
    ]
  },
  {
    path: flags.path("The file"),
    oldText: flags.requiredText("old", "TEXT", "The text to replace"),
    newText: flags.requiredText("new", "TEXT", "The replacement"),
    all: flags.toggle("all", "Replace every occurrence"),
    first: flags.toggle("first", "Replace the first occurrence"),
    dryRun: flags.toggle("dry-run", "Show the difference and change nothing"),
    ifMatch: flags.ifMatch
  },
  Effect.fnUntraced(function* ({ all, dryRun, first, ifMatch, newText, oldText, path }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { json } = yield* Settings
    const match = all ? "all" : first ? "first" : "unique"
    const result = yield* fs.edit(
      yield* toPathInRoot(path),
      { oldText, newText, match },
      { dryRun, version: true, ...(ifMatch !== undefined && { ifMatch }) }
    )
    yield* writeDocument(EditResult, result, (look) => paintDiff(look, result.diff))
    if (json) return
    const { dim, name } = errorStyle(screen)
    const what = `${humanise.count(result.replacements, "replacement")} in ${name(result.path)}`
    yield* screen.warn(dim(dryRun ? `${what} to make; nothing has changed` : `${what}, version ${result.version}`))
  })
).pipe(
  Command.validate(({ all, first }) =>
    all && first ? new CliError.ValidationError({ message: "--all and --first exclude each other" }) : Effect.void
  )
)
