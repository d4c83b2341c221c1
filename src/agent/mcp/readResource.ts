/** Reads a resource as an unlisted tool, so that the same policies, limits and events apply to it. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { FileEntry } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Call, define } from "../definition.ts"
import { mediaTypeOf } from "./mediaTypes.ts"
import { uriOf } from "./uri.ts"

/** The content of a resource. It is empty if there is no such file, because the protocol has an error code for that. */
const ResourceContent = Schema.Struct({
  media_type: Schema.optionalKey(Schema.String),
  text: Schema.optionalKey(Schema.String),
  base64: Schema.optionalKey(Schema.String)
})
export type ResourceContent = typeof ResourceContent.Type

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Decodes text: UTF-8 without NUL, as everywhere in this library. */
const textOf = (content: Uint8Array): string | undefined => {
  if (content.includes(0)) return undefined
  try {
    return decoder.decode(content)
  } catch {
    return undefined
  }
}

const lineOf = (entry: FileEntry): string => `${entry.name}${entry.kind === "directory" ? "/" : ""}\t${uriOf(entry.path)}`

/** Lists the entries, one per line: name, tab, URI. */
const listEntries = (entries: ReadonlyArray<FileEntry>): ResourceContent => ({
  media_type: "text/plain",
  text: entries.map((entry) => `${lineOf(entry)}\n`).join("")
})

/** Reads a file without recording its version as seen: the client reads a resource, and the model may never see it. */
const readFileContent = Effect.fnUntraced(function* (path: FsPath.FsPath, { filesystem }: Call) {
  const { content } = yield* filesystem.readBytes(path)
  const text = textOf(content)
  const media_type = mediaTypeOf(FsPath.name(path), content, text !== undefined)
  return text === undefined ? { media_type, base64: Buffer.from(content).toString("base64") } : { media_type, text }
})

const content = Effect.fnUntraced(function* (path: FsPath.FsPath, call: Call) {
  const { kind } = yield* call.filesystem.stat(path)
  return kind === "directory" ? listEntries(yield* call.filesystem.list(path)) : yield* readFileContent(path, call)
})

export const readResource = define({
  name: "read_resource",
  description: "The resource at the URI of a file or a directory.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "From the root." }) }),
  value: ResourceContent,
  does: "reads",
  idempotent: true,
  examples: [{ path: "README.md" }],
  touches: ({ path }, call) => Effect.map(call.path(path, { blank: "root" }), (path) => [{ access: "read" as const, path }]),
  handle: Effect.fnUntraced(function* ({ path: input }, call) {
    const path = yield* call.path(input, { blank: "root" })
    const value = yield* content(path, call).pipe(Effect.catchTag("NotFound", () => Effect.succeed({})))
    return { message: "", value }
  })
})
