/**
 * The roots of a client, asked for over its pipe: effect's server asks only in the middle of a request, and these decide what there is to
 * ask for. The answer is taken from what comes in before anything waits for it.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type { Line } from "./lines.ts"

type Message = Extract<Line, { readonly _tag: "Message" }>

export interface ClientRoots {
  /** Whether the message answers a question of ours, and goes no further. */
  readonly takes: (message: Message) => boolean
  /**
   * Asks for the roots as soon as the client may be asked: `undefined` where it has none to list, or does not answer with a list, and
   * "late" where it has not answered in time. A later answer counts as a change.
   */
  readonly list: Effect.Effect<ReadonlyArray<unknown> | "late" | undefined>
  /** Done when the client has said that its roots changed, since this was last done. */
  readonly changed: Effect.Effect<void>
}

/** How long a client is waited for. */
const patience = "10 seconds"

/** No request of effect's server, which counts them, has such an id. */
const prefix = "fs-algebra/roots/"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

const field = (value: unknown, ...names: ReadonlyArray<string>): unknown =>
  names.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value)

const parsed = ({ text }: Message): unknown => JSON.parse(text)

export const make = Effect.fnUntraced(function* (write: (text: string) => Effect.Effect<void>) {
  const mayBeAsked = yield* Deferred.make<boolean>()
  const changes = yield* Queue.sliding<void>(1)
  const asked = new Map<string, Deferred.Deferred<unknown>>()
  const unanswered = new Set<string>()
  let hasRoots = false
  let count = 0

  const answers = (message: Message): boolean => {
    if (message.method !== undefined || count === 0) return false
    const value = parsed(message)
    const id = field(value, "id")
    const waiting = typeof id === "string" ? asked.get(id) : undefined
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, Effect.succeed(field(value, "result", "roots")))
    // A client may ask its user first. It answers the next question at once.
    else if (typeof id === "string" && unanswered.delete(id)) Queue.offerUnsafe(changes, undefined)
    return waiting !== undefined || (typeof id === "string" && id.startsWith(prefix))
  }

  const takes = (message: Message): boolean => {
    const { isRequest, method } = message
    if (method === "initialize") hasRoots = isRecord(field(parsed(message), "params", "capabilities", "roots"))
    // A client that never says that it is ready, and one of a protocol without a greeting, is ready when it asks for something.
    const isReady =
      method === "initialize" ? !hasRoots : method === "notifications/initialized" || (isRequest && method !== "ping")
    if (isReady) Deferred.doneUnsafe(mayBeAsked, Effect.succeed(hasRoots))
    if (method === "notifications/roots/list_changed" && hasRoots) Queue.offerUnsafe(changes, undefined)
    return answers(message)
  }

  const ask = Effect.gen(function* () {
    const id = `${prefix}${++count}`
    const answer = yield* Deferred.make<unknown>()
    asked.set(id, answer)
    yield* write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "roots/list" })}\n`)
    const waited = Effect.timeoutOption(Deferred.await(answer), patience)
    const roots = yield* Effect.ensuring(
      waited,
      Effect.sync(() => asked.delete(id))
    )
    if (Option.isNone(roots)) {
      unanswered.add(id)
      return "late" as const
    }
    return Array.isArray(roots.value) ? (roots.value as ReadonlyArray<unknown>) : undefined
  })

  return {
    takes,
    list: Effect.flatMap(Deferred.await(mayBeAsked), (has) => (has ? ask : Effect.succeed(undefined))),
    changed: Queue.take(changes)
  } satisfies ClientRoots
})
