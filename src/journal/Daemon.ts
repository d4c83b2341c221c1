/**
 * What works on a journal by itself: Stopped, then Running, then Completed, and never back. Each change is an entry of the journal
 * (`DaemonChanged`), and a daemon that has failed says so there and to whoever asks.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { DaemonError } from "./daemon/errors.ts"
import * as Lifecycle from "./daemon/lifecycle.ts"
import type { DaemonChanged } from "./entries/daemon.ts"
import type { Journal } from "./Journal.ts"

export {
  /** @since 0.1.0 */
  DaemonError
} from "./daemon/errors.ts"
export {
  /** @since 0.1.0 */
  DaemonChanged
} from "./entries/daemon.ts"

/**
 * Where a daemon is in its life.
 *
 * @since 0.1.0
 */
export type Status = "Stopped" | "Running" | "Completed"

/**
 * Something that runs until it is told to stop, has done its work, or has failed.
 *
 * @since 0.1.0
 */
export interface Daemon {
  readonly name: string
  /** Of this one; another process, or the same name made again, has another. */
  readonly instance: string
  readonly status: Effect.Effect<Status>
  /** What it failed with, also where that was in the end of it; `undefined` where it has not. */
  readonly failure: Effect.Effect<DaemonError | undefined>
  /**
   * Ends when it runs. Does nothing where it runs already. Fails with `completed`, and with `failed` where it could not begin, after which
   * it has completed. Interrupted before it runs, it is as it was.
   */
  readonly start: Effect.Effect<void, DaemonError>
  /**
   * Ends when it has completed: what it has in hand is finished first, and nothing interrupts that. Does nothing where it has completed
   * already. Fails with `notStarted`, and with `failed` where it could not end well; it has completed then too.
   */
  readonly shutdown: Effect.Effect<void, DaemonError>
  /** Ends when it is that, or has been. Fails with `completed` where it is to run and has completed. */
  readonly awaitStatus: (status: Status) => Effect.Effect<void, DaemonError>
}

/**
 * A daemon that has been announced, to what it runs.
 *
 * @since 0.1.0
 */
export interface Running {
  readonly instance: string
  /** Of the entry that says that it runs. */
  readonly position: number
}

/**
 * What a daemon does, before, while and after it runs.
 *
 * @since 0.1.0
 */
export interface DaemonOptions<E, R> {
  /** What it is called, the same after a restart. */
  readonly name: string
  /** Before it is said to run; a failure keeps it from starting. @default nothing */
  readonly start?: Effect.Effect<void, E, R> | undefined
  /** What it does. It has completed when this ends, has failed when this fails; a shutdown interrupts it. */
  readonly run: (self: Running) => Effect.Effect<void, E, R>
  /** When `run` has ended, in whatever way: finishes what it has left in hand. Nothing interrupts it. @default nothing */
  readonly stop?: Effect.Effect<void, E, R> | undefined
  /** What else the entries about it say. */
  readonly says?: Pick<DaemonChanged, "prefix" | "extended" | "grace"> | undefined
}

/**
 * A daemon, not started. It shuts down with the scope.
 *
 * @since 0.1.0
 */
export const make: <E, R>(options: DaemonOptions<E, R>) => Effect.Effect<Daemon, never, Journal | Scope.Scope | R> =
  Lifecycle.make

/**
 * Daemons that start in order and stop in the reverse one.
 *
 * @since 0.1.0
 */
export interface Group {
  readonly daemons: ReadonlyArray<Daemon>
  /** In order. Where one fails, those that this has started shut down, the last first, and the failure says which one it was. */
  readonly start: Effect.Effect<void, DaemonError>
  /** All of them, the last first, also where one fails; the first failure is this one's. */
  readonly shutdown: Effect.Effect<void, DaemonError>
}

const shutdownAll = (daemons: ReadonlyArray<Daemon>): Effect.Effect<void, DaemonError> =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      let failure: DaemonError | undefined
      const each = Effect.forEach(
        daemons.toReversed(),
        (daemon) => Effect.catch(daemon.shutdown, (error) => Effect.sync(() => void (failure ??= error))),
        { discard: true }
      )
      return Effect.flatMap(each, () => (failure === undefined ? Effect.void : Effect.fail(failure)))
    })
  )

/**
 * Several as one.
 *
 * @since 0.1.0
 */
export const all = (daemons: ReadonlyArray<Daemon>): Group => ({
  daemons: [...daemons],
  start: Effect.suspend(() => {
    const started: Array<Daemon> = []
    const startOne = (daemon: Daemon): Effect.Effect<void, DaemonError> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(daemon.status, (before) =>
          Effect.map(restore(daemon.start), () => void (before === "Stopped" && started.push(daemon)))
        )
      )
    return Effect.onError(Effect.forEach(daemons, startOne, { discard: true }), () => Effect.ignore(shutdownAll(started)))
  }),
  shutdown: shutdownAll(daemons)
})

/**
 * For a process that does nothing else: starts it, ends when it has completed, and fails where it has failed, so that whoever supervises
 * processes starts it again. Where this is interrupted it shuts down first.
 *
 * @since 0.1.0
 */
export const run = <E, R>(daemon: Effect.Effect<Daemon, E, R>): Effect.Effect<void, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { awaitStatus, failure, start } = yield* daemon
      yield* start
      yield* awaitStatus("Completed")
      const failed = yield* failure
      if (failed !== undefined) return yield* failed
    })
  )

/**
 * Started with the layer, and shut down with it. That it fails in between is in the journal and in the log, and does not end the layer.
 *
 * @since 0.1.0
 */
export const layer = <E, R>(
  daemon: Effect.Effect<Daemon, E, R>
): Layer.Layer<never, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(Effect.flatMap(daemon, (daemon) => daemon.start))

/**
 * The same for several, started in order and shut down in reverse.
 *
 * @since 0.1.0
 */
export const layerAll = <E, R>(
  daemons: ReadonlyArray<Effect.Effect<Daemon, E, R>>
): Layer.Layer<never, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(Effect.flatMap(Effect.all(daemons), (made) => all(made).start))
