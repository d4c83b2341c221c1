/**
 * Copies entries for the store, so that no caller can change a stored entry. Bytes above 4 KiB are replaced by their hash; smaller ones are
 * copied. A copy without bytes is frozen deeply, and readers share it. A copy with bytes cannot be frozen, so each reader gets another
 * copy.
 *
 * An entry is a plain record, or a class instance whose fields are its own properties. Its values are immutable values, plain records,
 * arrays and bytes.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { isBytes } from "../../model/bytes.ts"
import * as Eager from "../../engine/eager.ts"
import type { ContentStore } from "../ContentStore.ts"
import type { JournalError } from "../errors.ts"
import type { Recorded } from "../Journal.ts"

/** The largest size in bytes that stays in an entry. */
export const largest = 4_096

type Fields = Record<string, unknown>

interface Large {
  readonly holder: Fields
  readonly field: string
  readonly bytes: Uint8Array
}

interface Met {
  hasBytes: boolean
  large: Array<Large> | undefined
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** Tests whether the value is a plain record or an array. Other objects, such as a DateTime or an error, count as immutable. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Array.isArray(value)
}

const set = (to: Fields, field: string, value: unknown): void => {
  // A plain assignment would set the record's prototype.
  if (field === "__proto__") Object.defineProperty(to, field, { value, writable: true, enumerable: true, configurable: true })
  else to[field] = value
}

const copyOf = (from: object, met: Met, most: number): object => {
  const to = (Array.isArray(from) ? [] : Object.create(Object.getPrototypeOf(from) as object | null)) as Fields
  for (const field of Object.keys(from)) {
    const value = (from as Fields)[field]
    if (!isObject(value)) set(to, field, value)
    else if (isBytes(value)) {
      met.hasBytes = true
      if (value.length > most) (met.large ??= []).push({ holder: to, field, bytes: value })
      // A pooled Buffer costs a fifth of a separate array.
      else set(to, field, most === largest ? Buffer.from(value) : new Uint8Array(value))
    } else set(to, field, isPlain(value) ? copyOf(value, met, most) : value)
  }
  return to
}

const freeze = (record: object): void => {
  for (const value of Object.values(record)) if (isObject(value) && isPlain(value)) freeze(value)
  Object.freeze(record)
}

const hasBytes = (record: object): boolean =>
  Object.values(record).some((value) => isObject(value) && (isBytes(value) || (isPlain(value) && hasBytes(value))))

/** Freezes an entry that the caller owns, unless it has bytes. */
export const seal = <E>(entry: E): E => {
  if (isObject(entry) && !hasBytes(entry)) freeze(entry)
  return entry
}

/** Returns a copy to store. The copy is made immediately; storing its large contents may take longer. */
export const hold = <E>(contents: ContentStore, entry: E): Effect.Effect<E, JournalError> => {
  if (!isObject(entry)) return Effect.succeed(entry)
  const met: Met = { hasBytes: false, large: undefined }
  const copy = copyOf(entry, met, largest)
  if (!met.hasBytes) freeze(copy)
  if (met.large === undefined) return Effect.succeed(copy as E)
  return Effect.map(
    Effect.forEach(met.large, ({ bytes, field, holder }) =>
      Effect.map(contents.put(bytes), (ref) => {
        set(holder, field, ref)
      })
    ),
    () => seal(copy as E)
  )
}

export const holdAll = <E>(contents: ContentStore, entries: ReadonlyArray<E>): Effect.Effect<ReadonlyArray<E>, JournalError> =>
  Eager.forEach(entries, (entry) => hold(contents, entry), 1)

const isLent = <E>(recorded: Recorded<E>): boolean => Object.isFrozen(recorded.entry)

const lendOne = <E>(recorded: Recorded<E>): Recorded<E> =>
  isLent(recorded)
    ? recorded
    : {
        position: recorded.position,
        at: recorded.at,
        entry: copyOf(recorded.entry as object, { hasBytes: false, large: undefined }, Number.POSITIVE_INFINITY) as E
      }

export const lend = <E>(page: ReadonlyArray<Recorded<E>>): ReadonlyArray<Recorded<E>> =>
  page.every(isLent) ? page : page.map(lendOne)
