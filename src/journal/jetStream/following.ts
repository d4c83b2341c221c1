/**
 * What is appended by anybody, as it comes: an ordered consumer from the end of the stream on, which is made anew whenever the connection is,
 * and whenever the server has more than it sends.
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
  /** Ends when there is one after the position. Fails when there will be none. */
  readonly changed: (after: number) => Effect.Effect<void, JournalError>
}

/** After which a server is asked whether it has more than it has sent. */
const suspicion = "5 seconds"
/** For what is on its way. */
const patience = "1 second"

export const make = (connection: Connection, log: Log, start: number): Effect.Effect<Following, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const recent = Recent.make(start)
    const signal = Signal.make()
    const { ended } = connection
    /** The sequence of the last message that has come. */
    let reached = start
    let isBroken = false

    /** Whether it was the next one. */
    const take = ({ data, headers, seq }: JsMsg): boolean => {
      if (seq <= reached) return true
      if (seq !== reached + 1) return false
      reached = seq
      // What only keeps the place of an entry that has come is past already.
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
    /** The server forgets it too, in time, where it cannot be told now. */
    const release = ({ consumer, messages }: Effect.Success<typeof consume>) =>
      Effect.andThen(
        Effect.sync(() => messages.stop()),
        Effect.ignore(connection.once("JetStream.tail", () => consumer.delete()))
      )

    /** Ends when something that the server had some time ago has still not come. */
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
      // A server that answers nothing but refusals is not asked without a pause.
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
