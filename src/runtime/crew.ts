/**
 * Worker threads that list directories and search files with synchronous calls, in parallel on all cores.
 *
 * Each worker has two jobs at a time, so that it never waits for the next one. A regular expression can backtrack
 * without end, and ending its thread is the only way to stop it. Workers start at the first use and keep the program
 * alive only while a job is pending.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as NodeBuffer from "node:buffer"
import type * as Fs from "node:fs"
import type * as Os from "node:os"
import type * as WorkerThreads from "node:worker_threads"
import type { Query } from "../model/search.ts"
import { acrossLines } from "./acrossLines.ts"
import { buffers, type End, failed, type Inline, type Job, listJob, type Searched, searchJob, type Slot } from "./job.ts"
import { code, makePlain, makeSimd } from "./kernel.ts"
import { type Listing, makeLister } from "./lister.ts"
import { program } from "./program.ts"
import { scan } from "./scan.ts"
import { type Batch, makeSearcher, type Searcher } from "./searcher.ts"
import { progress, type Report } from "./serve.ts"

export type { Searched } from "./job.ts"

/**
 * A pool of workers.
 *
 * `list` and `search` call back once, never before they return. They return a function that withdraws the job, which
 * then gets no answer. `over` is called once in any case, when no thread uses the job's paths any more.
 */
export interface Crew {
  readonly size: number
  /** Lists directories: each result is a listing or a system error code. `withStats` also stats each entry. */
  readonly list: (
    directories: ReadonlyArray<string>,
    done: (answer: ReadonlyArray<Listing | string>) => void,
    over?: () => void,
    withStats?: boolean
  ) => () => void
  /** Searches a batch. `budget` is in milliseconds per file; without workers there is no budget. */
  readonly search: (
    query: Query,
    batch: Batch,
    budget: number,
    done: (answer: Searched) => void,
    over?: () => void
  ) => () => void
  /** Ends the threads. Pending searches fail, and pending directories get EIO. */
  readonly end: () => Promise<void>
}

const builtin = <A>(name: string): A => process.getBuiltinModule(name) as A

export type Start = (program: string, shared: Int32Array) => WorkerThreads.Worker

const startWorker: Start = (program, shared) => {
  const { Worker } = builtin<typeof WorkerThreads>("node:worker_threads")
  return new Worker(program, { eval: true, execArgv: [], env: {}, workerData: shared })
}

let searcher: Searcher | undefined

export const inlineSearcher = (): Searcher => {
  if (searcher !== undefined) return searcher
  const { isAscii, isUtf8 } = builtin<typeof NodeBuffer>("node:buffer")
  const kernel = makeSimd(code) ?? makePlain()
  const now = () => performance.now()
  return (searcher = makeSearcher({ fs: builtin<typeof Fs>("node:fs"), isAscii, isUtf8, kernel, scan, acrossLines, now }))
}

const makeInline = (): Inline => ({ list: makeLister(builtin<typeof Fs>("node:fs")), searcher: inlineSearcher() })

const most = 2

/**
 * Milliseconds for a worker to leave a withdrawn job before its thread is ended. Starting a new worker takes as long.
 */
const grace = 40

/** Milliseconds between failed starts of a worker, and the maximum number of failed starts in a row. */
const pausing = 50
const mostStillborn = 40

/** The number of times that a file is checked within its budget. */
const looks = 8

/** Milliseconds to wait for the end of a thread. It runs no more of our code, but a system call may take long. */
const patience = 1000

const ended = (worker: WorkerThreads.Worker): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, patience)
    void worker.terminate().then(() => {
      clearTimeout(timer)
      resolve()
    })
  })

const watch = (job: Job, { shared }: Slot, overrun: (index: number) => void): void => {
  if (job.budget === Number.POSITIVE_INFINITY) return
  let begun = -1
  let seen = 0
  const look = (): void => {
    if (Atomics.load(shared, progress.ticket) !== job.ticket) return
    const now = Atomics.load(shared, progress.begun)
    if (now !== begun) seen = 0
    begun = now
    if (seen++ === looks) overrun(Atomics.load(shared, progress.file))
  }
  job.timer = setInterval(look, Math.min(Math.max(1, Math.ceil(job.budget / looks)), 2 ** 31 - 1)).unref()
}

export const make = (size: number, start: Start = startWorker): Crew => {
  const slots: Array<Slot> = []
  const lists: Array<Job> = []
  const searches: Array<Job> = []
  const ending = new Set<Promise<unknown>>()
  let isImpossible = false
  /** True while the next start is delayed after a worker that ended before it was online. */
  let isPausing = false
  let stillborn = 0
  let isBusy = false
  let isEnded = false

  const hold = ({ jobs, worker }: Slot): void => {
    if (jobs.length > 0) worker.ref()
    else worker.unref()
  }
  const release = (job: Job): void => {
    clearInterval(job.timer)
    job.timer = undefined
    job.slot = undefined
  }
  const finish = (job: Job): void => {
    if (job.gone === undefined) job.over()
    else void job.gone.then(job.over)
  }
  const settle = (slot: Slot, report: Report): void => {
    const at = slot.jobs.findIndex(({ ticket }) => ticket === report.ticket)
    const job = slot.jobs[at]
    if (job === undefined) return
    slot.jobs.splice(at, 1)
    release(job)
    hold(slot)
    // Give the worker its next job first, so that it does not wait for the caller.
    dispatch()
    if (!job.isWithdrawn) job.answer(report)
    finish(job)
  }
  /** Ends a thread. Its other jobs return to the front of the queues. */
  const retire = (slot: Slot, ...done: ReadonlyArray<Job>): void => {
    slot.isRetired = true
    slots.splice(slots.indexOf(slot), 1)
    const left = [...done]
    const gone: Promise<unknown> = ended(slot.worker).then(() => {
      ending.delete(gone)
      for (const job of left) finish(job)
    })
    ending.add(gone)
    for (const job of slot.jobs.splice(0).reverse()) {
      release(job)
      if (job.isWithdrawn || isEnded) left.push(job)
      else {
        ;(job.isList ? lists : searches).unshift(job)
        job.gone = gone
      }
    }
    if (isEnded) for (const job of left) if (!job.isWithdrawn) job.answer(failed(noMore))
  }
  const retireFor = (slot: Slot, job: Job, end: End | undefined): void => {
    slot.jobs.splice(slot.jobs.indexOf(job), 1)
    release(job)
    retire(slot, job)
    dispatch()
    if (end !== undefined) job.answer(end)
  }
  const die = (slot: Slot, detail: string): void => {
    if (slot.isRetired) return
    const ticket = Atomics.load(slot.shared, progress.ticket)
    const current = slot.jobs.find((job) => job.ticket === ticket)
    // If the current job is unknown, assume the first one. So each death ends one job, and a bad job cannot kill workers
    // for ever.
    const job = current ?? slot.jobs[0]
    if (job !== undefined && slot.isOnline) {
      const index = current === undefined ? 0 : Atomics.load(slot.shared, progress.file)
      return retireFor(slot, job, job.isWithdrawn ? undefined : failed(detail, index))
    }
    retire(slot)
    if (!slot.isOnline) pause()
    dispatch()
  }
  const pause = (): void => {
    isPausing = true
    setTimeout(() => {
      isPausing = false
      dispatch()
    }, pausing)
    if (++stillborn < mostStillborn) return
    stillborn = 0
    for (const job of searches.splice(0)) {
      if (job.budget === Number.POSITIVE_INFINITY) searches.push(job)
      else {
        job.answer(failed("no thread could be started for it"))
        finish(job)
      }
    }
  }

  const open = (): Slot | undefined => {
    const shared = new Int32Array(new SharedArrayBuffer(progress.length * Int32Array.BYTES_PER_ELEMENT))
    let worker: WorkerThreads.Worker
    try {
      worker = start(program(), shared)
    } catch {
      return undefined
    }
    const slot: Slot = {
      worker,
      shared,
      jobs: [],
      queries: [],
      nextPlace: 0,
      tickets: 0,
      isOnline: false,
      isRetired: false
    }
    worker.on("online", () => {
      slot.isOnline = true
      stillborn = 0
    })
    worker.on("message", (report: Report) => settle(slot, report))
    worker.on("error", (error) => die(slot, String(error)))
    worker.on("exit", () => die(slot, "the worker has ended"))
    worker.unref()
    slots.push(slot)
    return slot
  }
  const next = (): Slot | undefined => {
    if (lists.length + searches.length === 0) return undefined
    const idle = slots.find(({ jobs }) => jobs.length === 0)
    if (idle !== undefined) return idle
    if (slots.length < size && !isPausing) {
      const opened = open()
      isImpossible = opened === undefined && slots.length === 0
      if (opened !== undefined) return opened
    }
    return slots.find(({ jobs }) => jobs.length < most)
  }
  const assign = (slot: Slot, job: Job): void => {
    job.slot = slot
    job.ticket = ++slot.tickets
    slot.jobs.push(job)
    hold(slot)
    const order = job.order(slot, job.ticket)
    slot.worker.postMessage(order, buffers(order))
    watch(job, slot, (index) => {
      retireFor(slot, job, job.isWithdrawn ? undefined : { _tag: "Overrun", index })
    })
  }
  const dispatch = (): void => {
    for (let slot = next(); slot !== undefined; slot = next()) assign(slot, (lists.shift() ?? searches.shift())!)
    if (slots.length === 0) work()
  }

  const inlineJob = (): Job | undefined => {
    if (lists.length > 0 || isImpossible) return lists.shift() ?? searches.shift()
    const at = searches.findIndex(({ budget }) => budget === Number.POSITIVE_INFINITY)
    return at === -1 ? undefined : searches.splice(at, 1)[0]
  }
  const work = (): void => {
    const job = isBusy ? undefined : inlineJob()
    if (job === undefined) return
    isBusy = true
    const step = job.inline(makeInline())
    const go = (): void => {
      if (!job.isWithdrawn && !step()) return void setImmediate(go)
      finish(job)
      isBusy = false
      dispatch()
    }
    setImmediate(go)
  }

  const withdraw = (job: Job): void => {
    if (job.isWithdrawn) return
    job.isWithdrawn = true
    const waiting = job.isList ? lists : searches
    const at = waiting.indexOf(job)
    if (at !== -1) {
      waiting.splice(at, 1)
      finish(job)
    }
    const { slot } = job
    if (slot === undefined) return
    Atomics.store(slot.shared, progress.withdrawn + (job.ticket & 1), job.ticket)
    clearInterval(job.timer)
    // A worker reads the flag before it starts a job, so a job that it has not reached is over.
    if (Atomics.load(slot.shared, progress.ticket) !== job.ticket) finish(job)
    // The pattern may never let the worker reach the next file.
    else job.timer = setTimeout(() => retireFor(slot, job, undefined), grace)
  }
  const ask = (job: Job): (() => void) => {
    if (isEnded) {
      setImmediate(() => {
        if (!job.isWithdrawn) job.answer(failed(noMore))
        finish(job)
      })
    } else {
      ;(job.isList ? lists : searches).push(job)
      dispatch()
    }
    return () => withdraw(job)
  }

  return {
    size,
    list: (directories, done, over, withStats) => ask(listJob(directories, done, over, withStats)),
    search: (query, batch, budget, done, over) => ask(searchJob(query, batch, budget, done, over)),
    end: async () => {
      isEnded = true
      for (const slot of slots.slice()) retire(slot)
      for (const job of [...lists.splice(0), ...searches.splice(0)]) {
        job.answer(failed(noMore))
        finish(job)
      }
      await Promise.all(ending)
    }
  }
}

const noMore = "the workers have been ended"

interface Held {
  readonly crew: Crew
  users: number
  timer: ReturnType<typeof setTimeout> | undefined
}

let everybodys: Held | undefined

const defaultSize = (): number => Math.min(4, builtin<typeof Os>("node:os").availableParallelism())

const lingering = 5000

/** The worker pool of the program. It ends `lingering` milliseconds after its last user has released it. */
export const shared: Effect.Effect<Crew, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      everybodys ??= { crew: make(defaultSize()), users: 0, timer: undefined }
      everybodys.users++
      clearTimeout(everybodys.timer)
      return everybodys
    }),
    (held) =>
      Effect.sync(() => {
        if (--held.users > 0) return
        held.timer = setTimeout(() => {
          everybodys = undefined
          void held.crew.end()
        }, lingering).unref()
      })
  ),
  ({ crew }) => crew
)
