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

type End = Exit.Exit<Terminal, JournalError | Timeout>

export interface Waiter {
  readonly id: string
  readonly path: string
  /** Receives the entries before the end of the answer, which are chunks. */
  readonly part: ((entry: Afferent) => void) | undefined
  /** True if an entry has arrived for the request since its deadline was set. */
  isHeard: boolean
  /** The longest time without any entry, in milliseconds. */
  patience: number
  /** The deadline in milliseconds since 1970, set when the wait begins. */
  deadline: number
  end: End | undefined
  resume: ((end: End) => void) | undefined
}

export interface Waiting {
  /** Registers a waiter for the id. No entry that is appended afterwards is missed. Fails if the id already has a waiter. */
  readonly join: (
    id: string,
    path: string,
    part: ((entry: Afferent) => void) | undefined
  ) => Effect.Effect<Waiter, JournalError | InvalidArgument>
  /** Waits for the end of the answer, as long as entries keep arriving. */
  readonly ended: (waiter: Waiter, patience: Duration.Duration) => Effect.Effect<Terminal, JournalError | Timeout>
  readonly leave: (waiter: Waiter) => void
  readonly size: () => number
}

const closed = new JournalError({ operation: "Branch", reason: "closed", detail: "the branch has ended" })

export const silence = (path: string, patience: Duration.Duration): Timeout =>
  new Timeout({ operation: "request", path, detail: `no leaf has answered within ${Duration.format(patience)}` })

const inUse = (path: string): InvalidArgument => {
  const detail = "somebody waits for the answer to this id already; each request needs its own"
  return new InvalidArgument({ operation: "request", path, argument: "correlationId", detail })
}

const reason = (cause: Cause.Cause<JournalError>): JournalError =>
  Option.getOrElse(Cause.findErrorOption(cause), () =>
    Cause.hasInterruptsOnly(cause)
      ? closed
      : new JournalError({ operation: "Branch", reason: "io", detail: Cause.pretty(cause) })
  )

const never = Number.POSITIVE_INFINITY

/** Delivers answers until the scope ends. Answers that are already in the journal are ignored. */
export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>
): Effect.fn.Return<Waiting, JournalError, Scope.Scope> {
  const scope = yield* Effect.scope
  const waiters = new Map<string, Waiter>()
  let seen = yield* journal.last
  let isTailing = false
  let isClosed = false

  const finish = (waiter: Waiter, end: End): void => {
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
    waiter.isHeard = true
    waiter.part?.(entry)
    if (isTerminal(entry)) finish(waiter, Exit.succeed(entry))
  }
  /** Tails the journal. All waiters fail when the tail ends; the next request starts a new tail. */
  const tail = Effect.suspend(() =>
    Effect.onExit(
      Stream.runForEachArray(journal.tail(seen), (recorded) =>
        Effect.sync(() => {
          for (const { entry, position } of recorded) {
            seen = position
            deliver(entry)
          }
        })
      ),
      (exit) =>
        Effect.sync(() => {
          isTailing = false
          finishAll(Exit.isFailure(exit) ? reason(exit.cause) : closed)
        })
    )
  )
  const begin = Effect.suspend(() => {
    isTailing = true
    return Effect.forkIn(Effect.exit(tail), scope, { startImmediately: true })
  })

  let watcher: Fiber.Fiber<void> | undefined
  /** The time of the next check of deadlines, in milliseconds since 1970. */
  let looksAt = never
  const look = (now: number): void => {
    const late: Array<Waiter> = []
    looksAt = never
    for (const waiter of waiters.values()) {
      if (waiter.deadline <= now && !waiter.isHeard) {
        late.push(waiter)
        continue
      }
      if (waiter.deadline <= now) {
        waiter.isHeard = false
        waiter.deadline = now + waiter.patience
      }
      looksAt = Math.min(looksAt, waiter.deadline)
    }
    for (const waiter of late) finish(waiter, Exit.fail(silence(waiter.path, Duration.millis(waiter.patience))))
  }
  const watch = (clock: Clock.Clock): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (looksAt === never) {
        watcher = undefined
        return Effect.void
      }
      return Effect.flatMap(Effect.sleep(Math.max(0, looksAt - clock.currentTimeMillisUnsafe())), () => {
        look(clock.currentTimeMillisUnsafe())
        return watch(clock)
      })
    })
  /** Ensures that the deadlines are checked no later than `deadline`. Not interruptible, because other waiters rely on the watcher too. */
  const watchFrom = (clock: Clock.Clock, deadline: number): Effect.Effect<unknown> =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (watcher !== undefined && looksAt <= deadline) return Effect.void
        watcher?.interruptUnsafe()
        looksAt = Math.min(looksAt, deadline)
        return Effect.map(Effect.forkIn(watch(clock), scope), (fiber) => {
          watcher = fiber
        })
      })
    )

  const wait = (waiter: Waiter): Effect.Effect<Terminal, JournalError | Timeout> =>
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
      finishAll(closed)
    })
  )
  yield* begin

  return {
    join: (id, path, part) =>
      Effect.suspend((): Effect.Effect<Waiter, JournalError | InvalidArgument> => {
        if (isClosed) return Effect.fail(closed)
        if (waiters.has(id)) return Effect.fail(inUse(path))
        const waiter: Waiter = {
          id,
          path,
          part,
          isHeard: false,
          patience: never,
          deadline: never,
          end: undefined,
          resume: undefined
        }
        waiters.set(id, waiter)
        return isTailing ? Effect.succeed(waiter) : Effect.as(begin, waiter)
      }),
    ended: (waiter, patience) =>
      Effect.withFiber((fiber) => {
        if (waiter.end !== undefined) return waiter.end
        const clock = fiber.getRef(Clock.Clock)
        waiter.isHeard = false
        waiter.patience = Duration.toMillis(patience)
        waiter.deadline = clock.currentTimeMillisUnsafe() + waiter.patience
        return waiter.deadline < looksAt || watcher === undefined
          ? Effect.andThen(watchFrom(clock, waiter.deadline), wait(waiter))
          : wait(waiter)
      }),
    leave: (waiter) => {
      if (waiters.get(waiter.id) === waiter) waiters.delete(waiter.id)
    },
    size: () => waiters.size
  }
})
