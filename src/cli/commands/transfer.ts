/**
 * `cp` and `mv`: whole trees, to a name, or into a directory when the destination ends in a slash.
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { TransferResult } from "../../model/Entry.ts"
import { document } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { withProgress } from "../progress.ts"
import { type About, subcommand } from "../subcommand.ts"

/** `a/b` into `c/` is `c/b`. Which of the two was meant is said, never guessed from what is there. */
export const destination = (from: string, to: string): string => {
  if (!to.endsWith("/")) return to
  const name = from.replace(/\/+$/, "").split("/").at(-1)!
  return `${to}${name}`
}

const counted = ({ bytes, directories, files }: TransferResult): string =>
  [
    humanise.count(files, "file"),
    ...(directories > 0 ? [humanise.count(directories, "directory")] : []),
    humanise.bytes(bytes)
  ].join(", ")

const transfer = <const Name extends string>(
  name: Name,
  operation: "copy" | "move",
  verbs: { readonly done: string; readonly doing: string },
  about: About
) =>
  subcommand(
    name,
    about,
    {
      from: Argument.Path("from").pipe(Argument.withDescription("A file, a link or a directory")),
      to: Argument.Path("to").pipe(Argument.withDescription("The new path, or a directory with / at the end to put it into")),
      overwrite: flags.toggle("overwrite", "Replace a file that is there, or an empty directory")
    },
    Effect.fnUntraced(function* ({ from, overwrite, to: given }) {
      const fs: Algebra = yield* Filesystem
      const to = destination(from, given)
      const result = yield* fs[operation](from, to, { overwrite }).pipe(withProgress(`${verbs.doing} ${from}`))
      yield* document(
        TransferResult,
        result,
        (look) => `${verbs.done} ${look.name(from)} to ${look.name(to)}, ${counted(result)}\n`
      )
    })
  )

export const cp = transfer(
  "cp",
  "copy",
  { done: "Copied", doing: "Copying" },
  {
    summary: "Copy a file or a directory",
    description: `Copy a file, a link or a directory with all that is in it; directories above the destination are made. What is there
is replaced only with --overwrite, and a directory only when it is empty.`,
    examples: [
      ["src/main.ts src/main.old.ts", "A file"],
      ["docs backup/", "A directory into another"]
    ]
  }
)

export const mv = transfer(
  "mv",
  "move",
  { done: "Moved", doing: "Moving" },
  {
    summary: "Move or rename a file or a directory",
    description: `Move or rename a file, a link or a directory, in one step where the disk can; directories above the destination are
made. What is there is replaced only with --overwrite, and a directory only when it is empty.`,
    examples: [
      ["old.ts new.ts", "A new name"],
      ["draft.md docs/", "Into a directory"]
    ]
  }
)
