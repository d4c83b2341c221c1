/**
 * Searches contents in memory: on this thread for an expression known to be fast, otherwise in workers with a time
 * budget per file.
 *
 * A regular expression cannot be interrupted, but its thread can be ended.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Query } from "../model/search.ts"
import { type BatchResult, inlineSearcher, shared } from "./workerPool.ts"
import type { FsPath } from "../model/FsPath.ts"
import { isNode } from "./node.ts"
import { type FileFound, found, type PackedMatches, startUnpacking, attachTexts } from "./packed.ts"
import { scan } from "./scan.ts"

export interface Matched {
  readonly found: FileFound
  readonly text?: string | undefined
}

export type ContentSearchResult =
  | ReadonlyArray<Matched>
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

export interface Matching {
  /** Searches on this thread. `from` is the first line to search in the first content. */
  readonly searchInline: (query: Query, contents: ReadonlyArray<Uint8Array>, from: number) => ReadonlyArray<Matched>
  readonly searchInWorkers: (
    query: Query,
    contents: ReadonlyArray<Uint8Array>,
    from: number
  ) => Effect.Effect<ContentSearchResult>
}

/**
 * Sends a job to the workers. Returns its answer when no thread works on the job any more.
 *
 * An interruption withdraws the job and waits for its end.
 */
export const awaitJob = <A>(ask: (done: (answer: A) => void, onReleased: () => void) => () => void): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    let answer: Effect.Effect<A> = Effect.never
    let isOver = false
    let onEnded: (() => void) | undefined
    const withdraw = ask(
      (value) => {
        answer = Effect.succeed(value)
      },
      () => {
        isOver = true
        resume(answer)
        onEnded?.()
      }
    )
    return Effect.callback<void>((resume) => {
      withdraw()
      if (isOver) resume(Effect.void)
      else onEnded = () => resume(Effect.void)
    })
  })

const matchesPerSlice = 2 ** 15

export const unpacked = (packed: PackedMatches, pathOf?: (file: number) => FsPath): Effect.Effect<ReadonlyArray<Matched>> =>
  Effect.suspend(() => {
    const { all, step } = startUnpacking(packed, pathOf)
    const go: Effect.Effect<ReadonlyArray<Matched>> = Effect.suspend(() =>
      step(matchesPerSlice) ? Effect.succeed(attachTexts(all, packed.texts)) : Effect.andThen(Effect.yieldNow, go)
    )
    return go
  })

const lossyDecoder = new TextDecoder("utf-8", { ignoreBOM: true })
const strictDecoder = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true })

const isText = (bytes: Uint8Array): boolean => {
  try {
    strictDecoder.decode(bytes)
    return true
  } catch {
    return false
  }
}

export const searchWithoutNode: Matching["searchInline"] = (
  { maxBytes, maxMatches: most, pattern: question, includesText: withText },
  contents,
  from
) =>
  contents.map((bytes, index): Matched => {
    if (bytes.length > maxBytes) return { found: "tooLarge" }
    if (bytes.subarray(0, 8192).includes(0)) return { found: "binary" }
    const text = lossyDecoder.decode(bytes)
    const found = scan(question, text, index === 0 ? from : 1, most)
    if (found.length > 0 && !isText(bytes)) return { found: "binary" }
    return withText && found.length > 0 ? { found, text } : { found }
  })

/** Searches in workers. If an answer covers only the first contents, the other contents are sent again. */
const searchByWorkers: Matching["searchInWorkers"] = (query, contents, from) =>
  Effect.scoped(
    Effect.flatMap(shared, (workers) => {
      const ask = (done: ReadonlyArray<Matched>): Effect.Effect<ContentSearchResult> => {
        const batch = { contents: contents.slice(done.length), from: done.length === 0 ? from : 1 }
        if (batch.contents.length === 0) return Effect.succeed(done)
        return Effect.flatMap(
          awaitJob<BatchResult>((answer, onReleased) =>
            workers.search(query, batch, query.patternBudgetMillis, answer, onReleased)
          ),
          (answer): Effect.Effect<ContentSearchResult> =>
            "_tag" in answer
              ? Effect.succeed({ ...answer, index: done.length + answer.index })
              : Effect.flatMap(unpacked(answer), (some) => ask([...done, ...some]))
        )
      }
      return ask([])
    })
  )

const defaultSearch: Matching = {
  searchInline: (query, contents, from) => {
    if (!isNode) return searchWithoutNode(query, contents, from)
    const out: Array<Matched> = []
    while (out.length < contents.length) {
      const rest = { contents: contents.slice(out.length), from: out.length === 0 ? from : 1 }
      const search = inlineSearcher().begin(query, rest)
      while (search.next());
      const packed = search.answer()
      out.push(...attachTexts(found(packed), packed.texts))
    }
    return out
  },
  searchInWorkers: (query, contents, from) =>
    isNode ? searchByWorkers(query, contents, from) : Effect.sync(() => searchWithoutNode(query, contents, from))
}

export const Matching: Context.Reference<Matching> = Context.Reference<Matching>("fs-algebra/Matching", {
  defaultValue: () => defaultSearch
})
