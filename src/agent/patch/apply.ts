/**
 * Applies a patch to the text of a file. Context lines keep the bytes of the file. If the old lines of a hunk agree with the file
 * exactly, added lines end as in the patch. Otherwise an added line gets the line ending of the line that it replaces or follows.
 * A hunk without old lines agrees if the patch has CRs or the file is empty.
 */
import type { Replacement } from "../../engine/diff.ts"
import { explainAbsent } from "../../engine/nearest.ts"
import { maxUnitsPerStep, runAtOnce, type Steps, unitsPerItem } from "../../runtime/steps.ts"
import { type Refused, refused } from "../definition.ts"
import { type FilePatch, type Hunk, type Line, newLines, oldLines, quoted } from "./parse.ts"

// Indexes a file by its lines: equal lines get the same id. Each level compares lines more loosely than the level before it. The
// index of a level is built at its first use.

/**
 * The looseness of a comparison. 0: exact; 1: ignores line endings; 2: also ignores blanks at the end of a line; 3: also
 * ignores blanks at the beginning of a line.
 */
type Level = 0 | 1 | 2 | 3

interface Lines {
  readonly text: string
  readonly count: number
  readonly lineStart: (line: number) => number
  readonly lineEnding: (line: number) => "" | "\n" | "\r\n"
  readonly lineText: (line: number) => string
  readonly index: (level: Level) => Steps<Index>
}

interface Index {
  readonly idOf: (text: string, open: boolean) => number
  readonly ids: Int32Array
  readonly countOf: (id: number) => number
  readonly places: (id: number) => Int32Array
}

const withoutCr = (text: string): string => (text.endsWith("\r") ? text.slice(0, -1) : text)

const comparisonKeys: ReadonlyArray<(text: string, open: boolean) => string> = [
  (text, open) => (open ? text : `${text}\n`),
  withoutCr,
  (text) => text.trimEnd(),
  (text) => text.trim()
]

const indexOf = function* (lines: Omit<Lines, "index">, level: Level): Steps<Index> {
  const key = comparisonKeys[level]!
  const known = new Map<string, number>()
  const ids = new Int32Array(lines.count)
  const counts: Array<number> = []
  let steps = 0
  for (let line = 0; line < lines.count; line++) {
    const end = lines.lineStart(line + 1)
    const open = lines.text.charCodeAt(end - 1) !== 10
    const text = key(lines.text.slice(lines.lineStart(line), open ? end : end - 1), open)
    let id = known.get(text)
    if (id === undefined) known.set(text, (id = counts.push(0) - 1))
    counts[id]!++
    ids[line] = id
    steps += 2 * unitsPerItem + text.length
    if (steps > maxUnitsPerStep) {
      yield steps
      steps = 0
    }
  }
  yield steps + 2 * (lines.count + counts.length)
  const firsts = new Int32Array(counts.length + 1)
  for (const [id, count] of counts.entries()) firsts[id + 1] = firsts[id]! + count
  const nextSlots = firsts.slice()
  const places = new Int32Array(lines.count)
  for (let line = 0; line < lines.count; line++) places[nextSlots[ids[line]!]!++] = line
  return {
    ids,
    countOf: (id) => counts[id]!,
    idOf: (text, open) => known.get(key(text, open)) ?? -1,
    places: (id) => places.subarray(firsts[id]!, firsts[id + 1]!)
  }
}

const startsOf = function* (text: string, first: number): Steps<ReadonlyArray<number>> {
  const starts = [first]
  for (let at = text.indexOf("\n", first); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (starts.push(at + 1) % 1024 === 0) yield 1024 * unitsPerItem
  }
  if (starts.at(-1) !== text.length) starts.push(text.length)
  return starts
}

const linesOf = function* (text: string, byteOrderMark: "apart" | "within" = "apart"): Steps<Lines> {
  const starts = yield* startsOf(text, byteOrderMark === "apart" && text.startsWith("\uFEFF") ? 1 : 0)
  const lineStart = (line: number): number => starts[line]!
  const lineEnding = (line: number): "" | "\n" | "\r\n" => {
    const end = lineStart(line + 1)
    if (text.charCodeAt(end - 1) !== 10) return ""
    return end - 2 >= lineStart(line) && text.charCodeAt(end - 2) === 13 ? "\r\n" : "\n"
  }
  const lines = {
    text,
    count: starts.length - 1,
    lineStart,
    lineEnding,
    lineText: (line: number) => text.slice(lineStart(line), lineStart(line + 1) - lineEnding(line).length)
  }
  const indexes: Array<Index | undefined> = []
  return {
    ...lines,
    index: function* (level) {
      return (indexes[level] ??= yield* indexOf(lines, level))
    }
  }
}

// Finds the place of a hunk. The line number in the hunk applies if the lines of the hunk are there. Otherwise the hunk is
// placed where its lines occur, as near as possible to the line number. Two equally near places are ambiguous. A hunk is always
// below the previous hunk.
//
// A unified diff comes from a program, and may differ from the file only in line endings. In the format `*** Begin Patch`,
// which models write, blanks at the end of lines may differ. If no place is found, blanks at the beginning of lines may differ
// too. An `@@` line must occur above the place, and selects the first place below that line.

type HunkPlace =
  | { readonly _tag: "At"; readonly line: number; readonly level: Level }
  | { readonly _tag: "Nowhere"; readonly anchor?: string }
  | { readonly _tag: "Several"; readonly places: ReadonlyArray<number>; readonly anchor?: string }
  | { readonly _tag: "TooMuch" }

interface Finder {
  /**
   * Finds the place of a hunk. Lines before `from` belong to earlier hunks. `shift` is the line at which the previous hunk was
   * found, minus the line that it stated.
   */
  readonly find: (hunk: Hunk, from: number, shift: number) => Steps<HunkPlace>
}

const maxComparisons = 50_000_000

const levels: Readonly<Record<FilePatch["form"], ReadonlyArray<Level>>> = { unified: [0, 1], v4a: [0, 1, 2, 3] }

const notFound: HunkPlace = { _tag: "Nowhere" }
const ambiguousPlaces = (...places: ReadonlyArray<number>): HunkPlace => ({ _tag: "Several", places })

interface LineSearch {
  readonly matchesAt: (at: number) => boolean
  /** Returns the first place at or after `from`, or -1 if there is none. */
  readonly next: (from: number) => Steps<number>
  /** Returns the last place within the bounds, both inclusive, or -1 if there is none. */
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
  // Search for the rarest line of the hunk, because it has the fewest places to try.
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

const firstsBelow = (above: ReadonlyArray<number>, others: ArrayLike<number>): ReadonlyArray<number> => {
  const out: Array<number> = []
  let at = 0
  for (const line of above) {
    while (at < others.length && others[at]! <= line) at++
    if (at < others.length && out.at(-1) !== others[at]) out.push(others[at]!)
  }
  return out
}

const anchorLineCost = 10

/**
 * Returns a function that finds every line that an anchor may mean: the lines that are equal to the anchor. Without such lines,
 * the function finds the lines that differ only in surrounding blanks, and otherwise the lines that begin with the anchor.
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

const finder = (lines: Lines, form: FilePatch["form"]): Finder => {
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

interface Where {
  readonly path: string
  readonly patch: FilePatch
  readonly index: number
  readonly lines: Lines
  readonly from: number
  readonly shift: number
}

const hunkOf = ({ index, patch }: Where): Hunk => patch.hunks[index]!

const subject = (hunkContext: Where): string => {
  const { index, patch, path } = hunkContext
  return `Hunk ${index + 1} of ${patch.hunks.length} for ${path} (line ${hunkOf(hunkContext).patchLine} of the patch)`
}

const readAgain = ({ path }: Where, line: number): string =>
  `Nothing was changed. Read ${path} from line ${line} on (offset ${line - 1}), and write the hunk again from these lines.`

const refuseHunk = (hunkContext: Where, why: string, advice: string): Refused =>
  refused(`${subject(hunkContext)} does not apply: ${why}.`, advice)

const tooMuch = (hunkContext: Where): Refused =>
  refuseHunk(
    hunkContext,
    "its lines resemble too many places in the file, so the search for the right place was stopped",
    "Nothing was changed. Send fewer hunks at a time, with lines of context that are rare in the file, or overwrite the file."
  )

const ambiguous = (hunkContext: Where, places: ReadonlyArray<number>, anchor?: string): Refused => {
  const what = anchor === undefined ? "its lines occur" : `the line ${quoted(`@@ ${anchor}`)} occurs`
  const lines = places.map((line) => line + 1)
  const remedy = "Give more lines of context"
  return refuseHunk(
    hunkContext,
    `${what} at lines ${lines.slice(0, -1).join(", ")} and ${lines.at(-1)}, and the hunk does not say which of them is meant`,
    `Nothing was changed. ${remedy}${hunkContext.patch.form === "v4a" ? ", or add an @@ line that quotes a unique line above the right place" : ", or the right line number in @@"}.`
  )
}

const describeStatedPlace = (hunkContext: Where): string | undefined => {
  const { linesAbove: above } = hunkOf(hunkContext)
  if (above === undefined) return undefined
  const at = above + hunkContext.shift
  const old = oldLines(hunkOf(hunkContext))
  for (const [index, { text }] of old.entries()) {
    const line = at + index
    if (line >= hunkContext.lines.count)
      return `the file ends at line ${hunkContext.lines.count}, but the hunk expects ${quoted(text)} on line ${line + 1}`
    const stands = line < 0 ? "" : hunkContext.lines.lineText(line)
    if (stands !== text.replace(/\r$/, ""))
      return `line ${line + 1} of the file is ${quoted(stands)}, but the hunk expects ${quoted(text)}`
  }
  return undefined
}

const findAnywhere = function* (hunkContext: Where, lines: Hunk["lines"]): Steps<number | undefined> {
  if (lines.length === 0) return undefined
  const found = yield* finder(hunkContext.lines, hunkContext.patch.form).find(
    { patchLine: 0, lines, anchors: [], isAtEnd: false },
    0,
    0
  )
  return found._tag === "At" ? found.line + 1 : found._tag === "Several" ? found.places[0]! + 1 : undefined
}

const asRemovedLines = (lines: Hunk["lines"]): Hunk["lines"] => lines.map(({ text }) => ({ sign: "-", text }))

const misplaced = function* (hunkContext: Where, anchor?: string): Steps<Refused> {
  const hunk = hunkOf(hunkContext)
  const { count, text } = hunkContext.lines
  const old = oldLines(hunk)
  if (anchor !== undefined) {
    const below = hunkContext.from === 0 ? "" : ` below line ${hunkContext.from}, where the hunk before it ends`
    return refuseHunk(
      hunkContext,
      `its @@ line names ${quoted(anchor)}, but there is no such line${below}`,
      readAgain(hunkContext, hunkContext.from + 1)
    )
  }
  if (old.length === 0) {
    const place = hunk.linesAbove === undefined ? "" : ` below line ${hunk.linesAbove + hunkContext.shift}`
    const above = hunkContext.from > 0 ? `the hunk before it ends at line ${hunkContext.from} and ` : ""
    const isLast = hunk.lines.some(({ lacksNewline: open }) => open)
    const what = `it adds ${isLast ? "the last lines of the file" : "lines"}${place}, but ${above}the file has ${count} lines`
    return refuseHunk(hunkContext, what, readAgain(hunkContext, Math.max(1, count)))
  }
  const foundLine = yield* findAnywhere(hunkContext, asRemovedLines(old))
  if (foundLine !== undefined) {
    const why = hunk.lines.some(({ lacksNewline: open }) => open)
      ? `its lines occur at line ${foundLine}, but the hunk says that they are the end of the file, which has ${count} lines`
      : hunk.anchors.length > 0
        ? `its lines occur at line ${foundLine}, but not below ${quoted(`@@ ${hunk.anchors.at(-1)!}`)}${hunkContext.from > 0 ? ` and the hunk before it, which ends at line ${hunkContext.from}` : ""}`
        : `its lines occur at line ${foundLine}, but the hunk before it ends at line ${hunkContext.from}; hunks go down the file and do not overlap`
    return refuseHunk(hunkContext, why, readAgain(hunkContext, foundLine))
  }
  const appliedLine = newLines(hunk).length > 0 ? yield* findAnywhere(hunkContext, asRemovedLines(newLines(hunk))) : undefined
  if (appliedLine !== undefined) {
    return refuseHunk(
      hunkContext,
      `its result is already in the file, at line ${appliedLine}`,
      readAgain(hunkContext, appliedLine)
    )
  }
  const statedPlace = describeStatedPlace(hunkContext)
  const oldText = old.map((line) => line.text).join("\n")
  const why = `${statedPlace === undefined ? "" : `${statedPlace}; `}its old text was not found: ${yield* explainAbsent(text, oldText)}`
  return refuseHunk(hunkContext, why, readAgain(hunkContext, lineToRead(hunkContext, why)))
}

const lineToRead = (hunkContext: Where, why: string): number => {
  const { linesAbove: above } = hunkOf(hunkContext)
  const named = /\blines? (\d+)/.exec(why)
  const line = above === undefined ? Number(named?.[1] ?? hunkContext.from + 1) : above + 1
  return Math.max(1, Math.min(line, hunkContext.lines.count) - 3)
}

export const refuseRemainingLines = (path: string, patch: FilePatch, text: string): Refused => {
  const { lineText: body, count } = runAtOnce(linesOf(text))
  return refused(
    `The patch cannot remove ${path} (line ${patch.patchLine} of the patch), because ${count} of its lines are not in the patch. The first of these lines is ${quoted(body(0))}.`,
    `Nothing was changed. Read ${path} again, and remove it with *** Delete File in a *** Begin Patch, or with rm.`
  )
}

export interface Deviation {
  readonly hunk: number
  readonly line: number
  readonly level: Level
  readonly indented: boolean
}

interface Applied {
  readonly replacements: ReadonlyArray<Replacement>
  readonly addedLines: number
  readonly removedLines: number
  readonly deviations: ReadonlyArray<Deviation>
}

type Endings = "as the patch" | "as the file"

const endingsOf = (lines: Lines, hunk: Hunk, level: Level, hasCarriageReturns: boolean): Endings => {
  const isAddition = hunk.lines.every(({ sign }) => sign === "+")
  const usesPatchEndings = isAddition ? hasCarriageReturns || lines.count === 0 : level === 0
  return usesPatchEndings ? "as the patch" : "as the file"
}

interface Indent {
  readonly extraIndent: string
  readonly missingIndent: string
}

const noIndent: Indent = { extraIndent: "", missingIndent: "" }

const indentOf = (lines: Lines, hunk: Hunk, at: number): Indent | undefined => {
  let indent: Indent | undefined
  for (const [index, { text }] of oldLines(hunk).entries()) {
    const [hunkLine, fileLine] = [text.trimEnd(), lines.lineText(at + index).trimEnd()]
    if (hunkLine === "") continue
    const [extraIndent, missingIndent] = [
      fileLine.slice(0, -hunkLine.trimStart().length),
      hunkLine.slice(0, -hunkLine.trimStart().length)
    ]
    const own: Indent | undefined = extraIndent.endsWith(missingIndent)
      ? { extraIndent: extraIndent.slice(0, extraIndent.length - missingIndent.length), missingIndent: "" }
      : missingIndent.endsWith(extraIndent)
        ? { extraIndent: "", missingIndent: missingIndent.slice(0, missingIndent.length - extraIndent.length) }
        : undefined
    indent ??= own
    if (own === undefined || own.extraIndent !== indent!.extraIndent || own.missingIndent !== indent!.missingIndent)
      return undefined
  }
  return indent
}

const indented = (hunk: Hunk, { missingIndent, extraIndent }: Indent): Hunk => ({
  ...hunk,
  lines: hunk.lines.map((line) =>
    line.sign !== "+" || line.text.trim() === "" || !line.text.startsWith(missingIndent)
      ? line
      : { ...line, text: extraIndent + line.text.slice(missingIndent.length) }
  )
})

interface LineReplacement {
  readonly from: number
  readonly to: number
  readonly added: ReadonlyArray<Line>
}

const modelEnding = (lines: Lines, { from, to }: LineReplacement, index: number): string => {
  const model = from < to ? Math.min(from + index, to - 1) : from > 0 ? from - 1 : 0
  const ending = lines.count === 0 ? "\n" : lines.lineEnding(model)
  return ending !== "" ? ending : lines.count > 1 ? lines.lineEnding(lines.count - 2) : "\n"
}

const textAsFile = (lines: Lines, run: LineReplacement, marksEnd: boolean): string => {
  const { added, from, to } = run
  const lackedFinalNewline = lines.count > 0 && lines.lineEnding(lines.count - 1) === ""
  const reachesEnd = to === lines.count && lackedFinalNewline
  // The added lines may follow a last line without a newline. In this case, begin with the missing newline.
  let out = reachesEnd && from === to && added.length > 0 ? modelEnding(lines, run, 0) : ""
  for (const [index, { lacksNewline: open, text }] of added.entries()) {
    const isOpen = marksEnd ? open === true : reachesEnd && index === added.length - 1
    out += withoutCr(text) + (isOpen ? "" : modelEnding(lines, run, index))
  }
  return out
}

const textAsPatch = (added: ReadonlyArray<Line>): string =>
  added.map(({ lacksNewline: open, text }) => (open === true ? text : `${text}\n`)).join("")

const lineReplacementsOf = (hunk: Hunk, at: number): ReadonlyArray<LineReplacement> => {
  const lineReplacements: Array<LineReplacement> = []
  let from = at
  let to = at
  let added: Array<Line> = []
  const close = (): void => {
    if (added.length > 0 || from < to) lineReplacements.push({ from, to, added })
    added = []
    from = ++to
  }
  for (const line of hunk.lines) {
    if (line.sign === " ") close()
    else if (line.sign === "-") to++
    else added.push(line)
  }
  close()
  return lineReplacements
}

const count = (patch: FilePatch, sign: string): number =>
  patch.hunks.reduce((sum, { lines }) => sum + lines.reduce((n, line) => n + (line.sign === sign ? 1 : 0), 0), 0)

/** Removes an empty context line at the end of a hunk. Some models write the last newline of the file as an empty line. */
const withoutNewlineLine = (patch: FilePatch, hunk: Hunk): Hunk | undefined => {
  const last = hunk.lines.at(-1)!
  const isNewline = patch.form === "v4a" && last.sign === " " && last.text === "" && hunk.lines.length > 1
  return isNewline ? { ...hunk, lines: hunk.lines.slice(0, -1), isAtEnd: true } : undefined
}

export const applyHunks = function* (patch: FilePatch, text: string, path: string): Steps<Applied | Refused> {
  const all = patch.hunks.flatMap((hunk) => hunk.lines)
  const lines = yield* linesOf(text, all.some((line) => line.text.startsWith("\uFEFF")) ? "within" : "apart")
  const hasCarriageReturns = all.some((line) => line.text.endsWith("\r"))
  const { find } = finder(lines, patch.form)
  const replacements: Array<Replacement> = []
  const deviations: Array<Deviation> = []
  let from = 0
  let shift = 0
  for (const [index, statedHunk] of patch.hunks.entries()) {
    let hunk = statedHunk
    let found = yield* find(hunk, from, shift)
    const shorter = found._tag === "Nowhere" ? withoutNewlineLine(patch, hunk) : undefined
    if (shorter !== undefined) {
      const other = yield* find(shorter, from, shift)
      if (other._tag === "At" && other.line + oldLines(shorter).length === lines.count) [hunk, found] = [shorter, other]
    }
    const where = { path, patch, index, lines, from, shift }
    if (found._tag === "TooMuch") return tooMuch(where)
    if (found._tag === "Several") return ambiguous(where, found.places, found.anchor)
    if (found._tag === "Nowhere") return yield* misplaced(where, found.anchor)
    const indent = found.level === 3 ? indentOf(lines, hunk, found.line) : undefined
    const put = indented(hunk, indent ?? noIndent)
    const endings = endingsOf(lines, hunk, found.level, hasCarriageReturns)
    const marksEnd = hunk.lines.some(({ lacksNewline: open }) => open)
    for (const run of lineReplacementsOf(put, found.line)) {
      const text = endings === "as the patch" ? textAsPatch(run.added) : textAsFile(lines, run, marksEnd)
      replacements.push({ start: lines.lineStart(run.from), end: lines.lineStart(run.to), text })
    }
    yield 8 * unitsPerItem * hunk.lines.length
    from = found.line + oldLines(hunk).length
    if (hunk.linesAbove !== undefined) shift = found.line - hunk.linesAbove
    if (found.level > 1 || (hunk.linesAbove !== undefined && found.line !== hunk.linesAbove)) {
      deviations.push({ hunk: index + 1, line: found.line + 1, level: found.level, indented: indent !== undefined })
    }
  }
  return { replacements, deviations, addedLines: count(patch, "+"), removedLines: count(patch, "-") }
}

export const applyReplacements = (text: string, replacements: ReadonlyArray<Replacement>): string => {
  let out = ""
  let at = 0
  for (const { end, start, text: put } of replacements) {
    out += text.slice(at, start) + put
    at = end
  }
  return out + text.slice(at)
}
