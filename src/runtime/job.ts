/** What is asked of the crew: how it is put to a worker, how it is done on this thread, and how it is answered. */
import type * as WorkerThreads from "node:worker_threads"
import type { Query } from "../model/search.ts"
import type { Lister, Listing } from "./lister.ts"
import type { Packed } from "./packed.ts"
import type { Batch, Contents, Search, Searcher } from "./searcher.ts"
import type { Order, Report } from "./serve.ts"

/** What became of the files of a batch; or which of them took too long or broke the engine. */
export type Searched =
  | Packed
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

/** The same parts on this thread. */
export interface Inline {
  readonly list: Lister
  readonly searcher: Searcher
}

/** Files and directories that are worked on here before others have their turn. */
const slice = 16

/** Queries that a worker remembers. */
const places = 8

export type End = Report | { readonly _tag: "Overrun"; readonly index: number }

export interface Job {
  readonly budget: number
  /** A list goes before a search. */
  readonly isList: boolean
  readonly order: (slot: Slot, ticket: number) => Order
  /** Some work on this thread; true when all is done and answered. */
  readonly inline: (parts: Inline) => () => boolean
  readonly answer: (end: End) => void
  readonly over: () => void
  isWithdrawn: boolean
  slot: Slot | undefined
  ticket: number
  timer: ReturnType<typeof setInterval> | undefined
  /** The end of a thread that was given this job before. */
  gone: Promise<unknown> | undefined
}

export interface Slot {
  readonly worker: WorkerThreads.Worker
  readonly shared: Int32Array
  /** In the order in which they are worked on. */
  readonly jobs: Array<Job>
  readonly queries: Array<Query>
  nextPlace: number
  tickets: number
  isOnline: boolean
  isRetired: boolean
}

export const failed = (detail: string, index = 0): End => ({ _tag: "Failed", ticket: 0, index, detail })

/** What is to be called, called only the first time. */
const once = (run: (() => void) | undefined): (() => void) => {
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
  over?: () => void,
  withStats = false
): Job => ({
  over: once(over),
  budget: Number.POSITIVE_INFINITY,
  isList: true,
  order: (_, ticket) => ({ _tag: "List", ticket, directories, withStats }),
  inline: ({ list }) => {
    const listings: Array<Listing | string> = []
    return () => {
      for (const directory of directories.slice(listings.length, listings.length + slice)) {
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
  gone: undefined
})

/** In one buffer of their own, which can be given away: of a part of a buffer the whole would be copied. */
const together = ({ contents, from }: Contents): Contents => {
  const all = new Uint8Array(contents.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  const copies = contents.map((bytes) => {
    all.set(bytes, end)
    end += bytes.length
    return all.subarray(end - bytes.length, end)
  })
  return { contents: copies, from }
}

/** The buffer that goes with an order. */
export const buffers = (order: Order): Array<ArrayBuffer> =>
  order._tag === "Search" && "contents" in order.batch && order.batch.contents.length > 0
    ? [order.batch.contents[0]!.buffer as ArrayBuffer]
    : []

export const searchJob = (
  query: Query,
  batch: Batch,
  budget: number,
  done: (answer: Searched) => void,
  over?: () => void
): Job => ({
  over: once(over),
  budget,
  isList: false,
  order: (slot, ticket) => {
    const known = slot.queries.indexOf(query)
    const sent = "contents" in batch ? together(batch) : batch
    if (known !== -1) return { _tag: "Search", ticket, place: known, query: undefined, batch: sent }
    const place = slot.nextPlace++ % places
    slot.queries[place] = query
    return { _tag: "Search", ticket, place, query, batch: sent }
  },
  inline: ({ searcher }) => {
    let search: Search | undefined
    let index = 0
    return () => {
      try {
        search ??= searcher.begin(query, batch)
        for (let i = 0; i < slice; i++, index++) {
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
  gone: undefined
})
