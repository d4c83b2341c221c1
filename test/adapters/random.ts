/** Returns a generator of numbers below a limit that gives the same sequence for the same seed. */
export const randomOf = (seed: number) => {
  let state = seed
  return (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}
