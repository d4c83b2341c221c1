/**
 * Finds the place of a hunk. The stated place wins if its lines stand there. Otherwise the hunk goes to the one place that has
 * its lines, or of several to the one nearest to the stated place. Two equally good places are ambiguous. A hunk is always
 * below the one before.
 *
 * A unified diff comes from a program, and may differ from the file only in line endings. In the other form, which models
 * write, blanks at the end of lines may differ. If that finds nothing, blanks at their beginning may differ too. An `@@` line
 * must stand above the place and selects the first place below it.
 */
import { perItem, type Steps, stride } from "../../runtime/steps.ts"
import type { Index, Level, Lines } from "./lines.ts"
import { type FilePatch, type Hunk, type Line, oldLines } from "./model.ts"

export type Found =
  | { readonly _tag: "At"; readonly line: number; readonly level: Level }
  | { readonly _tag: "Nowhere"; readonly anchor?: string }
  /** Two of the possible places, or two of the lines that an `@@` could mean. */
  | { readonly _tag: "Several"; readonly places: ReadonlyArray<number>; readonly anchor?: string }
  | { readonly _tag: "TooMuch" }

export interface Finder {
  /**
   * Finds the place of a hunk. Lines before `from` belong to earlier hunks. `shift` is how far below their stated places those
   * hunks were found.
   */
  readonly find: (hunk: Hunk, from: number, shift: number) => Steps<Found>
}

/** The largest number of line comparisons for one file, more than any patch made for it needs. */
const maxComparisons = 50_000_000

const levels: Readonly<Record<FilePatch["form"], ReadonlyArray<Level>>> = { unified: [0, 1], v4a: [0, 1, 2, 3] }

const nowhere: Found = { _tag: "Nowhere" }
const several = (...places: ReadonlyArray<number>): Found => ({ _tag: "Several", places })

interface Sought {
  readonly stands: (at: number) => boolean
  /** Returns the first place at or after `from`, or -1. */
  readonly next: (from: number) => Steps<number>
  /** Returns the last place within the bounds, both inclusive, or -1. */
  readonly last: (to: number, least: number) => Steps<number>
}

const lowerBound = (numbers: Int32Array, least: number): number => {
  let low = 0
  let high = numbers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! < least) low = middle + 1
    else high = middle
  }
  return low
}

const never = function* (): Steps<number> {
  yield 1
  return -1
}

const none: Sought = { stands: () => false, next: never, last: never }

interface Meter {
  spent: number
}

const soughtIn = (index: Index, lines: ReadonlyArray<Line>, meter: Meter): Sought => {
  const ids = lines.map(({ open, text }) => index.idOf(text, open === true))
  if (ids.includes(-1)) return none
  // Search by the rarest line, which has the fewest places to try.
  let rare = 0
  for (let at = 1; at < ids.length; at++) if (index.countOf(ids[at]!) < index.countOf(ids[rare]!)) rare = at
  const places = index.places(ids[rare]!)
  const stands = (at: number): boolean => {
    if (at < 0 || at + ids.length > index.ids.length) return false
    let same = 0
    while (same < ids.length && index.ids[at + same] === ids[same]) same++
    meter.spent += same + 1
    return same === ids.length
  }
  const isDone = (): boolean => meter.spent > maxComparisons
  let told = meter.spent
  const search = function* (first: number, step: 1 | -1, isWithin: (place: number) => boolean): Steps<number> {
    for (let i = first; i >= 0 && i < places.length && isWithin(places[i]! - rare) && !isDone(); i += step) {
      if (stands(places[i]! - rare)) return places[i]! - rare
      if (meter.spent - told > stride) {
        yield 2 * (meter.spent - told)
        told = meter.spent
      }
    }
    return -1
  }
  return {
    stands,
    next: (from) => search(lowerBound(places, from + rare), 1, () => true),
    last: (to, least) => search(lowerBound(places, to + rare + 1) - 1, -1, (place) => place >= least)
  }
}

const nearest = function* (sought: Sought, expected: number, from: number): Steps<Found | number> {
  if (expected >= from && sought.stands(expected)) return expected
  const below = yield* sought.next(Math.max(expected, from))
  const above = yield* sought.last(Math.max(expected, from) - 1, from)
  if (below === -1 || above === -1) return Math.max(below, above)
  const [down, up] = [below - expected, expected - above]
  return down === up ? several(above, below) : down < up ? below : above
}

const only = function* (sought: Sought, from: number): Steps<Found | number> {
  const first = yield* sought.next(from)
  const second = first === -1 ? -1 : yield* sought.next(first + 1)
  return second === -1 ? first : several(first, second)
}

/** Returns the first place below the candidates of the last anchor, if all of them lead to the same place. */
const belowAnchors = function* (sought: Sought, anchors: ReadonlyArray<number>): Steps<Found | number> {
  let place = -1
  for (const anchor of anchors) {
    // Some models repeat the anchor as the first context line.
    const below = yield* sought.next(anchor + 1)
    const found = below === -1 ? yield* sought.next(anchor) : below
    yield 4
    if (found === -1) break
    if (place !== -1 && place !== found) return several(place, found)
    place = found
  }
  return place
}

/** Returns, for each line of `above`, the first of the others below it, without duplicates. Both lists ascend. */
const firstsBelow = (above: ReadonlyArray<number>, others: ArrayLike<number>): ReadonlyArray<number> => {
  const out: Array<number> = []
  let at = 0
  for (const line of above) {
    while (at < others.length && others[at]! <= line) at++
    if (at < others.length && out.at(-1) !== others[at]) out.push(others[at]!)
  }
  return out
}

/** The cost of reading a line's text, in comparisons. */
const lookCost = 10

/**
 * Returns every line that an anchor may mean: an equal line, else one equal but for blanks around it, else one that begins with
 * it.
 */
const anchorLines = (lines: Lines, meter: Meter) => {
  const known = new Map<string, ArrayLike<number>>()
  const look = function* (anchor: string): Steps<ArrayLike<number>> {
    for (const level of [1, 3] as const) {
      const index = yield* lines.index(level)
      const id = index.idOf(anchor, false)
      if (id !== -1) return index.places(id)
    }
    const beginning = anchor.trim()
    const found: Array<number> = []
    meter.spent += lines.count * lookCost
    if (meter.spent > maxComparisons) return found
    for (let line = 0; line < lines.count; line++) {
      if (lines.body(line).trimStart().startsWith(beginning)) found.push(line)
      if (line % 256 === 0) yield 256 * lookCost * 2
    }
    return found
  }
  return function* (anchor: string): Steps<ArrayLike<number>> {
    let found = known.get(anchor)
    if (found === undefined) known.set(anchor, (found = yield* look(anchor)))
    yield 4 * found.length
    meter.spent += found.length
    return found
  }
}

export const finder = (lines: Lines, form: FilePatch["form"]): Finder => {
  const meter: Meter = { spent: 0 }
  const linesLike = anchorLines(lines, meter)

  const anchored = function* (anchors: ReadonlyArray<string>, from: number): Steps<ReadonlyArray<number> | Found> {
    let found: ReadonlyArray<number> | undefined
    for (const anchor of anchors) {
      const like = yield* linesLike(anchor)
      if (meter.spent > maxComparisons) return { _tag: "TooMuch" }
      found = found === undefined ? Array.from(like).filter((line) => line >= from) : firstsBelow(found, like)
      if (found.length === 0) return { _tag: "Nowhere", anchor }
    }
    return found ?? []
  }

  const addition = function* (hunk: Hunk, from: number, shift: number): Steps<Found> {
    const { above, anchors, atEnd } = hunk
    const isLast = hunk.lines.some(({ open }) => open)
    const at = (line: number): Found => (isLast && line < lines.count ? nowhere : { _tag: "At", line, level: 0 })
    if (atEnd || (anchors.length === 0 && above === undefined)) return at(lines.count)
    if (above !== undefined) return above + shift >= from && above + shift <= lines.count ? at(above + shift) : nowhere
    const places = yield* anchored(anchors, from)
    if (!Array.isArray(places)) return places as Found
    return places.length === 1 ? at(places[0]! + 1) : { _tag: "Several", places: places.slice(0, 2), anchor: anchors.at(-1)! }
  }

  const atLevel = function* (
    hunk: Hunk,
    old: ReadonlyArray<Line>,
    from: number,
    shift: number,
    level: Level
  ): Steps<Found | number> {
    const sought = soughtIn(yield* lines.index(level), old, meter)
    const end = lines.count - old.length
    if (hunk.lines.some(({ open }) => open)) return end >= from && sought.stands(end) ? end : -1
    if (hunk.atEnd && end >= from && sought.stands(end)) return end
    if (hunk.above !== undefined) return yield* nearest(sought, hunk.above + shift, from)
    if (hunk.anchors.length === 0) return yield* only(sought, from)
    const anchors = yield* anchored(hunk.anchors, from)
    return Array.isArray(anchors) ? yield* belowAnchors(sought, anchors) : (anchors as Found)
  }

  return {
    find: function* (hunk, from, shift) {
      const old = oldLines(hunk)
      yield 2 * perItem * old.length
      if (old.length === 0) return yield* addition(hunk, from, shift)
      for (const level of levels[form]) {
        const found = yield* atLevel(hunk, old, from, shift, level)
        if (meter.spent > maxComparisons) return { _tag: "TooMuch" }
        if (typeof found !== "number") return found
        if (found !== -1) return { _tag: "At", line: found, level }
      }
      return nowhere
    }
  }
}
