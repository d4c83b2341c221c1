import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Eager from "../../engine/eager.ts"
import { isBytes } from "../../model/realms.ts"
import { isNode, workerThreads } from "../../runtime/node.ts"
import type { ContentStore, Recorded } from "../model.ts"
import { createWith } from "../entries/create.ts"
import { JournalError } from "../errors.ts"
import type { Decode } from "./pages.ts"

// Copies entries for the store, so that no caller can change a stored entry. Bytes above 4 KiB are replaced by their hash, and
// smaller bytes are copied. A copy without bytes is deeply frozen, and readers share it. A copy with bytes cannot be frozen, so
// each reader receives another copy.
//
// An entry is a plain record, or a class instance whose fields are own properties. Its values are immutable values, plain
// records, arrays and bytes.

/** The largest size, in bytes, of a content that stays in an entry. */
export const maxInlineBytes = 4_096

const slabSize = 65_536
let slab = new Uint8Array(0)
let used = 0

/**
 * Prevents a transfer of the buffer to another thread, because a transfer would also empty other entries that share the
 * buffer.
 */
const preventTransfer = (buffer: ArrayBuffer): void => {
  try {
    if (isNode) workerThreads().markAsUntransferable(buffer)
  } catch {
    // Some runtimes, such as workerd, have modules of Node but no threads.
  }
}

/**
 * Copies bytes for an entry. Small copies share one large buffer, because allocating a buffer takes much longer than filling
 * it.
 */
export const keepBytes = (bytes: Uint8Array): Uint8Array => {
  const { length } = bytes
  if (length > maxInlineBytes) return new Uint8Array(bytes)
  if (used + length > slab.length) {
    slab = new Uint8Array(slabSize)
    used = 0
    preventTransfer(slab.buffer)
  }
  const copy = new Uint8Array(slab.buffer, used, length)
  copy.set(bytes)
  used += length
  return copy
}

type Fields = Record<string, unknown>

interface LargeContent {
  readonly owner: Fields
  readonly field: string
  readonly bytes: Uint8Array
}

interface CopyFindings {
  hasBytes: boolean
  large: Array<LargeContent> | undefined
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/**
 * Tests whether the value is a plain record or an array. All other objects, such as a DateTime or an error, count as
 * immutable.
 */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Array.isArray(value)
}

const setField = (to: Fields, field: string, value: unknown): void => {
  // Define this field, because an assignment to `__proto__` would set the prototype of the record.
  if (field === "__proto__") Object.defineProperty(to, field, { value, writable: true, enumerable: true, configurable: true })
  else to[field] = value
}

const emptyLike = (from: object): Fields => {
  if (Array.isArray(from)) return [] as unknown as Fields
  const prototype = Object.getPrototypeOf(from) as object | null
  return prototype === null ? (Object.create(null) as Fields) : createWith(prototype)
}

const copyRecord = (from: object, findings: CopyFindings, maxBytes: number): object => {
  const to = emptyLike(from)
  for (const field of Object.keys(from)) {
    const value = (from as Fields)[field]
    if (!isObject(value)) setField(to, field, value)
    else if (isBytes(value)) {
      findings.hasBytes = true
      if (value.length > maxBytes) (findings.large ??= []).push({ owner: to, field, bytes: value })
      else setField(to, field, maxBytes === maxInlineBytes ? keepBytes(value) : new Uint8Array(value))
    } else setField(to, field, isPlain(value) ? copyRecord(value, findings, maxBytes) : value)
  }
  return to
}

const freeze = (record: object): void => {
  for (const value of Object.values(record)) if (isObject(value) && isPlain(value)) freeze(value)
  Object.freeze(record)
}

const hasBytes = (record: object): boolean =>
  Object.values(record).some((value) => isObject(value) && (isBytes(value) || (isPlain(value) && hasBytes(value))))

/** Freezes an entry that only the caller uses. Does not freeze an entry with bytes. */
const freezeEntry = <E>(entry: E): E => {
  if (isObject(entry) && !hasBytes(entry)) freeze(entry)
  return entry
}

/** Copies the entry immediately, and returns the copy when its large contents are stored. */
export const copyForStore = <E>(contents: ContentStore, entry: E): Effect.Effect<E, JournalError> => {
  if (!isObject(entry)) return Effect.succeed(entry)
  const findings: CopyFindings = { hasBytes: false, large: undefined }
  const copy = copyRecord(entry, findings, maxInlineBytes)
  if (!findings.hasBytes) freeze(copy)
  if (findings.large === undefined) return Effect.succeed(copy as E)
  return Effect.map(
    Effect.forEach(findings.large, ({ bytes, field, owner }) =>
      Effect.map(contents.put(bytes), (ref) => {
        setField(owner, field, ref)
      })
    ),
    () => freezeEntry(copy as E)
  )
}

export const copyAllForStore = <E>(
  contents: ContentStore,
  entries: ReadonlyArray<E>
): Effect.Effect<ReadonlyArray<E>, JournalError> => Eager.forEach(entries, (entry) => copyForStore(contents, entry), 1)

const isShareable = <E>(recorded: Recorded<E>): boolean => Object.isFrozen(recorded.entry)

const copyForReader = <E>(recorded: Recorded<E>): Recorded<E> =>
  isShareable(recorded)
    ? recorded
    : {
        position: recorded.position,
        at: recorded.at,
        entry: copyRecord(recorded.entry as object, { hasBytes: false, large: undefined }, Number.POSITIVE_INFINITY) as E
      }

export const pageForReaders = <E>(page: ReadonlyArray<Recorded<E>>): ReadonlyArray<Recorded<E>> =>
  page.every(isShareable) ? page : page.map(copyForReader)

interface Codec<E> {
  readonly encode: (entry: E) => string | JournalError
  readonly decode: Decode<E>
}

export const make = <E, I>(schema: Schema.Codec<E, I>): Codec<E> => {
  const json = Schema.toCodecJson(schema)
  const encode = Schema.encodeExit(json)
  const decode = Schema.decodeUnknownExit(json)
  return {
    encode: (entry) => {
      const encoded = encode(entry)
      return Exit.isSuccess(encoded)
        ? JSON.stringify(encoded.value)
        : new JournalError({
            operation: "Journal.append",
            reason: "invalid",
            detail: "the entry does not match the schema of the journal"
          })
    },
    decode: (jsonValue, position) => {
      const decoded = decode(jsonValue)
      return Exit.isSuccess(decoded)
        ? freezeEntry(decoded.value)
        : new JournalError({
            operation: "Journal.read",
            reason: "corrupt",
            position,
            detail: `entry ${position} does not match the schema of the journal`
          })
    }
  }
}
