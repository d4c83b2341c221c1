/** Shows the metadata of a path. The version needs a read of the file and is left out for large files. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Kind } from "../../model/Entry.ts"
import { define } from "../definition.ts"
import { plural, size } from "../text/words.ts"

const Value = Schema.Struct({
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

const message = ({ created_at, is_symlink, kind, mode, modified_at, path, size_bytes, version }: typeof Value.Type): string =>
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
    path: Schema.optionalKey(Schema.String.annotate({ description: "File or directory. Default: the root" }))
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{ path: "README.md" }],
  touches: ({ path = "" }, call) => Effect.map(call.path(path, { blank: "root" }), (path) => [{ access: "read", path }]),
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
