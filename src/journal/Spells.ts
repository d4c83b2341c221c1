/**
 * Spells: file operations on text, mainly for agents. Spells are one level above the file entries of a journal. An invocation
 * is an entry of the spell journal. A covenant turns an invocation into file entries, a leaf answers these, and the answers
 * become the result or the fault of the spell. Spells work with text, and the file entries contain bytes.
 *
 * Each id is used once. A repeated invocation returns the answer to the first invocation. If the caller is interrupted, the
 * invocation is still carried out. A restarted covenant continues with the open invocations.
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
import { makeMemory } from "./Journal.ts"
import { Journal, type Scrivener } from "./model.ts"
import * as InvocationLog from "./spells/invocationLog.ts"
import {
  definitions,
  type DefinitionResult,
  type Parameters,
  type SpellEntry,
  SpellFault,
  SpellInvocation,
  type SpellName,
  type SpellResult
} from "./spells/definitions.ts"
import * as SpellCovenant from "./spells/covenant.ts"

export { SpellEntry, SpellFault, SpellFaultKind, SpellInvocation, SpellName, SpellResult } from "./spells/definitions.ts"
export { definitions, type Parameters, type DefinitionResult as Result } from "./spells/definitions.ts"

/**
 * The service for the journal of spells.
 *
 * @category services
 * @since 0.1.0
 */
export class SpellJournal extends Context.Service<SpellJournal, Scrivener<SpellEntry>>()("fs-algebra/SpellJournal") {}

/**
 * Provides a journal of spells in memory.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerJournalMemory: Layer.Layer<SpellJournal> = Layer.effect(SpellJournal, makeMemory<SpellEntry>())

/**
 * The error of a spell without an answer. A journal cannot be read or written, the covenant has failed, or no answer has
 * arrived before the timeout. The answer may still arrive later.
 *
 * @since 0.1.0
 */
export type CastError = JournalError | DaemonError | Timeout

/**
 * The operations of the spell service.
 *
 * @since 0.1.0
 */
export interface Operations {
  /** Appends the invocation and returns its answer. Appends nothing if the journal already has this id. */
  readonly cast: (invocation: SpellInvocation) => Effect.Effect<SpellResult | SpellFault, CastError>
}

/**
 * The service that casts spells.
 *
 * @category services
 * @since 0.1.0
 */
export class Spells extends Context.Service<Spells, Operations>()("fs-algebra/Spells") {}

/**
 * The options of a caller of spells.
 *
 * @since 0.1.0
 */
export interface CallerOptions {
  /** The longest wait for an answer. @default 2 minutes */
  readonly timeout?: Duration.Input | undefined
}

/**
 * The options of the covenant between spells and files.
 *
 * @since 0.1.0
 */
export interface Options extends CallerOptions {
  /**
   * True if the leaf accepts FileEdit, so that an edit is one step. Otherwise an edit is a read followed by a write.
   * @default false
   */
  readonly extended?: boolean | undefined
  /** The prefix for the names of the daemons and for the ids of file entries. @default "spells" */
  readonly name?: string | undefined
  /**
   * The largest size, in bytes, of a file that a spell reads, or edits without `extended`. A spell on a larger file is answered
   * with LimitExceeded.
   * @default 8 MiB
   */
  readonly maxBytes?: number | undefined
}

const defaultTimeout = "2 minutes"
const defaultMaxBytes = 8 * 1024 * 1024

const pathOf = ({ parameters }: SpellInvocation): string =>
  Predicate.hasProperty(parameters, "path") && typeof parameters.path === "string" ? parameters.path : "."

const operations = (
  journal: Scrivener<SpellEntry>,
  invocations: InvocationLog.InvocationLog,
  { timeout = defaultTimeout }: CallerOptions
): Operations => ({
  cast: Effect.fnUntraced(function* (invocation) {
    const { correlationId, spell } = invocation
    yield* invocations.waitUntilRead(yield* journal.last)
    if (invocations.state(correlationId) === undefined) yield* journal.append(invocation)
    return yield* Effect.timeoutOrElse(invocations.answer(correlationId), {
      duration: timeout,
      orElse: () =>
        Effect.fail(
          new Timeout({
            operation: spell,
            path: pathOf(invocation),
            detail: "no covenant has answered the spell in time; check that a covenant runs on these journals"
          })
        )
    })
  })
})

/**
 * Returns a caller without a covenant. The covenant must run elsewhere, for example in another process on the same journals.
 *
 * @since 0.1.0
 */
export const makeCaller = (options: CallerOptions = {}): Effect.Effect<Operations, never, SpellJournal | Scope.Scope> =>
  Effect.flatMap(SpellJournal, (journal) =>
    Effect.map(InvocationLog.make(journal), (invocations) => operations(journal, invocations, options))
  )

/**
 * Runs the covenant between the spell journal and the journal of files, and returns a caller. Only one covenant may run
 * between the same journals at a time.
 *
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<Operations, CovenantError | JournalError | DaemonError, SpellJournal | Journal | Scope.Scope> {
  const { extended = false, maxBytes = defaultMaxBytes, name = "spells" } = options
  const spells = yield* SpellJournal
  const invocations = yield* InvocationLog.make(spells)
  const group = yield* SpellCovenant.make({ spells, files: yield* Journal, invocations, name, extended, maxBytes })
  yield* group.start
  return operations(spells, invocations, options)
})

/**
 * Provides the caller, and runs the covenant between the spell journal and the journal of files until the scope closes.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options?: Options
): Layer.Layer<Spells, CovenantError | JournalError | DaemonError, SpellJournal | Journal> =>
  Layer.effect(Spells, make(options))

/**
 * Provides the caller that `makeCaller` returns.
 *
 * @since 0.1.0
 */
export const layerCaller = (options?: CallerOptions): Layer.Layer<Spells, never, SpellJournal> =>
  Layer.effect(Spells, makeCaller(options))

/**
 * Returns an invocation with a new id.
 *
 * @since 0.1.0
 */
export const invocation = <Name extends SpellName>(spell: Name, parameters: Parameters<Name>): Effect.Effect<SpellInvocation> =>
  Effect.map(
    Correlation.generate,
    (correlationId) => new SpellInvocation({ correlationId, spell, parameters: parameters as Schema.Json })
  )

/**
 * Appends an invocation to the spell journal, and returns its result or its fault.
 *
 * @category running
 * @since 0.1.0
 */
export const cast = (invocation: SpellInvocation): Effect.Effect<SpellResult | SpellFault, CastError, Spells> =>
  Spells.use(({ cast }) => cast(invocation))

const unexpectedResult = ({ correlationId, spell }: SpellResult): SpellFault =>
  new SpellFault({
    correlationId,
    spell,
    faultKind: "IoError",
    message: `${spell}: the result does not match the schema of this spell`
  })

/**
 * Appends an invocation with a new id, and returns the typed result. Fails with the fault of the spell.
 *
 * @example
 * ```ts
 * const spelled = Spells.call("read_file", { path: "src/main.ts" }).pipe(
 *   Effect.provide(Spells.layer({ extended: true })),
 *   Effect.provide(Spells.layerJournalMemory),
 *   Effect.provide(Leaf.layer({ extended: true })),
 *   Effect.provide(Journal.layerMemory)
 * )
 * yield* Effect.map(spelled, ({ content }) => content) // => "export const answer = 42\n"
 * ```
 * @category running
 * @since 0.1.0
 */
export const call = Effect.fnUntraced(function* <Name extends SpellName>(
  spell: Name,
  parameters: Parameters<Name>
): Effect.fn.Return<DefinitionResult<Name>, SpellFault | CastError, Spells> {
  const answer = yield* cast(yield* invocation(spell, parameters))
  if (answer._tag === "SpellFault") return yield* Effect.fail(answer)
  const decode = Schema.decodeUnknownEffect<Schema.Codec<DefinitionResult<Name>>>(
    definitions[spell].result as unknown as Schema.Codec<DefinitionResult<Name>>
  )
  return yield* Effect.mapError(decode(answer.result), () => unexpectedResult(answer))
})
