/** Tests the version of Node before any module is loaded that an old version cannot parse. */

const numbers = (version: string): ReadonlyArray<number> => (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? "").split(".").map(Number)

/** Tests whether the version is below the range, which is one lower bound as in package.json: `>=22.19.0`. */
export const isTooOld = (version: string, range: string): boolean => {
  const [have, need] = [numbers(version), numbers(range)]
  const at = need.findIndex((part, i) => part !== (have[i] ?? 0))
  return at !== -1 && (have[at] ?? 0) < need[at]!
}
