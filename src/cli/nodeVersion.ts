/** Whether this Node can run the program at all, asked before anything is loaded that an old one would only be puzzled by. */

const numbers = (version: string): ReadonlyArray<number> => (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? "").split(".").map(Number)

/** `range` is one lower bound, as package.json has it: `>=22.19.0`. */
export const isTooOld = (version: string, range: string): boolean => {
  const [have, need] = [numbers(version), numbers(range)]
  const at = need.findIndex((part, i) => part !== (have[i] ?? 0))
  return at !== -1 && (have[at] ?? 0) < need[at]!
}
