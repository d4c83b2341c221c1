/**
 * Orders the messages to the server. Cancellations and other notices do not wait behind requests; otherwise a client that
 * floods the server could not cancel.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Flow } from "./flow.ts"
import type { Line } from "./lines.ts"

type Message = Extract<Line, { readonly _tag: "Message" }>

export interface MessageQueue {
  /** Accepts a message; waits only while the queue is full. */
  readonly take: (message: Message) => Effect.Effect<void>
  readonly pass: Effect.Effect<never>
}

const maxWaitingMessages = 1024

/** The methods that never wait: the greeting comes first, and a ping tests whether the server is alive. */
const immediateMethods: ReadonlySet<string | undefined> = new Set(["initialize", "ping"])

/** Returns the id of a single request. A batch can only be cancelled as a whole. */
const singleId = ({ ids }: Message): string | number | undefined => (ids.length === 1 ? ids[0] : undefined)

export const make = Effect.fnUntraced(function* (flow: Flow, forward: (text: string) => Effect.Effect<void>) {
  const waiting = yield* Queue.bounded<Message>(maxWaitingMessages)
  let waitingCount = 0
  const ids = new Set<string | number>()
  const cancelledIds = new Set<string | number>()
  const forwardNow = (message: Message): Effect.Effect<void> => {
    flow.countMessage(message.bytes)
    return forward(message.text)
  }
  const take = (message: Message): Effect.Effect<void> => {
    const { cancelledId: cancels, isRequest, method } = message
    if (!isRequest || immediateMethods.has(method)) {
      if (cancels === undefined || !ids.has(cancels)) return Effect.andThen(flow.awaitReader, forwardNow(message))
      cancelledIds.add(cancels)
      return Effect.void
    }
    if (waitingCount === 0 && flow.hasRoom()) return forwardNow(message)
    const id = singleId(message)
    if (id !== undefined) ids.add(id)
    waitingCount++
    return Effect.asVoid(Queue.offer(waiting, message))
  }
  const pass = Effect.gen(function* () {
    const message = yield* Queue.take(waiting)
    yield* flow.awaitRoom
    const id = singleId(message)
    if (id !== undefined) ids.delete(id)
    if (id === undefined || !cancelledIds.delete(id)) yield* forwardNow(message)
    waitingCount--
  }).pipe(Effect.forever)
  return { take, pass } satisfies MessageQueue
})
