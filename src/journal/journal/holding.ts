/**
 * An entry is stored as a copy, which nobody outside can reach: bytes over 4 KiB leave it, and their hash takes their place; fewer are
 * copied with it. A copy without bytes is frozen to the bottom and can be lent as it is. One with bytes, which cannot be frozen, is
 * copied again for whoever reads it.
 *
 * An entry is a record, plain or of a class whose fields are its own properties, of values that nobody changes, plain records, arrays,
 * and bytes.
 */
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import { isBytes } from "../../model/bytes.ts"
import * as Eager from "../../engine/eager.ts"
import type { ContentStore } from "../ContentStore.ts"
import type { JournalError } from "../errors.ts"
import type { Recorded } from "../Journal.ts"

/** Bytes. */
export const largest = 4_096

type Fields = Record<string, unknown>

/** Where bytes are too many to stay. */
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

/** What is neither is a value of its own, as a DateTime or an error is. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Array.isArray(value)
}

const set = (to: Fields, field: string, value: unknown): void => {
  // To assign that would make the value what the record inherits.
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
      // Of the pool, which costs a fifth of an array of its own.
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

/** Makes an entry that is ours as one that was held. */
export const seal = <E>(entry: E): E => {
  if (isObject(entry) && !hasBytes(entry)) freeze(entry)
  return entry
}

/** The copy to store. It is made when this is called; what it ends with may take longer, where contents have to be put away. */
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

/** What readers get. */
export const lend = <E>(page: ReadonlyArray<Recorded<E>>): ReadonlyArray<Recorded<E>> =>
  page.every(isLent) ? page : page.map(lendOne)
