/** Sets how many random cases a test run executes, and their seed. */

export const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

/** Returns the number of random cases of a test: a quarter of it in `npm test`, and ten times as many in the soak. */
export const runs = (all: number): number =>
  isSoak ? 10 * all : process.env["FS_ALGEBRA_TESTS"] === "all" ? all : Math.ceil(all / 4)

const asked = (name: string): number | undefined => {
  const value = process.env[name]
  if (value === undefined) return undefined
  if (!/^\d+$/.test(value)) throw new Error(`${name} must be a whole number, and is ${JSON.stringify(value)}`)
  return Number(value)
}

/** The seed of the soak: FS_ALGEBRA_SEED, or a new one for each process. Other runs have a fixed seed. */
export const seed: number = isSoak ? (asked("FS_ALGEBRA_SEED") ?? Math.floor(Math.random() * 2 ** 31)) : 20_261_122

/** Returns the number of cases in the soak: FS_ALGEBRA_RUNS, or the given number. */
export const inSoak = (all: number): number => asked("FS_ALGEBRA_RUNS") ?? all

/** Returns the options of a suite: `short` random programs, and `long` ones in the soak, with the seed of this run. */
export const randomPrograms = (short: number, long: number): { readonly programs: number; readonly seed: number } => ({
  programs: isSoak ? inSoak(long) : short,
  seed
})
