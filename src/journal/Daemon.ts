/**
 * Daemons: background workers on a journal. A daemon is Stopped, then Running, then Completed, and never returns to an earlier
 * status. Each change of status is an entry of the journal (`DaemonChanged`). A failure is recorded in the journal and in the
 * daemon's `failure`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Daemon, type DaemonError, type DaemonOptions, makeLifecycle } from "./lifecycle.ts"
import type { Journal } from "./model.ts"

export {
  /** @since 0.1.0 */
  type Daemon,
  /** @since 0.1.0 */
  DaemonError,
  /** @since 0.1.0 */
  type DaemonOptions,
  /** @since 0.1.0 */
  type Running,
  /** @since 0.1.0 */
  type Status
} from "./lifecycle.ts"
export { DaemonChanged } from "./entries/status.ts"

/**
 * Returns a daemon, which the caller must start. The daemon shuts down when the scope closes.
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
   * Starts the daemons in order. If a start fails, shuts down the daemons that this call has started, in reverse order. Then
   * fails with the error of the start.
   */
  readonly start: Effect.Effect<void, DaemonError>
  /** Shuts down all daemons in reverse order, even if a shutdown fails. Fails with the first failure. */
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
 * Runs a daemon as the only work of a process. Starts the daemon and waits until the daemon has completed. Fails if the daemon
 * has failed, so that a supervisor can restart the process. An interruption first shuts the daemon down.
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
 * Runs a daemon for the lifetime of the layer. A failure after the start is reported in the journal and in the log, and does
 * not end the layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(
  daemon: Effect.Effect<Daemon, E, R>
): Layer.Layer<never, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(Effect.flatMap(daemon, (daemon) => daemon.start))

/**
 * Runs several daemons for the lifetime of the layer. The daemons start in order and shut down in reverse order.
 *
 * @since 0.1.0
 */
export const layerAll = <E, R>(
  daemons: ReadonlyArray<Effect.Effect<Daemon, E, R>>
): Layer.Layer<never, E | DaemonError, Exclude<R, Scope.Scope>> =>
  Layer.effectDiscard(Effect.flatMap(Effect.all(daemons), (made) => all(made).start))
