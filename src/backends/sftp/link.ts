/**
 * The connection of a filesystem: one session, which is reopened after the connection was lost.
 *
 * An operation whose connection was lost runs again on a new connection, unless the server may already have made the change.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { unavailable } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { filesystemClosed } from "../faults.ts"
import type { RemotePath } from "./calls.ts"
import { Lost, type Session, start, type Transport } from "./session.ts"
import { Type } from "./wire.ts"

export interface Timings {
  /** The maximum number of attempts to connect. */
  readonly attempts: number
  /**
   * The pause before the second attempt. Each further pause is twice as long, up to 5 seconds. Each pause is shortened at
   * random, by at most a half.
   */
  readonly pauseMillis: number
  /** The timeout for connecting, up to the start of the SFTP session. */
  readonly connectMillis: number
  /** The timeout for the answer to a request. */
  readonly answerMillis: number
  /** The interval between messages that keep an idle connection alive. */
  readonly keepAliveMillis: number
}

export const defaultTimings: Timings = {
  attempts: 5,
  pauseMillis: 200,
  connectMillis: 20_000,
  answerMillis: 30_000,
  keepAliveMillis: 15_000
}

/** The failure of a connection. `isFinal` means that another attempt would fail too. */
export interface DialFailure {
  readonly fault: Fault
  readonly isFinal: boolean
}

export type Dial = Effect.Effect<Transport, DialFailure>

export interface Link {
  /** Runs an operation. If the connection is lost before a change was sent, runs it again, at most `maxRepeats` times. */
  readonly run: <A, E, R>(use: (session: Session) => Effect.Effect<A, E | Lost, R>) => Effect.Effect<A, E | Fault, R>
  readonly session: Effect.Effect<Session, Fault>
  /** Removes a temporary file, now or after the next reconnection. */
  readonly discard: (path: RemotePath) => void
}

/** The maximum number of times that an operation is repeated on a new connection. */
const maxRepeats = 4
const maxPauseMillis = 5000
/**
 * The maximum number of temporary files that are remembered for removal. Further files are removed when their directory is
 * listed.
 */
const maxDebts = 10_000

export const unsure: Fault = unavailable(
  "the connection was lost before the server confirmed the change; before you repeat it, check whether it was made"
)

export const make = (dial: Dial, timings: Timings): Effect.Effect<Link, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    let current: Session | undefined
    let connecting: Deferred.Deferred<Session, Fault> | undefined
    let isClosed = false
    const debts = new Set<RemotePath>()

    const discard: Link["discard"] = (path) => {
      const owe = () => void (debts.size < maxDebts && !isClosed && debts.add(path))
      if (current === undefined) owe()
      else current.post({ type: Type.remove, fields: [path] }, owe)
    }

    const pause = (done: number) =>
      Effect.flatMap(Random.nextBetween(0.5, 1), (part) =>
        Effect.sleep(Math.min(maxPauseMillis, timings.pauseMillis * 2 ** (done - 1)) * part)
      )

    const connect: Effect.Effect<Session, DialFailure> = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(dial), (transport) =>
        Effect.mapError(
          Effect.onExit(restore(start(transport, timings.answerMillis)), (exit) =>
            Exit.isSuccess(exit) ? Effect.void : Effect.sync(transport.close)
          ),
          (fault) => ({ fault, isFinal: fault._tag === "IoError" })
        )
      )
    )

    const connectAgain = (done: number): Effect.Effect<Session, Fault> =>
      Effect.catch(connect, ({ fault, isFinal }) =>
        isFinal || done >= timings.attempts ? Effect.fail(fault) : Effect.andThen(pause(done), connectAgain(done + 1))
      )

    const open = Effect.tap(connectAgain(1), (opened) =>
      Effect.sync(() => {
        current = opened
        const owed = [...debts]
        debts.clear()
        for (const path of owed) discard(path)
      })
    )

    const session: Link["session"] = Effect.suspend(() => {
      if (isClosed) return Effect.fail(filesystemClosed)
      if (current?.isOpen() === true) return Effect.succeed(current)
      if (connecting !== undefined) return Deferred.await(connecting)
      const opening = Deferred.makeUnsafe<Session, Fault>()
      connecting = opening
      const opened = Effect.onExit(open, (exit) => {
        connecting = undefined
        return Deferred.done(opening, Exit.isSuccess(exit) || !Exit.hasInterrupts(exit) ? exit : Exit.fail(filesystemClosed))
      })
      // All callers wait for one connection attempt, which the interruption of a caller does not end.
      return Effect.uninterruptibleMask((restore) =>
        Effect.andThen(Effect.forkIn(Effect.interruptible(opened), scope), restore(Deferred.await(opening)))
      )
    })

    const run: Link["run"] = <A, E, R>(use: (session: Session) => Effect.Effect<A, E | Lost, R>) => {
      const attempt = (left: number): Effect.Effect<A, E | Fault, R> =>
        Effect.flatMap(session, (session) =>
          Effect.catch(use(session), (failure): Effect.Effect<A, E | Fault, R> => {
            if (!(failure instanceof Lost)) return Effect.fail(failure as E)
            if (isClosed) return Effect.fail(filesystemClosed)
            if (failure.isUnsure) return Effect.fail(unsure)
            return left === 0 || failure.fault._tag === "IoError" ? Effect.fail(failure.fault) : attempt(left - 1)
          })
        )
      return attempt(maxRepeats)
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        current?.close()
      })
    )
    return { run, session, discard }
  })
