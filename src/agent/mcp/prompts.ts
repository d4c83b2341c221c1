import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import { guideName } from "./names.ts"

const description = "How to work with the files of this workspace"

export const register = Effect.fnUntraced(function* (text: string) {
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
