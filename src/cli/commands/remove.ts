import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { DeleteResult } from "../../model/Entry.ts"
import { document } from "../answer.ts"
import { forEachPath } from "../failure.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { withProgress } from "../progress.ts"
import { subcommand } from "../subcommand.ts"

const counted = ({ deleted, directories }: DeleteResult): string =>
  [
    ...(deleted > 0 ? [humanise.count(deleted, "file")] : []),
    ...(directories > 0 ? [humanise.count(directories, "directory")] : [])
  ].join(" and ")

export const rm = subcommand(
  "rm",
  {
    summary: "Remove files and directories",
    description: `Remove files, links and empty directories; with --recursive directories with all that is in them. Of a link the
link goes, its target stays. The root itself cannot be removed.`,
    examples: [
      ["draft.txt", "A file"],
      ["--recursive build dist", "Two directories with their content"],
      ["--missing-ok --recursive tmp", "Whether or not it is there"]
    ]
  },
  {
    paths: flags.paths("What to remove"),
    recursive: flags.toggle("recursive", "Directories with all that is in them").pipe(Flag.withAlias("r")),
    missingOk: flags.toggle("missing-ok", "What is not there is no failure").pipe(Flag.withAlias("f")),
    ifMatch: flags.ifMatch
  },
  Effect.fnUntraced(function* ({ ifMatch, missingOk, paths, recursive }) {
    const fs = yield* Filesystem
    yield* forEachPath(paths, (path) =>
      Effect.gen(function* () {
        const result = yield* fs
          .delete(path, { recursive, missing: missingOk ? "ignore" : "fail", ...(ifMatch !== undefined && { ifMatch }) })
          .pipe(withProgress(`Removing ${path}`))
        yield* document(DeleteResult, result, (look) =>
          result.deleted + result.directories === 0
            ? `${look.name(path)} is not there\n`
            : `Removed ${look.name(path)}${result.deleted + result.directories > 1 ? `, ${counted(result)}` : ""}\n`
        )
      })
    )
  })
)
