/**
 * Searches contents in memory. An expression that is known to be fast runs on this thread. Any other expression runs in
 * workers, with a time budget per file.
 *
 * A regular expression cannot be interrupted, but the thread that runs it can be terminated.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { GrepMatch } from "../model/Entry.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Query, SkipReason } from "../model/search.ts"
import { type BatchResult, inlineSearcher, shared } from "./workerPool.ts"
import { isNode } from "./node.ts"
import { type FileFound, found, type PackedMatches, startUnpacking, type Unpacking, attachTexts } from "./packed.ts"
import { scan } from "./scan.ts"

export interface Matched {
  /** The matches, each with the path of its content, or the reason why the content was skipped. */
  readonly found: ReadonlyArray<GrepMatch> | SkipReason
  readonly text?: string | undefined
}

export type ContentSearchResult =
  | ReadonlyArray<Matched>
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

/**
 * The contents to search. `from` is the line at which the search of the first content begins. `pathOf` returns the path
 * of a content.
 */
export interface Searchable {
  readonly contents: ReadonlyArray<Uint8Array>
  readonly from: number
  readonly pathOf: (index: number) => FsPath
}

export interface Matching {
  /**
   * Searches the contents in order on this thread for a few milliseconds. Returns the results of the searched contents,
   * at least one.
   */
  readonly searchInline: (query: Query, some: Searchable) => ReadonlyArray<Matched>
  readonly searchInWorkers: (query: Query, some: Searchable) => Effect.Effect<ContentSearchResult>
}

/**
 * Sends a job to the workers. Returns the answer only when no thread works on the job any more.
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

/** The number of matches that are unpacked between two yields to other fibers. */
const matchesPerSlice = 2 ** 15

export const matchedOf = (all: ReadonlyArray<FileFound>, { texts }: PackedMatches): ReadonlyArray<Matched> =>
  attachTexts(all, texts) as ReadonlyArray<Matched>

/**
 * Returns a function that unpacks matches in slices. May be called several times, also concurrently, and unpacks only once.
 * If one slice is enough, the returned effect has already succeeded.
 */
export const unpacked = (
  packed: PackedMatches,
  pathOf: (file: number) => FsPath
): (() => Effect.Effect<ReadonlyArray<FileFound>>) => {
  let unpacking: Unpacking | undefined
  const go = (): Effect.Effect<ReadonlyArray<FileFound>> => {
    unpacking ??= startUnpacking(packed, pathOf)
    return unpacking.step(matchesPerSlice) ? Effect.succeed(unpacking.all) : Effect.flatMap(Effect.yieldNow, go)
  }
  return go
}

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

const sliceMillis = 4

/** Calls `next` until it returns false, or until `sliceMillis` have passed. */
const untilDue = (next: () => boolean): void => {
  const due = performance.now() + sliceMillis
  while (next() && performance.now() < due);
}

const searchOne = (
  { includesText, maxBytes, maxMatches, pattern }: Query,
  bytes: Uint8Array,
  from: number,
  path: FsPath
): Matched => {
  if (bytes.length > maxBytes) return { found: "tooLarge" }
  if (bytes.subarray(0, 8192).includes(0)) return { found: "binary" }
  const text = lossyDecoder.decode(bytes)
  const found = scan(pattern, text, from, maxMatches)
  if (found.length > 0 && !isText(bytes)) return { found: "binary" }
  const matches = found.map((match) => ({ path, ...match }))
  return includesText && found.length > 0 ? { found: matches, text } : { found: matches }
}

export const searchWithoutNode: Matching["searchInline"] = (query, { contents, from, pathOf }) => {
  const out: Array<Matched> = []
  untilDue(() => {
    const index = out.length
    out.push(searchOne(query, contents[index]!, index === 0 ? from : 1, pathOf(index)))
    return out.length < contents.length
  })
  return out
}

const restOf = ({ contents, from, pathOf }: Searchable, done: number): Searchable =>
  done === 0 ? { contents, from, pathOf } : { contents: contents.slice(done), from: 1, pathOf: (index) => pathOf(done + index) }

/** Searches in workers. If an answer covers only the first contents, sends the other contents in a new job. */
const searchByWorkers: Matching["searchInWorkers"] = (query, some) =>
  Effect.scoped(
    Effect.flatMap(shared, (workers) => {
      const ask = (done: ReadonlyArray<Matched>): Effect.Effect<ContentSearchResult> => {
        const rest = restOf(some, done.length)
        if (rest.contents.length === 0) return Effect.succeed(done)
        return Effect.flatMap(
          awaitJob<BatchResult>((answer, onReleased) =>
            workers.search(query, { contents: rest.contents, from: rest.from }, query.patternBudgetMillis, answer, onReleased)
          ),
          (answer): Effect.Effect<ContentSearchResult> =>
            "_tag" in answer
              ? Effect.succeed({ ...answer, index: done.length + answer.index })
              : Effect.flatMap(unpacked(answer, rest.pathOf)(), (all) => ask([...done, ...matchedOf(all, answer)]))
        )
      }
      return ask([])
    })
  )

const searchInSlices = (
  query: Query,
  some: Searchable,
  done: ReadonlyArray<Matched> = []
): Effect.Effect<ReadonlyArray<Matched>> =>
  Effect.suspend(() => {
    const all = [...done, ...searchWithoutNode(query, restOf(some, done.length))]
    return all.length === some.contents.length
      ? Effect.succeed(all)
      : Effect.andThen(Effect.yieldNow, searchInSlices(query, some, all))
  })

const defaultSearch: Matching = {
  searchInline: (query, some) => {
    if (!isNode) return searchWithoutNode(query, some)
    const search = inlineSearcher().begin(query, some)
    untilDue(search.nextTogether)
    const packed = search.answer()
    return matchedOf(found(packed, some.pathOf), packed)
  },
  searchInWorkers: (query, some) => (isNode ? searchByWorkers(query, some) : searchInSlices(query, some))
}

export const Matching: Context.Reference<Matching> = Context.Reference<Matching>("fs-algebra/Matching", {
  defaultValue: () => defaultSearch
})
