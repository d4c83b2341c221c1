/**
 * A line diff with the same positions as git's.
 *
 * There are many shortest diffs. This one moves each run of changes down as far as possible, so that both sides of a
 * merge place an equal change at the same position.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { findCommonBlocks, type Lines as Numbered, makeLineNumbering as numberingText } from "../../engine/diff.ts"
import { unitsPerItem, type Steps, maxUnitsPerStep } from "../../runtime/steps.ts"

/** A text whose lines have numbers. Equal numbers mean equal bytes, terminator included. */
export interface Lines extends Numbered {
  readonly bytes: Uint8Array
}

/**
 * A change of the lines `from` to `to` into the lines `start` to `end`. Lines count from 0, ends are exclusive, and one
 * range is not empty.
 */
export interface Edit {
  readonly from: number
  readonly to: number
  readonly start: number
  readonly end: number
}

/**
 * Returns a function that numbers the lines of several texts consistently. A line ends with LF or at the end of the
 * text; CR is an ordinary byte.
 */
export const makeLineNumberer = (): ((bytes: Uint8Array) => Steps<Lines>) => {
  const number = numberingText()
  return function* (bytes) {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
    return { bytes, ...(yield* number(text)) }
  }
}

/**
 * The most steps of one comparison; a comparison takes lines times differences. Beyond the limit the diff is correct
 * but larger than necessary.
 */
const maxSteps = 20_000_000

/**
 * A comparison in terms of unchanged lines: the number of changed lines before each of them and after the last, on
 * either side.
 */
interface Gaps {
  readonly before: Array<number>
  readonly after: Array<number>
}

const compare = function* (before: ReadonlyArray<number>, after: ReadonlyArray<number>): Steps<Gaps> {
  const maxEdits = Math.ceil(maxSteps / (before.length + after.length + 1))
  const gaps: Gaps = { before: [], after: [] }
  const end = { before: before.length, after: after.length, length: 0 }
  let [removed, added] = [0, 0]
  for (const block of [...(yield* findCommonBlocks(before, after, maxEdits)), end]) {
    gaps.before.push(block.before - removed)
    gaps.after.push(block.after - added)
    for (let i = 1; i < block.length; i++) {
      gaps.before.push(0)
      gaps.after.push(0)
      if (i % maxUnitsPerStep === 0) yield maxUnitsPerStep
    }
    removed = block.before + block.length
    added = block.after + block.length
    yield unitsPerItem + (block.length % maxUnitsPerStep)
  }
  return gaps
}

/**
 * Moves each run of changed lines down as far as equal lines follow, merging it with the runs that it meets.
 *
 * Then moves the run back to the last position where the other side has changed lines too.
 */
const alignGaps = function* (ids: ReadonlyArray<number>, gaps: Array<number>, others: ReadonlyArray<number>): Steps<void> {
  const last = gaps.length - 1
  let gap = 0
  let at = 0
  const up = (): void => {
    const size = gaps[gap]!
    gaps[gap--] = 0
    at -= 1 + gaps[gap]!
    gaps[gap]! += size
  }
  const down = (): void => {
    const size = gaps[gap]!
    gaps[gap++] = 0
    at++
    gaps[gap]! += size
  }
  const canRise = (): boolean => gap > 0 && ids[at - 1] === ids[at + gaps[gap]! - 1]
  const canSink = (): boolean => gap < last && ids[at] === ids[at + gaps[gap]!]
  let stepCount = 0
  for (; gap <= last; at += gaps[gap++]! + 1) {
    if (++stepCount > maxUnitsPerStep) {
      yield stepCount
      stepCount = 0
    }
    if (gaps[gap] === 0) continue
    let size: number
    let lastSharedGap: number
    do {
      size = gaps[gap]!
      while (canRise()) {
        up()
        stepCount += 4
        if (stepCount > maxUnitsPerStep) {
          yield stepCount
          stepCount = 0
        }
      }
      lastSharedGap = others[gap]! > 0 ? gap : -1
      while (canSink()) {
        down()
        if (others[gap]! > 0) lastSharedGap = gap
        stepCount += 4
        if (stepCount > maxUnitsPerStep) {
          yield stepCount
          stepCount = 0
        }
      }
    } while (gaps[gap] !== size)
    for (let steps = lastSharedGap === -1 ? 0 : gap - lastSharedGap; steps > 0; steps--) up()
  }
}

const editsOf = function* ({ after, before }: Gaps): Steps<ReadonlyArray<Edit>> {
  const out: Array<Edit> = []
  let from = 0
  let start = 0
  for (let gap = 0; gap < before.length; gap++, from++, start++) {
    const removed = before[gap]!
    const added = after[gap]!
    if (removed > 0 || added > 0) out.push({ from, to: from + removed, start, end: start + added })
    from += removed
    start += added
    if (gap % maxUnitsPerStep === maxUnitsPerStep - 1) yield maxUnitsPerStep
  }
  return out
}

/** Returns the edits in order, with at least one unchanged line between any two. */
export const edits = function* (before: Lines, after: Lines): Steps<ReadonlyArray<Edit>> {
  const gaps = yield* compare(before.ids, after.ids)
  yield* alignGaps(before.ids, gaps.before, gaps.after)
  yield* alignGaps(after.ids, gaps.after, gaps.before)
  return yield* editsOf(gaps)
}
