/**
 * Whose call it is. What a tool remembers belongs to one client: over standard input there is one, over HTTP it is the session, and
 * where the protocol has no sessions the client as it names itself.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as McpSchema from "effect/ai/McpSchema"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Memory from "../memory.ts"

export interface Sessions {
  readonly memory: Effect.Effect<Memory.Memory>
}

/** Beyond these the one that was quiet for longest is forgotten; then it has to read again what it wants to change. */
const maxSessions = 100

const keyOf = Effect.gen(function* () {
  const request = yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
  if (Option.isNone(request)) return "stdio"
  const session = request.value.headers["mcp-session-id"]
  if (session !== undefined) return `session ${session}`
  const context = yield* Effect.serviceOption(McpSchema.McpRequestContext)
  return `client ${JSON.stringify(Option.getOrUndefined(context)?.clientInfo ?? "unknown")}`
})

export const make = (): Sessions => {
  const memories = new Map<string, Memory.Memory>()
  return {
    memory: Effect.map(keyOf, (key) => {
      const memory = memories.get(key) ?? Memory.make()
      memories.delete(key)
      memories.set(key, memory)
      if (memories.size > maxSessions) memories.delete(memories.keys().next().value!)
      return memory
    })
  }
}
