/**
 * Threads that read, hash and compress many files with synchronous calls, in parallel on up to four cores.
 *
 * An order, which is one message to a thread, takes about ten milliseconds, so orders cannot be cancelled. Threads
 * start at the first order, and keep the program alive only while an order is pending. If a thread ends, its pending
 * orders get no report, and their callers do the work without threads.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Os from "node:os"
import type * as WorkerThreads from "node:worker_threads"
import { builtin } from "../../runtime/node.ts"
import { program } from "./program.ts"
import type { Order, Report } from "./orders.ts"

export interface Threads {
  /** The number of concurrent orders that keeps all threads busy. */
  readonly concurrency: number
  /**
   * Runs an order in a thread. Transfers `bytes` of the order to the thread, so the caller cannot use them afterwards.
   *
   * The effect is uninterruptible, because the descriptors behind the order's paths must stay open until the thread has
   * finished. Returns `undefined` if no thread completed the order.
   */
  readonly run: (order: Order) => Effect.Effect<Report | undefined>
}

interface Slot {
  readonly worker: WorkerThreads.Worker
  readonly pending: Array<(report: Report | undefined) => void>
}

export type StartThread = (program: string) => WorkerThreads.Worker

const startThread: StartThread = (program) => {
  const { Worker } = builtin<typeof WorkerThreads>("node:worker_threads")
  return new Worker(program, { eval: true, execArgv: [], env: {} })
}

const ordersPerThread = 2

/** The number of failures in a row after which no more threads are started. A report resets the count. */
const maxFailures = 3

interface Pool extends Threads {
  readonly end: () => void
}

export const make = (size: number, start: StartThread = startThread): Pool => {
  const slots: Array<Slot> = []
  let failures = 0

  const remove = (slot: Slot): void => {
    const at = slots.indexOf(slot)
    if (at === -1) return
    slots.splice(at, 1)
    failures++
    for (const settle of slot.pending.splice(0)) settle(undefined)
  }
  const open = (): Slot | undefined => {
    if (failures >= maxFailures) return undefined
    try {
      const slot: Slot = { worker: start(program()), pending: [] }
      slot.worker.on("message", (report: Report) => {
        failures = 0
        const settle = slot.pending.shift()
        if (slot.pending.length === 0) slot.worker.unref()
        settle?.(report._tag === "Failed" ? undefined : report)
      })
      // The report is lost, and later reports would be assigned to the wrong orders. The end of the thread settles all
      // pending orders.
      slot.worker.on("messageerror", () => {
        slot.worker.removeAllListeners("message")
        void slot.worker.terminate()
      })
      slot.worker.on("error", () => remove(slot))
      slot.worker.on("exit", () => remove(slot))
      slot.worker.unref()
      slots.push(slot)
      return slot
    } catch {
      failures++
      return undefined
    }
  }
  const leastBusy = (): Slot | undefined => {
    let found: Slot | undefined
    for (const slot of slots) if (found === undefined || slot.pending.length < found.pending.length) found = slot
    return found !== undefined && (found.pending.length === 0 || slots.length >= size) ? found : (open() ?? found)
  }
  return {
    concurrency: size * ordersPerThread,
    run: (order) =>
      Effect.uninterruptible(
        Effect.callback<Report | undefined>((resume) => {
          const slot = leastBusy()
          if (slot === undefined) return resume(Effect.succeed(undefined))
          try {
            slot.worker.postMessage(order, "bytes" in order ? [order.bytes.buffer] : [])
          } catch {
            return resume(Effect.succeed(undefined))
          }
          slot.pending.push((report) => resume(Effect.succeed(report)))
          slot.worker.ref()
        })
      ),
    end: () => {
      for (const { worker } of slots) void worker.terminate()
    }
  }
}

interface SharedPool {
  readonly pool: Pool
  users: number
  timer: ReturnType<typeof setTimeout> | undefined
}

let sharedPool: SharedPool | undefined

const defaultSize = (): number => Math.min(4, builtin<typeof Os>("node:os").availableParallelism())

const idleLifetimeMillis = 5000

/**
 * The shared threads of the program. The threads end `idleLifetimeMillis` after the last scope that uses them has
 * closed.
 */
export const shared: Effect.Effect<Threads, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      sharedPool ??= { pool: make(defaultSize()), users: 0, timer: undefined }
      sharedPool.users++
      clearTimeout(sharedPool.timer)
      return sharedPool
    }),
    (held) =>
      Effect.sync(() => {
        if (--held.users > 0) return
        held.timer = setTimeout(() => {
          sharedPool = undefined
          held.pool.end()
        }, idleLifetimeMillis).unref()
      })
  ),
  ({ pool }) => pool
)
