/**
 * Encodes and decodes saved sessions. The items are encoded by the schemas of their slices. An error names the item that does
 * not match.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { SessionError } from "../../model/sessionError.ts"
import type { AnySlice } from "../../model/Slice.ts"
import { quoteId, idFault } from "./ids.ts"
import type { Operations } from "../Session.ts"
import type { SliceItems } from "./session.ts"

/** The version of the saved format that this module writes, which is also the newest version that it reads. */
const schemaVersion = 1

/**
 * The largest text in bytes. The whole text is kept in memory, and a JavaScript string cannot be much longer than twice this
 * size.
 */
export const maxTextBytes = 256 * 1024 * 1024

/** The archive of a dump. `null` if the dump has no archive, and `undefined` if the text does not say whether it has one. */
export type ArchiveName = { readonly sha256: string } | null | undefined

const Archive = Schema.Struct({ sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)) })

const Envelope = Schema.toCodecJson(
  Schema.Struct({
    schemaVersion: Schema.Literal(schemaVersion),
    sessionId: Schema.String,
    parentId: Schema.optionalKey(Schema.String),
    createdAt: Schema.DateTimeUtc,
    tags: Schema.Record(Schema.String, Schema.String),
    archive: Schema.optionalKey(Schema.NullOr(Archive)),
    replacedArchive: Schema.optionalKey(Archive),
    slices: Schema.Array(
      Schema.Struct({ name: Schema.String, policy: Schema.Literals(["state", "log"]), items: Schema.Array(Schema.Unknown) })
    )
  })
)

const itemsCodec = ({ schema }: AnySlice) => Schema.toCodecJson(Schema.Array(schema as Schema.Codec<unknown, unknown>))

const shorten = (text: string): string => {
  const line = text.replace(/\s*\n\s*/g, " ")
  return line.length > 500 ? `${line.slice(0, 500)}…` : line
}

export interface ErrorContext {
  readonly operation: string
  readonly prefix: string
}

export const makeError =
  ({ operation, prefix }: ErrorContext) =>
  (reason: SessionError["reason"], detail: string): SessionError =>
    new SessionError({ operation, reason, detail: shorten(`${prefix}${detail}`) })

/**
 * Converts a mismatch with the schema to a SessionError. Also converts a thrown error, such as a stack overflow on deep
 * nesting.
 */
const asCorruptError = <A>(
  errorContext: ErrorContext,
  subject: string,
  coded: Effect.Effect<A, Schema.SchemaError>
): Effect.Effect<A, SessionError> =>
  coded.pipe(
    Effect.catchDefect((defect) => Effect.fail({ message: String(defect) })),
    Effect.mapError(({ message }) => makeError(errorContext)("corrupt", `${subject}: ${message}`))
  )

/** Tests whether a slice is written. An empty slice is omitted if its initial items are empty too. */
const isWritten = ([slice, items]: SliceItems): boolean => items.length > 0 || slice.initial.length > 0

export interface SessionRecord {
  readonly operations: Operations
  readonly held: ReadonlyArray<SliceItems>
  readonly parentId: string | undefined
  readonly archive: ArchiveName
  /**
   * The SHA-256 of the earlier archive, which this dump replaces. If the process is killed before the replacement, the earlier
   * archive still exists.
   */
  readonly replaces?: string | undefined
}

export const encode = Effect.fnUntraced(function* (
  operation: string,
  { archive, held, operations, parentId, replaces }: SessionRecord
): Effect.fn.Return<Uint8Array, SessionError> {
  const { createdAt, id, tags } = operations
  const errorContext: ErrorContext = { operation, prefix: `session ${quoteId(id)}, ` }
  const slices: Array<unknown> = []
  for (const one of held) {
    if (!isWritten(one)) continue
    const [{ name, policy }, items] = one
    const encoded = Schema.encodeEffect(itemsCodec(one[0]))(items)
    slices.push({ name, policy, items: yield* asCorruptError(errorContext, `slice ${quoteId(name)}`, encoded) })
  }
  const value = {
    schemaVersion,
    sessionId: id,
    ...(parentId === undefined ? undefined : { parentId }),
    createdAt: DateTime.formatIso(createdAt),
    tags,
    ...(archive === undefined ? undefined : { archive }),
    ...(replaces === undefined ? undefined : { replacedArchive: { sha256: replaces } }),
    slices
  }
  const text = yield* Effect.try({
    try: () => Buffer.from(`${JSON.stringify(value)}\n`),
    catch: (error) => makeError(errorContext)("io", `the session cannot be written as one text: ${String(error)}`)
  })
  if (text.length > maxTextBytes) {
    return yield* Effect.fail(
      makeError(errorContext)("io", `the text of the session has ${text.length} bytes, but at most ${maxTextBytes} are allowed`)
    )
  }
  return text
})

export interface LoadedSession {
  readonly id: string
  readonly parentId: string | undefined
  readonly createdAt: DateTime.Utc
  readonly tags: Readonly<Record<string, string>>
  readonly archive: ArchiveName
  readonly held: ReadonlyArray<SliceItems>
}

const parse = (errorContext: ErrorContext, bytes: Uint8Array): Effect.Effect<unknown, SessionError> =>
  Effect.try({
    try: (): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)),
    catch: (error) =>
      makeError(errorContext)("corrupt", `the text is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  })

const versionOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "schemaVersion" in value ? value.schemaVersion : undefined

const isArchive = Schema.is(Archive)

/**
 * Returns the SHA-256 of each archive that the first line of a dump names. Returns an empty set if the line cannot be parsed.
 */
export const namedHashesIn = (firstLine: Uint8Array): ReadonlySet<string> => {
  const named = new Set<string>()
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(firstLine).toString())
  } catch {
    return named
  }
  if (typeof value !== "object" || value === null) return named
  for (const key of ["archive", "replacedArchive"]) {
    const archive: unknown = Object.hasOwn(value, key) ? (value as Readonly<Record<string, unknown>>)[key] : undefined
    if (isArchive(archive)) named.add(archive.sha256)
  }
  return named
}

/** Fails for a newer version of the format. Runs before the schema check, whose error would not mention the version. */
const checkVersion = (errorContext: ErrorContext, value: unknown): Effect.Effect<void, SessionError> => {
  const version = versionOf(value)
  return typeof version === "number" && version > schemaVersion
    ? Effect.fail(
        makeError(errorContext)(
          "version",
          `the session was written with schema version ${version}, but this program only reads versions up to ${schemaVersion}`
        )
      )
    : Effect.void
}

const byName = (
  errorContext: ErrorContext,
  slices: ReadonlyArray<AnySlice>
): Effect.Effect<ReadonlyMap<string, AnySlice>, SessionError> =>
  Effect.suspend(() => {
    const all = new Map<string, AnySlice>()
    for (const slice of slices) {
      const other = all.get(slice.name)
      if (other !== undefined && other !== slice) {
        return Effect.fail(makeError(errorContext)("duplicateSlice", `two slices are called ${quoteId(slice.name)}`))
      }
      all.set(slice.name, slice)
    }
    return Effect.succeed(all)
  })

export type SavedSession = typeof Envelope.Type

/** Decodes the session, except the items of its slices. */
export const decodeSaved = Effect.fnUntraced(function* (
  errorContext: ErrorContext,
  bytes: Uint8Array
): Effect.fn.Return<SavedSession, SessionError> {
  const value = yield* parse(errorContext, bytes)
  yield* checkVersion(errorContext, value)
  return yield* asCorruptError(errorContext, "the text is not a saved session", Schema.decodeUnknownEffect(Envelope)(value))
})

/**
 * Decodes a session. Each slice in `slices` gets its items from the text. A slice that the text does not contain gets its
 * initial items.
 */
export const decode = Effect.fnUntraced(function* (
  errorContext: ErrorContext,
  bytes: Uint8Array,
  slices: ReadonlyArray<AnySlice>
): Effect.fn.Return<LoadedSession, SessionError> {
  const slicesByName = yield* byName(errorContext, slices)
  const saved = yield* decodeSaved(errorContext, bytes)
  for (const id of saved.parentId === undefined ? [saved.sessionId] : [saved.sessionId, saved.parentId]) {
    const why = idFault(id)
    if (why !== undefined)
      return yield* Effect.fail(makeError(errorContext)("corrupt", `${quoteId(id)} cannot be an id: ${why}`))
  }
  const unknownSlices = saved.slices.filter(({ name }) => !slicesByName.has(name))
  if (unknownSlices.length > 0) {
    const names = unknownSlices.map(({ name }) => quoteId(name)).join(", ")
    return yield* Effect.fail(
      makeError(errorContext)("unknownSlice", `the session has slices that are not in the option \`slices\`: ${names}`)
    )
  }
  const found = new Map<AnySlice, ReadonlyArray<unknown>>()
  for (const { items, name } of saved.slices) {
    const slice = slicesByName.get(name)!
    if (found.has(slice)) return yield* Effect.fail(makeError(errorContext)("corrupt", `slice ${quoteId(name)} occurs twice`))
    found.set(
      slice,
      yield* asCorruptError(errorContext, `slice ${quoteId(name)}`, Schema.decodeUnknownEffect(itemsCodec(slice))(items))
    )
  }
  return {
    id: saved.sessionId,
    parentId: saved.parentId,
    createdAt: saved.createdAt,
    tags: saved.tags,
    archive: saved.archive,
    held: [...slicesByName.values()].map((slice): SliceItems => [slice, found.get(slice) ?? slice.initial])
  }
})
