/**
 * `ls`: one directory. Names alone where a program reads them, with sizes where a person does.
 */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Flag from "effect/cli/Flag"
import { Filesystem, type Algebra } from "../../filesystem/Filesystem.ts"
import { FileEntry, type FileStat } from "../../model/Entry.ts"
import { list } from "../answer.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import type { Look } from "../look.ts"
import { Screen } from "../screen.ts"
import { subcommand } from "../subcommand.ts"
import * as Stream from "effect/Stream"

const Detailed = Schema.Struct({
  ...FileEntry.fields,
  mode: Schema.optionalKey(Schema.Int),
  modifiedAt: Schema.optionalKey(Schema.DateTimeUtc),
  target: Schema.optionalKey(Schema.String)
})

interface Detailed extends FileEntry {
  readonly mode?: number
  readonly modifiedAt?: DateTime.Utc
  /** Where a link leads. */
  readonly target?: string
}

/** What else is known of an entry; nothing, where it cannot be asked for. */
const detailed = Effect.fnUntraced(function* (fs: Algebra, entry: FileEntry) {
  if (!entry.addressable) return entry
  const isLink = entry.kind === "symlink"
  const target = isLink ? yield* Effect.option(fs.readLink(entry.path)) : Option.none<string>()
  const stat = isLink ? Option.none<FileStat>() : yield* Effect.option(fs.stat(entry.path))
  const { mode, modifiedAt } = Option.getOrElse(stat, (): Partial<FileStat> => ({}))
  const out: Detailed = {
    ...entry,
    ...(mode !== undefined && { mode }),
    ...(modifiedAt !== undefined && { modifiedAt }),
    ...(Option.isSome(target) && { target: target.value })
  }
  return out
})

const kindLetters = { file: "-", directory: "d", symlink: "l", other: "?" } as const

const sizeOf = (entry: FileEntry): string =>
  entry.kind === "file" && entry.sizeBytes !== undefined ? humanise.bytes(entry.sizeBytes) : "-"

const table = (look: Look, entries: ReadonlyArray<Detailed>, long: boolean): string => {
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
    description: `List a directory in the order of its names, hidden ones too. Directories end in /.
On a terminal with sizes; into a pipe one name a line and nothing else, unless --long.`,
    examples: [
      ["", "What is in the root"],
      ["src --long", "With permissions, sizes, times and where links lead"],
      ["--json | jq -r .path", "For a program: one JSON document a line"]
    ]
  },
  {
    path: flags.directory("The directory"),
    long: flags.toggle("long", "Permissions, size, time of the last change, and where links lead").pipe(Flag.withAlias("l"))
  },
  Effect.fnUntraced(function* ({ long, path }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const entries = yield* fs.list(path)
    if (!long) {
      const bare = (look: Look) => ({
        lines: (entries: ReadonlyArray<FileEntry>) =>
          screen.isTerminal
            ? table(look, entries, false)
            : entries.map((entry) => `${look.entry(entry.name, entry.kind)}\n`).join("")
      })
      yield* list(FileEntry, Stream.fromArray(entries), bare)
      return
    }
    const all = yield* Effect.forEach(entries, (entry) => detailed(fs, entry), { concurrency: 16 })
    yield* list(Detailed, Stream.fromArray<Detailed>(all), (look) => ({ lines: (entries) => table(look, entries, true) }))
  })
)
