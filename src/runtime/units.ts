/** The units in which long computations count their work. `steps.ts` runs these computations. */

/**
 * A computation in steps. The computation pauses at each `yield`, which gives the work since the last pause. One unit is about
 * the comparison of one character.
 */
export type Steps<A> = Generator<number, A, void>

/** The maximum number of units of work between two pauses. */
export const maxUnitsPerStep = 2 ** 14

/** The number of units of work between two yields to other fibers. The work takes a few milliseconds. */
export const unitsPerSlice = 2 ** 18

/** The work for one line, match or list element, in units. */
export const unitsPerItem = 16

export const runAtOnce = <A>(steps: Steps<A>): A => {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
