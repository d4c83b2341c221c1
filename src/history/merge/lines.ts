/**
 * What changed between two texts, by lines, where git would put it. Of the many shortest ways to tell one, the one is taken in which
 * each run of changes is moved as far down as it goes, so that both sides of a merge name the same place for the same change.
 */
import * as TextDiff from "effect/TextDiff"

/** A text whose lines are known by number: equal numbers are equal bytes, the terminator among them. */
export interface Lines {
  readonly bytes: Uint8Array
  readonly ids: ReadonlyArray<number>
  /** Where each line starts, and behind the last where it ends. */
  readonly starts: ReadonlyArray<number>
}

/** The lines `from` to `to` before became the lines `start` to `end`; counted from 0, ends exclusive, never the same range empty twice. */
export interface Edit {
  readonly from: number
  readonly to: number
  readonly start: number
  readonly end: number
}

/** Numbers the lines of several texts alike. A line ends with LF, or with the text; CR is a byte as any other. */
export const numbering = (): ((bytes: Uint8Array) => Lines) => {
  const known = new Map<string, number>()
  return (bytes) => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
    const ids: Array<number> = []
    const starts: Array<number> = [0]
    for (let at = 0; at < text.length;) {
      const newline = text.indexOf("\n", at)
      const end = newline === -1 ? text.length : newline + 1
      const line = text.slice(at, end)
      let id = known.get(line)
      if (id === undefined) known.set(line, (id = known.size))
      ids.push(id)
      starts.push((at = end))
    }
    return { bytes, ids, starts }
  }
}

/**
 * Comparing takes steps in proportion to lines times differences. So many are spent on one comparison; where they do not suffice, more
 * is told as changed than has to be.
 */
const maxSteps = 20_000_000

const isSame = (a: number, b: number): boolean => a === b

/**
 * A comparison by its unchanged lines: how many changed ones stand before each, and after the last, on either side.
 */
interface Gaps {
  readonly before: Array<number>
  readonly after: Array<number>
}

const compare = (before: ReadonlyArray<number>, after: ReadonlyArray<number>): Gaps => {
  const maxEdits = Math.ceil(maxSteps / (before.length + after.length + 1))
  const gaps: Gaps = { before: [0], after: [0] }
  for (const { _tag, items } of TextDiff.diffWith(isSame)(before, after, { maxEdits })) {
    if (_tag === "Delete") gaps.before[gaps.before.length - 1]! += items.length
    else if (_tag === "Insert") gaps.after[gaps.after.length - 1]! += items.length
    else {
      for (let i = 0; i < items.length; i++) {
        gaps.before.push(0)
        gaps.after.push(0)
      }
    }
  }
  return gaps
}

/**
 * Moves each run of changed lines down as far as lines like its own follow, taking in the runs that it meets, and back to the last
 * place where the other side has changed lines too.
 */
const slide = (ids: ReadonlyArray<number>, gaps: Array<number>, others: ReadonlyArray<number>): void => {
  const last = gaps.length - 1
  let gap = 0
  /** The first line of the run. */
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
  for (; gap <= last; at += gaps[gap++]! + 1) {
    if (gaps[gap] === 0) continue
    let size: number
    let both: number
    do {
      size = gaps[gap]!
      while (canRise()) up()
      both = others[gap]! > 0 ? gap : -1
      while (canSink()) {
        down()
        if (others[gap]! > 0) both = gap
      }
    } while (gaps[gap] !== size)
    for (let steps = both === -1 ? 0 : gap - both; steps > 0; steps--) up()
  }
}

const editsOf = ({ after, before }: Gaps): ReadonlyArray<Edit> => {
  const out: Array<Edit> = []
  let from = 0
  let start = 0
  for (let gap = 0; gap < before.length; gap++, from++, start++) {
    const removed = before[gap]!
    const added = after[gap]!
    if (removed > 0 || added > 0) out.push({ from, to: from + removed, start, end: start + added })
    from += removed
    start += added
  }
  return out
}

/** In order, with at least one unchanged line between any two. */
export const edits = (before: Lines, after: Lines): ReadonlyArray<Edit> => {
  const gaps = compare(before.ids, after.ids)
  slide(before.ids, gaps.before, gaps.after)
  slide(after.ids, gaps.after, gaps.before)
  return editsOf(gaps)
}
