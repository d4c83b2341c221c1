import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { FileEntry, FileStat, GlobMatch } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { list, listLines, withProgress, writeDocument } from "../answer.ts"
import { forEachPath } from "../failure.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { styleFor, type TextStyle } from "../look.ts"
import { toPathInRoot } from "../paths.ts"
import { Screen } from "../screen.ts"
import * as skipped from "../searching.ts"
import { appliesGitignore } from "../searching.ts"
import { Settings } from "../settings.ts"
import { subcommand } from "../subcommand.ts"

const Answer = Schema.Struct({ ...FileStat.fields, version: Schema.optionalKey(Schema.String) })
type Answer = typeof Answer.Type

const kindNames = { file: "file", directory: "directory", symlink: "link", other: "not a file, a directory or a link" } as const

const show = (look: TextStyle, stat: Answer): string => {
  const rows: ReadonlyArray<readonly [string, string | undefined]> = [
    ["path", look.entry(stat.path, stat.kind)],
    [
      "kind",
      stat.isSymlink === true && stat.kind !== "symlink" ? `${kindNames[stat.kind]}, through a link` : kindNames[stat.kind]
    ],
    ["size", stat.isFile ? `${humanise.bytes(stat.sizeBytes)} (${humanise.whole(stat.sizeBytes)} bytes)` : undefined],
    ["mode", stat.mode === undefined ? undefined : `${humanise.mode(stat.mode)} (${stat.mode.toString(8).padStart(4, "0")})`],
    ["modified", stat.modifiedAt && DateTime.formatIso(stat.modifiedAt)],
    ["created", stat.createdAt && DateTime.formatIso(stat.createdAt)],
    ["version", stat.version]
  ]
  return rows
    .filter(([, value]) => value !== undefined)
    .map(([label, value]) => `${look.dim(label.padStart(8))}  ${value}\n`)
    .join("")
}

export const stat = subcommand(
  "stat",
  {
    summary: "Show the kind, size, times and version of a path",
    description: `Show the kind, size, permissions and times of a path and, for a file, its version. The version is the SHA-256 of the
bytes. The flag --if-match of write, edit and rm compares the version, so that changes by others are not overwritten.`,
    examples: [
      ["README.md", "A file"],
      ["--json README.md | jq -r .version", "Only the version of the file"]
    ]
  },
  { paths: flags.paths("The files or directories") },
  Effect.fnUntraced(function* ({ paths }) {
    const fs = yield* Filesystem
    yield* forEachPath(paths, (path) =>
      Effect.gen(function* () {
        const stat: FileStat = yield* fs.stat(path)
        const version = stat.isFile ? yield* fs.version(path).pipe(withProgress(`Hashing ${path}`)) : undefined
        const answer: Answer = version === undefined ? stat : { ...stat, version }
        yield* writeDocument(Answer, answer, (look) => show(look, answer))
      })
    )
  })
)

// Draws everything below a directory. The last entry of a directory has a different line, so the tree is drawn when all entries
// are known. With --json, the entries are written one by one.

const branchStrokes = (isTerminal: boolean) =>
  isTerminal
    ? { item: "├── ", last: "└── ", through: "│   ", empty: "    " }
    : { item: "|-- ", last: "`-- ", through: "|   ", empty: "    " }

/** Draws the entries, which are in path order. The last entry with a given parent is therefore the last in that directory. */
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

const formatTotals = (look: TextStyle, entries: ReadonlyArray<GlobMatch>): string => {
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
    summary: "Draw the tree of a directory",
    description: `Draw everything below a directory, with sizes. Hidden files are included, but not the files that git ignores.
The last line counts the entries that were left out or cannot be read.`,
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
    // Exclude the first level below `depth`. The walk does not enter excluded directories, so deeper levels are not read.
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
        `${look.entry(base === FsPath.root ? "." : base, "directory")}\n${drawTree(look, screen.isTerminal, base, shown)}${formatTotals(look, shown)}`
    })).pipe(withProgress("Reading", () => humanise.count(shown.length, "entry")))
    yield* skipped.report(skippedFiles)
  })
)

const DetailedEntry = Schema.Struct({
  ...FileEntry.fields,
  mode: Schema.optionalKey(Schema.Int),
  modifiedAt: Schema.optionalKey(Schema.DateTimeUtc),
  target: Schema.optionalKey(Schema.String)
})
type DetailedEntry = typeof DetailedEntry.Type

const withDetails = Effect.fnUntraced(function* (fs: Algebra, entry: FileEntry) {
  if (!entry.addressable) return entry
  const isLink = entry.kind === "symlink"
  const target = isLink ? yield* Effect.option(fs.readLink(entry.path)) : Option.none<string>()
  const stat = isLink ? Option.none<FileStat>() : yield* Effect.option(fs.stat(entry.path))
  const { mode, modifiedAt } = Option.getOrElse(stat, (): Partial<FileStat> => ({}))
  const out: DetailedEntry = {
    ...entry,
    ...(mode !== undefined && { mode }),
    ...(modifiedAt !== undefined && { modifiedAt }),
    ...(Option.isSome(target) && { target: target.value })
  }
  return out
})

interface Listing {
  readonly path: string
  readonly isDirectory: boolean
  readonly entries: ReadonlyArray<FileEntry>
}

const listingOf = (fs: Algebra, path: string) =>
  fs.list(path).pipe(
    Effect.map((entries): Listing => ({ path, isDirectory: true, entries })),
    Effect.catchTag("NotADirectory", () =>
      Effect.map(fs.stat(path), ({ isDirectory, isFile, isSymlink, kind, path, sizeBytes }): Listing => {
        const own = isSymlink === true ? ({ kind: "symlink", isFile: false } as const) : { kind, isFile }
        return { path, isDirectory, entries: [{ name: path, path, ...own, isDirectory, sizeBytes, addressable: true }] }
      })
    )
  )

const kindLetters = { file: "-", directory: "d", symlink: "l", other: "?" } as const

const sizeOf = (entry: FileEntry): string =>
  entry.kind === "file" && entry.sizeBytes !== undefined ? humanise.bytes(entry.sizeBytes) : "-"

const table = (look: TextStyle, entries: ReadonlyArray<DetailedEntry>, long: boolean): string => {
  const widest = Math.max(0, ...entries.map((entry) => sizeOf(entry).length))
  return entries
    .map((entry) => {
      const size = look.green(sizeOf(entry).padStart(widest))
      const name = look.entry(entry.name, entry.kind)
      if (!long) return `${size}  ${name}\n`
      const mode = kindLetters[entry.kind] + (entry.mode === undefined ? "---------" : humanise.mode(entry.mode))
      const time = look.dim((entry.modifiedAt === undefined ? "-" : humanise.time(entry.modifiedAt)).padEnd(20))
      const target = entry.target === undefined ? "" : look.dim(` -> ${look.name(entry.target)}`)
      return `${mode}  ${size}  ${time}  ${name}${target}\n`
    })
    .join("")
}

export const ls = subcommand(
  "ls",
  {
    summary: "List a directory",
    description: `List files and the entries of directories in the order of their names, including hidden entries. Directories end in /.
A terminal also shows sizes. A pipe gets one name per line and nothing else, unless --long is given.`,
    examples: [
      ["", "The entries of the root"],
      ["src --long", "With permissions, sizes, times and the targets of links"],
      ["--json | jq -r .path", "For a program: one JSON document per line"]
    ]
  },
  {
    paths: flags.path("Directories, or files (default: the root)").pipe(Argument.variadic()),
    long: flags.toggle("long", "Permissions, size, time of the last change, and the targets of links").pipe(Flag.withAlias("l"))
  },
  Effect.fnUntraced(function* ({ long, paths }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { json } = yield* Settings
    const requestedPaths = paths.length === 0 ? ["."] : paths
    const listings: Array<Listing> = []
    const listingExit = yield* Effect.exit(
      forEachPath(requestedPaths, (path) => Effect.map(listingOf(fs, path), (listing) => void listings.push(listing)))
    )
    const printEntries = Effect.fnUntraced(function* (entries: ReadonlyArray<FileEntry>) {
      if (!long) {
        yield* screen.isTerminal
          ? list(FileEntry, Stream.fromArray(entries), (look) => ({ lines: (entries) => table(look, entries, false) }))
          : listLines(FileEntry, Stream.fromArray(entries), (look, { kind, name }) => `${look.entry(name, kind)}\n`)
        return
      }
      const all = yield* Effect.forEach(entries, (entry) => withDetails(fs, entry), { concurrency: 16 })
      yield* list(DetailedEntry, Stream.fromArray<DetailedEntry>(all), (look) => ({
        lines: (entries) => table(look, entries, true)
      }))
    })
    listings.sort((a, b) => FsPath.compare(a.path, b.path))
    const files = listings.filter(({ isDirectory }) => !isDirectory).flatMap(({ entries }) => entries)
    yield* printEntries(files)
    const { name } = styleFor(screen)
    let gap = files.length > 0 ? "\n" : ""
    for (const { entries, isDirectory, path } of listings) {
      if (!isDirectory) continue
      if (requestedPaths.length > 1 && !json) yield* screen.write(`${gap}${name(path)}:\n`)
      yield* printEntries(entries)
      gap = "\n"
    }
    yield* listingExit
  })
)
