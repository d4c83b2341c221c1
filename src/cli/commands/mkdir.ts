import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { FileStat } from "../../model/Entry.ts"
import { writeDocument } from "../answer.ts"
import { forEachPath } from "../failure.ts"
import * as flags from "../flags.ts"
import { subcommand } from "../subcommand.ts"

export const mkdir = subcommand(
  "mkdir",
  {
    formatSummary: "Make directories",
    description: "Make directories and their missing parents. An existing directory is no failure.",
    examples: [
      ["src/cli docs", "Two directories"],
      ["--no-exist-ok build", "Fail if it exists already"]
    ]
  },
  {
    paths: flags.paths("The directories"),
    parents: flags.negatable("parents", "Make its missing parents; --no-parents fails instead").pipe(Flag.withAlias("p")),
    existOk: flags.negatable("exist-ok", "Accept an existing directory; --no-exist-ok fails instead")
  },
  Effect.fnUntraced(function* ({ existOk, parents, paths }) {
    const fs = yield* Filesystem
    yield* forEachPath(paths, (path) =>
      Effect.gen(function* () {
        yield* fs.mkdir(path, { parents, existOk })
        const stat = yield* fs.stat(path)
        yield* writeDocument(FileStat, stat, (look) => `Made ${look.entry(stat.path, "directory")}\n`)
      })
    )
  })
)
