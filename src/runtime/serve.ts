/**
 * The main loop of a worker, in one function without outside references, so that its source is the worker's program.
 */
import type * as WorkerThreads from "node:worker_threads"
import type { Lister, Listing } from "./lister.ts"
import type { PackedMatches } from "./packed.ts"
import type { Query } from "../model/search.ts"
import type { Batch, Searcher } from "./searcher.ts"

/** A job for a worker. Tickets count from 1. A worker stores each query at `queryIndex`, so a query is sent only once. */
export type WorkerOrder =
  | {
      readonly _tag: "List"
      readonly ticket: number
      readonly directories: ReadonlyArray<string>
      readonly withStats: boolean
    }
  | {
      readonly _tag: "Search"
      readonly ticket: number
      readonly queryIndex: number
      readonly query: Query | undefined
      readonly batch: Batch
    }

export type WorkerReport =
  | { readonly _tag: "Listed"; readonly ticket: number; readonly listings: ReadonlyArray<Listing | string> }
  | { readonly _tag: "Searched"; readonly ticket: number; readonly packed: PackedMatches }
  | { readonly _tag: "Failed"; readonly ticket: number; readonly index: number; readonly detail: string }

/**
 * The positions in the memory that a worker shares with its pool, used while the worker cannot receive messages.
 *
 * The memory has the current file's index, the number of files begun, the current job's ticket (0 for none), and two withdrawn
 * tickets. A worker has at most two jobs with consecutive tickets, so one odd and one even ticket suffice.
 */
export const progress = { file: 0, begun: 1, ticket: 2, withdrawn: 3, length: 5 } as const

export interface Parts {
  readonly port: WorkerThreads.MessagePort
  readonly shared: Int32Array
  readonly at: typeof progress
  readonly list: Lister
  readonly searcher: Searcher
}

export const serve = ({ at, list, port, searcher, shared }: Parts): void => {
  const queries: Array<Query> = []

  const search = (order: WorkerOrder & { readonly _tag: "Search" }): void => {
    const { batch, queryIndex, query, ticket } = order
    if (query !== undefined) queries[queryIndex] = query
    const search = searcher.begin(queries[queryIndex]!, batch)
    const flag = at.withdrawn + (ticket & 1)
    for (let index = 0; Atomics.load(shared, flag) !== ticket; index++) {
      Atomics.store(shared, at.file, index)
      Atomics.add(shared, at.begun, 1)
      if (!search.next()) break
    }
    const packed = search.answer()
    port.postMessage({ _tag: "Searched", ticket, packed } satisfies WorkerReport, [
      packed.files.buffer,
      packed.meta.buffer,
      packed.bytes.buffer
    ])
  }
  const runOrder = (order: WorkerOrder): void => {
    const { ticket } = order
    if (order._tag === "Search") return search(order)
    const flag = at.withdrawn + (ticket & 1)
    const listings: Array<Listing | string> = []
    for (const directory of order.directories) {
      if (Atomics.load(shared, flag) === ticket) break
      listings.push(list(directory, order.withStats))
    }
    const buffers = listings.flatMap((listing) =>
      typeof listing === "string"
        ? []
        : listing.stats === undefined
          ? [listing.kinds.buffer]
          : [listing.kinds.buffer, listing.stats.buffer]
    )
    port.postMessage({ _tag: "Listed", ticket, listings } satisfies WorkerReport, buffers)
  }
  port.on("message", (order: WorkerOrder) => {
    Atomics.store(shared, at.file, 0)
    Atomics.store(shared, at.ticket, order.ticket)
    try {
      runOrder(order)
    } catch (error) {
      const report: WorkerReport = {
        _tag: "Failed",
        ticket: order.ticket,
        index: Atomics.load(shared, at.file),
        detail: String(error)
      }
      port.postMessage(report)
    }
    Atomics.store(shared, at.ticket, 0)
  })
}
