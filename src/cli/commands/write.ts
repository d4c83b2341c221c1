import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { WriteResult } from "../../model/Entry.ts"
import { writeDocument } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle } from "../look.ts"
import { toPathInRoot } from "../paths.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { subcommand } from "../subcommand.ts"

const mode = Flag.ChoiceWithValue("mode", [
  ["create", "create"],
  ["overwrite", "overwrite"],
  ["append", "append"],
  ["replace", "replace"],
  ["append-existing", "appendExisting"]
] as const).pipe(
  Flag.withAlias("m"),
  Flag.withDescription("Whether the file may exist, as above"),
  Flag.withMetavar("MODE"),
  Flag.withDefault("overwrite" as const)
)

const verbs = {
  create: "Created",
  overwrite: "Wrote",
  append: "Appended to",
  replace: "Replaced",
  appendExisting: "Appended to"
} as const

export const write = subcommand(
  "write",
  {
    formatSummary: "Write a file from --text or standard input",
    description: `Write a file from --text, or without it from standard input. The old content stays until the new one is
complete, also if the input or the command is interrupted.
--mode create needs a new file, replace and append-existing need an existing one, overwrite (the default)
and append accept both.`,
    examples: [
      ["notes.txt --text 'remember the milk'", "From an argument"],
      ["data/report.json < report.json", "From standard input; directories are made"],
      ['log.txt --mode append --text "$(date)"', "At the end of a file"],
      ["notes.txt --if-match VERSION < new.txt", "Only if nobody has changed it since"]
    ]
  },
  {
    path: flags.path("The file"),
    text: flags.text("text", "TEXT", "The content, exactly as given (default: standard input)"),
    mode,
    ifMatch: flags.ifMatch,
    parents: flags.negatable("parents", "Make its missing parent directories; --no-parents fails instead")
  },
  Effect.fnUntraced(function* ({ ifMatch, mode, parents, path: given, text }) {
    const fs = yield* Filesystem
    const path = yield* toPathInRoot(given)
    const screen = yield* Screen
    const options = { mode, createParents: parents, version: true as const, ...(ifMatch !== undefined && { ifMatch }) }
    if (text === undefined && screen.isInteractive) {
      yield* screen.warn(errorStyle(screen).dim("Type the content; Ctrl-D ends it, Ctrl-C leaves everything as it was."))
    }
    const result = yield* text === undefined
      ? Stream.run(screen.input, fs.sink(path, options)).pipe(withProgress(`Writing ${path}`))
      : fs.write(path, text, options)
    yield* writeDocument(WriteResult, result, (look) => {
      const size = look.green(humanise.bytes(result.bytesWritten))
      return `${verbs[result.mode]} ${look.name(result.path)}, ${size}\n${look.dim(`version ${result.version}`)}\n`
    })
  })
)
