/**
 * Each case runs in its own process. The two sides take turns in alternating order, so neither profits from what the
 * other has warmed or cleaned up. Answers are compared before anything is timed. A report has the medians of both sides
 * from the same run, and one figure with its target.
 */
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

export interface Side {
  readonly name: string
  /** Runs `count` operations. */
  readonly run: (count: number) => unknown
}

export interface Case {
  readonly name: string
  /** The promise, as a bound on the figure below. */
  readonly target: string
  readonly bound: number
  /** `ratio` is ours ÷ baseline; the overhead is ours − baseline; `µs` is ours alone, for an absolute promise. */
  readonly figure: "ratio" | "overhead µs" | "baseline ÷ ours" | "µs"
  /** Operations in a sample. */
  readonly count: number
  readonly samples: number
  /** Runs of each side before the first sample. @default 3 */
  readonly warmups?: number
  /** Checks that both sides give the same answers, then returns them. */
  readonly make: () => Promise<{ readonly ours: Side; readonly baseline: Side; readonly close?: () => unknown }>
}

export interface Report {
  readonly name: string
  readonly target: string
  readonly ours: number
  readonly baseline: number
  readonly spread: readonly [number, number]
  readonly figure: number
  readonly unit: Case["figure"]
  readonly held: boolean
}

/** Compares answers before anything is timed. */
export const check = (condition: boolean): void => {
  if (!condition) throw new Error("the two sides do not answer the same")
}

/** Runs a call many times. */
export const times = (run: () => unknown) => (count: number) => {
  for (let i = 0; i < count; i++) run()
}

/** Runs promises one after the other. */
export const awaited = (run: () => Promise<unknown>) => async (count: number) => {
  for (let i = 0; i < count; i++) await run()
}

/** Runs an effect many times in one fiber. */
export const effects = (operation: Effect.Effect<unknown, unknown>) => (count: number) =>
  Effect.runPromise(
    Effect.gen(function* () {
      for (let i = 0; i < count; i++) yield* operation
    })
  )

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

const sample = async (side: Side, count: number): Promise<number> => {
  const start = process.hrtime.bigint()
  await side.run(count)
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

export const measure = async (self: Case): Promise<Report> => {
  const { baseline, close, ours } = await self.make()
  for (let i = 0; i < (self.warmups ?? 3); i++) {
    await ours.run(self.count)
    await baseline.run(self.count)
  }
  const a: Array<number> = []
  const b: Array<number> = []
  for (let i = 0; i < self.samples; i++) {
    if (i % 2 === 0) {
      a.push(await sample(ours, self.count))
      b.push(await sample(baseline, self.count))
    } else {
      b.push(await sample(baseline, self.count))
      a.push(await sample(ours, self.count))
    }
  }
  await close?.()
  const [x, y] = [median(a), median(b)]
  const figure = { ratio: x / y, "overhead µs": x - y, "baseline ÷ ours": y / x, µs: x }[self.figure]
  return {
    name: self.name,
    target: self.target,
    ours: x,
    baseline: y,
    spread: [Math.min(...a), Math.max(...a)],
    figure,
    unit: self.figure,
    held: self.figure === "baseline ÷ ours" ? figure >= self.bound : figure <= self.bound
  }
}

/** Runs one case in a new process and returns its report. */
export const isolated = (module: string, index: number): Report => {
  const child = spawnSync(
    process.execPath,
    ["--expose-gc", fileURLToPath(new URL("one.ts", import.meta.url)), module, `${index}`],
    {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"]
    }
  )
  if (child.status !== 0) throw new Error(`${module} case ${index} ended with ${child.status}`)
  return JSON.parse(child.stdout.trim().split("\n").pop()!) as Report
}
