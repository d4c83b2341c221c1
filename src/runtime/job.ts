import type * as WorkerThreads from "node:worker_threads"
import type { Query } from "../model/search.ts"
import type { Lister, Listing } from "./lister.ts"
import type { PackedMatches } from "./packed.ts"
import type { Batch, Contents, Search, Searcher } from "./searcher.ts"
import type { WorkerOrder, WorkerReport } from "./serve.ts"

export type BatchResult =
  | PackedMatches
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

export interface InlineTools {
  readonly list: Lister
  readonly searcher: Searcher
}

/** Files and directories processed on this thread between two yields. */
const itemsPerYield = 16

const maxCachedQueries = 8

export type JobEnd = WorkerReport | { readonly _tag: "Overrun"; readonly index: number }

export interface Job {
  readonly budget: number
  /** List jobs go before searches. */
  readonly isList: boolean
  readonly order: (slot: WorkerSlot, ticket: number) => WorkerOrder
  readonly inline: (parts: InlineTools) => () => boolean
  readonly answer: (end: JobEnd) => void
  readonly onReleased: () => void
  isWithdrawn: boolean
  slot: WorkerSlot | undefined
  ticket: number
  timer: ReturnType<typeof setInterval> | undefined
  previousThreadEnd: Promise<unknown> | undefined
}

export interface WorkerSlot {
  readonly worker: WorkerThreads.Worker
  readonly shared: Int32Array
  readonly jobs: Array<Job>
  readonly queries: Array<Query>
  nextQueryIndex: number
  lastTicket: number
  isOnline: boolean
  isRetired: boolean
}

export const makeFailure = (detail: string, index = 0): JobEnd => ({ _tag: "Failed", ticket: 0, index, detail })

const callOnce = (run: (() => void) | undefined): (() => void) => {
  let left = run
  return () => {
    const now = left
    left = undefined
    now?.()
  }
}

export const listJob = (
  directories: ReadonlyArray<string>,
  done: (answer: ReadonlyArray<Listing | string>) => void,
  onReleased?: () => void,
  withStats = false
): Job => ({
  onReleased: callOnce(onReleased),
  budget: Number.POSITIVE_INFINITY,
  isList: true,
  order: (_, ticket) => ({ _tag: "List", ticket, directories, withStats }),
  inline: ({ list }) => {
    const listings: Array<Listing | string> = []
    return () => {
      for (const directory of directories.slice(listings.length, listings.length + itemsPerYield)) {
        listings.push(list(directory, withStats))
      }
      if (listings.length < directories.length) return false
      done(listings)
      return true
    }
  },
  answer: (end) => done(end._tag === "Listed" ? end.listings : directories.map(() => "EIO")),
  isWithdrawn: false,
  slot: undefined,
  ticket: 0,
  timer: undefined,
  previousThreadEnd: undefined
})

/** Copies the contents into one buffer that can be transferred. Sending a part of a buffer would copy the whole. */
const copyToOneBuffer = ({ contents, from }: Contents): Contents => {
  const all = new Uint8Array(contents.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  const copies = contents.map((bytes) => {
    all.set(bytes, end)
    end += bytes.length
    return all.subarray(end - bytes.length, end)
  })
  return { contents: copies, from }
}

export const transferListOf = (order: WorkerOrder): Array<ArrayBuffer> =>
  order._tag === "Search" && "contents" in order.batch && order.batch.contents.length > 0
    ? [order.batch.contents[0]!.buffer as ArrayBuffer]
    : []

export const searchJob = (
  query: Query,
  batch: Batch,
  budget: number,
  done: (answer: BatchResult) => void,
  onReleased?: () => void
): Job => ({
  onReleased: callOnce(onReleased),
  budget,
  isList: false,
  order: (slot, ticket) => {
    const known = slot.queries.indexOf(query)
    const sentBatch = "contents" in batch ? copyToOneBuffer(batch) : batch
    if (known !== -1) return { _tag: "Search", ticket, queryIndex: known, query: undefined, batch: sentBatch }
    const queryIndex = slot.nextQueryIndex++ % maxCachedQueries
    slot.queries[queryIndex] = query
    return { _tag: "Search", ticket, queryIndex, query, batch: sentBatch }
  },
  inline: ({ searcher }) => {
    let search: Search | undefined
    let index = 0
    return () => {
      try {
        search ??= searcher.begin(query, batch)
        for (let i = 0; i < itemsPerYield; i++, index++) {
          if (search.next()) continue
          done(search.answer())
          return true
        }
        return false
      } catch (error) {
        done({ _tag: "Failed", index, detail: String(error) })
        return true
      }
    }
  },
  answer: (end) => {
    if (end._tag === "Searched") done(end.packed)
    else if (end._tag === "Failed") done({ _tag: "Failed", index: end.index, detail: end.detail })
    else if (end._tag === "Overrun") done(end)
  },
  isWithdrawn: false,
  slot: undefined,
  ticket: 0,
  timer: undefined,
  previousThreadEnd: undefined
})
