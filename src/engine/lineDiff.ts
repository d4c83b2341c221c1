/**
 * Finds the common lines of two texts with Myers' algorithm in linear space, as in `effect/TextDiff`, but in steps so
 * that other fibers run.
 */
import { unitsPerItem, type Steps, maxUnitsPerStep } from "../runtime/steps.ts"

export interface Block {
  readonly before: number
  readonly after: number
  readonly length: number
}

interface Region {
  readonly aLo: number
  readonly aHi: number
  readonly bLo: number
  readonly bHi: number
}

interface Snake {
  readonly x: number
  readonly y: number
  readonly u: number
  readonly v: number
}

export interface Lines {
  /** One number per line. Equal numbers mean equal lines, terminators included. */
  readonly ids: ReadonlyArray<number>
  /** The start index of each line, followed by the end index of the last. */
  readonly starts: ReadonlyArray<number>
}

/** V8 hashes strings above 16,383 units by their length alone, so a map would compare each with all others. */
const maxKeyLength = 4096

export const makeLineNumbering = (): ((text: string) => Steps<Lines>) => {
  const known = new Map<string, number>()
  const idOf = (key: string): number => {
    let id = known.get(key)
    if (id === undefined) known.set(key, (id = known.size))
    return id
  }
  return function* (text) {
    const ids: Array<number> = []
    const starts: Array<number> = [0]
    let unitsSpent = 0
    for (let at = 0; at < text.length;) {
      const newline = text.indexOf("\n", at)
      const end = newline === -1 ? text.length : newline + 1
      let id = 0
      if (end - at <= maxKeyLength) id = idOf(text.slice(at, end))
      else {
        for (let from = at; from < end; from += maxKeyLength) {
          // A key of a piece begins with LF and the number of the previous piece, so it never equals a line.
          id = idOf(`\n${from === at ? "" : id}\n${text.slice(from, Math.min(end, from + maxKeyLength))}`)
          yield maxKeyLength
        }
      }
      ids.push(id)
      unitsSpent += unitsPerItem + Math.min(end - at, maxKeyLength)
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
      starts.push((at = end))
    }
    yield unitsSpent
    return { ids, starts }
  }
}

/**
 * Returns the common blocks in order, with as many lines as possible.
 *
 * If that takes more than `maxEdits` added and removed lines, the result contains fewer common lines.
 */
export const findCommonBlocks = function* (
  a: ReadonlyArray<number>,
  b: ReadonlyArray<number>,
  maxEdits: number
): Steps<ReadonlyArray<Block>> {
  const out: Array<Block> = []
  const push = (before: number, after: number, length: number): void => {
    if (length === 0) return
    const last = out[out.length - 1]
    if (last !== undefined && last.before + last.length === before && last.after + last.length === after) {
      out[out.length - 1] = { before: last.before, after: last.after, length: last.length + length }
    } else out.push({ before, after, length })
  }
  const maxD = Math.ceil(Math.max(0, maxEdits) / 2)
  // The furthest x on each diagonal, forwards and backwards. The number of diagonals is bounded by the edits.
  const offset = Math.min(a.length + b.length, maxD) + 1
  const forward = new Int32Array(2 * offset + 1)
  const backward = new Int32Array(2 * offset + 1)
  // Loops inside a generator are slow, so the inner loops are functions that count their comparisons here.
  let compared = 0

  const searchForward = ({ aHi, aLo, bHi, bLo }: Region, d: number): Snake | undefined => {
    const n = aHi - aLo
    const m = bHi - bLo
    const delta = n - m
    const isOdd = (delta & 1) === 1
    for (let k = -d; k <= d; k += 2) {
      const left = forward[offset + k - 1]!
      const right = forward[offset + k + 1]!
      let x = k === -d || (k !== d && left < right) ? right : left + 1
      let y = x - k
      const x0 = x
      while (x < n && y < m && a[aLo + x] === b[bLo + y]) {
        x++
        y++
      }
      forward[offset + k] = x
      compared += x - x0 + 1
      if (isOdd && k >= delta - (d - 1) && k <= delta + (d - 1) && x + backward[offset + delta - k]! >= n) {
        return { x: aLo + x0, y: bLo + x0 - k, u: aLo + x, v: bLo + y }
      }
    }
    return undefined
  }

  const searchBackward = ({ aHi, aLo, bHi, bLo }: Region, d: number): Snake | undefined => {
    const n = aHi - aLo
    const m = bHi - bLo
    const delta = n - m
    const isEven = (delta & 1) === 0
    for (let k = -d; k <= d; k += 2) {
      const left = backward[offset + k - 1]!
      const right = backward[offset + k + 1]!
      let x = k === -d || (k !== d && left < right) ? right : left + 1
      let y = x - k
      const x0 = x
      while (x < n && y < m && a[aHi - x - 1] === b[bHi - y - 1]) {
        x++
        y++
      }
      backward[offset + k] = x
      compared += x - x0 + 1
      if (isEven && k >= delta - d && k <= delta + d && x + forward[offset + delta - k]! >= n) {
        return { x: aHi - x, y: bHi - y, u: aHi - x0, v: bHi - x0 + k }
      }
    }
    return undefined
  }

  /** Returns the furthest point within `limit` edits, strictly inside the region, so that both parts are smaller. */
  const furthest = ({ aHi, aLo, bHi, bLo }: Region, limit: number): Snake | undefined => {
    const n = aHi - aLo
    const m = bHi - bLo
    let best = 0
    let x = 0
    let y = 0
    for (let k = -limit; k <= limit; k += 2) {
      const xf = forward[offset + k]!
      const yf = xf - k
      if (xf <= n && yf >= 0 && yf <= m && xf + yf > best) {
        best = xf + yf
        x = aLo + xf
        y = bLo + yf
      }
      const xb = backward[offset + k]!
      const yb = xb - k
      if (xb <= n && yb >= 0 && yb <= m && xb + yb > best) {
        best = xb + yb
        x = aHi - xb
        y = bHi - yb
      }
    }
    compared += limit
    return best > 0 && best < n + m ? { x, y, u: x, v: y } : undefined
  }

  const splitRegion = function* (region: Region): Steps<Snake | undefined> {
    const limit = Math.min((region.aHi - region.aLo + region.bHi - region.bLo + 1) >> 1, maxD)
    forward[offset + 1] = 0
    backward[offset + 1] = 0
    for (let d = 0; d <= limit; d++) {
      const snake = searchForward(region, d) ?? searchBackward(region, d)
      if (snake !== undefined) return snake
      if (compared > maxUnitsPerStep) {
        yield compared
        compared = 0
      }
    }
    return furthest(region, limit)
  }

  const countEqual = (x: number, y: number, step: 1 | -1, most: number): number => {
    let same = 0
    while (same < most && a[x + step * same] === b[y + step * same]) same++
    compared += same + 1
    return same
  }

  // Regions may nest deeper than the call stack.
  const stack: Array<Region | Block> = [{ aLo: 0, aHi: a.length, bLo: 0, bHi: b.length }]
  while (stack.length > 0) {
    const task = stack.pop()!
    if ("length" in task) {
      push(task.before, task.after, task.length)
      continue
    }
    let { aHi, aLo, bHi, bLo } = task
    const prefix = countEqual(aLo, bLo, 1, Math.min(aHi - aLo, bHi - bLo))
    push(aLo, bLo, prefix)
    aLo += prefix
    bLo += prefix
    const suffix = countEqual(aHi - 1, bHi - 1, -1, Math.min(aHi - aLo, bHi - bLo))
    aHi -= suffix
    bHi -= suffix
    stack.push({ before: aHi, after: bHi, length: suffix })
    const snake = aLo < aHi && bLo < bHi ? yield* splitRegion({ aLo, aHi, bLo, bHi }) : undefined
    if (snake !== undefined) {
      stack.push(
        { aLo: snake.u, aHi, bLo: snake.v, bHi },
        { before: snake.x, after: snake.y, length: snake.u - snake.x },
        { aLo, aHi: snake.x, bLo, bHi: snake.y }
      )
    }
    compared += unitsPerItem
    if (compared > maxUnitsPerStep) {
      yield compared
      compared = 0
    }
  }
  yield compared
  return out
}
