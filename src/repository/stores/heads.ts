/**
 * Derives a store of heads from four operations on texts. A head is stored as one canonical text, so that a store compares heads
 * by comparing texts. Checks all arguments, and all texts that a store returns.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import { StoreError } from "../errors.ts"
import type { Head, Operations } from "../HeadStore.ts"

/** The operations of a store on the texts of heads. Names of workspaces are valid. */
export interface Texts {
  readonly read: (workspace: string) => Effect.Effect<string | undefined, StoreError>
  /**
   * Replaces the text `expected` with `next` in one step, and returns whether the text was `expected`. If `expected` is
   * `undefined`, no text may exist. If `next` is `undefined`, the text is deleted. At least one of the two is a text.
   */
  readonly swap: (
    workspace: string,
    expected: string | undefined,
    next: string | undefined
  ) => Effect.Effect<boolean, StoreError>
  /** The names of all workspaces. The list may also have invalid names that other programs have stored. */
  readonly list: Stream.Stream<string, StoreError>
  /**
   * Emits once when the stream has begun to observe changes, and then after each change. Merges changes that arrive faster than
   * they are pulled.
   */
  readonly wakes: (workspace: string) => Stream.Stream<unknown, StoreError>
}

/** The maximum size of a head's text, in bytes. Every store can hold a text of this size in one record. */
export const maxHeadBytes = 65_536

export const maxNameBytes = 256

const version = 1

/** The stored form. The order of its fields is the order in the text. */
const StoredHead = Schema.Struct({
  version: Schema.Literal(version),
  root: Schema.String,
  sequence: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  author: Schema.String,
  message: Schema.String,
  committedAt: Schema.DateTimeUtcFromString
})

const decodeStoredHead = Schema.decodeUnknownOption(Schema.fromJsonString(StoredHead))

/** Returns the canonical text. Times are truncated to whole milliseconds. */
const encodeHead = ({ author, committedAt, message, root, sequence }: Head): string =>
  JSON.stringify({ version, root, sequence, author, message, committedAt: DateTime.formatIso(committedAt) })

/** Returns `undefined` for a text that `encodeHead` does not write. */
export const decodeHead = (text: string): Head | undefined => {
  if (text.length > maxHeadBytes) return undefined
  const stored = Option.getOrUndefined(decodeStoredHead(text))
  if (stored === undefined) return undefined
  const { author, committedAt, message, root, sequence } = stored
  const head: Head = { root, sequence, author, message, committedAt }
  return encodeHead(head) === text ? head : undefined
}

const invalid = (detail: string): StoreError => new StoreError({ reason: "invalid", detail })

const problemOfName = (name: string): string | undefined => {
  if (name === "") return "it is empty"
  if (!name.isWellFormed()) return "it has a lone surrogate, which UTF-8 cannot express"
  if (/\p{Cc}/u.test(name)) return "it has a control character"
  return Buffer.byteLength(name) > maxNameBytes ? `it is longer than ${maxNameBytes} bytes` : undefined
}

/** Returns the name of a workspace in a form that every store permits in a key. */
export const toHex = (workspace: string): string => Buffer.from(workspace).toString("hex")

/** Returns the name of a workspace, or "" for a text that `toHex` does not return. */
export const nameOf = (hex: string): string => {
  const name = Buffer.from(hex, "hex").toString("utf8")
  return toHex(name) === hex ? name : ""
}

export const isWorkspaceName = (name: string): boolean => problemOfName(name) === undefined

const shown = (name: string): string => JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)

/** Fails with `invalid` if the name cannot be that of a workspace. */
export const checkName = (name: string): Effect.Effect<void, StoreError> =>
  Effect.suspend(() => {
    const problem = problemOfName(name)
    return problem === undefined
      ? Effect.void
      : Effect.fail(invalid(`the name ${shown(name)} cannot be the name of a workspace: ${problem}`))
  })

const corruptHead = (workspace: string): StoreError =>
  new StoreError({
    reason: "corrupt",
    detail:
      `the stored head of the workspace ${shown(workspace)} is not a head in the form of this version; ` +
      "restore it from a backup, or open the store with the version that wrote it"
  })

/** The number of workspaces whose last head is kept. Each commit reads the head that the commit before has written. */
const maxKept = 256

export const make = ({ list, read, swap, wakes }: Texts): Operations => {
  const kept = new Map<string, { readonly text: string; readonly head: Head }>()
  const headOf = (workspace: string, text: string): Head | undefined => {
    const known = kept.get(workspace)
    if (known?.text === text) return known.head
    const head = decodeHead(text)
    if (head === undefined) return undefined
    kept.delete(workspace)
    if (kept.size >= maxKept) kept.delete(kept.keys().next().value!)
    kept.set(workspace, { text, head: Object.freeze(head) })
    return head
  }
  const decode = (workspace: string, text: string): Effect.Effect<Head, StoreError> => {
    const head = headOf(workspace, text)
    return head === undefined ? Effect.fail(corruptHead(workspace)) : Effect.succeed(head)
  }
  const checkedText = (workspace: string, head: Head): Effect.Effect<string, StoreError> =>
    Effect.suspend(() => {
      const text = encodeHead(head)
      if (Buffer.byteLength(text) > maxHeadBytes) {
        return Effect.fail(
          invalid(`the head of ${shown(workspace)} has more than ${maxHeadBytes} bytes; shorten its message or its author`)
        )
      }
      return headOf(workspace, text) === undefined
        ? Effect.fail(
            invalid(`the head of ${shown(workspace)} has an invalid field: its sequence must be a whole number from 1`)
          )
        : Effect.succeed(text)
    })
  return {
    get: (workspace) =>
      Effect.flatMap(Effect.andThen(checkName(workspace), read(workspace)), (text) =>
        text === undefined ? Effect.succeed(undefined) : decode(workspace, text)
      ),
    compareAndSet: (workspace, expected, next) =>
      Effect.gen(function* () {
        yield* checkName(workspace)
        const before = expected === undefined ? undefined : encodeHead(expected)
        return yield* swap(workspace, before, yield* checkedText(workspace, next))
      }),
    delete: (workspace, expected) => Effect.andThen(checkName(workspace), swap(workspace, encodeHead(expected), undefined)),
    list: Stream.filter(list, isWorkspaceName),
    changes: (workspace) =>
      Stream.unwrap(
        Effect.as(
          checkName(workspace),
          wakes(workspace).pipe(
            Stream.mapEffect(() => read(workspace)),
            Stream.filter((text) => text !== undefined),
            Stream.changes,
            Stream.mapEffect((text) => decode(workspace, text))
          )
        )
      )
  }
}
