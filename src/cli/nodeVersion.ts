/** Tests the version of Node. bin.ts uses this module before it loads modules that an old version may not run. */

const numbers = (version: string): ReadonlyArray<number> => (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? "").split(".").map(Number)

/** Tests whether the version is below the range. The range is a lower bound, such as `>=22.19.0` in package.json. */
export const isTooOld = (version: string, range: string): boolean => {
  const [have, need] = [numbers(version), numbers(range)]
  const at = need.findIndex((part, i) => part !== (have[i] ?? 0))
  return at !== -1 && (have[at] ?? 0) < need[at]!
}
