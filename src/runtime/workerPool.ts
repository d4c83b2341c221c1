/**
 * Worker threads that list directories and search files with synchronous calls, in parallel on all cores.
 *
 * Each worker has two jobs at a time, so it never waits for a job. A regular expression can backtrack without end; only
 * the termination of its thread stops it. Workers start at their first use. Workers keep the program alive only while a
 * job is pending.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as NodeBuffer from "node:buffer"
import type * as Fs from "node:fs"
import type * as Os from "node:os"
import type * as WorkerThreads from "node:worker_threads"
import type { Query } from "../model/search.ts"
import { acrossLines } from "./acrossLines.ts"
import { code, makePlain, makeSimd } from "./kernel.ts"
import { makeLineFinder } from "./lineFinder.ts"
import { type Lister, type Listing, makeLister } from "./lister.ts"
import type { PackedMatches } from "./packed.ts"
import { program } from "./program.ts"
import { scan } from "./scan.ts"
import { type Batch, type Contents, makeSearcher, type Search, type Searcher } from "./searcher.ts"
import { progress, type WorkerOrder, type WorkerReport } from "./serve.ts"

export type BatchResult =
  | PackedMatches
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

interface InlineTools {
  readonly list: Lister
  readonly searcher: Searcher
}

const itemsPerYield = 16

const maxCachedQueries = 8

type JobEnd = WorkerReport | { readonly _tag: "Overrun"; readonly index: number }

interface Job {
  readonly budget: number
  /** True for a job that lists directories. These jobs are sent before searches. */
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

interface WorkerSlot {
  readonly worker: WorkerThreads.Worker
  readonly shared: Int32Array
  readonly jobs: Array<Job>
  readonly queries: Array<Query>
  nextQueryIndex: number
  lastTicket: number
  isOnline: boolean
  isRetired: boolean
}

const makeFailure = (detail: string, index = 0): JobEnd => ({ _tag: "Failed", ticket: 0, index, detail })

const callOnce = (run: (() => void) | undefined): (() => void) => {
  let left = run
  return () => {
    const now = left
    left = undefined
    now?.()
  }
}

const listJob = (
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

/**
 * Copies the contents into one buffer that can be transferred. Sending a part of a buffer would copy the whole buffer.
 */
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

const transferListOf = (order: WorkerOrder): Array<ArrayBuffer> =>
  order._tag === "Search" && "contents" in order.batch && order.batch.contents.length > 0
    ? [order.batch.contents[0]!.buffer as ArrayBuffer]
    : []

const searchJob = (
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

/**
 * A pool of workers.
 *
 * `list` and `search` call `done` once, after they have returned. Both return a function that withdraws the job. After a
 * withdrawal, `done` is not called. `onReleased` is always called once, when no thread uses the paths of the job any more.
 */
export interface WorkerPool {
  readonly size: number
  /** Lists directories: each result is a listing or a system error code. `withStats` also stats each entry. */
  readonly list: (
    directories: ReadonlyArray<string>,
    done: (answer: ReadonlyArray<Listing | string>) => void,
    onReleased?: () => void,
    withStats?: boolean
  ) => () => void
  /** Searches a batch. `budget` is in milliseconds per file; without workers there is no budget. */
  readonly search: (
    query: Query,
    batch: Batch,
    budget: number,
    done: (answer: BatchResult) => void,
    onReleased?: () => void
  ) => () => void
  /** Ends the threads. Pending searches fail, and pending directories get EIO. */
  readonly end: () => Promise<void>
}

const builtin = <A>(name: string): A => process.getBuiltinModule(name) as A

export type StartWorker = (program: string, shared: Int32Array) => WorkerThreads.Worker

const startWorker: StartWorker = (program, shared) => {
  const { Worker } = builtin<typeof WorkerThreads>("node:worker_threads")
  return new Worker(program, { eval: true, execArgv: [], env: {}, workerData: shared })
}

let searcher: Searcher | undefined

export const inlineSearcher = (): Searcher => {
  if (searcher !== undefined) return searcher
  const { isAscii, isUtf8 } = builtin<typeof NodeBuffer>("node:buffer")
  const kernel = makeSimd(code) ?? makePlain()
  const now = () => performance.now()
  return (searcher = makeSearcher({
    fs: builtin<typeof Fs>("node:fs"),
    isAscii,
    isUtf8,
    kernel,
    scan,
    acrossLines,
    makeLineFinder,
    now
  }))
}

const makeInlineTools = (): InlineTools => ({ list: makeLister(builtin<typeof Fs>("node:fs")), searcher: inlineSearcher() })

const maxJobsPerWorker = 2

/**
 * The time in milliseconds in which a worker must stop a withdrawn job before its thread is terminated. Starting a new
 * worker takes about as long.
 */
const withdrawalGraceMillis = 40

/** The pause after a failed start of a worker, in milliseconds, and the maximum number of consecutive failed starts. */
const startRetryDelayMillis = 50
const maxFailedStarts = 40

const checksPerBudget = 8

/** The maximum time to wait for the end of a thread, in milliseconds. The thread's last system call may take long. */
const terminationTimeoutMillis = 1000

const terminateWorker = (worker: WorkerThreads.Worker): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, terminationTimeoutMillis)
    void worker.terminate().then(() => {
      clearTimeout(timer)
      resolve()
    })
  })

const watchBudget = (job: Job, { shared }: WorkerSlot, overrun: (index: number) => void): void => {
  if (job.budget === Number.POSITIVE_INFINITY) return
  let lastFilesBegun = -1
  let unchangedChecks = 0
  const checkProgress = (): void => {
    if (Atomics.load(shared, progress.ticket) !== job.ticket) return
    const now = Atomics.load(shared, progress.begun)
    if (now !== lastFilesBegun) unchangedChecks = 0
    lastFilesBegun = now
    if (unchangedChecks++ === checksPerBudget) overrun(Atomics.load(shared, progress.file))
  }
  job.timer = setInterval(checkProgress, Math.min(Math.max(1, Math.ceil(job.budget / checksPerBudget)), 2 ** 31 - 1)).unref()
}

export const make = (size: number, start: StartWorker = startWorker): WorkerPool => {
  const slots: Array<WorkerSlot> = []
  const pendingLists: Array<Job> = []
  const pendingSearches: Array<Job> = []
  const endingThreads = new Set<Promise<unknown>>()
  let areWorkersUnavailable = false
  /** True while the next start is delayed after a worker that ended before it was online. */
  let isStartDelayed = false
  let failedStarts = 0
  let isInlineBusy = false
  let isEnded = false

  const updateWorkerRef = ({ jobs, worker }: WorkerSlot): void => {
    if (jobs.length > 0) worker.ref()
    else worker.unref()
  }
  const release = (job: Job): void => {
    clearInterval(job.timer)
    job.timer = undefined
    job.slot = undefined
  }
  const completeJob = (job: Job): void => {
    if (job.previousThreadEnd === undefined) job.onReleased()
    else void job.previousThreadEnd.then(job.onReleased)
  }
  const settleReport = (slot: WorkerSlot, report: WorkerReport): void => {
    const at = slot.jobs.findIndex(({ ticket }) => ticket === report.ticket)
    const job = slot.jobs[at]
    if (job === undefined) return
    slot.jobs.splice(at, 1)
    release(job)
    updateWorkerRef(slot)
    // Give the worker its next job first, so that it does not wait for the caller.
    dispatch()
    if (!job.isWithdrawn) job.answer(report)
    completeJob(job)
  }
  /** Ends a thread, and then completes the jobs in `done`. The thread's other jobs return to the front of the queues. */
  const endThread = (slot: WorkerSlot, ...done: ReadonlyArray<Job>): void => {
    slot.isRetired = true
    slots.splice(slots.indexOf(slot), 1)
    const remainingJobs = [...done]
    const threadEnd: Promise<unknown> = terminateWorker(slot.worker).then(() => {
      endingThreads.delete(threadEnd)
      for (const job of remainingJobs) completeJob(job)
    })
    endingThreads.add(threadEnd)
    for (const job of slot.jobs.splice(0).reverse()) {
      release(job)
      if (job.isWithdrawn || isEnded) remainingJobs.push(job)
      else {
        ;(job.isList ? pendingLists : pendingSearches).unshift(job)
        job.previousThreadEnd = threadEnd
      }
    }
    if (isEnded) for (const job of remainingJobs) if (!job.isWithdrawn) job.answer(makeFailure(poolEndedDetail))
  }
  const endThreadOfJob = (slot: WorkerSlot, job: Job, end: JobEnd | undefined): void => {
    slot.jobs.splice(slot.jobs.indexOf(job), 1)
    release(job)
    endThread(slot, job)
    dispatch()
    if (end !== undefined) job.answer(end)
  }
  const handleThreadDeath = (slot: WorkerSlot, detail: string): void => {
    if (slot.isRetired) return
    const ticket = Atomics.load(slot.shared, progress.ticket)
    const current = slot.jobs.find((job) => job.ticket === ticket)
    // If the current job is unknown, the first job fails. So every death of a worker ends a job, and one job cannot kill
    // workers without end.
    const job = current ?? slot.jobs[0]
    if (job !== undefined && slot.isOnline) {
      const index = current === undefined ? 0 : Atomics.load(slot.shared, progress.file)
      return endThreadOfJob(slot, job, job.isWithdrawn ? undefined : makeFailure(detail, index))
    }
    endThread(slot)
    if (!slot.isOnline) delayStarts()
    dispatch()
  }
  const delayStarts = (): void => {
    isStartDelayed = true
    setTimeout(() => {
      isStartDelayed = false
      dispatch()
    }, startRetryDelayMillis)
    if (++failedStarts < maxFailedStarts) return
    failedStarts = 0
    for (const job of pendingSearches.splice(0)) {
      if (job.budget === Number.POSITIVE_INFINITY) pendingSearches.push(job)
      else {
        job.answer(makeFailure("no worker thread could be started"))
        completeJob(job)
      }
    }
  }

  const openWorker = (): WorkerSlot | undefined => {
    const shared = new Int32Array(new SharedArrayBuffer(progress.length * Int32Array.BYTES_PER_ELEMENT))
    let worker: WorkerThreads.Worker
    try {
      worker = start(program(), shared)
    } catch {
      return undefined
    }
    const slot: WorkerSlot = {
      worker,
      shared,
      jobs: [],
      queries: [],
      nextQueryIndex: 0,
      lastTicket: 0,
      isOnline: false,
      isRetired: false
    }
    worker.on("online", () => {
      slot.isOnline = true
      failedStarts = 0
    })
    worker.on("message", (report: WorkerReport) => settleReport(slot, report))
    worker.on("error", (error) => handleThreadDeath(slot, String(error)))
    worker.on("exit", () => handleThreadDeath(slot, "the worker thread has ended"))
    worker.unref()
    slots.push(slot)
    return slot
  }
  const findWorkerForNextJob = (): WorkerSlot | undefined => {
    if (pendingLists.length + pendingSearches.length === 0) return undefined
    const idle = slots.find(({ jobs }) => jobs.length === 0)
    if (idle !== undefined) return idle
    if (slots.length < size && !isStartDelayed) {
      const opened = openWorker()
      areWorkersUnavailable = opened === undefined && slots.length === 0
      if (opened !== undefined) return opened
    }
    return slots.find(({ jobs }) => jobs.length < maxJobsPerWorker)
  }
  const assign = (slot: WorkerSlot, job: Job): void => {
    job.slot = slot
    job.ticket = ++slot.lastTicket
    slot.jobs.push(job)
    updateWorkerRef(slot)
    const order = job.order(slot, job.ticket)
    slot.worker.postMessage(order, transferListOf(order))
    watchBudget(job, slot, (index) => {
      endThreadOfJob(slot, job, job.isWithdrawn ? undefined : { _tag: "Overrun", index })
    })
  }
  const dispatch = (): void => {
    for (let slot = findWorkerForNextJob(); slot !== undefined; slot = findWorkerForNextJob())
      assign(slot, (pendingLists.shift() ?? pendingSearches.shift())!)
    if (slots.length === 0) runInlineJob()
  }

  const inlineJob = (): Job | undefined => {
    if (pendingLists.length > 0 || areWorkersUnavailable) return pendingLists.shift() ?? pendingSearches.shift()
    const at = pendingSearches.findIndex(({ budget }) => budget === Number.POSITIVE_INFINITY)
    return at === -1 ? undefined : pendingSearches.splice(at, 1)[0]
  }
  const runInlineJob = (): void => {
    const job = isInlineBusy ? undefined : inlineJob()
    if (job === undefined) return
    isInlineBusy = true
    const step = job.inline(makeInlineTools())
    const runStep = (): void => {
      if (!job.isWithdrawn && !step()) return void setImmediate(runStep)
      completeJob(job)
      isInlineBusy = false
      dispatch()
    }
    setImmediate(runStep)
  }

  const withdraw = (job: Job): void => {
    if (job.isWithdrawn) return
    job.isWithdrawn = true
    const pendingQueue = job.isList ? pendingLists : pendingSearches
    const at = pendingQueue.indexOf(job)
    if (at !== -1) {
      pendingQueue.splice(at, 1)
      completeJob(job)
    }
    const { slot } = job
    if (slot === undefined) return
    Atomics.store(slot.shared, progress.withdrawn + (job.ticket & 1), job.ticket)
    clearInterval(job.timer)
    // A worker reads the flag before it starts a job, so a job that the worker has not started is over.
    if (Atomics.load(slot.shared, progress.ticket) !== job.ticket) completeJob(job)
    // The worker reads the flag only between files, and the pattern may never end.
    else job.timer = setTimeout(() => endThreadOfJob(slot, job, undefined), withdrawalGraceMillis)
  }
  const submitJob = (job: Job): (() => void) => {
    if (isEnded) {
      setImmediate(() => {
        if (!job.isWithdrawn) job.answer(makeFailure(poolEndedDetail))
        completeJob(job)
      })
    } else {
      ;(job.isList ? pendingLists : pendingSearches).push(job)
      dispatch()
    }
    return () => withdraw(job)
  }

  return {
    size,
    list: (directories, done, onReleased, withStats) => submitJob(listJob(directories, done, onReleased, withStats)),
    search: (query, batch, budget, done, onReleased) => submitJob(searchJob(query, batch, budget, done, onReleased)),
    end: async () => {
      isEnded = true
      for (const slot of slots.slice()) endThread(slot)
      for (const job of [...pendingLists.splice(0), ...pendingSearches.splice(0)]) {
        job.answer(makeFailure(poolEndedDetail))
        completeJob(job)
      }
      await Promise.all(endingThreads)
    }
  }
}

const poolEndedDetail = "the worker pool has been closed"

interface PoolReference {
  readonly pool: WorkerPool
  users: number
  timer: ReturnType<typeof setTimeout> | undefined
}

let sharedPool: PoolReference | undefined

const defaultSize = (): number => Math.min(4, builtin<typeof Os>("node:os").availableParallelism())

const idleLifetimeMillis = 5000

/** The worker pool of the program. The pool ends `idleLifetimeMillis` after its last user has released it. */
export const shared: Effect.Effect<WorkerPool, never, Scope.Scope> = Effect.map(
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
          void held.pool.end()
        }, idleLifetimeMillis).unref()
      })
  ),
  ({ pool }) => pool
)
