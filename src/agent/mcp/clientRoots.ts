/**
 * Asks a client for its roots over the pipe, because effect's server asks only during a request, and the roots decide which
 * requests are possible.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type { Line } from "./lines.ts"

type Message = Extract<Line, { readonly _tag: "Message" }>

export interface ClientRoots {
  /** Tests whether the message answers a question of this module; the server does not get such a message. */
  readonly takes: (message: Message) => boolean
  /**
   * Asks for the roots as soon as the client is ready. Returns `undefined` if the client has no roots or does not answer with a
   * list. Returns "late" if the client has not answered in time; a later answer counts as a change.
   */
  readonly list: Effect.Effect<ReadonlyArray<unknown> | "late" | undefined>
  /** Completes when the client has reported a change of its roots since the last completion. */
  readonly changed: Effect.Effect<void>
}

const answerTimeout = "10 seconds"

/** The most unanswered requests to remember, for a client that never answers. */
const maxUnanswered = 64

/** The prefix of our request ids. Effect's server numbers its requests, so the ids never collide. */
const requestIdPrefix = "fs-algebra/roots/"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

const field = (value: unknown, ...names: ReadonlyArray<string>): unknown =>
  names.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value)

const parsed = ({ text }: Message): unknown => JSON.parse(text)

export const make = Effect.fnUntraced(function* (write: (text: string) => Effect.Effect<void>) {
  const clientReady = yield* Deferred.make<boolean>()
  const changes = yield* Queue.sliding<void>(1)
  const pendingRequests = new Map<string, Deferred.Deferred<unknown>>()
  const lateRequestIds = new Set<string>()
  let hasRoots = false
  let count = 0

  const answers = (message: Message): boolean => {
    if (message.method !== undefined || count === 0) return false
    const value = parsed(message)
    const id = field(value, "id")
    const pendingAnswer = typeof id === "string" ? pendingRequests.get(id) : undefined
    if (pendingAnswer !== undefined) Deferred.doneUnsafe(pendingAnswer, Effect.succeed(field(value, "result", "roots")))
    // A late answer, because the client may ask its user first. Report a change, so that the roots are requested again.
    else if (typeof id === "string" && lateRequestIds.delete(id)) Queue.offerUnsafe(changes, undefined)
    return pendingAnswer !== undefined || (typeof id === "string" && id.startsWith(requestIdPrefix))
  }

  const takes = (message: Message): boolean => {
    const { isRequest, method } = message
    if (method === "initialize") hasRoots = isRecord(field(parsed(message), "params", "capabilities", "roots"))
    // Some clients never send "initialized", and one protocol has no greeting. The first request also shows that the client is
    // ready.
    const isReady =
      method === "initialize" ? !hasRoots : method === "notifications/initialized" || (isRequest && method !== "ping")
    if (isReady) Deferred.doneUnsafe(clientReady, Effect.succeed(hasRoots))
    if (method === "notifications/roots/list_changed" && hasRoots) Queue.offerUnsafe(changes, undefined)
    return answers(message)
  }

  const requestRoots = Effect.gen(function* () {
    const id = `${requestIdPrefix}${++count}`
    const answer = yield* Deferred.make<unknown>()
    pendingRequests.set(id, answer)
    yield* write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "roots/list" })}\n`)
    const answerInTime = Effect.timeoutOption(Deferred.await(answer), answerTimeout)
    const roots = yield* Effect.ensuring(
      answerInTime,
      Effect.sync(() => pendingRequests.delete(id))
    )
    if (Option.isNone(roots)) {
      lateRequestIds.add(id)
      if (lateRequestIds.size > maxUnanswered) lateRequestIds.delete(lateRequestIds.values().next().value!)
      return "late" as const
    }
    return Array.isArray(roots.value) ? (roots.value as ReadonlyArray<unknown>) : undefined
  })

  return {
    takes,
    list: Effect.flatMap(Deferred.await(clientReady), (has) => (has ? requestRoots : Effect.succeed(undefined))),
    changed: Queue.take(changes)
  } satisfies ClientRoots
})
