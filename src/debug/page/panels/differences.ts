/** Compares two texts by line. The comparison is a separate module, because tests load it without a browser. */
import * as TextDiff from "effect/TextDiff"

/**
 * The step budget of one comparison. A comparison takes about lines × edits steps, so the permitted number of edits is `maxSteps`
 * divided by the number of lines.
 */
const maxSteps = 20_000_000

/** A differing range, as character positions in both texts. The ends are exclusive. */
interface Difference {
  readonly fromA: number
  readonly toA: number
  readonly fromB: number
  readonly toB: number
}

/** Returns the ranges of lines that differ. Beyond the budget, the ranges may include unchanged lines. */
export const differences = (before: string, after: string): ReadonlyArray<Difference> => {
  const lines = before.split("\n").length + after.split("\n").length
  const edits = TextDiff.lines(before, after, { maxEdits: Math.ceil(maxSteps / lines) })
  const found: Array<Difference> = []
  let [fromA, toA, fromB, toB] = [0, 0, 0, 0]
  for (const { _tag, items } of [...edits, { _tag: "Equal", items: [] } as const]) {
    const length = items.reduce((sum, line) => sum + line.length, 0)
    if (_tag !== "Insert") toA += length
    if (_tag !== "Delete") toB += length
    if (_tag !== "Equal") continue
    const [endA, endB] = [toA - length, toB - length]
    if (endA > fromA || endB > fromB) found.push({ fromA, toA: endA, fromB, toB: endB })
    ;[fromA, fromB] = [toA, toB]
  }
  return found
}
