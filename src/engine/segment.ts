/**
 * Matches paths against patterns. A pattern is a row of segments, and each segment matches one name.
 *
 * The state of a directory is the set of positions that its path has reached in the rows. So a walk tests only names and
 * never whole paths. The walk also knows immediately if nothing below a directory can match.
 *
 * Globs and ignore rules both compile to rows. The cost of a test is at most the product of the lengths of its pattern and
 * its name.
 */

import { type Steps, maxUnitsPerStep } from "../runtime/units.ts"

export type Element = number | CharClass
export const ANY = -1
export const STAR = -2

export interface CharClass {
  readonly has: (unit: number) => boolean
}

export type Fold = (unit: number) => number

export interface Test {
  (name: string): boolean
  readonly only?: string
  /** The number of steps per unit of a name. Absent if the test is a plain comparison. */
  readonly weight?: number
}

/** Converts a code unit to upper case, as a regular expression with the flag `i` and without `u` does. */
export const foldCase: Fold = (unit) => {
  if (unit < 128) return unit >= 97 && unit <= 122 ? unit - 32 : unit
  const upper = String.fromCharCode(unit).toUpperCase()
  return upper.length === 1 && upper.charCodeAt(0) >= 128 ? upper.charCodeAt(0) : unit
}

/** Compiles a part of a regular expression that matches one unit. Throws SyntaxError. */
export const charClass = (part: string, ignoreCase: boolean): CharClass => {
  const expression = new RegExp(`^${part}$`, ignoreCase ? "is" : "s")
  const ascii = Uint8Array.from({ length: 128 }, (_, unit) => (expression.test(String.fromCharCode(unit)) ? 1 : 0))
  return { has: (unit) => (unit < 128 ? ascii[unit] === 1 : expression.test(String.fromCharCode(unit))) }
}

const isLiteral = (element: Element): element is number => typeof element === "number" && element >= 0

const textOf = (elements: ReadonlyArray<Element>): string => {
  let text = ""
  for (const element of elements) text += String.fromCharCode(element as number)
  return text
}

/**
 * Compiles a segment with stars. Matches greedily: each part between two stars has a fixed length, so trying only its
 * leftmost position is sufficient.
 */
const compileGeneral = (elements: ReadonlyArray<Element>, fold: Fold | undefined): Test => {
  const length = elements.length
  const star = elements.indexOf(STAR)
  const weight = star === -1 ? 1 : length - star
  const test = (name: string): boolean => {
    let i = 0
    let j = 0
    let star = -1
    let starMatchEnd = 0
    while (j < name.length) {
      const element = elements[i]
      if (element === STAR) {
        star = i++
        starMatchEnd = j
        continue
      }
      if (element !== undefined) {
        const unit = name.charCodeAt(j)
        if (
          typeof element === "object"
            ? element.has(unit)
            : element === ANY || element === unit || (fold !== undefined && element === fold(unit))
        ) {
          i++
          j++
          continue
        }
      }
      if (star === -1) return false
      i = star + 1
      j = ++starMatchEnd
    }
    while (elements[i] === STAR) i++
    return i === length
  }
  return Object.assign(test, { weight })
}

export const makeExactTest = (text: string): Test => Object.assign((name: string) => name === text, { only: text })

export const compileTest = (source: ReadonlyArray<Element>, fold?: Fold): Test => {
  const elements = source
    .filter((element, index) => element !== STAR || source[index - 1] !== STAR)
    .map((element) => (fold !== undefined && isLiteral(element) ? fold(element) : element))
  if (elements.length === 1 && elements[0] === STAR) return () => true
  if (fold !== undefined) return compileGeneral(elements, fold)
  const star = elements.indexOf(STAR)
  if (!elements.every((element, index) => isLiteral(element) || index === star)) return compileGeneral(elements, undefined)
  if (star === -1) return makeExactTest(textOf(elements))
  const head = textOf(elements.slice(0, star))
  const tail = textOf(elements.slice(star + 1))
  const least = head.length + tail.length
  return head === ""
    ? (name) => name.endsWith(tail)
    : (name) => name.length >= least && name.startsWith(head) && name.endsWith(tail)
}

/** The segment that matches zero or more whole names, or one or more names at the end of a row. */
export const GLOBSTAR = undefined

export interface Row {
  readonly segments: ReadonlyArray<Test | typeof GLOBSTAR>
  readonly pattern: number
  readonly directory: boolean
}

/** The positions that a directory's path has reached, in any order. If the list is empty, nothing below can match. */
export type Positions = ReadonlyArray<number>

export interface Rows {
  readonly start: Positions
  readonly below: (positions: Positions, name: string) => Positions
  readonly decide: (positions: Positions, name: string, directory: boolean) => number
  readonly decideSteps: (positions: Positions, name: string, directory: boolean) => Steps<number>
  readonly belowSteps: (positions: Positions, name: string) => Steps<Positions>
  readonly cost: (positions: Positions, length: number) => number
}

interface Place extends Omit<Row, "segments"> {
  readonly test: Test | typeof GLOBSTAR
  readonly last: boolean
}

interface LastPlaces {
  readonly named: Map<string, Array<Place>>
  readonly others: Array<Place>
}

const higherPattern = ({ directory: only, pattern, test }: Place, name: string, directory: boolean, found: number): number =>
  pattern > found && (directory || !only) && (test === GLOBSTAR || test(name)) ? pattern : found

const highestPattern = (places: ReadonlyArray<Place>, name: string, directory: boolean, least: number): number => {
  let found = least
  // Start with the last pattern. After a match, patterns with lower numbers need no test.
  for (let i = places.length - 1; i >= 0; i--) found = higherPattern(places[i]!, name, directory, found)
  return found
}

const testSteps = (test: Test | typeof GLOBSTAR, name: string): number => 1 + (test?.weight ?? 0) * name.length

export const compileRows = (rows: ReadonlyArray<Row>): Rows => {
  const places: Array<Place> = []
  const first: Array<number> = []
  for (const { directory, pattern, segments } of rows) {
    first.push(places.length)
    segments.forEach((test, index) => {
      if (test === GLOBSTAR && index > 0 && segments[index - 1] === GLOBSTAR) return
      places.push({ test, last: index === segments.length - 1, pattern, directory })
    })
    const end = places.length - 1
    places[end] = { ...places[end]!, last: true }
  }

  const weight = places.reduce((sum, { test }) => sum + (test?.weight ?? 0), 0)

  // For each place, the number of the last set of positions to which it was added. The numbers prevent duplicates in a set.
  const seen = new Float64Array(places.length)
  let generation = 0
  const add = (out: Array<number>, place: number): void => {
    for (let at = place; seen[at] !== generation; at++) {
      seen[at] = generation
      out.push(at)
      const { last, test } = places[at]!
      if (test !== GLOBSTAR || last) return
    }
  }

  // The places at the end of a row, for each set of positions. A place that matches only one name is indexed by this name.
  const sorted = new WeakMap<Positions, LastPlaces>()
  // Keep the places of the last directory, because a walk tests many names of a directory in succession.
  let latest: Positions | undefined
  let latestPlaces: LastPlaces | undefined
  const lastPlacesOf = (positions: Positions): LastPlaces => {
    if (positions !== latest) {
      latest = positions
      latestPlaces = findLastPlaces(positions)
    }
    return latestPlaces!
  }
  const findLastPlaces = (positions: Positions): LastPlaces => {
    const found = sorted.get(positions)
    if (found !== undefined) return found
    const ends: LastPlaces = { named: new Map(), others: [] }
    for (const at of positions) {
      const place = places[at]!
      if (!place.last) continue
      const name = place.test?.only
      const same = name === undefined ? ends.others : ends.named.get(name)
      if (same !== undefined) same.push(place)
      else ends.named.set(name!, [place])
    }
    sorted.set(positions, ends)
    return ends
  }

  generation++
  const start: Array<number> = []
  for (const place of first) add(start, place)

  const isOpenFor = (at: number, name: string): boolean => {
    const { last, test } = places[at]!
    return test === GLOBSTAR || (!last && test(name))
  }

  const nextPositions = (positions: Positions, isOpen: (at: number) => boolean): Positions => {
    generation++
    const out: Array<number> = []
    for (let i = 0; i < positions.length; i++) {
      const at = positions[i]!
      if (isOpen(at)) add(out, places[at]!.test === GLOBSTAR ? at : at + 1)
    }
    if (out.length !== positions.length) return out
    for (let i = 0; i < out.length; i++) if (out[i] !== positions[i]) return out
    return positions
  }

  return {
    start,
    below: (positions, name) => nextPositions(positions, (at) => isOpenFor(at, name)),
    belowSteps: function* (positions, name) {
      const open = new Set<number>()
      let unitsSpent = 0
      for (const at of positions) {
        if (isOpenFor(at, name)) open.add(at)
        unitsSpent += testSteps(places[at]!.test, name)
        if (unitsSpent < maxUnitsPerStep) continue
        yield unitsSpent
        unitsSpent = 0
      }
      return nextPositions(positions, (at) => open.has(at))
    },
    decideSteps: function* (positions, name, directory) {
      const { named, others } = lastPlacesOf(positions)
      let found = -1
      let unitsSpent = 0
      for (let i = others.length - 1; i >= 0; i--) {
        found = higherPattern(others[i]!, name, directory, found)
        unitsSpent += testSteps(others[i]!.test, name)
        if (unitsSpent < maxUnitsPerStep) continue
        yield unitsSpent
        unitsSpent = 0
      }
      const same = named.get(name)
      return same === undefined ? found : highestPattern(same, name, directory, found)
    },
    decide: (positions, name, directory) => {
      const { named, others } = lastPlacesOf(positions)
      const found = highestPattern(others, name, directory, -1)
      const same = named.get(name)
      return same === undefined ? found : highestPattern(same, name, directory, found)
    },
    cost: (positions, length) => positions.length + weight * length
  }
}
