/** The share of the random cases that a test run executes. */

export const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

/** Returns the number of random cases of a test: a quarter of it in `npm test`, and ten times as many in the soak. */
export const runs = (all: number): number =>
  isSoak ? 10 * all : process.env["FS_ALGEBRA_TESTS"] === "all" ? all : Math.ceil(all / 4)
