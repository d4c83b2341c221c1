/**
 * Follows the stream with an ordered consumer that starts at the end of the stream. The consumer is re-created after every reconnection,
 * and when the server has messages that it did not deliver.
 */
import type { JsMsg } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Signal from "../journal/signal.ts"
import type { JournalError } from "../errors.ts"
import type { Connection } from "./connection.ts"
import type { Log } from "./log.ts"
import * as Messages from "./messages.ts"
import * as Recent from "./recent.ts"

export interface Following {
  readonly recent: Recent.Recent
  readonly changed: (after: number) => Effect.Effect<void, JournalError>
}

/** The time after which the server is asked whether it has undelivered messages. */
const checkInterval = "5 seconds"
/** The time allowed for messages in flight. */
const deliveryGrace = "1 second"

export const make = (connection: Connection, log: Log, start: number): Effect.Effect<Following, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const recent = Recent.make(start)
    const signal = Signal.make()
    const { endError: ended } = connection
    let lastSequence = start
    let isBroken = false

    /** Accepts a message, and tests whether there was no gap before it. */
    const take = ({ data, headers, seq }: JsMsg): boolean => {
      if (seq <= lastSequence) return true
      if (seq !== lastSequence + 1) return false
      lastSequence = seq
      // A place keeper at or before the end belongs to entries that have already arrived.
      if (seq > recent.end()) {
        recent.add(Messages.make(seq, data.slice(), headers))
        signal.wake()
      }
      return true
    }

    const consume = connection.ask("JetStream.tail", async () => {
      const consumer = await connection.jetstream.consumers.getPushConsumer(log.name, { opt_start_seq: lastSequence + 1 })
      isBroken = false
      const messages = await consumer.consume({
        callback: (message) => {
          if (isBroken || take(message)) return
          isBroken = true
          connection.changes.wake()
        }
      })
      return { consumer, messages }
    })
    /** Deletes the consumer. If the server cannot be reached, it removes the consumer by itself after a while. */
    const release = ({ consumer, messages }: Effect.Success<typeof consume>) =>
      Effect.andThen(
        Effect.sync(() => messages.stop()),
        Effect.ignore(connection.sendOnce("JetStream.tail", () => consumer.delete()))
      )

    /** Ends if a message that the server had some time ago has still not arrived. */
    const waitUntilBehind: Effect.Effect<void, JournalError> = Effect.sleep(checkInterval).pipe(
      Effect.andThen(log.last),
      Effect.tap(() => Effect.sleep(deliveryGrace)),
      Effect.flatMap((last) => (last !== undefined && last.sequence > lastSequence ? Effect.void : waitUntilBehind))
    )

    const consumeUntilOver = Effect.gen(function* () {
      const epoch = connection.epoch()
      yield* Effect.acquireRelease(consume, release)
      const isOver = (): boolean => isBroken || connection.epoch() !== epoch || ended() !== undefined
      const waitUntilOver: Effect.Effect<void> = Effect.flatMap(connection.changes.wait(isOver), () =>
        isOver() ? Effect.void : waitUntilOver
      )
      yield* Effect.raceFirst(waitUntilOver, waitUntilBehind)
    })

    yield* Effect.whileLoop({
      while: () => ended() === undefined,
      // Pause between attempts, so that a server that only refuses is not flooded.
      body: () => Effect.catch(Effect.scoped(consumeUntilOver), () => Effect.sleep(deliveryGrace)),
      step: () => {}
    }).pipe(Effect.forkScoped)
    connection.endListeners.add(signal.wake)

    const changed = (after: number): Effect.Effect<void, JournalError> =>
      Effect.suspend(() => {
        if (recent.end() > after) return Effect.void
        const error = ended()
        const wait = signal.wait(() => recent.end() > after || ended() !== undefined)
        return error === undefined ? Effect.flatMap(wait, () => changed(after)) : Effect.fail(error)
      })

    return { recent, changed }
  })
