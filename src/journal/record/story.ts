/**
 * Records each step: the request before it, and the result after it. If a step is interrupted, the file is examined. If its state is
 * unclear, the request stays without an answer.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Eager from "../../engine/eager.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { kinds } from "../entries/kinds.ts"
import type { JournalError } from "../errors.ts"
import type { Efferent, FileWriteChunk } from "../FileSystemEntry.ts"
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

export const orNotMade = <A>(effect: Effect.Effect<A, JournalError>): Effect.Effect<A, Fault> => Eager.catch(effect, notMade)

export const ask = ({ journal }: Story, entry: Entry): Effect.Effect<unknown, Fault> => orNotMade(journal.append(entry))

export const tell = <A>({ journal }: Story, entry: Entry, value: A): Effect.Effect<A, Fault> =>
  Effect.matchEffect(journal.append(entry), { onFailure: made, onSuccess: () => Effect.succeed(value) })

/** An effect that examines whether a step was done; `undefined` if this cannot be determined. */
export type Look = Effect.Effect<boolean | undefined, Fault>

/** The faults after which the change may have been made all the same. */
const doubtful: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>(["IoError", "Timeout", "Unavailable"])

export interface Step<A, E, R> {
  readonly asked: Exclude<Efferent, FileWriteChunk>
  readonly run: Effect.Effect<A, E, R>
  /** Returns the entry for a completed step. The value is missing if only the later check has shown that the step is done. */
  readonly answer: (value?: A) => Entry
  /** Creates the effect that examines whether the step was done. Called only after a failure. */
  readonly look: () => Look
}

const tellFailure = <A, E, R>(
  story: Story,
  { answer, asked, look }: Step<A, E, R>,
  cause: Cause.Cause<E>
): Effect.Effect<void> => {
  const fault = Faults.faultOf(cause)
  const { _tag, correlationId } = asked
  const path = asked.path as FsPath
  const told = (isDone: boolean | undefined): Entry | undefined =>
    isDone === true
      ? answer()
      : fault !== undefined
        ? Faults.answer(correlationId, kinds[_tag].operation, path, fault)
        : isDone === false
          ? Faults.brokenOff(correlationId, path, cause)
          : undefined
  const seen =
    fault !== undefined && !doubtful.has(fault._tag) ? Effect.succeed(false) : Effect.catchCause(look(), () => Effect.undefined)
  return Effect.flatMap(seen, (isDone) => {
    const entry = told(isDone)
    return entry === undefined ? Effect.void : Effect.ignore(story.journal.append(entry))
  })
}

/** Runs and records one step. Only the step itself can be interrupted, not its recording. */
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
