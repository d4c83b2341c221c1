/**
 * Tracks the open and the answered invocations of a journal of spells while the journal grows. Each id is used once: only its
 * first invocation and its first answer count.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { DaemonError } from "../lifecycle.ts"
import { JournalError } from "../errors.ts"
import type { Recorded, Scrivener } from "../model.ts"
import type { SpellEntry, SpellFault, SpellInvocation, SpellResult } from "./definitions.ts"

export type SpellAnswer = SpellResult | SpellFault

export type NoAnswerError = JournalError | DaemonError

/**
 * The state of an invocation. For an answered invocation, `position` is the position of the answer. The answer itself
 * is not kept in memory.
 */
type InvocationState =
  | { readonly _tag: "Open"; readonly position: number; readonly invocation: SpellInvocation }
  | { readonly _tag: "Answered"; readonly position: number }

interface AnswerWaiters {
  readonly answer: Deferred.Deferred<SpellAnswer, NoAnswerError>
  count: number
}

export interface InvocationLog {
  readonly waitUntilRead: (position: number) => Effect.Effect<void, NoAnswerError>
  /** Returns the state of an invocation. Returns `undefined` if no invocation with this id was read yet. */
  readonly state: (correlationId: string) => InvocationState | undefined
  readonly answer: (correlationId: string) => Effect.Effect<SpellAnswer, NoAnswerError>
  readonly firstOpen: () => number | undefined
  readonly failAll: (why: NoAnswerError) => Effect.Effect<void>
}

const isAnswer = (entry: SpellEntry): entry is SpellAnswer => entry._tag !== "SpellInvocation"

export const make = Effect.fnUntraced(function* (
  journal: Scrivener<SpellEntry>
): Effect.fn.Return<InvocationLog, never, Scope.Scope> {
  const states = new Map<string, InvocationState>()
  const answers = new Map<string, AnswerWaiters>()
  let readPosition = 0
  let readers: Array<{ readonly position: number; readonly done: Deferred.Deferred<void, NoAnswerError> }> = []
  let endExit: Exit.Exit<never, NoAnswerError> | undefined

  const recordEntry = ({ entry, position }: Recorded<SpellEntry>): void => {
    const state = states.get(entry.correlationId)
    if (!isAnswer(entry)) {
      if (state === undefined) states.set(entry.correlationId, { _tag: "Open", position, invocation: entry })
      return
    }
    if (state?._tag === "Answered") return
    states.set(entry.correlationId, { _tag: "Answered", position })
    const waiting = answers.get(entry.correlationId)
    if (waiting === undefined) return
    answers.delete(entry.correlationId)
    Deferred.doneUnsafe(waiting.answer, Exit.succeed(entry))
  }

  const leave = (correlationId: string, waiting: AnswerWaiters): void => {
    waiting.count--
    if (waiting.count === 0 && answers.get(correlationId) === waiting) answers.delete(correlationId)
  }

  const wake = (): void => {
    const waiting = readers
    readers = waiting.filter(({ position }) => position > readPosition)
    for (const { done, position } of waiting) if (position <= readPosition) Deferred.doneUnsafe(done, Exit.void)
  }

  const end = (exit: Exit.Exit<never, NoAnswerError>): void => {
    endExit ??= exit
    for (const { done } of readers) Deferred.doneUnsafe(done, exit)
    for (const { answer } of answers.values()) Deferred.doneUnsafe(answer, exit)
    readers = []
    answers.clear()
  }

  const reading = Stream.runForEachArray(journal.tail(), (entries) =>
    Effect.sync(() => {
      for (const recorded of entries) recordEntry(recorded)
      readPosition = entries.at(-1)!.position
      wake()
    })
  )
  const closed = new JournalError({
    operation: "Spells",
    reason: "closed",
    detail: "the reader of the spell journal has ended"
  })
  yield* Effect.forkScoped(
    Effect.onExit(reading, (exit) =>
      Effect.sync(() => end(Exit.isFailure(exit) && !Exit.hasInterrupts(exit) ? Exit.failCause(exit.cause) : Exit.fail(closed)))
    )
  )

  const readAnswer = (position: number) =>
    Effect.map(Stream.runHead(journal.stored(position - 1)), (found) => Option.getOrThrow(found).entry as SpellAnswer)

  return {
    waitUntilRead: (position) =>
      Effect.suspend(() => {
        if (position <= readPosition) return Effect.void
        if (endExit !== undefined) return endExit
        const done = Deferred.makeUnsafe<void, NoAnswerError>()
        readers.push({ position, done })
        return Deferred.await(done)
      }),
    state: (correlationId) => states.get(correlationId),
    firstOpen: () => {
      // The map is in the order of the invocations.
      for (const state of states.values()) if (state._tag === "Open") return state.position
      return undefined
    },
    failAll: (why) => Effect.sync(() => end(Exit.fail(why))),
    answer: (correlationId) =>
      Effect.suspend(() => {
        const state = states.get(correlationId)
        if (state?._tag === "Answered") return readAnswer(state.position)
        if (endExit !== undefined) return endExit
        const waiting = answers.get(correlationId) ?? { answer: Deferred.makeUnsafe(), count: 0 }
        answers.set(correlationId, waiting)
        waiting.count++
        return Effect.ensuring(
          Deferred.await(waiting.answer),
          Effect.sync(() => leave(correlationId, waiting))
        )
      })
  }
})
