/** The units in which long computations count their work. `steps.ts` runs these computations. */

/**
 * A computation that pauses at each yield and yields the work done since the last pause, in units of about one compared
 * character.
 */
export type Steps<A> = Generator<number, A, void>

/** The maximum number of units of work between two pauses. */
export const maxUnitsPerStep = 2 ** 14

/** The number of units of work between two yields to other fibers. They take a few milliseconds. */
export const unitsPerSlice = 2 ** 18

/** The work for one line, match or list element, in units. */
export const unitsPerItem = 16

export const runAtOnce = <A>(steps: Steps<A>): A => {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
