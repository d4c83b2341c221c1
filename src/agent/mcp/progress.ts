/** Sends progress notices for a call with a progress token, at a rate that a person can follow. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import type { Progress } from "../progress.ts"

const minIntervalMillis = 100

/** The metadata of the request. With sessions the client service has it; without sessions the request context has it. */
const metadata = Effect.gen(function* () {
  const client = yield* Effect.serviceOption(McpSchema.McpServerClient)
  if (Option.isSome(client)) return client.value.requestMetadata
  return Option.getOrUndefined(yield* Effect.serviceOption(McpSchema.McpRequestContext))?.requestMetadata
})

export const reporter = Effect.fnUntraced(function* (server: McpServer.McpServer["Service"]) {
  const token = ((yield* metadata) as Readonly<Record<string, unknown>> | undefined)?.["progressToken"]
  if (typeof token !== "string" && typeof token !== "number") return Option.none()
  const request = yield* Effect.serviceOption(McpSchema.McpRequestContext)
  let lastSentAt = Number.NEGATIVE_INFINITY
  let done = Number.NEGATIVE_INFINITY
  return Option.some((progress: Progress): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (progress.done <= done || now - lastSentAt < minIntervalMillis) return Effect.void
      lastSentAt = now
      done = progress.done
      const notice = server.notifications["notifications/progress"]({
        progressToken: token,
        progress: progress.done,
        ...(progress.total !== undefined && { total: progress.total }),
        ...(progress.message !== undefined && { message: progress.message })
      })
      // Effect reads the receiver from the fiber, and a search may report from a fiber it forked.
      const noticeToClient = Option.isNone(request)
        ? notice
        : Effect.provideService(notice, McpSchema.McpRequestContext, request.value)
      return Effect.ignoreCause(noticeToClient)
    })
  )
})
