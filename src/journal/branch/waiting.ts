/**
 * Waits for answers. All requests share one tail of the journal, which delivers each answer by its correlation id. One fiber watches all
 * timeouts, because a timer per request would cost as much as the request itself.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { InvalidArgument, Timeout } from "../../model/FsError.ts"
import { JournalError } from "../errors.ts"
import { type Afferent, isAfferent, isTerminal, type Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"

type RequestExit = Exit.Exit<Terminal, JournalError | Timeout>

export interface Waiter {
  readonly id: string
  readonly path: string
  /** Receives the entries before the end of the answer, which are chunks. */
  readonly onChunk: ((entry: Afferent) => void) | undefined
  /** True if an entry has arrived for the request since its deadline was set. */
  hasProgress: boolean
  /** The longest time without any entry, in milliseconds. */
  timeout: number
  /** The deadline in milliseconds since 1970, set when the wait begins. */
  deadline: number
  end: RequestExit | undefined
  resume: ((end: RequestExit) => void) | undefined
}

export interface Waiting {
  /** Registers a waiter for the id. No entry that is appended afterwards is missed. Fails if the id already has a waiter. */
  readonly register: (
    id: string,
    path: string,
    onChunk: ((entry: Afferent) => void) | undefined
  ) => Effect.Effect<Waiter, JournalError | InvalidArgument>
  /** Waits for the end of the answer, as long as entries keep arriving. */
  readonly awaitEnd: (waiter: Waiter, timeout: Duration.Duration) => Effect.Effect<Terminal, JournalError | Timeout>
  readonly unregister: (waiter: Waiter) => void
  readonly size: () => number
}

const closedError = new JournalError({ operation: "Branch", reason: "closed", detail: "the branch has ended" })

export const noAnswerError = (path: string, timeout: Duration.Duration): Timeout =>
  new Timeout({ operation: "request", path, detail: `no leaf has answered within ${Duration.format(timeout)}` })

const duplicateIdError = (path: string): InvalidArgument => {
  const detail = "somebody waits for the answer to this id already; each request needs its own"
  return new InvalidArgument({ operation: "request", path, argument: "correlationId", detail })
}

const reason = (cause: Cause.Cause<JournalError>): JournalError =>
  Option.getOrElse(Cause.findErrorOption(cause), () =>
    Cause.hasInterruptsOnly(cause)
      ? closedError
      : new JournalError({ operation: "Branch", reason: "io", detail: Cause.pretty(cause) })
  )

const noDeadline = Number.POSITIVE_INFINITY

/** Delivers answers until the scope ends. Answers that are already in the journal are ignored. */
export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>
): Effect.fn.Return<Waiting, JournalError, Scope.Scope> {
  const scope = yield* Effect.scope
  const waiters = new Map<string, Waiter>()
  let lastPosition = yield* journal.last
  let isTailing = false
  let isClosed = false

  const finish = (waiter: Waiter, end: RequestExit): void => {
    waiters.delete(waiter.id)
    waiter.end = end
    waiter.resume?.(end)
  }
  /** Fails all waiters. A resumed waiter runs at once and may register again, so the list is copied first. */
  const finishAll = (error: JournalError): void => {
    const all = [...waiters.values()]
    for (const waiter of all) finish(waiter, Exit.fail(error))
  }
  const deliver = (entry: Entry): void => {
    if (waiters.size === 0 || !("correlationId" in entry)) return
    const waiter = waiters.get(entry.correlationId)
    if (waiter === undefined || !isAfferent(entry)) return
    waiter.hasProgress = true
    waiter.onChunk?.(entry)
    if (isTerminal(entry)) finish(waiter, Exit.succeed(entry))
  }
  /** Tails the journal. All waiters fail when the tail ends; the next request starts a new tail. */
  const tail = Effect.suspend(() =>
    Effect.onExit(
      Stream.runForEachArray(journal.tail(lastPosition), (recorded) =>
        Effect.sync(() => {
          for (const { entry, position } of recorded) {
            lastPosition = position
            deliver(entry)
          }
        })
      ),
      (exit) =>
        Effect.sync(() => {
          isTailing = false
          finishAll(Exit.isFailure(exit) ? reason(exit.cause) : closedError)
        })
    )
  )
  const startTail = Effect.suspend(() => {
    isTailing = true
    return Effect.forkIn(Effect.exit(tail), scope, { startImmediately: true })
  })

  let watcher: Fiber.Fiber<void> | undefined
  /** The time of the next check of deadlines, in milliseconds since 1970. */
  let nextCheckAt = noDeadline
  const checkDeadlines = (now: number): void => {
    const expired: Array<Waiter> = []
    nextCheckAt = noDeadline
    for (const waiter of waiters.values()) {
      if (waiter.deadline <= now && !waiter.hasProgress) {
        expired.push(waiter)
        continue
      }
      if (waiter.deadline <= now) {
        waiter.hasProgress = false
        waiter.deadline = now + waiter.timeout
      }
      nextCheckAt = Math.min(nextCheckAt, waiter.deadline)
    }
    for (const waiter of expired) finish(waiter, Exit.fail(noAnswerError(waiter.path, Duration.millis(waiter.timeout))))
  }
  const watchDeadlines = (clock: Clock.Clock): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (nextCheckAt === noDeadline) {
        watcher = undefined
        return Effect.void
      }
      return Effect.flatMap(Effect.sleep(Math.max(0, nextCheckAt - clock.currentTimeMillisUnsafe())), () => {
        checkDeadlines(clock.currentTimeMillisUnsafe())
        return watchDeadlines(clock)
      })
    })
  /** Ensures that the deadlines are checked no later than `deadline`. Not interruptible, because other waiters rely on the watcher too. */
  const ensureWatcher = (clock: Clock.Clock, deadline: number): Effect.Effect<unknown> =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (watcher !== undefined && nextCheckAt <= deadline) return Effect.void
        watcher?.interruptUnsafe()
        nextCheckAt = Math.min(nextCheckAt, deadline)
        return Effect.map(Effect.forkIn(watchDeadlines(clock), scope), (fiber) => {
          watcher = fiber
        })
      })
    )

  const waitForEnd = (waiter: Waiter): Effect.Effect<Terminal, JournalError | Timeout> =>
    Effect.callback((resume) => {
      if (waiter.end !== undefined) return resume(waiter.end)
      waiter.resume = resume
      return Effect.sync(() => {
        waiter.resume = undefined
      })
    })

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      finishAll(closedError)
    })
  )
  yield* startTail

  return {
    register: (id, path, onChunk) =>
      Effect.suspend((): Effect.Effect<Waiter, JournalError | InvalidArgument> => {
        if (isClosed) return Effect.fail(closedError)
        if (waiters.has(id)) return Effect.fail(duplicateIdError(path))
        const waiter: Waiter = {
          id,
          path,
          onChunk,
          hasProgress: false,
          timeout: noDeadline,
          deadline: noDeadline,
          end: undefined,
          resume: undefined
        }
        waiters.set(id, waiter)
        return isTailing ? Effect.succeed(waiter) : Effect.as(startTail, waiter)
      }),
    awaitEnd: (waiter, timeout) =>
      Effect.withFiber((fiber) => {
        if (waiter.end !== undefined) return waiter.end
        const clock = fiber.getRef(Clock.Clock)
        waiter.hasProgress = false
        waiter.timeout = Duration.toMillis(timeout)
        waiter.deadline = clock.currentTimeMillisUnsafe() + waiter.timeout
        return waiter.deadline < nextCheckAt || watcher === undefined
          ? Effect.andThen(ensureWatcher(clock, waiter.deadline), waitForEnd(waiter))
          : waitForEnd(waiter)
      }),
    unregister: (waiter) => {
      if (waiters.get(waiter.id) === waiter) waiters.delete(waiter.id)
    },
    size: () => waiters.size
  }
})
