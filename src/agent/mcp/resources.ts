/**
 * Serves files as resources: the root lists its entries, and a template reaches everything below. Single files are not listed,
 * because the list would be the whole tree.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import { completePath } from "./completion.ts"
import { rootUri } from "./names.ts"
import { readResource, type ResourceContent } from "./readResource.ts"
import type { Serving } from "./tools.ts"
import { pathOf, resourceRoute, resourceTemplate } from "./uri.ts"

/** Fails with an error for which effect sends the error code of the client's protocol version. */
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
