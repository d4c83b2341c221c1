/**
 * Each step is told in the order in which it can be believed: what is asked before anything is done, what came of it after. What breaks
 * off is looked at; where looking does not tell either, it stays unanswered, which says just that.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Eager from "../../engine/eager.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { JournalError } from "../errors.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import * as Faults from "./faults.ts"

export interface Story {
  readonly journal: Scrivener<Entry>
  readonly nextId: () => string
}

const notMade = (error: JournalError): Effect.Effect<never, Fault> =>
  Effect.fail({ _tag: "Unavailable", detail: `the journal cannot be written, so nothing was done; ${error.message}` })

const made = (error: JournalError): Effect.Effect<never, Fault> =>
  Effect.fail({ _tag: "Unavailable", detail: `the change was made, but the journal does not say so; ${error.message}` })

/** Of what is put into the journal before anything is done. */
export const orNotMade = <A>(effect: Effect.Effect<A, JournalError>): Effect.Effect<A, Fault> => Eager.catch(effect, notMade)

export const ask = ({ journal }: Story, entry: Entry): Effect.Effect<unknown, Fault> => orNotMade(journal.append(entry))

/** Answers what was asked, and goes on with the value. */
export const tell = <A>({ journal }: Story, entry: Entry, value: A): Effect.Effect<A, Fault> =>
  Effect.matchEffect(journal.append(entry), { onFailure: made, onSuccess: () => Effect.succeed(value) })

/** Whether it has been done after all; `undefined` where that cannot be told. */
export type Look = Effect.Effect<boolean | undefined, Fault>

/** The system may have done it, and only not have said so. */
const doubtful: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>(["IoError", "Timeout", "Unavailable"])

export interface Step<A, E, R> {
  readonly id: string
  /** As errors call it. */
  readonly operation: string
  readonly path: FsPath
  readonly asked: Entry
  readonly run: Effect.Effect<A, E, R>
  /** Where it is done. What it was done with is left out where only looking says so. */
  readonly answer: (value?: A) => Entry
  /** Made only where it is needed. */
  readonly look: () => Look
}

/** What has not succeeded, told as what it is. */
const tellFailure = <A, E, R>(
  story: Story,
  { answer, id, look, operation, path }: Step<A, E, R>,
  cause: Cause.Cause<E>
): Effect.Effect<void> => {
  const fault = Faults.faultOf(cause)
  const told = (isDone: boolean | undefined): Entry | undefined =>
    isDone === true
      ? answer()
      : fault !== undefined
        ? Faults.answer(id, operation, path, fault)
        : isDone === false
          ? Faults.brokenOff(id, path, cause)
          : undefined
  const seen =
    fault !== undefined && !doubtful.has(fault._tag) ? Effect.succeed(false) : Effect.catchCause(look(), () => Effect.undefined)
  return Effect.flatMap(seen, (isDone) => {
    const entry = told(isDone)
    return entry === undefined ? Effect.void : Effect.ignore(story.journal.append(entry))
  })
}

/** One step, whole: only while it is done it can be interrupted. */
export const step = <A, E, R>(story: Story, step: Step<A, E, R>): Effect.Effect<A, E | Fault, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.matchEffect(story.journal.append(step.asked), {
      onFailure: notMade,
      onSuccess: () =>
        Effect.matchCauseEffect(restore(step.run), {
          onFailure: (cause): Effect.Effect<A, E | Fault> =>
            Effect.andThen(tellFailure(story, step, cause), Effect.failCause(cause)),
          onSuccess: (value) => tell(story, step.answer(value), value)
        })
    })
  )
