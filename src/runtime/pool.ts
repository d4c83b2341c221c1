/**
 * A regular expression cannot be interrupted, but the thread that runs it can be ended. So whatever might backtrack runs in a worker,
 * with a budget of time for each file, and a worker that overruns it, or whose question nobody waits for any more, is ended and
 * replaced. Workers start at the first question that needs one and never keep the program alive.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as WorkerThreads from "node:worker_threads"
import { type Found, type Question, scan } from "./scan.ts"

export interface Job {
  readonly question: Question
  readonly texts: ReadonlyArray<string>
  /** 1-based line to start at in the first text; the others start at 1. */
  readonly from: number
  /** Lines with a match per text, at the most. */
  readonly most: number
  /** Milliseconds for each text. */
  readonly budget: number
}

/** What was found in each text; or which of them took too long or broke the engine. */
export type Answer =
  | { readonly _tag: "Found"; readonly found: ReadonlyArray<ReadonlyArray<Found>> }
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

export interface Matching {
  readonly match: (job: Job) => Effect.Effect<Answer>
}

interface Slot {
  readonly worker: WorkerThreads.Worker
  listener: ((message: Message) => void) | undefined
}

type Message =
  | { readonly _tag: "Ready" }
  | { readonly _tag: "Text"; readonly found: ReadonlyArray<Found> }
  | { readonly _tag: "Broken"; readonly detail: string }

/**
 * The worker's whole program: `scan`, told to answer after each text so that the budget can be counted anew. Bundlers that keep the
 * names of functions call `__name` for it.
 */
const program = (): string => `
const __name = (target) => target;
const scan = ${scan.toString()};
const { parentPort } = require("node:worker_threads");
parentPort.on("message", ({ question, texts, from, most }) => {
  parentPort.postMessage({ _tag: "Ready" });
  for (let i = 0; i < texts.length; i++) {
    try {
      parentPort.postMessage({ _tag: "Text", found: scan(question, texts[i], i === 0 ? from : 1, most) });
    } catch (error) {
      parentPort.postMessage({ _tag: "Broken", detail: String(error) });
      return;
    }
  }
});
`

/** Idle workers, last used first, and those who wait for one. */
const make = (size: number): Matching => {
  const idle: Array<Slot> = []
  const waiting: Array<() => void> = []
  let running = 0

  const start = (): Slot => {
    const { Worker } = process.getBuiltinModule("node:worker_threads") as typeof WorkerThreads
    // Nothing of the program's own flags and environment is of use to it.
    const worker = new Worker(program(), { eval: true, execArgv: [], env: {} })
    const slot: Slot = { worker, listener: undefined }
    worker.on("message", (message: Message) => slot.listener?.(message))
    worker.on("error", (error) => slot.listener?.({ _tag: "Broken", detail: String(error) }))
    // Nobody may be given a thread that is no more.
    worker.on("exit", () => {
      const at = idle.indexOf(slot)
      if (at !== -1) idle.splice(at, 1)
      slot.listener?.({ _tag: "Broken", detail: "the worker has ended" })
    })
    worker.unref()
    return slot
  }
  /** A place goes from hand to hand: only where nobody waits is it given back. */
  const free = (): void => {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
  const turn: Effect.Effect<void> = Effect.callback<void>((resume) => {
    let granted = false
    const go = () => {
      granted = true
      resume(Effect.void)
    }
    waiting.push(go)
    return Effect.sync(() => {
      if (granted) free()
      else waiting.splice(waiting.indexOf(go), 1)
    })
  })
  const ask = (job: Job): Effect.Effect<Answer> =>
    Effect.callback<Answer>((resume) => {
      const slot = idle.pop() ?? start()
      const found: Array<ReadonlyArray<Found>> = []
      let timer: ReturnType<typeof setTimeout> | undefined
      let hasEnded = false
      /** Once: an interruption can come when the answer is already given, and the worker is no longer this question's. */
      const end = (isAlive: boolean): void => {
        if (hasEnded) return
        hasEnded = true
        clearTimeout(timer)
        slot.listener = undefined
        slot.worker.unref()
        if (isAlive) idle.push(slot)
        else void slot.worker.terminate()
      }
      const finish = (answer: Answer, isAlive: boolean): void => {
        end(isAlive)
        resume(Effect.succeed(answer))
      }
      const watch = (): void => {
        clearTimeout(timer)
        if (job.budget !== Number.POSITIVE_INFINITY) {
          timer = setTimeout(() => finish({ _tag: "Overrun", index: found.length }, false), Math.min(job.budget, 2 ** 31 - 1))
        }
      }
      slot.listener = (message) => {
        if (message._tag === "Broken") return finish({ _tag: "Failed", index: found.length, detail: message.detail }, false)
        if (message._tag === "Text") found.push(message.found)
        if (found.length === job.texts.length) return finish({ _tag: "Found", found }, true)
        return watch()
      }
      // While somebody waits for the answer the program may not end.
      slot.worker.ref()
      slot.worker.postMessage({ question: job.question, texts: job.texts, from: job.from, most: job.most })
      return Effect.sync(() => end(false))
    })

  return {
    match: (job) =>
      job.texts.length === 0
        ? Effect.succeed({ _tag: "Found", found: [] })
        : Effect.uninterruptibleMask((restore) => {
            const run = Effect.ensuring(restore(ask(job)), Effect.sync(free))
            if (running === size) return Effect.flatMap(restore(turn), () => run)
            // Not in `restore`, where an interruption between the taking and the giving back would lose it.
            running++
            return run
          })
  }
}

/** Two, and not one per core: the threads that read have to live too. */
const defaultSize = 2

/** Where patterns that might backtrack are run. Replaceable, for runtimes without worker threads. */
export const Matching: Context.Reference<Matching> = Context.Reference<Matching>("fs-algebra/Matching", {
  defaultValue: () => make(defaultSize)
})
