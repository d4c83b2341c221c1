import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { Filesystem, type Algebra } from "../../filesystem/Filesystem.ts"
import { FileEntry, type FileStat } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { list } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { forEachPath } from "../failure.ts"
import { type TextStyle, styleFor } from "../look.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { subcommand } from "../subcommand.ts"
import * as Stream from "effect/Stream"

const DetailedEntry = Schema.Struct({
  ...FileEntry.fields,
  mode: Schema.optionalKey(Schema.Int),
  modifiedAt: Schema.optionalKey(Schema.DateTimeUtc),
  target: Schema.optionalKey(Schema.String)
})

interface DetailedEntry extends FileEntry {
  readonly mode?: number
  readonly modifiedAt?: DateTime.Utc
  readonly target?: string
}

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
    formatSummary: "List a directory",
    description: `List directories in the order of their names, hidden ones too, and the files given. Directories end in /.
On a terminal with sizes; into a pipe one name a line and nothing else, unless --long.`,
    examples: [
      ["", "The entries of the root"],
      ["src --long", "With permissions, sizes, times and the targets of links"],
      ["--json | jq -r .path", "For a program: one JSON document a line"]
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
        const nameFormat = (look: TextStyle) => ({
          lines: (entries: ReadonlyArray<FileEntry>) =>
            screen.isTerminal
              ? table(look, entries, false)
              : entries.map((entry) => `${look.entry(entry.name, entry.kind)}\n`).join("")
        })
        yield* list(FileEntry, Stream.fromArray(entries), nameFormat)
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
