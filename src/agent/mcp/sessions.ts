/**
 * Finds the memory of the client that makes a call. Over standard input there is one client. Over HTTP the session identifies
 * the client, and in a protocol without sessions the name that the client gives.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as McpSchema from "effect/ai/McpSchema"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Memory from "../memory.ts"

export interface ClientMemories {
  readonly memory: Effect.Effect<Memory.Memory>
}

/**
 * The largest number of memories. Beyond it the least recently used one is forgotten, and its client must read files again
 * before it changes them.
 */
const maxMemories = 100

const clientKey = Effect.gen(function* () {
  const request = yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
  if (Option.isNone(request)) return "stdio"
  const session = request.value.headers["mcp-session-id"]
  if (session !== undefined) return `session ${session}`
  const context = yield* Effect.serviceOption(McpSchema.McpRequestContext)
  return `client ${JSON.stringify(Option.getOrUndefined(context)?.clientInfo ?? "unknown")}`
})

export const make = (): ClientMemories => {
  const memories = new Map<string, Memory.Memory>()
  return {
    memory: Effect.map(clientKey, (key) => {
      const memory = memories.get(key) ?? Memory.make()
      memories.delete(key)
      memories.set(key, memory)
      if (memories.size > maxMemories) memories.delete(memories.keys().next().value!)
      return memory
    })
  }
}
