/**
 * Daemons: background workers on a journal. A daemon is Stopped, then Running, then Completed, and never goes back. Each change of status
 * is an entry of the journal (`DaemonChanged`). A failure is recorded there and in the daemon's `failure`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type DaemonError, makeLifecycle } from "./lifecycle.ts"
import type { DaemonChanged } from "./entries/status.ts"
import type { Journal } from "./Journal.ts"

export { DaemonError } from "./lifecycle.ts"
export { DaemonChanged } from "./entries/status.ts"

/**
 * The status of a daemon.
 *
 * @since 0.1.0
 */
export type Status = "Stopped" | "Running" | "Completed"

/**
 * A worker that runs until it is shut down, has finished its work, or has failed.
 *
 * @since 0.1.0
 */
export interface Daemon {
  readonly name: string
  /** The id of this run. Another process, or another daemon of the same name, has a different id. */
  readonly instance: string
  readonly status: Effect.Effect<Status>
  /** The error that ended the daemon, including an error of its shutdown; `undefined` if it has not failed. */
  readonly failure: Effect.Effect<DaemonError | undefined>
  /**
   * Starts the daemon and ends when it is running; does nothing if it is running already. Fails with `completed` if it has completed. Fails
   * with `failed` if it cannot start; it has then completed. An interruption before it runs leaves it Stopped.
   */
  readonly start: Effect.Effect<void, DaemonError>
  /**
   * Shuts the daemon down and ends when it has completed; does nothing if it has completed already. The daemon finishes its current work
   * first, and nothing interrupts this. Fails with `notStarted`, or with `failed` if the daemon failed; it has completed even then.
   */
  readonly shutdown: Effect.Effect<void, DaemonError>
  /**
   * Waits until the daemon reaches the status or has passed it. Fails with `completed` when waiting for `Running` and the daemon has
   * completed.
   */
  readonly awaitStatus: (status: Status) => Effect.Effect<void, DaemonError>
}

/**
 * A running daemon, as its own `run` function sees it.
 *
 * @since 0.1.0
 */
export interface Running {
  readonly instance: string
  /** The position of the journal entry that announces the run. */
  readonly position: number
}

/**
 * The actions of a daemon before, during and after its run.
 *
 * @since 0.1.0
 */
export interface DaemonOptions<E, R> {
  /** The daemon's name, the same after a restart. */
  readonly name: string
  /** Runs before the daemon is announced as running. A failure prevents the start. @default nothing */
  readonly start?: Effect.Effect<void, E, R> | undefined
  /** The daemon's work. The daemon completes when this ends, and fails when this fails. A shutdown interrupts this. */
  readonly run: (self: Running) => Effect.Effect<void, E, R>
  /** Runs after `run` has ended in any way, to finish pending work. Nothing interrupts this. @default nothing */
  readonly stop?: Effect.Effect<void, E, R> | undefined
  /** Further fields of the daemon's `DaemonChanged` entries. */
  readonly says?: Pick<DaemonChanged, "prefix" | "extended" | "grace"> | undefined
}

/**
 * Returns a daemon that is not started. It shuts down with the scope.
 *
 * @example
 * ```ts
 * const status = Effect.gen(function* () {
 *   const daemon = yield* Daemon.make({ name: "cleaner", run: () => fs.write("clean.txt", "") })
 *   yield* daemon.start
 *   yield* daemon.awaitStatus("Completed")
 *   return yield* daemon.status
 * })
 * yield* Effect.provide(status, Journal.layerMemory) // => "Completed"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make: <E, R>(options: DaemonOptions<E, R>) => Effect.Effect<Daemon, never, Journal | Scope.Scope | R> =
  makeLifecycle

/**
 * Several daemons that start in order and shut down in reverse order.
 *
 * @since 0.1.0
 */
export interface Group {
  readonly daemons: ReadonlyArray<Daemon>
  /**
   * Starts the daemons in order. If one fails, shuts down the daemons that this call has started, in reverse order, and fails with that
   * error.
   */
  readonly start: Effect.Effect<void, DaemonError>
  /** Shuts the daemons down in reverse order, all of them even if one fails, and fails with the first failure. */
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
 * Combines several daemons into one group.
 *
 * @category constructors
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
 * Runs a daemon as the only work of a process: starts it, waits until it has completed, and fails if it has failed. A process supervisor
 * can then restart the process. An interruption shuts the daemon down first.
 *
 * @category running
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
 * Runs a daemon for the lifetime of the layer. A failure after the start is reported in the journal and in the log, and does not end the
 * layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(
  daemon: Effect.Effect<Daemon, E, R>
): Layer.Layer<never, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(Effect.flatMap(daemon, (daemon) => daemon.start))

/**
 * Runs several daemons for the lifetime of the layer. They start in order and shut down in reverse order.
 *
 * @since 0.1.0
 */
export const layerAll = <E, R>(
  daemons: ReadonlyArray<Effect.Effect<Daemon, E, R>>
): Layer.Layer<never, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(Effect.flatMap(Effect.all(daemons), (made) => all(made).start))
