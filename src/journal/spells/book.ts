/**
 * Tracks a journal of spells as it grows: the open and the answered invocations. Each id is used once: only its first invocation and its
 * first answer count.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { DaemonError } from "../daemon/errors.ts"
import { JournalError } from "../errors.ts"
import type { Recorded, Scrivener } from "../Journal.ts"
import type { SpellEntry, SpellFault, SpellInvocation, SpellResult } from "./entries.ts"

export type SpellAnswer = SpellResult | SpellFault

export type Unanswered = JournalError | DaemonError

/** The state of an invocation. An answered one keeps only the position of its answer, to save memory. */
type Page =
  | { readonly _tag: "Open"; readonly position: number; readonly invocation: SpellInvocation }
  | { readonly _tag: "Answered"; readonly position: number }

interface Waiting {
  readonly answer: Deferred.Deferred<SpellAnswer, Unanswered>
  count: number
}

export interface Book {
  readonly reached: (position: number) => Effect.Effect<void, Unanswered>
  /** Returns the state of an invocation, as far as the book has read. */
  readonly page: (correlationId: string) => Page | undefined
  readonly answer: (correlationId: string) => Effect.Effect<SpellAnswer, Unanswered>
  readonly firstOpen: () => number | undefined
  /** Fails all waiters, because no answer will come. */
  readonly close: (why: Unanswered) => Effect.Effect<void>
}

const isAnswer = (entry: SpellEntry): entry is SpellAnswer => entry._tag !== "SpellInvocation"

export const make = Effect.fnUntraced(function* (journal: Scrivener<SpellEntry>): Effect.fn.Return<Book, never, Scope.Scope> {
  const pages = new Map<string, Page>()
  const answers = new Map<string, Waiting>()
  let read = 0
  let readers: Array<{ readonly position: number; readonly done: Deferred.Deferred<void, Unanswered> }> = []
  let ended: Exit.Exit<never, Unanswered> | undefined

  const turn = ({ entry, position }: Recorded<SpellEntry>): void => {
    const page = pages.get(entry.correlationId)
    if (!isAnswer(entry)) {
      if (page === undefined) pages.set(entry.correlationId, { _tag: "Open", position, invocation: entry })
      return
    }
    if (page?._tag === "Answered") return
    pages.set(entry.correlationId, { _tag: "Answered", position })
    const waiting = answers.get(entry.correlationId)
    if (waiting === undefined) return
    answers.delete(entry.correlationId)
    Deferred.doneUnsafe(waiting.answer, Exit.succeed(entry))
  }

  const leave = (correlationId: string, waiting: Waiting): void => {
    waiting.count--
    if (waiting.count === 0 && answers.get(correlationId) === waiting) answers.delete(correlationId)
  }

  const wake = (): void => {
    const waiting = readers
    readers = waiting.filter(({ position }) => position > read)
    for (const { done, position } of waiting) if (position <= read) Deferred.doneUnsafe(done, Exit.void)
  }

  const end = (exit: Exit.Exit<never, Unanswered>): void => {
    ended ??= exit
    for (const { done } of readers) Deferred.doneUnsafe(done, exit)
    for (const { answer } of answers.values()) Deferred.doneUnsafe(answer, exit)
    readers = []
    answers.clear()
  }

  const reading = Stream.runForEachArray(journal.tail(), (entries) =>
    Effect.sync(() => {
      for (const recorded of entries) turn(recorded)
      read = entries.at(-1)!.position
      wake()
    })
  )
  const closed = new JournalError({
    operation: "Spells",
    reason: "closed",
    detail: "the journal of spells is not read any more"
  })
  yield* Effect.forkScoped(
    Effect.onExit(reading, (exit) =>
      Effect.sync(() => end(Exit.isFailure(exit) && !Exit.hasInterrupts(exit) ? Exit.failCause(exit.cause) : Exit.fail(closed)))
    )
  )

  const stored = (position: number) =>
    Effect.map(Stream.runHead(journal.stored(position - 1)), (found) => Option.getOrThrow(found).entry as SpellAnswer)

  return {
    reached: (position) =>
      Effect.suspend(() => {
        if (position <= read) return Effect.void
        if (ended !== undefined) return ended
        const done = Deferred.makeUnsafe<void, Unanswered>()
        readers.push({ position, done })
        return Deferred.await(done)
      }),
    page: (correlationId) => pages.get(correlationId),
    firstOpen: () => {
      // The map has the order of the invocations.
      for (const page of pages.values()) if (page._tag === "Open") return page.position
      return undefined
    },
    close: (why) => Effect.sync(() => end(Exit.fail(why))),
    answer: (correlationId) =>
      Effect.suspend(() => {
        const page = pages.get(correlationId)
        if (page?._tag === "Answered") return stored(page.position)
        if (ended !== undefined) return ended
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
