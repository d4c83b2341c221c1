/**
 * Records each step: the request before the step, and the result after it. If a step is interrupted or fails with an unclear
 * fault, the recorder examines the affected entry. If the state after an interruption is unclear, the request stays unanswered.
 */
import { is as isFault } from "../../model/Fault.ts"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Eager from "../../engine/eager.ts"
import { type Fault, type FsError, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import { type Efferent, FileFault, type FileWriteChunk } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { kinds, make } from "../entries/kinds.ts"
import { faultKindOf } from "../entries/values.ts"
import type { JournalError } from "../errors.ts"
import { maxInlineBytes } from "../store/entryCopies.ts"

/** Returns the fault of a cause. Returns `undefined` if the cause has no fault, but an interruption or a defect. */
export const faultOf = (cause: Cause.Cause<unknown>): Fault | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return isFault(error) ? error : undefined
}

/** Returns the error of a fault. Returns `undefined` for an invalid fault of a backend that breaks its contract. */
const errorOf = (fault: Fault, operation: string, path: FsPath): FsError | undefined => {
  try {
    return promote(fault, operation, path)
  } catch {
    return undefined
  }
}

export const faultAnswer = (correlationId: string, operation: string, path: FsPath, fault: Fault): FileFault => {
  const error = errorOf(fault, operation, path)
  const message = error?.message ?? fault._tag
  return make(FileFault, { correlationId, faultKind: faultKindOf(fault._tag), path, message, error })
}

/** Returns the answer to a request that an interruption or a defect ended before the change. */
export const interruptedAnswer = (correlationId: string, path: FsPath, cause: Cause.Cause<unknown>): FileFault =>
  make(FileFault, {
    correlationId,
    faultKind: "IoError",
    path,
    message: Cause.hasInterrupts(cause)
      ? "the call was interrupted before the change"
      : "the call failed unexpectedly before the change"
  })

export interface StepRecorder {
  readonly journal: Scrivener<Entry>
  /** Appends an entry without a copy. The caller must not change or share the entry. */
  readonly appendOwn: Scrivener<Entry>["append"]
  readonly nextId: () => string
}

const failAsNotMade = (error: JournalError): Effect.Effect<never, Fault> =>
  Effect.fail({ _tag: "Unavailable", detail: `nothing was done, because the journal cannot be written: ${error.message}` })

const failAsUnrecorded = (error: JournalError): Effect.Effect<never, Fault> =>
  Effect.fail({ _tag: "Unavailable", detail: `the change was made, but the journal cannot be written: ${error.message}` })

export const orNothingDone = <A>(effect: Effect.Effect<A, JournalError>): Effect.Effect<A, Fault> =>
  Eager.catch(effect, failAsNotMade)

const isSmall = (content: unknown): boolean => isBytes(content) && content.length <= maxInlineBytes

/** Tests whether the recorder has copied all bytes of the entry and no other code can change them. */
const isOwn = (entry: Entry): boolean =>
  entry._tag === "FileWrite"
    ? isSmall(entry.content)
    : entry._tag === "FileWritten" && (isSmall(entry.previous) || !entry.previous) && entry.stat === undefined

/** Appends an entry. Some journals append in this call, so call this function only in a running effect. */
const append = ({ appendOwn, journal }: StepRecorder, entry: Entry): Effect.Effect<number, JournalError> =>
  isOwn(entry) ? appendOwn(entry) : journal.append(entry)

export const recordRequest = (recorder: StepRecorder, entry: Entry): Effect.Effect<unknown, Fault> =>
  orNothingDone(append(recorder, entry))

export const recordAnswer = <A>(recorder: StepRecorder, entry: Entry, value: A): Effect.Effect<A, Fault> =>
  Eager.map(Eager.catch(append(recorder, entry), failAsUnrecorded), () => value)

/** The effect that checks whether a change was made. The result is `undefined` if this is unknown. */
export type DoneCheck = Effect.Effect<boolean | undefined, Fault>

/** The faults after which it is unknown whether the change was made. */
const uncertainTags: ReadonlySet<Fault["_tag"]> = new Set<Fault["_tag"]>(["IoError", "Timeout", "Unavailable"])

interface Step<A, E, R> {
  readonly request: Exclude<Efferent, FileWriteChunk>
  readonly run: Effect.Effect<A, E, R>
  /**
   * Returns the entry for a completed step. `value` is absent if the step failed, but a check has shown that the change was
   * made.
   */
  readonly answer: (value?: A) => Entry
  /** Returns the check whether the change was made. `step` calls this function only after a failure. */
  readonly checkDone: () => DoneCheck
}

const recordFailure = <A, E, R>(
  recorder: StepRecorder,
  { answer, request, checkDone }: Step<A, E, R>,
  cause: Cause.Cause<E>
): Effect.Effect<void> => {
  const fault = faultOf(cause)
  const { _tag, correlationId } = request
  const path = request.path as FsPath
  const answerFor = (isDone: boolean | undefined): Entry | undefined =>
    isDone === true
      ? answer()
      : fault !== undefined
        ? faultAnswer(correlationId, kinds[_tag].operation, path, fault)
        : isDone === false
          ? interruptedAnswer(correlationId, path, cause)
          : undefined
  const examined =
    fault !== undefined && !uncertainTags.has(fault._tag)
      ? Effect.succeed(false)
      : Effect.catchCause(checkDone(), () => Effect.undefined)
  return Effect.flatMap(examined, (isDone) => {
    const entry = answerFor(isDone)
    return entry === undefined ? Effect.void : Effect.ignore(append(recorder, entry))
  })
}

/** Runs and records one step. The step can be interrupted, but the recording cannot. */
export const step = <A, E, R>(recorder: StepRecorder, step: Step<A, E, R>): Effect.Effect<A, E | Fault, R> =>
  Effect.uninterruptibleMask((restore) =>
    Eager.flatMap(recordRequest(recorder, step.request), () =>
      Effect.matchCauseEffect(restore(step.run), {
        onFailure: (cause): Effect.Effect<A, E | Fault> =>
          Effect.andThen(recordFailure(recorder, step, cause), Effect.failCause(cause)),
        onSuccess: (value) => recordAnswer(recorder, step.answer(value), value)
      })
    )
  )

/**
 * The prefix of the correlation ids of recorded steps. The prefix marks a request as a step at the port, which follows no
 * link.
 */
const stepPrefix = "step:"

/**
 * Returns a generator of correlation ids, each with a random prefix and a counter. Such ids are as unique as random ids, but
 * faster to make.
 */
export const makeIds = (randomPart: string): (() => string) => {
  const idPrefix = `${stepPrefix}${randomPart}-`
  let count = 0
  return () => `${idPrefix}${count++}`
}

export const isStep = (correlationId: string): boolean => correlationId.startsWith(stepPrefix)
