/**
 * Spells: what somebody who thinks in texts asks for, an agent above all, one hop above the branch of files. An invocation is an entry of a
 * journal of its own; a covenant makes file entries of it, a leaf answers those, and what it answers becomes the result or the fault of the
 * spell. Text goes in and comes out here; below there are bytes.
 *
 * An id is used once: an invocation that comes again waits for, or gets, the answer of the first. Whoever is interrupted while waiting
 * leaves an invocation that is carried out all the same, and a covenant that is started again goes on with what was open.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Timeout } from "../model/FsError.ts"
import * as Correlation from "./Correlation.ts"
import type { CovenantError } from "./Covenant.ts"
import type { DaemonError } from "./Daemon.ts"
import type { JournalError } from "./errors.ts"
import { Journal, makeMemory, type Scrivener } from "./Journal.ts"
import * as Book from "./spells/book.ts"
import { definitions, type Parameters, type Result } from "./spells/definitions.ts"
import { type SpellEntry, SpellFault, SpellInvocation, type SpellName, type SpellResult } from "./spells/entries.ts"
import * as SpellCovenant from "./spells/covenant.ts"

export {
  /** @since 0.1.0 */
  SpellEntry,
  /** @since 0.1.0 */
  SpellFault,
  /** @since 0.1.0 */
  SpellFaultKind,
  /** @since 0.1.0 */
  SpellInvocation,
  /** @since 0.1.0 */
  SpellName,
  /** @since 0.1.0 */
  SpellResult
} from "./spells/entries.ts"
export {
  /** @since 0.1.0 */
  definitions,
  type Parameters,
  type Result
} from "./spells/definitions.ts"

/**
 * The journal of spells.
 *
 * @since 0.1.0
 */
export class SpellJournal extends Context.Service<SpellJournal, Scrivener<SpellEntry>>()("fs-algebra/SpellJournal") {}

/**
 * One in memory.
 *
 * @since 0.1.0
 */
export const layerJournalMemory: Layer.Layer<SpellJournal> = Layer.effect(SpellJournal, makeMemory<SpellEntry>())

/**
 * Why a spell has no answer: the journals cannot be read or written, the covenant has failed, or nobody has answered in time, and the answer
 * may still come.
 *
 * @since 0.1.0
 */
export type CastError = JournalError | DaemonError | Timeout

/**
 * Casting a spell, and waiting for what it came to.
 *
 * @since 0.1.0
 */
export interface Operations {
  /** Appends it, and answers what it came to. Of an id that is in the journal already nothing is appended. */
  readonly cast: (invocation: SpellInvocation) => Effect.Effect<SpellResult | SpellFault, CastError>
}

/**
 * Casts spells.
 *
 * @since 0.1.0
 */
export class Spells extends Context.Service<Spells, Operations>()("fs-algebra/Spells") {}

/**
 * How long a caller waits.
 *
 * @since 0.1.0
 */
export interface CallerOptions {
  /** How long to wait for an answer. @default 2 minutes */
  readonly timeout?: Duration.Input | undefined
}

/**
 * How spells become entries of files.
 *
 * @since 0.1.0
 */
export interface Options extends CallerOptions {
  /** The leaf takes FileEdit, so that an edit is one step; otherwise it is a read and a write. @default false */
  readonly extended?: boolean | undefined
  /** What the daemons are called, and what the ids of file entries begin with. @default "spells" */
  readonly name?: string | undefined
  /** Bytes of a file that a spell reads or edits; of a larger one the answer is LimitExceeded. @default 8 MiB */
  readonly maxBytes?: number | undefined
}

const twoMinutes = "2 minutes"
const eightMiB = 8 * 1024 * 1024

const pathOf = ({ parameters }: SpellInvocation): string =>
  Predicate.hasProperty(parameters, "path") && typeof parameters.path === "string" ? parameters.path : "."

const operations = (journal: Scrivener<SpellEntry>, book: Book.Book, { timeout = twoMinutes }: CallerOptions): Operations => ({
  cast: Effect.fnUntraced(function* (invocation) {
    const { correlationId, spell } = invocation
    yield* book.reached(yield* journal.last)
    if (book.page(correlationId) === undefined) yield* journal.append(invocation)
    return yield* Effect.timeoutOrElse(book.answer(correlationId), {
      duration: timeout,
      orElse: () =>
        Effect.fail(new Timeout({ operation: spell, path: pathOf(invocation), detail: "nobody has answered the spell" }))
    })
  })
})

/**
 * Casts only: the covenant is kept elsewhere, as in another process on the same journals.
 *
 * @since 0.1.0
 */
export const makeCaller = (options: CallerOptions = {}): Effect.Effect<Operations, never, SpellJournal | Scope.Scope> =>
  Effect.flatMap(SpellJournal, (journal) => Effect.map(Book.make(journal), (book) => operations(journal, book, options)))

/**
 * Casts, and keeps the covenant between the two journals, of which there is to be only one at a time.
 *
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<Operations, CovenantError | JournalError | DaemonError, SpellJournal | Journal | Scope.Scope> {
  const { extended = false, maxBytes = eightMiB, name = "spells" } = options
  const spells = yield* SpellJournal
  const book = yield* Book.make(spells)
  const group = yield* SpellCovenant.make({ spells, files: yield* Journal, book, name, extended, maxBytes })
  yield* group.start
  return operations(spells, book, options)
})

/**
 * Spells from their own journal to that of the files, and the caller. Ends with the scope.
 *
 * @since 0.1.0
 */
export const layer = (
  options?: Options
): Layer.Layer<Spells, CovenantError | JournalError | DaemonError, SpellJournal | Journal> =>
  Layer.effect(Spells, make(options))

/**
 * The caller alone, where somebody else runs the spells.
 *
 * @since 0.1.0
 */
export const layerCaller = (options?: CallerOptions): Layer.Layer<Spells, never, SpellJournal> =>
  Layer.effect(Spells, makeCaller(options))

/**
 * An invocation with an id of its own.
 *
 * @since 0.1.0
 */
export const invocation = <Name extends SpellName>(spell: Name, parameters: Parameters<Name>): Effect.Effect<SpellInvocation> =>
  Effect.map(
    Correlation.generate,
    (correlationId) => new SpellInvocation({ correlationId, spell, parameters: parameters as Schema.Json })
  )

/**
 * Casts it, and answers its result or its fault.
 *
 * @since 0.1.0
 */
export const cast = (invocation: SpellInvocation): Effect.Effect<SpellResult | SpellFault, CastError, Spells> =>
  Spells.use(({ cast }) => cast(invocation))

const stray = ({ correlationId, spell }: SpellResult): SpellFault =>
  new SpellFault({ correlationId, spell, faultKind: "IoError", message: `${spell}: the result is not one of this spell` })

/**
 * The same for who knows which spell it is: its result, or it fails with its fault.
 *
 * @since 0.1.0
 */
export const call = Effect.fnUntraced(function* <Name extends SpellName>(
  spell: Name,
  parameters: Parameters<Name>
): Effect.fn.Return<Result<Name>, SpellFault | CastError, Spells> {
  const answer = yield* cast(yield* invocation(spell, parameters))
  if (answer._tag === "SpellFault") return yield* Effect.fail(answer)
  const decode = Schema.decodeUnknownEffect<Schema.Codec<Result<Name>>>(
    definitions[spell].result as unknown as Schema.Codec<Result<Name>>
  )
  return yield* Effect.mapError(decode(answer.result), () => stray(answer))
})
