/**
 * Finds the place of a hunk. The stated place wins if its lines stand there. Otherwise the hunk goes to the one place that has
 * its lines, or of several to the one nearest to the stated place. Two equally good places are ambiguous. A hunk is always
 * below the one before.
 *
 * A unified diff comes from a program, and may differ from the file only in line endings. In the other form, which models
 * write, blanks at the end of lines may differ. If that finds nothing, blanks at their beginning may differ too. An `@@` line
 * must stand above the place and selects the first place below it.
 */
import { unitsPerItem, type Steps, maxUnitsPerStep } from "../../runtime/steps.ts"
import type { Index, Level, Lines } from "./lines.ts"
import { type FilePatch, type Hunk, type Line, oldLines } from "./model.ts"

export type HunkPlace =
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
  readonly find: (hunk: Hunk, from: number, shift: number) => Steps<HunkPlace>
}

/** The largest number of line comparisons for one file, more than any patch made for it needs. */
const maxComparisons = 50_000_000

const levels: Readonly<Record<FilePatch["form"], ReadonlyArray<Level>>> = { unified: [0, 1], v4a: [0, 1, 2, 3] }

const notFound: HunkPlace = { _tag: "Nowhere" }
const ambiguousPlaces = (...places: ReadonlyArray<number>): HunkPlace => ({ _tag: "Several", places })

interface LineSearch {
  readonly matchesAt: (at: number) => boolean
  /** Returns the first place at or after `from`, or -1. */
  readonly next: (from: number) => Steps<number>
  /** Returns the last place within the bounds, both inclusive, or -1. */
  readonly last: (to: number, minimum: number) => Steps<number>
}

const lowerBound = (numbers: Int32Array, minimum: number): number => {
  let low = 0
  let high = numbers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! < minimum) low = middle + 1
    else high = middle
  }
  return low
}

const findNothing = function* (): Steps<number> {
  yield 1
  return -1
}

const emptySearch: LineSearch = { matchesAt: () => false, next: findNothing, last: findNothing }

interface ComparisonCount {
  spent: number
}

const makeLineSearch = (index: Index, lines: ReadonlyArray<Line>, comparisons: ComparisonCount): LineSearch => {
  const ids = lines.map(({ lacksNewline: open, text }) => index.idOf(text, open === true))
  if (ids.includes(-1)) return emptySearch
  // Search by the rarest line, which has the fewest places to try.
  let rarestLine = 0
  for (let at = 1; at < ids.length; at++) if (index.countOf(ids[at]!) < index.countOf(ids[rarestLine]!)) rarestLine = at
  const places = index.places(ids[rarestLine]!)
  const matchesAt = (at: number): boolean => {
    if (at < 0 || at + ids.length > index.ids.length) return false
    let same = 0
    while (same < ids.length && index.ids[at + same] === ids[same]) same++
    comparisons.spent += same + 1
    return same === ids.length
  }
  const isDone = (): boolean => comparisons.spent > maxComparisons
  let reportedCount = comparisons.spent
  const search = function* (first: number, step: 1 | -1, isWithin: (place: number) => boolean): Steps<number> {
    for (let i = first; i >= 0 && i < places.length && isWithin(places[i]! - rarestLine) && !isDone(); i += step) {
      if (matchesAt(places[i]! - rarestLine)) return places[i]! - rarestLine
      if (comparisons.spent - reportedCount > maxUnitsPerStep) {
        yield 2 * (comparisons.spent - reportedCount)
        reportedCount = comparisons.spent
      }
    }
    return -1
  }
  return {
    matchesAt,
    next: (from) => search(lowerBound(places, from + rarestLine), 1, () => true),
    last: (to, minimum) => search(lowerBound(places, to + rarestLine + 1) - 1, -1, (place) => place >= minimum)
  }
}

const findNearest = function* (lineSearch: LineSearch, expected: number, from: number): Steps<HunkPlace | number> {
  if (expected >= from && lineSearch.matchesAt(expected)) return expected
  const below = yield* lineSearch.next(Math.max(expected, from))
  const above = yield* lineSearch.last(Math.max(expected, from) - 1, from)
  if (below === -1 || above === -1) return Math.max(below, above)
  const [down, up] = [below - expected, expected - above]
  return down === up ? ambiguousPlaces(above, below) : down < up ? below : above
}

const findOnly = function* (lineSearch: LineSearch, from: number): Steps<HunkPlace | number> {
  const first = yield* lineSearch.next(from)
  const second = first === -1 ? -1 : yield* lineSearch.next(first + 1)
  return second === -1 ? first : ambiguousPlaces(first, second)
}

/** Returns the first place below the candidates of the last anchor, if all of them lead to the same place. */
const belowAnchors = function* (lineSearch: LineSearch, anchors: ReadonlyArray<number>): Steps<HunkPlace | number> {
  let place = -1
  for (const anchor of anchors) {
    // Some models repeat the anchor as the first context line.
    const below = yield* lineSearch.next(anchor + 1)
    const found = below === -1 ? yield* lineSearch.next(anchor) : below
    yield 4
    if (found === -1) break
    if (place !== -1 && place !== found) return ambiguousPlaces(place, found)
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
const anchorLineCost = 10

/**
 * Returns every line that an anchor may mean: an equal line, else one equal but for blanks around it, else one that begins with
 * it.
 */
const anchorLines = (lines: Lines, comparisons: ComparisonCount) => {
  const known = new Map<string, ArrayLike<number>>()
  const findAnchorLines = function* (anchor: string): Steps<ArrayLike<number>> {
    for (const level of [1, 3] as const) {
      const index = yield* lines.index(level)
      const id = index.idOf(anchor, false)
      if (id !== -1) return index.places(id)
    }
    const beginning = anchor.trim()
    const found: Array<number> = []
    comparisons.spent += lines.count * anchorLineCost
    if (comparisons.spent > maxComparisons) return found
    for (let line = 0; line < lines.count; line++) {
      if (lines.lineText(line).trimStart().startsWith(beginning)) found.push(line)
      if (line % 256 === 0) yield 256 * anchorLineCost * 2
    }
    return found
  }
  return function* (anchor: string): Steps<ArrayLike<number>> {
    let found = known.get(anchor)
    if (found === undefined) known.set(anchor, (found = yield* findAnchorLines(anchor)))
    yield 4 * found.length
    comparisons.spent += found.length
    return found
  }
}

export const finder = (lines: Lines, form: FilePatch["form"]): Finder => {
  const comparisons: ComparisonCount = { spent: 0 }
  const linesMatchingAnchor = anchorLines(lines, comparisons)

  const lastAnchorLines = function* (anchors: ReadonlyArray<string>, from: number): Steps<ReadonlyArray<number> | HunkPlace> {
    let found: ReadonlyArray<number> | undefined
    for (const anchor of anchors) {
      const matchingLines = yield* linesMatchingAnchor(anchor)
      if (comparisons.spent > maxComparisons) return { _tag: "TooMuch" }
      found = found === undefined ? Array.from(matchingLines).filter((line) => line >= from) : firstsBelow(found, matchingLines)
      if (found.length === 0) return { _tag: "Nowhere", anchor }
    }
    return found ?? []
  }

  const placeAddition = function* (hunk: Hunk, from: number, shift: number): Steps<HunkPlace> {
    const { linesAbove: above, anchors, isAtEnd: atEnd } = hunk
    const isLast = hunk.lines.some(({ lacksNewline: open }) => open)
    const at = (line: number): HunkPlace => (isLast && line < lines.count ? notFound : { _tag: "At", line, level: 0 })
    if (atEnd || (anchors.length === 0 && above === undefined)) return at(lines.count)
    if (above !== undefined) return above + shift >= from && above + shift <= lines.count ? at(above + shift) : notFound
    const places = yield* lastAnchorLines(anchors, from)
    if (!Array.isArray(places)) return places as HunkPlace
    return places.length === 1 ? at(places[0]! + 1) : { _tag: "Several", places: places.slice(0, 2), anchor: anchors.at(-1)! }
  }

  const findAtLevel = function* (
    hunk: Hunk,
    old: ReadonlyArray<Line>,
    from: number,
    shift: number,
    level: Level
  ): Steps<HunkPlace | number> {
    const lineSearch = makeLineSearch(yield* lines.index(level), old, comparisons)
    const end = lines.count - old.length
    if (hunk.lines.some(({ lacksNewline: open }) => open)) return end >= from && lineSearch.matchesAt(end) ? end : -1
    if (hunk.isAtEnd && end >= from && lineSearch.matchesAt(end)) return end
    if (hunk.linesAbove !== undefined) return yield* findNearest(lineSearch, hunk.linesAbove + shift, from)
    if (hunk.anchors.length === 0) return yield* findOnly(lineSearch, from)
    const anchors = yield* lastAnchorLines(hunk.anchors, from)
    return Array.isArray(anchors) ? yield* belowAnchors(lineSearch, anchors) : (anchors as HunkPlace)
  }

  return {
    find: function* (hunk, from, shift) {
      const old = oldLines(hunk)
      yield 2 * unitsPerItem * old.length
      if (old.length === 0) return yield* placeAddition(hunk, from, shift)
      for (const level of levels[form]) {
        const found = yield* findAtLevel(hunk, old, from, shift, level)
        if (comparisons.spent > maxComparisons) return { _tag: "TooMuch" }
        if (typeof found !== "number") return found
        if (found !== -1) return { _tag: "At", line: found, level }
      }
      return notFound
    }
  }
}
