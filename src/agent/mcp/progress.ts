/** Progress for whoever asked for it with a token; it ends with the call, and does not come faster than a person can follow. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import type { Progress } from "../progress.ts"

const pause = 100

/** A client of a session says it with the request; where there is no session all that it says comes with the request. */
const metadata = Effect.gen(function* () {
  const client = yield* Effect.serviceOption(McpSchema.McpServerClient)
  if (Option.isSome(client)) return client.value.requestMetadata
  return Option.getOrUndefined(yield* Effect.serviceOption(McpSchema.McpRequestContext))?.requestMetadata
})

export const reporter = Effect.fnUntraced(function* (server: McpServer.McpServer["Service"]) {
  const token = ((yield* metadata) as Readonly<Record<string, unknown>> | undefined)?.["progressToken"]
  if (typeof token !== "string" && typeof token !== "number") return Option.none()
  const request = yield* Effect.serviceOption(McpSchema.McpRequestContext)
  let last = Number.NEGATIVE_INFINITY
  let done = Number.NEGATIVE_INFINITY
  return Option.some((progress: Progress): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (progress.done <= done || now - last < pause) return Effect.void
      last = now
      done = progress.done
      const sent = server.notifications["notifications/progress"]({
        progressToken: token,
        progress: progress.done,
        ...(progress.of !== undefined && { total: progress.of }),
        ...(progress.message !== undefined && { message: progress.message })
      })
      // Who it is sent to is read from the fiber, which may be one that a search has forked.
      const told = Option.isNone(request) ? sent : Effect.provideService(sent, McpSchema.McpRequestContext, request.value)
      return Effect.ignoreCause(told)
    })
  )
})
