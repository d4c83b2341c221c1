/**
 * Peers take turns, with a different one first in each round, after a warm-up and a garbage collection that is not
 * timed. A sample is repeated, within limits, if other work on the machine disturbed it.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as pause } from "node:timers/promises"
import { median } from "../harness.ts"
import * as Clocks from "./clocks.ts"
import type { Outcome, Peer } from "./peer.ts"

/** The undisturbed samples wanted of each peer, and the most rounds to get them. */
const wanted = 7
const most = 11
/** Peers that take longer than this get three samples, since precision matters less for them. */
const longSampleMs = 5000

interface Sample extends Clocks.Spent {
  readonly outcome: Outcome
}

export interface Timing {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly cpuMs: number
  readonly firstMs: number | undefined
  readonly results: number | undefined
  readonly samples: number
  /** The number of disturbed samples; 0 if there were enough others. */
  readonly disturbed: number
}

const sample = async ({ run }: Peer): Promise<Sample> => {
  globalThis.gc?.()
  const before = Clocks.now()
  const outcome = await run()
  return { ...Clocks.since(before), outcome }
}

const summary = (all: ReadonlyArray<Sample>): Timing => {
  const clean = all.filter(({ disturbed }) => !disturbed)
  const used = clean.length >= Math.min(wanted, all.length) ? clean : all
  const times = used.map(({ ms }) => ms)
  const firsts = used.flatMap(({ outcome: { firstMs } }) => (firstMs === undefined ? [] : [firstMs]))
  return {
    median: median(times),
    min: Math.min(...times),
    max: Math.max(...times),
    cpuMs: median(used.map(({ cpuMs }) => cpuMs)),
    firstMs: firsts.length === 0 ? undefined : median(firsts),
    results: used[0]!.outcome.results,
    samples: used.length,
    disturbed: used.filter(({ disturbed }) => disturbed).length
  }
}

/**
 * Tests for seven undisturbed samples, or seven that took longer than 5 s together, since more of these say no more on
 * a busy machine.
 */
const enough = (samples: ReadonlyArray<Sample>, warm: Clocks.Spent): boolean => {
  if (warm.ms > longSampleMs) return samples.length >= 3
  if (samples.filter(({ disturbed }) => !disturbed).length >= wanted) return true
  return samples.length >= wanted && samples.reduce((sum, { ms }) => sum + ms, 0) > longSampleMs
}

export const measure = async (peers: ReadonlyArray<Peer>): Promise<ReadonlyArray<Timing>> => {
  const turns: Array<{ readonly peer: Peer; readonly warm: Sample; readonly samples: Array<Sample> }> = []
  for (const peer of peers) {
    await peer.run()
    turns.push({ peer, warm: await sample(peer), samples: [] })
  }
  for (let round = 0; round < most; round++) {
    const first = round % turns.length
    for (const { peer, samples, warm } of [...turns.slice(first), ...turns.slice(0, first)]) {
      if (!enough(samples, warm)) samples.push(await sample(peer))
    }
  }
  return turns.map(({ samples }) => summary(samples))
}

export interface Delay {
  readonly p99: number
  readonly max: number
}

/** Measures the time between two calls of a timer that is due every millisecond. */
const delayed = async (work: () => Promise<unknown>): Promise<Delay> => {
  globalThis.gc?.()
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  // The first interval starts at a call of the timer, so one must come before the work.
  await pause(5)
  histogram.reset()
  await work()
  // A call after the work sees a slice at its very end.
  await pause(5)
  histogram.disable()
  return { p99: histogram.percentile(99) / 1e6, max: histogram.max / 1e6 }
}

/** Returns the medians over some runs: our own slices are in every run, disturbances of the machine are not. */
export const delay = async (work: () => Promise<unknown>): Promise<Delay> => {
  const all: Array<Delay> = []
  for (let i = 0; i < 3; i++) all.push(await delayed(work))
  return { p99: median(all.map(({ p99 }) => p99)), max: median(all.map(({ max }) => max)) }
}

export const idle = (): Promise<Delay> => delay(() => pause(300))
