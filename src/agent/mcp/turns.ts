/**
 * Orders the messages to the server. Cancellations and other notices do not wait behind requests; otherwise a client that
 * floods the server could not cancel.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Flow } from "./flow.ts"
import type { Line } from "./lines.ts"

type Message = Extract<Line, { readonly _tag: "Message" }>

export interface Turns {
  /** Accepts a message; waits only while the queue is full. */
  readonly take: (message: Message) => Effect.Effect<void>
  readonly pass: Effect.Effect<never>
}

const maxWaiting = 1024

/** The methods that never wait: the greeting comes first, and a ping tests whether the server is alive. */
const atOnce: ReadonlySet<string | undefined> = new Set(["initialize", "ping"])

/** Returns the id of a single request. A batch can only be cancelled as a whole. */
const only = ({ ids }: Message): string | number | undefined => (ids.length === 1 ? ids[0] : undefined)

export const make = Effect.fnUntraced(function* (flow: Flow, forward: (text: string) => Effect.Effect<void>) {
  const waiting = yield* Queue.bounded<Message>(maxWaiting)
  let waits = 0
  const ids = new Set<string | number>()
  const takenBack = new Set<string | number>()
  const on = (message: Message): Effect.Effect<void> => {
    flow.took(message.bytes)
    return forward(message.text)
  }
  const take = (message: Message): Effect.Effect<void> => {
    const { cancels, isRequest, method } = message
    if (!isRequest || atOnce.has(method)) {
      if (cancels === undefined || !ids.has(cancels)) return Effect.andThen(flow.calm, on(message))
      takenBack.add(cancels)
      return Effect.void
    }
    if (waits === 0 && flow.hasRoom()) return on(message)
    const id = only(message)
    if (id !== undefined) ids.add(id)
    waits++
    return Effect.asVoid(Queue.offer(waiting, message))
  }
  const pass = Effect.gen(function* () {
    const message = yield* Queue.take(waiting)
    yield* flow.room
    const id = only(message)
    if (id !== undefined) ids.delete(id)
    if (id === undefined || !takenBack.delete(id)) yield* on(message)
    waits--
  }).pipe(Effect.forever)
  return { take, pass } satisfies Turns
})
