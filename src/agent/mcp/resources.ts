/**
 * Serves files as resources, and the workspace guide as a prompt. The list of resources contains only the root; a template
 * covers all paths below the root. A list of all files could be too long.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import type { FileEntry } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Call, define, touching } from "../definition.ts"
import { base64 as toBase64, mediaTypeOfName as mediaTypeOf, textOf } from "../text/mediaType.ts"
import { guideName, pathOf, resourceRoute, resourceTemplate, rootUri, uriOf } from "./guide.ts"
import type { Serving } from "./tools.ts"

/** The largest number of completions that the protocol allows in one answer. */
const maxValues = 100

const directoryOf = (input: string): string => input.slice(0, input.lastIndexOf("/") + 1)

const listDirectory = define({
  name: "complete_path",
  description: "The completions of a path.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "The path as typed so far." }) }),
  value: Schema.Array(Schema.String),
  does: "reads",
  idempotent: true,
  examples: [{ path: "src/in" }],
  touches: ({ path }, call) =>
    Effect.map(call.path(directoryOf(path), { blank: "root" }), (path) => [{ access: "read" as const, path }]),
  handle: Effect.fnUntraced(function* ({ path: input }, call) {
    const directory = directoryOf(input)
    const entries = yield* call.filesystem.list(yield* call.path(directory, { blank: "root" }))
    const names = entries.map(({ kind, name }) => `${directory}${name}${kind === "directory" ? "/" : ""}`)
    return { message: "", value: names.filter((name) => name.startsWith(input)) }
  })
})

const completePath = Effect.fnUntraced(function* (input: string, { invoke, permits }: Serving) {
  const { value } = yield* invoke(listDirectory, { path: input }).pipe(permits.withPermit)
  const values = (value ?? []) as typeof listDirectory.value.Type
  return McpSchema.CompleteResult.make({
    completion: { values: values.slice(0, maxValues), total: values.length, hasMore: values.length > maxValues }
  })
})

// Reads a resource through a tool that is not listed, so that policies, limits and events apply to the read.

const ResourceContent = Schema.Struct({
  media_type: Schema.optionalKey(Schema.String),
  text: Schema.optionalKey(Schema.String),
  base64: Schema.optionalKey(Schema.String)
})
type ResourceContent = typeof ResourceContent.Type

const lineOf = (entry: FileEntry): string => `${entry.name}${entry.kind === "directory" ? "/" : ""}\t${uriOf(entry.path)}`

const listEntries = (entries: ReadonlyArray<FileEntry>): ResourceContent => ({
  media_type: "text/plain",
  text: entries.map((entry) => `${lineOf(entry)}\n`).join("")
})

/** Reads a file without recording its version as seen, because the model may never see a resource that its client reads. */
const readFileContent = Effect.fnUntraced(function* (path: FsPath.FsPath, { filesystem }: Call) {
  const { content } = yield* filesystem.readBytes(path)
  const text = textOf(content)
  const media_type = mediaTypeOf(FsPath.name(path), content, text !== undefined)
  return text === undefined ? { media_type, base64: toBase64(content) } : { media_type, text }
})

const content = Effect.fnUntraced(function* (path: FsPath.FsPath, call: Call) {
  const { kind } = yield* call.filesystem.stat(path)
  return kind === "directory" ? listEntries(yield* call.filesystem.list(path)) : yield* readFileContent(path, call)
})

const readResource = define({
  name: "read_resource",
  description: "Reads a file, or lists a directory, as the MCP resource for its path.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "From the root." }) }),
  value: ResourceContent,
  does: "reads",
  idempotent: true,
  examples: [{ path: "README.md" }],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* ({ path: input }, call) {
    const path = yield* call.path(input, { blank: "root" })
    const value = yield* content(path, call).pipe(Effect.catchTag("NotFound", () => Effect.succeed({})))
    return { message: "", value }
  })
})

/** Fails with an error that effect converts to the error code of the client's protocol version. */
const notFound = (uri: string) => Effect.fail({ _tag: "ResourceNotFound", uri } as unknown as McpSchema.InvalidParams)

const makeReader = ({ invoke, permits }: Serving) =>
  Effect.fnUntraced(function* (uri: string) {
    const path = pathOf(uri)
    if (path === undefined) return yield* notFound(uri)
    const { message, success, value } = yield* invoke(readResource, { path }).pipe(permits.withPermit)
    if (!success) return yield* new McpSchema.InvalidParams({ message })
    const { base64, media_type: mimeType, text } = value as ResourceContent
    if (mimeType === undefined) return yield* notFound(uri)
    const contents = [
      text === undefined
        ? { uri, mimeType, blob: Uint8Array.from(Buffer.from(base64 ?? "", "base64")) }
        : { uri, mimeType, text }
    ]
    return McpSchema.ReadResourceResult.make({ contents })
  })

export const register = Effect.fnUntraced(function* (serving: Serving) {
  const server = yield* McpServer.McpServer
  const services = yield* Effect.context<never>()
  const read = makeReader(serving)
  const annotations = Context.empty()
  yield* server.addResource({
    resource: new McpSchema.Resource({
      uri: rootUri,
      name: "root",
      title: "The workspace",
      description: "The entries of the root of the workspace, one name and URI per line",
      mimeType: "text/plain"
    }),
    annotations,
    services,
    handle: serving.flow.whileCalling(read(rootUri)) as Effect.Effect<McpSchema.ReadResourceResult>
  })
  yield* server.addResourceTemplate({
    template: new McpSchema.ResourceTemplate({
      uriTemplate: resourceTemplate,
      name: "file",
      title: "A file of the workspace",
      description: "The content of a file, or the list of a directory's entries"
    }),
    annotations,
    services,
    routerPath: resourceRoute,
    completions: {
      path: (input) => serving.flow.whileCalling(completePath(input, serving)) as Effect.Effect<McpSchema.CompleteResult>
    },
    handle: (uri) => serving.flow.whileCalling(read(uri)) as Effect.Effect<McpSchema.ReadResourceResult>
  })
})

const description = "How to work with the files of this workspace"

export const registerPrompts = Effect.fnUntraced(function* (text: string) {
  const server = yield* McpServer.McpServer
  yield* server.addPrompt({
    prompt: new McpSchema.Prompt({ name: guideName, title: "Workspace guide", description }),
    annotations: Context.empty(),
    completions: {},
    handle: () =>
      Effect.succeed(
        new McpSchema.GetPromptResult({
          description,
          messages: [{ role: "user", content: McpSchema.TextContent.make({ text }) }]
        })
      )
  })
})
