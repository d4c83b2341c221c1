/** Pseudorandom numbers that are the same in every run: mulberry32, with 32 bits of state. */

export interface Random {
  /** An integer from 0 to `bound - 1`. */
  readonly below: (bound: number) => number
  /** True once in `n` times, on average. */
  readonly oneIn: (n: number) => boolean
  readonly pick: <A>(values: ReadonlyArray<A>) => A
}

export const make = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const below = (bound: number): number => next() % bound
  return { below, oneIn: (n) => below(n) === 0, pick: (values) => values[below(values.length)]! }
}
