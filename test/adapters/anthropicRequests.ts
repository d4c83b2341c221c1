/** Sends requests to the tools of AnthropicTools. */
import * as Effect from "effect/Effect"
import * as AnthropicTools from "../../src/adapters/AnthropicTools.ts"

type Runnable = Parameters<typeof AnthropicTools.toolResult>[0]

let calls = 0

/** Runs a request. Returns the content of the result, after "error: " if it is an error. */
export const ask = (tool: Runnable, input: unknown): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => AnthropicTools.toolResult(tool, { type: "tool_use", id: `call_${calls++}`, name: "tool", input })),
    ({ content, is_error: isError }) => `${isError === true ? "error: " : ""}${String(content)}`
  )
