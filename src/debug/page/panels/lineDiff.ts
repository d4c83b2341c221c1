/**
 * Compares two texts by line. Lines that occur once on each side, in the same order, serve as anchors and are found fast. The
 * lines between anchors are compared exactly if that is cheap, and otherwise count as changed.
 */

/** Ranges of lines that differ, from 0, each up to but not including its end. */
export interface Hunk {
  readonly fromA: number
  readonly toA: number
  readonly fromB: number
  readonly toB: number
}

export const linesOf = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** The largest number of line pairs to compare exactly. */
const most = 400_000

type Pair = readonly [a: number, b: number]

/** Returns the longest subsequence of pairs, ordered by `a`, in which `b` increases too. */
const growing = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Pair> => {
  /** The last pair of the best subsequence of each length, and the predecessor of each pair. */
  const tails: Array<number> = []
  const before = new Int32Array(pairs.length).fill(-1)
  pairs.forEach(([, b], index) => {
    let [low, high] = [0, tails.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (pairs[tails[middle]!]![1] < b) low = middle + 1
      else high = middle
    }
    if (low > 0) before[index] = tails[low - 1]!
    tails[low] = index
  })
  const row: Array<Pair> = []
  for (let at = tails.at(-1) ?? -1; at >= 0; at = before[at]!) row.push(pairs[at]!)
  return row.reverse()
}

export const diffLines = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<Hunk> => {
  const hunks: Array<Hunk> = []
  const emit = (fromA: number, toA: number, fromB: number, toB: number): void => {
    const last = hunks.at(-1)
    if (last !== undefined && last.toA === fromA && last.toB === fromB) hunks[hunks.length - 1] = { ...last, toA, toB }
    else hunks.push({ fromA, toA, fromB, toB })
  }

  const anchors = (fromA: number, toA: number, fromB: number, toB: number): ReadonlyArray<Pair> => {
    const inB = new Map<string, number>()
    for (let i = fromB; i < toB; i++) inB.set(b[i]!, inB.has(b[i]!) ? -1 : i)
    const inA = new Map<string, number>()
    for (let i = fromA; i < toA; i++) inA.set(a[i]!, inA.has(a[i]!) ? -1 : i)
    const pairs: Array<Pair> = []
    for (const [line, i] of inA) {
      const j = inB.get(line)
      if (i >= 0 && j !== undefined && j >= 0) pairs.push([i, j])
    }
    return growing(pairs)
  }

  const exactly = (fromA: number, toA: number, fromB: number, toB: number): void => {
    const [n, m] = [toA - fromA, toB - fromB]
    const width = m + 1
    const table = new Uint32Array((n + 1) * width)
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        table[i * width + j] =
          a[fromA + i] === b[fromB + j]
            ? table[(i + 1) * width + j + 1]! + 1
            : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!)
      }
    }
    let [i, j] = [0, 0]
    while (i < n || j < m) {
      if (i < n && j < m && a[fromA + i] === b[fromB + j]) [i, j] = [i + 1, j + 1]
      else if (j >= m || (i < n && table[(i + 1) * width + j]! >= table[i * width + j + 1]!)) {
        emit(fromA + i, fromA + i + 1, fromB + j, fromB + j)
        i++
      } else {
        emit(fromA + i, fromA + i, fromB + j, fromB + j + 1)
        j++
      }
    }
  }

  const between = (fromA: number, toA: number, fromB: number, toB: number): void => {
    while (fromA < toA && fromB < toB && a[fromA] === b[fromB]) [fromA, fromB] = [fromA + 1, fromB + 1]
    while (fromA < toA && fromB < toB && a[toA - 1] === b[toB - 1]) [toA, toB] = [toA - 1, toB - 1]
    if (fromA === toA && fromB === toB) return
    if (fromA === toA || fromB === toB) return emit(fromA, toA, fromB, toB)
    if ((toA - fromA) * (toB - fromB) <= most) return exactly(fromA, toA, fromB, toB)
    const found = anchors(fromA, toA, fromB, toB)
    if (found.length === 0) return emit(fromA, toA, fromB, toB)
    let [i, j] = [fromA, fromB]
    for (const [nextA, nextB] of found) {
      between(i, nextA, j, nextB)
      ;[i, j] = [nextA + 1, nextB + 1]
    }
    between(i, toA, j, toB)
  }

  between(0, a.length, 0, b.length)
  return hunks
}
