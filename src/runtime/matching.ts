/**
 * The search of contents that somebody has read already: on this thread where an expression is known to be quick, else by the workers,
 * with a budget of time for each file. A regular expression cannot be interrupted, but the thread that runs it can be ended.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Query } from "../model/search.ts"
import { inlineSearcher, type Searched, shared } from "./crew.ts"
import type { FsPath } from "../model/FsPath.ts"
import { type FileFound, found, type Packed, unpacking, withTexts } from "./packed.ts"
import { scan } from "./scan.ts"

export interface Matched {
  readonly found: FileFound
  /** What was searched, where the query wants it and something was found. */
  readonly text?: string | undefined
}

/** For each content in order; or which of them took too long or broke the engine. */
export type Answer =
  | ReadonlyArray<Matched>
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

export interface Matching {
  /** On this thread. `from` is the line to start at in the first. */
  readonly here: (query: Query, contents: ReadonlyArray<Uint8Array>, from: number) => ReadonlyArray<Matched>
  /** By the workers. */
  readonly away: (query: Query, contents: ReadonlyArray<Uint8Array>, from: number) => Effect.Effect<Answer>
}

/** Asks a crew and waits; a question that nobody waits for any more is withdrawn, and its end waited for. */
export const asked = <A>(ask: (done: (answer: A) => void, over: () => void) => () => void): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    let isOver = false
    let ended: (() => void) | undefined
    const withdraw = ask(
      (answer) => resume(Effect.succeed(answer)),
      () => {
        isOver = true
        ended?.()
      }
    )
    return Effect.callback<void>((resume) => {
      withdraw()
      if (isOver) resume(Effect.void)
      else ended = () => resume(Effect.void)
    })
  })

/** Matches made before others have their turn: some milliseconds. */
const slice = 2 ** 15

/** What a worker has answered, made into matches. */
export const unpacked = (packed: Packed, pathOf?: (file: number) => FsPath): Effect.Effect<ReadonlyArray<Matched>> =>
  Effect.suspend(() => {
    const { all, step } = unpacking(packed, pathOf)
    const go: Effect.Effect<ReadonlyArray<Matched>> = Effect.suspend(() =>
      step(slice) ? Effect.succeed(withTexts(all, packed.texts)) : Effect.andThen(Effect.yieldNow, go)
    )
    return go
  })

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true })

const isText = (bytes: Uint8Array): boolean => {
  try {
    strict.decode(bytes)
    return true
  } catch {
    return false
  }
}

/** The same without anything of Node. */
export const plainly: Matching["here"] = ({ maxBytes, most, question, withText }, contents, from) =>
  contents.map((bytes, index): Matched => {
    if (bytes.length > maxBytes) return { found: "tooLarge" }
    if (bytes.subarray(0, 8192).includes(0)) return { found: "binary" }
    const text = lossy.decode(bytes)
    const found = scan(question, text, index === 0 ? from : 1, most)
    if (found.length > 0 && !isText(bytes)) return { found: "binary" }
    return withText && found.length > 0 ? { found, text } : { found }
  })

const isNode = typeof process !== "undefined" && typeof process.getBuiltinModule === "function"

const byWorkers: Matching["away"] = (query, contents, from) =>
  Effect.scoped(
    Effect.flatMap(shared, (crew) =>
      Effect.flatMap(
        asked<Searched>((done, over) => crew.search(query, { contents, from }, query.budget, done, over)),
        (answer): Effect.Effect<Answer> => ("_tag" in answer ? Effect.succeed(answer) : unpacked(answer))
      )
    )
  )

const standard: Matching = {
  here: (query, contents, from) => {
    if (!isNode) return plainly(query, contents, from)
    const search = inlineSearcher().begin(query, { contents, from })
    while (search.next());
    const packed = search.answer()
    return withTexts(found(packed), packed.texts)
  },
  // Where there are no workers there is no budget either.
  away: (query, contents, from) =>
    isNode ? byWorkers(query, contents, from) : Effect.sync(() => plainly(query, contents, from))
}

/** Where contents are searched. Replaceable. */
export const Matching: Context.Reference<Matching> = Context.Reference<Matching>("fs-algebra/Matching", {
  defaultValue: () => standard
})
