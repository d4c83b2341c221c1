/**
 * Peers take turns, a different one first in each round, after a warm-up and a collection of garbage that nobody pays for. A sample
 * that other work on the machine has disturbed is taken again, within reason.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as pause } from "node:timers/promises"
import { median } from "../harness.ts"
import * as Clocks from "./clocks.ts"
import type { Outcome, Peer } from "./peer.ts"

/** Clean ones that are wanted of each peer, and rounds that are made to have them. */
const wanted = 7
const most = 11
/** What takes longer than this gets three samples: what is so slow need not be known better. */
const patienceMs = 5000

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
  /** Of the samples, how many were disturbed; 0 where enough others were had. */
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

/** Seven clean ones; or seven that took long together, since on a machine that is never quiet more of them tell no more. */
const enough = (samples: ReadonlyArray<Sample>, warm: Clocks.Spent): boolean => {
  if (warm.ms > patienceMs) return samples.length >= 3
  if (samples.filter(({ disturbed }) => !disturbed).length >= wanted) return true
  return samples.length >= wanted && samples.reduce((sum, { ms }) => sum + ms, 0) > patienceMs
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

/** Of a timer that is due every millisecond, the time between two calls of it. */
const delayed = async (work: () => Promise<unknown>): Promise<Delay> => {
  globalThis.gc?.()
  const histogram = monitorEventLoopDelay({ resolution: 1 })
  histogram.enable()
  // The first interval is measured from a call of the timer, so there has to be one before the work.
  await pause(5)
  histogram.reset()
  await work()
  // And one after it, which sees a slice at its very end.
  await pause(5)
  histogram.disable()
  return { p99: histogram.percentile(99) / 1e6, max: histogram.max / 1e6 }
}

/** The medians over some runs: a slice of ours is in every one of them, what others do to the machine is not. */
export const delay = async (work: () => Promise<unknown>): Promise<Delay> => {
  const all: Array<Delay> = []
  for (let i = 0; i < 3; i++) all.push(await delayed(work))
  return { p99: median(all.map(({ p99 }) => p99)), max: median(all.map(({ max }) => max)) }
}

export const idle = (): Promise<Delay> => delay(() => pause(300))
