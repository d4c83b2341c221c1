import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type FileEntry, Kind } from "../../model/Entry.ts"
import { compare, fold } from "../../model/FsPath.ts"
import { type Call, define, optional, touching } from "../definition.ts"
import { countFitting, joinLines } from "../text/fit.ts"
import { formatCount as plural, formatSize as size } from "../../model/words.ts"
import { displayPath } from "../toolPath.ts"
import { countsOf, formatCounts, formatEntry } from "./searching.ts"

const StatValue = Schema.Struct({
  path: Schema.String,
  kind: Kind,
  size_bytes: Schema.optionalKey(Schema.Int),
  modified_at: Schema.optionalKey(Schema.String),
  created_at: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  is_symlink: Schema.Boolean,
  version: Schema.optionalKey(Schema.String)
})

const formatMode = (mode: number): string => `0${mode.toString(8).padStart(3, "0")}`

const formatSize = (bytes: number): string => (bytes < 1024 ? size(bytes) : `${size(bytes)} (${plural(bytes, "byte")})`)

const message = ({
  created_at,
  is_symlink,
  kind,
  mode,
  modified_at,
  path,
  size_bytes,
  version
}: typeof StatValue.Type): string =>
  [
    `${path}: ${is_symlink && kind !== "symlink" ? `${kind}, reached through a link` : kind === "other" ? "neither file nor directory" : kind}`,
    ...(size_bytes === undefined ? [] : [`size ${formatSize(size_bytes)}`]),
    ...(modified_at === undefined ? [] : [`modified ${modified_at}`]),
    ...(created_at === undefined ? [] : [`created ${created_at}`]),
    ...(mode === undefined ? [] : [`mode ${mode}`]),
    ...(version === undefined ? [] : [`version ${version}`])
  ].join("\n")

export const stat = define({
  name: "stat",
  description: "Show what a path is: kind, size, times, mode, link or not, and the version of a file.",
  parameters: Schema.Struct({
    path: optional(Schema.String, "File or directory. Default: the root")
  }),
  value: StatValue,
  does: "reads",
  idempotent: true,
  examples: [{ path: "README.md" }],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* ({ path: input = "" }, call) {
    const path = yield* call.path(input, { blank: "root" })
    const found = yield* call.filesystem.stat(path)
    const isVersionCheap = found.kind === "file" && found.sizeBytes <= call.settings.limits.maxReadBytes
    const version = isVersionCheap ? yield* call.filesystem.version(path) : undefined
    const value = {
      path,
      kind: found.kind,
      ...(found.kind === "file" && { size_bytes: found.sizeBytes }),
      ...(found.modifiedAt !== undefined && { modified_at: DateTime.formatIso(found.modifiedAt) }),
      ...(found.createdAt !== undefined && { created_at: DateTime.formatIso(found.createdAt) }),
      ...(found.mode !== undefined && { mode: formatMode(found.mode) }),
      is_symlink: found.isSymlink === true,
      ...(version !== undefined && { version })
    }
    return { message: message(value), value }
  })
})

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
    "List one directory: subdirectories end in /, files show their size. For an overview use tree; to find files by name, glob.",
  parameters: Schema.Struct({
    path: optional(Schema.String, "Directory. Default: the root"),
    after: optional(Schema.String, "Continue after this name")
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{}, { path: "src" }],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* ({ after = "", path: input = "" }, call) {
    const path = yield* call.path(input, { blank: "root" })
    const all = yield* call.filesystem.list(path)
    const entries = after === "" ? all : all.filter(isAfter(call, after))
    const counts = countsOf(all)
    const footer = (shown: number): string => {
      if (all.length === 0) return `${displayPath(path)} is empty`
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
