import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { DeleteResult } from "../../model/Entry.ts"
import { writeDocument } from "../answer.ts"
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
    formatSummary: "Remove files and directories",
    description: `Remove files, links and empty directories; with --recursive also directories with all their content. A link is removed
without its target. The root itself cannot be removed.`,
    examples: [
      ["draft.txt", "A file"],
      ["--recursive build dist", "Two directories with their content"],
      ["--missing-ok --recursive tmp", "Also if it does not exist"]
    ]
  },
  {
    paths: flags.paths("The files or directories to remove"),
    recursive: flags.toggle("recursive", "Remove directories with all their content").pipe(Flag.withAlias("r")),
    missingOk: flags.toggle("missing-ok", "Do not fail if a path does not exist").pipe(Flag.withAlias("f")),
    ifMatch: flags.ifMatch
  },
  Effect.fnUntraced(function* ({ ifMatch, missingOk, paths, recursive }) {
    const fs = yield* Filesystem
    yield* forEachPath(paths, (path) =>
      Effect.gen(function* () {
        const result = yield* fs
          .delete(path, {
            recursive,
            missing: missingOk ? "ignore" : "fail",
            ...(ifMatch !== undefined && { ifMatch })
          })
          .pipe(withProgress(`Removing ${path}`))
        yield* writeDocument(DeleteResult, result, (look) =>
          result.deleted + result.directories === 0
            ? `${look.name(path)} does not exist\n`
            : `Removed ${look.name(path)}${result.deleted + result.directories > 1 ? `, ${counted(result)}` : ""}\n`
        )
      })
    )
  })
)
