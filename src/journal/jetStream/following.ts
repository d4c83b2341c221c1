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
const suspicion = "5 seconds"
/** The time allowed for messages in flight. */
const patience = "1 second"

export const make = (connection: Connection, log: Log, start: number): Effect.Effect<Following, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const recent = Recent.make(start)
    const signal = Signal.make()
    const { ended } = connection
    let reached = start
    let isBroken = false

    /** Accepts a message, and tests whether there was no gap before it. */
    const take = ({ data, headers, seq }: JsMsg): boolean => {
      if (seq <= reached) return true
      if (seq !== reached + 1) return false
      reached = seq
      // A place keeper at or before the end belongs to entries that have already arrived.
      if (seq > recent.end()) {
        recent.add(Messages.make(seq, data.slice(), headers))
        signal.wake()
      }
      return true
    }

    const consume = connection.ask("JetStream.tail", async () => {
      const consumer = await connection.jetstream.consumers.getPushConsumer(log.name, { opt_start_seq: reached + 1 })
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
        Effect.ignore(connection.once("JetStream.tail", () => consumer.delete()))
      )

    /** Ends if a message that the server had some time ago has still not arrived. */
    const behind: Effect.Effect<void, JournalError> = Effect.sleep(suspicion).pipe(
      Effect.andThen(log.last),
      Effect.tap(() => Effect.sleep(patience)),
      Effect.flatMap((last) => (last !== undefined && last.sequence > reached ? Effect.void : behind))
    )

    const once = Effect.gen(function* () {
      const epoch = connection.epoch()
      yield* Effect.acquireRelease(consume, release)
      const isOver = (): boolean => isBroken || connection.epoch() !== epoch || ended() !== undefined
      const over: Effect.Effect<void> = Effect.flatMap(connection.changes.wait(isOver), () => (isOver() ? Effect.void : over))
      yield* Effect.raceFirst(over, behind)
    })

    yield* Effect.whileLoop({
      while: () => ended() === undefined,
      // Pause between attempts, so that a server that only refuses is not flooded.
      body: () => Effect.catch(Effect.scoped(once), () => Effect.sleep(patience)),
      step: () => {}
    }).pipe(Effect.forkScoped)
    connection.ending.add(signal.wake)

    const changed = (after: number): Effect.Effect<void, JournalError> =>
      Effect.suspend(() => {
        if (recent.end() > after) return Effect.void
        const error = ended()
        const wait = signal.wait(() => recent.end() > after || ended() !== undefined)
        return error === undefined ? Effect.flatMap(wait, () => changed(after)) : Effect.fail(error)
      })

    return { recent, changed }
  })
