/**
 * Draws everything below a directory. A branch can be drawn only when its last entry is known, so a terminal shows the tree at
 * the end. Programs get the entries line by line.
 */
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import { GlobMatch } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { list } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
import { toPathInRoot } from "../paths.ts"
import { withProgress } from "../progress.ts"
import { Screen } from "../screen.ts"
import { appliesGitignore } from "../searchBases.ts"
import * as skipped from "../skipped.ts"
import { subcommand } from "../subcommand.ts"

const branchStrokes = (isTerminal: boolean) =>
  isTerminal
    ? { item: "├── ", last: "└── ", through: "│   ", empty: "    " }
    : { item: "|-- ", last: "`-- ", through: "|   ", empty: "    " }

/**
 * Draws the entries, which are in path order. The last entry that names a directory as its parent is therefore its last child.
 */
const drawTree = (look: TextStyle, isTerminal: boolean, base: FsPath.FsPath, entries: ReadonlyArray<GlobMatch>): string => {
  const stroke = branchStrokes(isTerminal)
  const lastChild = new Map<string, string>()
  for (const { path } of entries) lastChild.set(FsPath.parent(path), path)
  const indents = new Map<string, string>([[base, ""]])
  return entries
    .map(({ kind, path, sizeBytes }) => {
      const parent = FsPath.parent(path)
      const indent = indents.get(parent) ?? ""
      const isLast = lastChild.get(parent) === path
      if (kind === "directory") indents.set(path, indent + (isLast ? stroke.empty : stroke.through))
      const size = kind === "file" && sizeBytes !== undefined ? look.dim(`  ${humanise.bytes(sizeBytes)}`) : ""
      return `${look.dim(indent + (isLast ? stroke.last : stroke.item))}${look.entry(FsPath.name(path), kind)}${size}\n`
    })
    .join("")
}

const formatSummary = (look: TextStyle, entries: ReadonlyArray<GlobMatch>): string => {
  let directories = 0
  let size = 0
  for (const entry of entries) {
    if (entry.kind === "directory") directories++
    else if (entry.kind === "file") size += entry.sizeBytes ?? 0
  }
  const files = entries.length - directories
  const counts = [humanise.count(directories, "directory"), humanise.count(files, "file"), humanise.bytes(size)]
  return `\n${look.dim(counts.join(", "))}\n`
}

export const tree = subcommand(
  "tree",
  {
    formatSummary: "Draw the tree of a directory",
    description: `Draw everything below a directory, with sizes, hidden files too, but without files that git ignores.
Entries that were left out or cannot be read are counted at the end.`,
    examples: [
      ["", "The project without the files that git ignores"],
      ["src --depth 2", "Two levels of one directory"],
      ["--no-ignore -x .git -x node_modules", "Also the files that git ignores, without some directories"]
    ]
  },
  {
    path: flags.directory("The directory to draw"),
    depth: flags.natural("depth", "N", "The number of levels (default: all)").pipe(Flag.withAlias("d"), Flag.withAlias("L")),
    exclude: flags.exclude,
    gitignore: flags.gitignore
  },
  Effect.fnUntraced(function* ({ depth, exclude, gitignore, path: given }) {
    const fs = yield* Filesystem
    const path = yield* toPathInRoot(given)
    const screen = yield* Screen
    const stat = yield* fs.stat(path)
    const base = stat.path
    const shown: Array<GlobMatch> = []
    const skippedFiles = skipped.makeCollector()
    // Exclude deeper levels: excluded directories are not entered, so the walk ends there.
    const deeperExcludes = depth === undefined ? [] : [Array.from({ length: depth + 1 }, () => "*").join("/")]
    const matches = fs.globStream("*", {
      path,
      kinds: ["file", "directory", "symlink", "other"],
      exclude: [...exclude, ...deeperExcludes],
      gitignore: gitignore && (yield* appliesGitignore(fs, path)),
      sizes: true,
      onSkip: skippedFiles.onSkip
    })
    yield* list(GlobMatch, matches, (look) => ({
      lines: (entries) => {
        for (const entry of entries) shown.push(entry)
        return ""
      },
      end: () =>
        `${look.entry(base === FsPath.root ? "." : base, "directory")}\n${drawTree(look, screen.isTerminal, base, shown)}${formatSummary(look, shown)}`
    })).pipe(withProgress("Reading", () => humanise.count(shown.length, "entry")))
    yield* skipped.report(skippedFiles)
  })
)
