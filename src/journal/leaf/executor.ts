/**
 * Carries out the requests of a leaf. Each request is a fiber, which locks its paths in the order of the journal. The numbers
 * of running and of waiting requests are limited, so that a long journal does not fill the memory. Each request is answered
 * once, even if it fails or hangs. Only a request that a shutdown drops stays unanswered.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import { type FsError, IoError } from "../../model/FsError.ts"
import { fold, type FsPath, isWithin } from "../../model/FsPath.ts"
import * as Locks from "../../runtime/locks.ts"
import { type Afferent, isMutation, type Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { JournalError } from "../errors.ts"
import type { Answered } from "./answered.ts"
import { faultAnswer } from "../entries/values.ts"
import * as Faults from "./model.ts"
import type { AnswerEffect, Work } from "./model.ts"
import type { Settings } from "./settings.ts"

// Deadlines of equal duration. Deadlines expire in the order in which they were set, so one sleeping fiber serves all
// deadlines.

const nanosPerMilli = 1_000_000

export interface Deadlines<Key> {
  readonly renew: (key: Key) => void
  readonly drop: (key: Key) => void
  readonly has: (key: Key) => boolean
  readonly run: Effect.Effect<never>
}

export const makeDeadlines = <Key>(
  clock: Clock.Clock,
  durationMillis: number,
  onExpired: (key: Key) => Effect.Effect<void>
): Deadlines<Key> => {
  const dueTimes = new Map<Key, number>()
  const nonEmptyLatch = Latch.makeUnsafe(false)
  // Use the monotonic clock, because all deadlines would be late if the wall clock were set back.
  const now = (): number => Number(clock.monotonicTimeNanosUnsafe())

  const waitForNext: Effect.Effect<void> = Effect.suspend(() => {
    const next = dueTimes.entries().next().value
    if (next === undefined) {
      nonEmptyLatch.closeUnsafe()
      return nonEmptyLatch.await
    }
    const [key, at] = next
    const remainingNanos = at - now()
    if (remainingNanos > 0) return Effect.sleep(Math.ceil(remainingNanos / nanosPerMilli))
    dueTimes.delete(key)
    return onExpired(key)
  })

  return {
    renew: (key) => {
      dueTimes.delete(key)
      dueTimes.set(key, now() + durationMillis * nanosPerMilli)
      if (dueTimes.size === 1) nonEmptyLatch.openUnsafe()
    },
    drop: (key) => void dueTimes.delete(key),
    has: (key) => dueTimes.has(key),
    run: Effect.forever(waitForNext)
  }
}

const maxAcceptedRequests = 256

export interface Executor {
  readonly holds: (correlationId: string) => boolean
  readonly take: (work: Work, perform: Effect.Effect<Terminal, FsError | JournalError>) => void
  /** Waits until another request can be accepted. Returns `undefined` if a request can be accepted now. */
  readonly waitForRoom: () => Effect.Effect<void> | undefined
  readonly answerUnstarted: (answer: Terminal) => Effect.Effect<void>
  readonly tell: (work: Work, entries: ReadonlyArray<Afferent>) => Effect.Effect<void>
  readonly watch: Effect.Effect<never>
  /** Waits until all accepted requests are answered. After `timeoutMillis`, drops the requests that have not begun. */
  readonly waitUntilIdle: Effect.Effect<void>
  readonly journalFailure: Effect.Effect<never, JournalError>
}

interface Options {
  readonly journal: Scrivener<Entry>
  readonly settings: Settings
  readonly caseSensitive: boolean
  readonly clock: Clock.Clock
  readonly context: Context.Context<never>
  readonly answered: Pick<Answered, "add">
}

const unreadableError = (error: JournalError, work: Work): FsError =>
  Faults.ioError(`the entries of the request cannot be read from the journal: ${error.message}`, work.intent, work.givenPath)

const defectMessage = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

const errorOf = (cause: Cause.Cause<FsError | JournalError>, work: Work): FsError => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (failure !== undefined) return failure instanceof JournalError ? unreadableError(failure, work) : failure
  const why = Cause.hasInterruptsOnly(cause) ? "the operation was interrupted" : `unexpected error: ${defectMessage(cause)}`
  return Faults.ioError(why, work.intent, work.givenPath)
}

const timeoutAnswer = (work: Work, { extended, timeoutMillis: timeout }: Settings): Terminal => {
  const doubt = isMutation(work.intent) ? "; the leaf interrupted the operation, but the change may have been completed" : ""
  const detail = work.hasBegun
    ? `the operation did not end within ${timeout} ms${doubt}`
    : `the operation did not start within ${timeout} ms, because other operations hang`
  const error = Faults.errorOf({ _tag: "Timeout", detail }, work.intent, work.givenPath)
  return faultAnswer(error, work.intent.correlationId, work.givenPath, extended)
}

export const make = (options: Options): Executor => {
  const { answered, journal, settings } = options
  const locks = Locks.make({ caseSensitive: options.caseSensitive })
  const permits = Semaphore.makeUnsafe(settings.concurrency)
  const acceptedWork = new Map<string, Work>()
  const fibers = new Map<Work, Fiber.Fiber<void>>()
  /** The requests whose operation is still running although a Timeout was answered. */
  const stuck = new Set<Work>()
  const roomLatch = Latch.makeUnsafe(true)
  const journalFailure = Deferred.makeUnsafe<never, JournalError>()
  const fork = Effect.runForkWith(options.context)
  let acceptedCount = 0

  const waitUntil = (holds: () => boolean): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (holds()) return Effect.void
      roomLatch.closeUnsafe()
      return Effect.andThen(roomLatch.await, waitUntil(holds))
    })

  const append = (entry: Entry): Effect.Effect<void> =>
    Effect.catchCause(Effect.asVoid(journal.append(entry)), (cause) => reportBroken(cause))
  const reportBroken = (cause: Cause.Cause<JournalError>): Effect.Effect<void> =>
    Effect.andThen(Cause.hasInterruptsOnly(cause) ? Effect.void : Deferred.failCause(journalFailure, cause), Effect.interrupt)

  /** Appends an answer. If the answer is too large for the journal, appends a fault instead. */
  const appendAnswer = (answer: Terminal): Effect.Effect<void> =>
    Effect.catchCause(Effect.asVoid(journal.append(answer)), (cause) => {
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error?.reason !== "tooLarge" || answer._tag === "FileFault") return reportBroken(cause)
      const path = "path" in answer ? answer.path : "."
      const why = new IoError({
        operation: "answer",
        path,
        detail: `the answer is too large for the journal: ${error.detail}`
      })
      return append(faultAnswer(why, answer.correlationId, path, settings.extended))
    })

  const markAnswered = (work: Work): boolean => {
    if (work.isAnswered) return false
    work.isAnswered = true
    const { correlationId } = work.intent
    acceptedWork.delete(correlationId)
    answered.add(correlationId)
    deadlines.drop(work)
    return true
  }
  const wakeWaiters = (): void => void roomLatch.openUnsafe()
  const answerOnce = (work: Work, answer: Terminal): Effect.Effect<void> =>
    markAnswered(work) ? Effect.ensuring(Effect.uninterruptible(appendAnswer(answer)), Effect.sync(wakeWaiters)) : Effect.void

  const isWithinFolded = (one: FsPath, other: FsPath): boolean =>
    options.caseSensitive ? isWithin(one, other) : isWithin(fold(one), fold(other))
  const pathsOf = ({ path, to }: Work): ReadonlyArray<FsPath> => (to === undefined ? [path] : [path, to])
  const hasOverlap = (self: Work, that: Work): boolean =>
    pathsOf(self).some((path) => pathsOf(that).some((other) => isWithinFolded(path, other) || isWithinFolded(other, path)))
  const isHanging = (work: Work): boolean =>
    work.hasBegun || stuck.size >= settings.concurrency || [...stuck].some((other) => hasOverlap(work, other))

  const deadlines = makeDeadlines<Work>(options.clock, settings.timeoutMillis, (work) =>
    Effect.suspend(() => {
      if (!isHanging(work)) {
        deadlines.renew(work)
        return Effect.void
      }
      const answer = timeoutAnswer(work, settings)
      if (work.hasBegun) stuck.add(work)
      // Mark the request as answered before interrupting the operation, so that the interruption is not answered instead.
      const settled = answerOnce(work, answer)
      fibers.get(work)?.interruptUnsafe()
      return settled
    })
  )

  const finishWork = (work: Work): void => {
    acceptedCount--
    fibers.delete(work)
    stuck.delete(work)
    if (!work.isAnswered) markAnswered(work)
    roomLatch.openUnsafe()
  }

  const waitUntilEmpty = waitUntil(() => acceptedWork.size === 0)
  /** Drops the requests that have not begun. A dropped request stays unanswered for the next leaf. */
  const dropUnbegun = Effect.sync(() => {
    for (const work of [...acceptedWork.values()].filter(({ hasBegun }) => !hasBegun)) {
      work.isAnswered = true
      acceptedWork.delete(work.intent.correlationId)
      deadlines.drop(work)
      fibers.get(work)?.interruptUnsafe()
    }
    roomLatch.openUnsafe()
  })

  return {
    holds: (correlationId) => acceptedWork.has(correlationId),
    take: (work, perform) => {
      acceptedCount++
      acceptedWork.set(work.intent.correlationId, work)
      deadlines.renew(work)
      const begun: AnswerEffect = Effect.suspend(() => {
        work.hasBegun = true
        deadlines.renew(work)
        return perform
      })
      const answering = Effect.matchCauseEffect(begun, {
        onSuccess: (answer) => answerOnce(work, answer),
        onFailure: (cause) =>
          answerOnce(work, faultAnswer(errorOf(cause, work), work.intent.correlationId, work.givenPath, settings.extended))
      })
      const fiber = fork(
        Effect.onExit(locks.exclusive(pathsOf(work), permits.withPermit(answering)), () => Effect.sync(() => finishWork(work)))
      )
      if (fiber.pollUnsafe() === undefined) fibers.set(work, fiber)
    },
    waitForRoom: () => (acceptedCount < maxAcceptedRequests ? undefined : waitUntil(() => acceptedCount < maxAcceptedRequests)),
    answerUnstarted: (answer) => {
      answered.add(answer.correlationId)
      return appendAnswer(answer)
    },
    tell: (work, entries) =>
      Effect.suspend(() => {
        if (work.isAnswered) return Effect.interrupt
        deadlines.renew(work)
        return entries.length === 0
          ? Effect.void
          : Effect.catchCause(Effect.asVoid(journal.appendAll(entries)), (cause) => reportBroken(cause))
      }),
    watch: deadlines.run,
    waitUntilIdle: Effect.raceFirst(
      waitUntilEmpty,
      Effect.andThen(Effect.delay(dropUnbegun, settings.timeoutMillis), waitUntilEmpty)
    ),
    journalFailure: Deferred.await(journalFailure)
  }
}
