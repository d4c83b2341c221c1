import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { WriteMode } from "../../../model/Entry.ts"
import { type EditError, InvalidArgument, type ReadBytesError } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import { type Call, define, refused, type ToolFailure } from "../../definition.ts"
import { plural } from "../../text/words.ts"
import { checkFile } from "../../toolPath.ts"
import { bytesOf, Encoding, encodingAt } from "./content.ts"
import { isShortVersion, shortVersion } from "./metadata.ts"

const Mode = Schema.Literals(["create", "overwrite", "append"])

const modes: Readonly<Record<typeof Mode.Type, WriteMode>> = { create: "create", overwrite: "overwrite", append: "append" }
const strictModes: typeof modes = { create: "create", overwrite: "replace", append: "appendExisting" }

const invalid = (call: Call, path: FsPath, argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: call.tool, path, argument, detail })

const readEncoding = (
  { filesystem }: Call,
  path: FsPath
): Effect.Effect<Encoding, Exclude<ReadBytesError, { _tag: "NotFound" }> | EditError> =>
  Effect.catchTag(encodingAt(filesystem, path), "NotFound", () => Effect.succeed<Encoding>("utf-8"))

const encodingOf = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  mode: typeof Mode.Type,
  requested: Encoding | undefined
): Effect.fn.Return<Encoding, ToolFailure> {
  if (mode !== "append" || requested === "binary") return requested ?? "utf-8"
  const currentEncoding = yield* readEncoding(call, path)
  if (requested === "utf-8" && currentEncoding !== requested) {
    return yield* Effect.fail(
      refused(`${path} is not UTF-8 text.`, 'To append bytes to it, send them as base64 with encoding "binary".')
    )
  }
  return currentEncoding
})

const versionOf = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  mode: typeof Mode.Type,
  requested: string | undefined
): Effect.fn.Return<string | undefined, ToolFailure> {
  if (requested === undefined) return undefined
  if (mode === "create") {
    return yield* Effect.fail(
      invalid(call, path, "if_version", 'a file that is to be created has no version; send mode "overwrite" or "append"')
    )
  }
  const trimmedVersion = requested.trim()
  if (!isShortVersion(trimmedVersion)) return trimmedVersion
  const current = yield* Effect.catchTag(call.filesystem.version(path), "NotFound", () => Effect.succeed(""))
  return current.startsWith(trimmedVersion) ? current : trimmedVersion
})

const pastVerbs = { create: "Created", overwrite: "Wrote", append: "Appended to" } as const

export const writeFile = define({
  name: "write_file",
  description:
    'Create a file, or with mode "overwrite" or "append" change one: text, or bytes as base64; at most 48,000 characters or bytes. Directories are made.',
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the root." }),
    content: Schema.String.annotate({ description: 'The text; with encoding "binary" base64.' }),
    mode: Schema.optionalKey(
      Mode.annotate({
        description: "create fails where there is a file; overwrite and append make one where there is none. Default: create."
      })
    ),
    encoding: Schema.optionalKey(
      Encoding.annotate({ description: "The encoding of the content. Default: utf-8; for append, that of the file." })
    ),
    if_version: Schema.optionalKey(
      Schema.String.annotate({ description: "Write only if this is still the version of the file, as read_file has shown it." })
    )
  }),
  value: Schema.Struct({
    path: Schema.String,
    content: Schema.String,
    mode: Mode,
    encoding: Encoding,
    if_version: Schema.optionalKey(Schema.String)
  }),
  does: "changes",
  idempotent: false,
  examples: [
    { path: "notes/plan.md", content: "1. look\n2. write\n" },
    { path: "notes/plan.md", content: "3. test\n", mode: "append" }
  ],
  touches: ({ path }, call) => Effect.map(call.path(path), (at) => [{ access: "write", path: at }]),
  handle: Effect.fnUntraced(function* (
    { content, encoding: requested, if_version: requiredVersion, mode = "create", path },
    call
  ) {
    const { filesystem: fs, memory, settings } = call
    const at = yield* call.path(path)
    yield* checkFile(call.tool, path)
    const ifMatch = yield* versionOf(call, at, mode, requiredVersion)
    const encoding = yield* encodingOf(call, at, mode, requested)
    const bytes = encoding === "binary" ? bytesOf(content) : undefined
    if (encoding === "binary" && bytes === undefined) {
      return yield* Effect.fail(invalid(call, at, "content", 'with encoding "binary" it must be base64'))
    }
    const options = {
      mode: (settings.strict ? strictModes : modes)[mode],
      version: true as const,
      ...(ifMatch !== undefined && { ifMatch })
    }
    const { version } = yield* Effect.catchTag(
      bytes === undefined ? fs.write(at, content, options) : fs.writeBytes(at, bytes, options),
      "AlreadyExists",
      () =>
        Effect.fail(
          refused(`${at} exists already.`, 'Read it, and send mode "overwrite" to replace it or "append" to add to it.')
        )
    )
    memory.saw(at, version!, mode === "append" || bytes !== undefined ? undefined : content)
    const amount = bytes === undefined ? plural([...content].length, "character") : plural(bytes.length, "byte")
    return {
      message: `${pastVerbs[mode]} ${at}: ${amount}, now version ${shortVersion(version!)}`,
      value: { path: at, content, mode, encoding, ...(ifMatch !== undefined && { if_version: ifMatch }) }
    }
  })
})
