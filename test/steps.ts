/**
 * Counts the steps of a computation, for tests of growth and of pauses without a clock. V8 counts the runs of each block of our
 * sources. Work of the engine on long strings and arrays is counted by length. Import this file before the measured sources: V8
 * counts only blocks of functions that it compiles afterwards.
 */
import { Session } from "node:inspector"
import * as Effect from "effect/Effect"

const session = new Session()
session.connect()
session.post("Profiler.enable")
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true })

/** The characters or array elements that the engine processes in the time of one step. */
const perStep = 8

let native = 0

interface Sized {
  readonly length: number
}

type Method = (this: Sized, ...args: Array<never>) => unknown

/** Adds the cost of built-in methods to the count. A search costs only the part up to the match. */
const count = (
  prototype: object,
  names: ReadonlyArray<string>,
  cost: (self: Sized, result: unknown, args: ReadonlyArray<unknown>) => number
): (() => void) => {
  const undo = names.map((name) => {
    const original = Object.getOwnPropertyDescriptor(prototype, name)!
    const method = original.value as Method
    Object.defineProperty(prototype, name, {
      ...original,
      value: function (this: Sized, ...args: Array<never>): unknown {
        const result = Reflect.apply(method, this, args)
        native += cost(this, result, args) / perStep
        return result
      }
    })
    return () => Object.defineProperty(prototype, name, original)
  })
  return () => undo.forEach((one) => one())
}

const whole = ({ length }: Sized): number => length
const found = ({ length }: Sized, result: unknown, [, from]: ReadonlyArray<unknown>): number =>
  Math.max(0, ((result as number) === -1 ? length : (result as number)) - Number(from ?? 0))
const foundBack = ({ length }: Sized, result: unknown, [, from]: ReadonlyArray<unknown>): number =>
  Math.max(0, Math.min(length, Number(from ?? length)) - (result as number))
const made = (_: Sized, result: unknown): number => (result as Sized).length

const counting = (): (() => void) => {
  const typed = Object.getPrototypeOf(Uint8Array.prototype) as object
  const undo = [
    count(String.prototype, ["indexOf"], found),
    count(String.prototype, ["lastIndexOf"], foundBack),
    count(
      String.prototype,
      ["split", "replaceAll", "replace", "matchAll", "match", "normalize", "toLowerCase", "toUpperCase"],
      whole
    ),
    count(Array.prototype, ["indexOf"], found),
    count(Array.prototype, ["shift", "unshift", "splice", "includes", "concat"], whole),
    count(Array.prototype, ["slice"], made),
    count(typed, ["indexOf"], found),
    count(typed, ["includes"], whole),
    count(typed, ["slice"], made)
  ]
  return () => undo.forEach((one) => one())
}

interface Range {
  readonly count: number
}

interface Coverage {
  readonly result: ReadonlyArray<{
    readonly url: string
    readonly functions: ReadonlyArray<{ readonly ranges: ReadonlyArray<Range> }>
  }>
}

/** Returns the steps since the previous call. */
const taken = (): number => {
  let steps = native
  native = 0
  session.post("Profiler.takePreciseCoverage", (error, coverage) => {
    if (error !== null) throw error
    for (const { functions, url } of (coverage as Coverage).result) {
      if (!url.includes("/src/") || url.includes("/node_modules/")) continue
      for (const { ranges } of functions) for (const { count } of ranges) steps += count
    }
  })
  return steps
}

export interface Counted {
  /** The number of all steps. */
  readonly total: number
  /** The largest number of steps between two turns of the event loop. */
  readonly longest: number
}

/** Runs the effect to its end, also if it fails, and returns the counted steps. */
export const counted = (effect: Effect.Effect<unknown, unknown>): Promise<Counted> => {
  taken()
  const stop = counting()
  let total = 0
  let longest = 0
  let turn: NodeJS.Immediate
  const look = (): void => {
    const steps = taken()
    total += steps
    longest = Math.max(longest, steps)
  }
  const next = (): void => {
    look()
    turn = setImmediate(next)
  }
  turn = setImmediate(next)
  return Effect.runPromiseExit(effect).then(() => {
    clearImmediate(turn)
    look()
    stop()
    return { total, longest }
  })
}
