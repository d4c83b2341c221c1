/**
 * The lifecycle of a daemon. The status is Stopped, then Running, then Completed, and never returns to an earlier status.
 * Transitions run one at a time. A shutdown that has begun finishes even if its caller is interrupted.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "../runtime/node.ts"
import * as Identity from "../runtime/processIdentity.ts"
import { Journal } from "./model.ts"
import { DaemonChanged } from "./entries/status.ts"

const reasonTexts = {
  notStarted: "the daemon has not been started",
  completed: "the daemon has completed, and cannot start again",
  failed: "the daemon failed"
} as const

/**
 * The failure of a daemon, or of a call that the daemon's status does not permit.
 *
 * - `notStarted`: the daemon has not been started
 * - `completed`: the daemon has completed, and cannot start again
 * - `failed`: the daemon failed, and `cause` is its error
 *
 * @since 0.1.0
 */
export class DaemonError extends Schema.TaggedError<DaemonError>("fs-algebra/DaemonError")("DaemonError", {
  daemon: Schema.String,
  operation: Schema.Literals(["start", "run", "shutdown", "awaitStatus"]),
  reason: Schema.Literals(["notStarted", "completed", "failed"]),
  detail: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    const detail = this.detail === undefined ? "" : `, ${this.detail}`
    return `${this.operation} ${JSON.stringify(this.daemon)}: ${reasonTexts[this.reason]}${detail}`
  }
}

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
  /** The id of this run, which is different for each process and each daemon. */
  readonly instance: string
  readonly status: Effect.Effect<Status>
  /** The error that ended the daemon, or the error of its shutdown. `undefined` if the daemon has not failed. */
  readonly failure: Effect.Effect<DaemonError | undefined>
  /**
   * Starts the daemon. Does nothing if the daemon is already running. Fails with `completed` if the daemon has completed. If
   * the start fails, the daemon is completed, and the call fails with `failed`. An interruption during the start leaves the
   * daemon Stopped.
   */
  readonly start: Effect.Effect<void, DaemonError>
  /**
   * Shuts the daemon down, and waits until the daemon has completed. Does nothing if the daemon has already completed.
   * Interrupts `run`, and then runs `stop` uninterruptibly. Fails with `notStarted` if the daemon was not started. Fails with
   * `failed` if the daemon fails before it has completed.
   */
  readonly shutdown: Effect.Effect<void, DaemonError>
  /**
   * Waits until the daemon has reached the status or a later status. If the daemon has completed, waiting for `Running` fails
   * with `completed`.
   */
  readonly awaitStatus: (status: Status) => Effect.Effect<void, DaemonError>
}

/**
 * A running daemon, as the argument of its own `run` function.
 *
 * @since 0.1.0
 */
export interface Running {
  readonly instance: string
  /** The position of the journal entry that announces this run. */
  readonly position: number
}

/**
 * The actions of a daemon before, during and after its run.
 *
 * @since 0.1.0
 */
export interface DaemonOptions<E, R> {
  /** The daemon's name, which must be the same after a restart. */
  readonly name: string
  /** Runs before the daemon is announced as running. A failure prevents the start. @default nothing */
  readonly start?: Effect.Effect<void, E, R> | undefined
  /** The daemon's work. When the work ends or fails, the daemon completes. A shutdown interrupts the work. */
  readonly run: (self: Running) => Effect.Effect<void, E, R>
  /** Runs after `run` has ended in any way, to finish pending work. Uninterruptible. @default nothing */
  readonly stop?: Effect.Effect<void, E, R> | undefined
  /** The additional fields of the daemon's `DaemonChanged` entries. */
  readonly says?: Pick<DaemonChanged, "prefix" | "extended" | "grace"> | undefined
}

// Unique ids of the runs of daemons. An id begins with the identity of its process. So another process on the same machine can
// detect that the process was killed.

const activeRuns = new Set<string>()

const makeInstanceId = (): string => `${Identity.self()}.${randomBytes(8).toString("hex")}`

const markActive = (instance: string): (() => void) => {
  activeRuns.add(instance)
  return () => void activeRuns.delete(instance)
}

/**
 * Tests whether the run with this id has ended. Returns `undefined` if this is unknown: the process is on another machine, or
 * is another live process, which may have ended the run.
 */
export const hasEnded = (instance: string): boolean | undefined => {
  const at = instance.indexOf(".")
  if (at === -1) return undefined
  const process = instance.slice(0, at)
  if (process === Identity.self()) return !activeRuns.has(instance)
  return Identity.isDead(process) === true ? true : undefined
}

const messageOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error && error.message !== "" ? error.message : String(error)
}

/** Returns the cause of a failure. Returns `undefined` for an interruption, because it is a normal shutdown. */
const failureOf = (exit: Exit.Exit<unknown, unknown>): Cause.Cause<unknown> | undefined =>
  Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) ? exit.cause : undefined

export const makeLifecycle = Effect.fnUntraced(function* <E, R>(
  options: DaemonOptions<E, R>
): Effect.fn.Return<Daemon, never, Journal | Scope.Scope | R> {
  const { name } = options
  const journal = yield* Journal
  const context = yield* Effect.context<R>()
  const instance = makeInstanceId()
  const transitions = Semaphore.makeUnsafe(1)
  const statusReached = {
    Stopped: Deferred.makeUnsafe<void>(),
    Running: Deferred.makeUnsafe<void>(),
    Completed: Deferred.makeUnsafe<void>()
  }
  Deferred.doneUnsafe(statusReached.Stopped, Exit.void)
  let status: Status = "Stopped"
  let failure: Cause.Cause<unknown> | undefined
  let runner: Fiber.Fiber<unknown, unknown> | undefined

  const errorFor = (
    operation: DaemonError["operation"],
    reason: DaemonError["reason"],
    cause?: Cause.Cause<unknown>
  ): DaemonError =>
    new DaemonError({
      daemon: name,
      operation,
      reason,
      ...(cause === undefined ? {} : { detail: messageOf(cause), cause: Cause.squash(cause) })
    })
  const recordStatus = (status: Status) =>
    journal.append(
      new DaemonChanged({
        daemon: name,
        instance,
        status,
        ...options.says,
        ...(failure === undefined ? {} : { failure: messageOf(failure) })
      })
    )
  const setStatus = (next: "Running" | "Completed"): void => {
    status = next
    Deferred.doneUnsafe(statusReached[next], Exit.void)
    // Also end the wait for `Running`, because a completed daemon never runs again.
    if (next === "Completed") Deferred.doneUnsafe(statusReached.Running, Exit.void)
  }
  const complete = (cause: Cause.Cause<unknown> | undefined): Effect.Effect<void> =>
    Effect.suspend(() => {
      failure = cause
      return Effect.map(Effect.exit(recordStatus("Completed")), (recordExit) => {
        failure ??= failureOf(recordExit)
        setStatus("Completed")
      })
    })

  const supervise = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
    Effect.flatMap(Fiber.await(fiber), (runExit) =>
      Effect.flatMap(Effect.exit(Effect.provideContext(options.stop ?? Effect.void, context)), (stopExit) => {
        const cause = failureOf(runExit) ?? failureOf(stopExit)
        if (cause === undefined) return complete(undefined)
        // Log the failure, because a failing journal cannot record it and no caller may receive it.
        const text = `fs-algebra: daemon ${JSON.stringify(name)} has failed`
        return Effect.andThen(Effect.logError(text, cause), complete(cause))
      })
    )

  const startRunning = (position: number, markInactive: () => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      setStatus("Running")
      const run = Effect.suspend(() => options.run({ instance, position }))
      return Effect.flatMap(Effect.forkDetach(Effect.provideContext(run, context)), (fiber) => {
        runner = fiber
        return Effect.asVoid(
          Effect.forkDetach(Effect.ensuring(supervise(fiber), Effect.sync(markInactive)), { uninterruptible: true })
        )
      })
    })

  const start: Daemon["start"] = transitions.withPermit(
    Effect.uninterruptibleMask((restore) => {
      if (status === "Running") return Effect.void
      if (status === "Completed") return Effect.fail(errorFor("start", "completed", failure))
      const prepared = restore(Effect.provideContext(options.start ?? Effect.void, context))
      // Mark the run as active before its announcement. Otherwise another process could take the announced run for one that has
      // ended.
      const markInactive = markActive(instance)
      return Effect.matchCauseEffect(
        Effect.flatMap(prepared, () => recordStatus("Running")),
        {
          onSuccess: (position) => startRunning(position, markInactive),
          onFailure: (cause) =>
            Effect.andThen(
              Effect.sync(markInactive),
              Cause.hasInterruptsOnly(cause)
                ? Effect.interrupt
                : Effect.andThen(
                    complete(cause),
                    Effect.suspend(() => Effect.fail(errorFor("start", "failed", cause)))
                  )
            )
        }
      )
    })
  )

  const shutdown: Daemon["shutdown"] = Effect.uninterruptible(
    transitions.withPermit(
      Effect.suspend(() => {
        if (status === "Stopped") return Effect.fail(errorFor("shutdown", "notStarted"))
        if (status === "Completed" || runner === undefined) return Effect.void
        return Effect.andThen(
          Fiber.interrupt(runner),
          Effect.andThen(
            Deferred.await(statusReached.Completed),
            Effect.suspend(() => (failure === undefined ? Effect.void : Effect.fail(errorFor("shutdown", "failed", failure))))
          )
        )
      })
    )
  )

  yield* Effect.addFinalizer(() => Effect.ignore(shutdown))
  return {
    name,
    instance,
    status: Effect.sync(() => status),
    failure: Effect.sync(() => (failure === undefined ? undefined : errorFor("run", "failed", failure))),
    start,
    shutdown,
    awaitStatus: (wanted) =>
      Effect.flatMap(Deferred.await(statusReached[wanted]), () =>
        wanted === "Running" && status === "Completed"
          ? Effect.fail(errorFor("awaitStatus", "completed", failure))
          : Effect.void
      )
  }
})
