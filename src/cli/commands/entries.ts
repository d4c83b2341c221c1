import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { DeleteResult, FileStat, TransferResult } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import { withProgress, writeDocument } from "../answer.ts"
import { Complaint, exitCodeOf, usage } from "../exit.ts"
import { forEachPath } from "../failure.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { quote } from "../look.ts"
import { toPathInRoot } from "../paths.ts"
import { type About, subcommand } from "../subcommand.ts"

export const mkdir = subcommand(
  "mkdir",
  {
    summary: "Make directories",
    description: "Make directories and their missing parents. An existing directory is not an error.",
    examples: [
      ["src/cli docs", "Two directories"],
      ["--no-exist-ok build", "Fail if the directory exists already"]
    ]
  },
  {
    paths: flags.paths("The directories"),
    parents: flags
      .negatable("parents", "Make missing parent directories; --no-parents fails instead")
      .pipe(Flag.withAlias("p")),
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

const counted = ({ deleted, directories }: DeleteResult): string =>
  [
    ...(deleted > 0 ? [humanise.count(deleted, "file")] : []),
    ...(directories > 0 ? [humanise.count(directories, "directory")] : [])
  ].join(" and ")

export const rm = subcommand(
  "rm",
  {
    summary: "Remove files and directories",
    description: `Remove files, links and empty directories; with --recursive also directories with all their content. A link is removed
without its target. The root itself cannot be removed.`,
    examples: [
      ["draft.txt", "A file"],
      ["--recursive build dist", "Two directories with their content"],
      ["--missing-ok --recursive tmp", "No error if tmp does not exist"]
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

export const pathInDirectory = (from: string, directory: string): string => {
  const name = from.replace(/\/+$/, "").split("/").at(-1)!
  const above = directory.replace(/\/+$/, "")
  return above === "." ? name : `${above}/${name}`
}

const formatCounts = ({ bytes, directories, files }: TransferResult): string =>
  [
    humanise.count(files, "file"),
    ...(directories > 0 ? [humanise.count(directories, "directory")] : []),
    humanise.bytes(bytes)
  ].join(", ")

/**
 * Returns the destination of each source. Fails before any change if there are several sources and the target is not a
 * directory, or if two sources have the same destination.
 */
const resolveDestinations = Effect.fnUntraced(function* (
  fs: Algebra,
  operation: "copy" | "move",
  to: string,
  sources: ReadonlyArray<string>
) {
  const stat = to.endsWith("/") ? undefined : yield* Effect.option(fs.stat(to))
  const isInto = stat === undefined || (Option.isSome(stat) && stat.value.isDirectory)
  if (!isInto && sources.length > 1) {
    if (Option.isSome(stat)) return yield* new FsError.NotADirectory({ operation, path: to })
    return yield* new Complaint({
      error: { _tag: "NotFound", operation, path: to },
      message: `cannot copy or move into "${to}": there is no such directory`,
      hint: `To create this directory, end its path with /: ${quote(`${to}/`)}`,
      code: exitCodeOf("NotFound")
    })
  }
  const destinationPaths = sources.map((source) => pathInDirectory(source, to))
  const duplicatePath = destinationPaths.find((place, index) => destinationPaths.indexOf(place) !== index)
  if (duplicatePath !== undefined) {
    return yield* usage(
      `two of the sources have the same destination "${duplicatePath}"`,
      "Copy or move them one by one, to different names."
    )
  }
  return (from: string) => (isInto ? pathInDirectory(from, to) : to)
})

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
      paths: Argument.Path("path").pipe(
        Argument.withDescription("The files, links or directories, then the new path, or the directory to put them into"),
        Argument.variadic({ min: 2 })
      ),
      overwrite: flags.toggle("overwrite", "Replace an existing file, or an empty directory").pipe(Flag.withAlias("f"))
    },
    Effect.fnUntraced(function* ({ overwrite, paths }) {
      const fs: Algebra = yield* Filesystem
      const sources = paths.slice(0, -1)
      const place = yield* resolveDestinations(fs, operation, yield* toPathInRoot(paths.at(-1)!), sources)
      yield* forEachPath(sources, (from) =>
        Effect.gen(function* () {
          const to = place(from)
          const result = yield* fs[operation](from, to, { overwrite }).pipe(withProgress(`${verbs.doing} ${from}`))
          yield* writeDocument(
            TransferResult,
            result,
            (look) => `${verbs.done} ${look.name(from)} to ${look.name(to)}, ${formatCounts(result)}\n`
          )
        })
      )
    })
  )

export const cp = transfer(
  "cp",
  "copy",
  { done: "Copied", doing: "Copying" },
  {
    summary: "Copy a file or a directory",
    description: `Copy files, links, or directories with all their content. The target is a new path, or a directory that exists or is
written with / at its end. Missing parent directories are made. Only --overwrite replaces an existing file, or an
existing directory that is empty.`,
    examples: [
      ["src/main.ts src/main.old.ts", "A file"],
      ["docs backup/", "A directory into another directory, which is made if missing"],
      ["README.md src/*.ts backup/", "Several files"]
    ]
  }
)

export const mv = transfer(
  "mv",
  "move",
  { done: "Moved", doing: "Moving" },
  {
    summary: "Move or rename a file or a directory",
    description: `Move or rename files, links or directories, each in one step if the disk allows it. The target is a new path, or a
directory that exists or is written with / at its end. Missing parent directories are made. Only --overwrite replaces
an existing file, or an existing directory that is empty.`,
    examples: [
      ["old.ts new.ts", "A new name"],
      ["draft.md docs/", "Into a directory"]
    ]
  }
)
