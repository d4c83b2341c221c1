/** The last line of a list says if there is more, because a model takes a list without a hint as complete. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type FileEntry, Kind } from "../../model/Entry.ts"
import { compare, fold, root } from "../../model/FsPath.ts"
import { type Call, define } from "../definition.ts"
import { countFitting, joinLines } from "../text/fit.ts"
import { formatCounts, countsOf, formatEntry } from "../text/listing.ts"

const Value = Schema.Struct({
  path: Schema.String,
  entries: Schema.Array(
    Schema.Struct({ name: Schema.String, path: Schema.String, kind: Kind, size_bytes: Schema.optionalKey(Schema.Int) })
  ),
  counts: Schema.Struct({ files: Schema.Int, directories: Schema.Int, others: Schema.Int }),
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.String)
})

const entryOf = ({ kind, name, path, sizeBytes }: FileEntry): (typeof Value.Type)["entries"][number] =>
  kind === "file" && sizeBytes !== undefined ? { name, path, kind, size_bytes: sizeBytes } : { name, path, kind }

const isAfter = ({ filesystem }: Call, after: string): ((entry: FileEntry) => boolean) =>
  filesystem.port.info.caseSensitive
    ? ({ name }) => compare(name, after) > 0
    : ({ name }) => (compare(fold(name), fold(after)) || compare(name, after)) > 0

export const ls = define({
  name: "ls",
  description:
    "List one directory: subdirectories end in /, files show their size. For an overview use tree, to find files by name glob.",
  parameters: Schema.Struct({
    path: Schema.optionalKey(Schema.String.annotate({ description: "Directory. Default: the root" })),
    after: Schema.optionalKey(Schema.String.annotate({ description: "Continue after this name" }))
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{}, { path: "src" }],
  touches: ({ path = "" }, call) => Effect.map(call.path(path, { blank: "root" }), (path) => [{ access: "read", path }]),
  handle: Effect.fnUntraced(function* ({ after = "", path: input = "" }, call) {
    const path = yield* call.path(input, { blank: "root" })
    const all = yield* call.filesystem.list(path)
    const entries = after === "" ? all : all.filter(isAfter(call, after))
    const counts = countsOf(all)
    const footer = (shown: number): string => {
      if (all.length === 0) return `${path === root ? "the root" : path} is empty`
      if (shown === entries.length) return formatCounts(counts)
      return `${formatCounts(counts)}; continue with after=${JSON.stringify(entries[shown - 1]!.name)}`
    }
    const render = (shown: number): string => joinLines(entries.slice(0, shown).map(formatEntry), footer(shown))
    const valueOf = (shown: number): typeof Value.Type => ({
      path,
      entries: entries.slice(0, shown).map(entryOf),
      counts,
      truncated: shown < entries.length,
      ...(shown < entries.length && { next: entries[shown - 1]!.name })
    })
    const sent = (shown: number): string => call.sent(render(shown), () => valueOf(shown))
    const shown = countFitting(entries.length, sent, call.settings)
    return { message: render(shown), value: valueOf(shown) }
  })
})
