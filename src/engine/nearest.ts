/**
 * Finds paths that are similar to a missing path, and explains why an edit text was not found or not unique. So the next attempt
 * can succeed.
 *
 * The work is bounded for any file size. If the bound limited the comparison, the message says so.
 */
import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { listed } from "../model/words.ts"
import type { Backend } from "../port/Backend.ts"
import { maxUnitsPerStep, runAtOnce, runInSlices, type Steps, unitsPerItem } from "../runtime/steps.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { indexOf, type Match } from "./endings.ts"
import { resolve } from "./resolve.ts"

export const maxNearest = 3

const maxNameLength = 256

export const editDistance = (self: string, that: string): number => {
  let before: ReadonlyArray<number> = []
  let previous = Array.from({ length: that.length + 1 }, (_, j) => j)
  for (let i = 1; i <= self.length; i++) {
    const row = [i]
    for (let j = 1; j <= that.length; j++) {
      const change = self[i - 1] === that[j - 1] ? 0 : 1
      let cost = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + change)
      if (i > 1 && j > 1 && self[i - 1] === that[j - 2] && self[i - 2] === that[j - 1])
        cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[that.length]!
}

/** Returns the edit distance of names that are similar enough to be confused, and Infinity for all other names. */
export const nameDistance = (name: string, candidate: string): number => {
  const a = FsPath.fold(name)
  const b = FsPath.fold(candidate)
  if (a === "" || a.length > maxNameLength || b.length > maxNameLength) return Number.POSITIVE_INFINITY
  const maxDistance = Math.max(1, Math.floor(a.length / 3))
  if (b.startsWith(a)) return b.length - a.length
  if (Math.abs(a.length - b.length) > maxDistance) return Number.POSITIVE_INFINITY
  const distance = editDistance(a, b)
  return distance <= maxDistance ? distance : Number.POSITIVE_INFINITY
}

export const similarNames = function* (
  name: string,
  entries: ReadonlyArray<{ readonly name: string; readonly addressable: boolean }>
): Steps<ReadonlyArray<string>> {
  const found: Array<{ readonly name: string; readonly distance: number }> = []
  for (const entry of entries) {
    yield unitsPerItem + 8 * name.length * entry.name.length
    // An entry with exactly the missing name is a dangling symlink, so do not suggest it.
    if (!entry.addressable || entry.name === name) continue
    const distance = nameDistance(name, entry.name)
    if (distance < Number.POSITIVE_INFINITY) found.push({ name: entry.name, distance })
  }
  return found
    .sort((a, b) => a.distance - b.distance || FsPath.compare(a.name, b.name))
    .slice(0, maxNearest)
    .map((candidate) => candidate.name)
}

/**
 * Finds existing paths of the given `kinds` that are similar to a missing path.
 *
 * Starts at the deepest existing directory above the missing path, and finds similar names in this directory. Each
 * result is the missing path with its wrong name replaced by a similar name. If the corrected path does not exist, the
 * result ends with the similar name.
 */
export const nearestPaths = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  kinds: ReadonlyArray<Kind>
): Effect.fn.Return<ReadonlyArray<FsPath.FsPath>, Fault> {
  const names = FsPath.segments(path)
  for (let depth = names.length - 1; depth >= 0; depth--) {
    const above = FsPath.fromSegments(names.slice(0, depth))
    const { path: at, stat } = yield* resolve(port, above)
    if (stat === undefined) continue
    if (stat.kind !== "directory") return []
    const children = (yield* port.list(at)).filter(
      ({ kind, name }) => (kind === "symlink" || kinds.includes(kind)) && !TemporaryNames.isInProgress(name)
    )
    const rest = FsPath.fromSegments(names.slice(depth + 1))
    const nearest: Array<FsPath.FsPath> = []
    for (const name of yield* runInSlices(() => similarNames(names[depth]!, children))) {
      const candidate = FsPath.join(above, name)
      const whole = FsPath.below(candidate, rest)
      const found = yield* Effect.option(resolve(port, whole))
      const isThere = found._tag === "Some" && found.value.stat !== undefined && kinds.includes(found.value.stat.kind)
      nearest.push(isThere ? whole : candidate)
    }
    return nearest
  }
  return []
})

const maxPlaces = 10
/** The limits of the comparison: UTF-16 units of each text, lines of the file, and lines of the sought text. */
const maxUnits = 250_000
const maxLines = 10_000
const maxSoughtLines = 200
const maxQuoted = 120
/**
 * The maximum length of a run of combining marks that is normalized, in UTF-16 units. The time of a normalization is
 * quadratic in the length of a run.
 */
const maxMarks = 100

export const lineAt = function* (text: string, index: number): Steps<number> {
  let line = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) {
    if (++line % 1024 === 0) yield 1024 * unitsPerItem
  }
  yield (line % 1024) * unitsPerItem
  return line
}

/**
 * Explains that a text occurs several times, and names the lines. If there are more than `limit` places, the message
 * says "more than".
 */
export const explainAmbiguous = function* (text: string, places: ReadonlyArray<Match>, limit: number): Steps<string> {
  const lines: Array<number> = []
  let line = 1
  let newline = text.indexOf("\n")
  let told = 0
  for (; told < places.length && lines.length < maxPlaces; told++) {
    const { start } = places[told]!
    for (; newline !== -1 && newline < start; newline = text.indexOf("\n", newline + 1)) {
      if (++line % 1024 === 0) yield 1024 * unitsPerItem
    }
    if (lines.at(-1) !== line) lines.push(line)
    if (told % 1024 === 1023) yield 1024 * unitsPerItem
  }
  const more = places.length - told
  const shown = more === 0 ? listed(lines) : `${lines.join(", ")} and in ${more} more places`
  const where = lines.length === 1 && more === 0 ? "line" : "lines"
  return `it occurs ${places.length > limit ? `more than ${limit}` : places.length} times, on ${where} ${shown}; give more of the surrounding text so that it occurs only once, or ask for the first or for all of them`
}

const absentDetail = "it does not occur in the file"

export const explainAbsent = function* (text: string, sought: string): Steps<string> {
  if (text === "" || text === "\uFEFF") return `${absentDetail}, which is empty`
  if (sought.trim() === "") return `${absentDetail}; it contains only white space, so add the text beside it`
  const numbered = yield* withoutNumbers(text, sought)
  if (numbered !== undefined) return numbered
  if (sought.endsWith("\n") && text.endsWith(sought.trimEnd())) {
    return `${absentDetail}, which ends on line ${yield* lineAt(text, text.length)} without a newline`
  }
  const wanted = yield* soughtLines(text, sought)
  const file = yield* linesOf(text, wanted)
  const detail =
    wanted.lines.length === 0
      ? undefined
      : ((yield* findVariants(file, wanted, sought)) ??
        (yield* findOverlap(file, wanted)) ??
        (yield* findSimilar(file, wanted)))
  const bounds = [...file.bounds, ...wanted.bounds]
  return `${absentDetail}${detail === undefined ? "; the file has no similar text" : `; ${detail}`}${
    bounds.length === 0 ? "" : ` (only compared: ${listed(bounds)})`
  }`
}

const number = /^ *\d+(?: \| ?|\t|→)/

const withoutNumbers = function* (text: string, sought: string): Steps<string | undefined> {
  const lines: Array<string> = []
  let isBlank = true
  for (let from = 0; from <= sought.length;) {
    const newline = sought.indexOf("\n", from)
    const line = sought.slice(from, newline === -1 ? sought.length : newline)
    const shown = line === "" ? line : number.exec(line)?.[0]
    if (shown === undefined) return undefined
    const bare = line.slice(shown.length)
    isBlank &&= bare.trim() === ""
    if (lines.push(bare) % 256 === 0) yield 256 * 4 * unitsPerItem
    if (newline === -1) break
    from = newline + 1
  }
  if (isBlank) return undefined
  const at = yield* indexOf(text, lines.join("\n"))
  return at === -1
    ? undefined
    : `${absentDetail}: its lines begin with line numbers; without these it occurs on line ${yield* lineAt(text, at)}`
}

interface Line {
  readonly number: number
  readonly text: string
  readonly folded: string
}

interface Lines {
  readonly lines: ReadonlyArray<Line>
  readonly bounds: ReadonlyArray<string>
}

const withoutBlanks = (text: string): string => text.replaceAll(/\s+/g, "")
const lower = (text: string): string => text.toLowerCase()
const normalizeLookalikes = (text: string): string =>
  /[^\0-\x7f]/.test(text)
    ? normalizeCompatibility(text)
        .replaceAll(/[\u2018-\u201b\u2032]/g, "'")
        .replaceAll(/[\u201c-\u201f\u2033]/g, '"')
        .replaceAll(/[\u2010-\u2015\u2212]/g, "-")
        .replaceAll(/[\u00ad\u200b-\u200d\u2060\ufeff]/g, "")
    : text

const combiningMarks = /[\p{M}\uff9e\uff9f]+/gu

const normalizeCompatibility = (text: string): string => {
  let out = ""
  let from = 0
  for (const { 0: run, index } of text.matchAll(combiningMarks)) {
    if (run.length <= maxMarks) continue
    out += text.slice(from, index).normalize("NFKC") + run
    from = index + run.length
  }
  return out + text.slice(from).normalize("NFKC")
}

const foldLine = (text: string): string => lower(withoutBlanks(normalizeLookalikes(text)))

const unitsPerFold = 8

const notBlank = function* (lines: ReadonlyArray<string>, first: number): Steps<ReadonlyArray<Line>> {
  const out: Array<Line> = []
  let unitsSpent = 0
  for (const [index, line] of lines.entries()) {
    const folded = foldLine(line)
    if (folded !== "") out.push({ number: first + index, text: line.endsWith("\r") ? line.slice(0, -1) : line, folded })
    unitsSpent += unitsPerItem + unitsPerFold * line.length
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  yield unitsSpent
  return out
}

/**
 * Returns the lines of the file. For a large file, returns only the lines around an anchor.
 *
 * The anchor is where the longest sought line first occurs. If this line does not occur, the anchor is where one of its
 * longest words first occurs, or else the start of the file.
 */
const linesOf = function* (text: string, sought: Sought): Steps<Lines> {
  if (text.length <= maxUnits && !hasMoreLines(text, maxLines)) {
    return { lines: yield* notBlank(text.split("\n"), 1), bounds: [] }
  }
  const at = yield* findAnchor(text, sought)
  const earliest = Math.max(0, at - maxUnits / 2)
  let from = at
  for (let i = 0; i < maxLines / 2 && from > earliest; i++) from = text.lastIndexOf("\n", from - 2) + 1
  from = Math.max(from, earliest)
  const lines = text.slice(from, from + maxUnits).split("\n", maxLines)
  const first = yield* lineAt(text, from)
  return {
    lines: yield* notBlank(lines, first),
    bounds: [`${lineSpan(first, first + lines.length - 1)} of this large file`]
  }
}

const findAnchor = function* (text: string, { lines }: Sought): Steps<number> {
  if (lines.length === 0) return 0
  const line = longestOf(lines, ({ text }) => text.trim().length)
    .text.trim()
    .slice(0, 1000)
  const words = line.match(/[\p{L}\p{N}_]{4,}/gu) ?? []
  for (const word of [line, ...words.sort((a, b) => b.length - a.length).slice(0, 5)]) {
    const at = yield* indexOf(text, word)
    if (at !== -1) return at
  }
  return 0
}

const hasMoreLines = (text: string, lines: number): boolean => {
  let at = -1
  for (let i = 0; i < lines; i++) {
    at = text.indexOf("\n", at + 1)
    if (at === -1) return false
  }
  return true
}

const longestOf = <A>(values: ReadonlyArray<A>, length: (value: A) => number): A =>
  values.reduce((longest, value) => (length(value) > length(longest) ? value : longest))

interface Sought extends Lines {
  readonly isFirstPartial: boolean
  readonly isLastPartial: boolean
}

const maxExaminedLines = 100_000

const soughtLines = function* (text: string, sought: string): Steps<Sought> {
  const units = lengthOfLines(sought, maxExaminedLines)
  const all = sought.slice(0, units).replaceAll("\r\n", "\n").split("\n")
  yield 4 * units
  const count = all.length + (units < sought.length ? (yield* lineAt(sought.slice(units), sought.length - units)) - 1 : 0)
  const from = all.length <= maxSoughtLines ? 0 : Math.max(0, (yield* countAgreeingLines(text, all)) - maxSoughtLines / 2)
  const some = all.slice(from, from + maxSoughtLines).join("\n")
  const part = some.slice(0, maxUnits).split("\n")
  const isCut = some.length > maxUnits
  const lines = yield* notBlank(part, from + 1)
  const which = `${isCut ? "the beginning of " : ""}${lineSpan(from + 1, from + part.length)} of its ${count}`
  return {
    lines,
    bounds: part.length === count && !isCut ? [] : [which],
    isFirstPartial: lines[0]?.number === 1,
    isLastPartial: lines.at(-1)?.number === count
  }
}

const lengthOfLines = (text: string, lines: number): number => {
  let at = -1
  for (let i = 0; i < lines; i++) {
    at = text.indexOf("\n", at + 1)
    if (at === -1) return text.length
  }
  return at
}

/** Counts the leading lines that occur unchanged in the file. Returns 0 unless the first `maxSoughtLines` lines occur. */
const countAgreeingLines = function* (text: string, sought: ReadonlyArray<string>): Steps<number> {
  for (const ending of ["\n", "\r\n"]) {
    let at = yield* indexOf(text, `${sought.slice(0, maxSoughtLines).join(ending)}${ending}`)
    if (at === -1) continue
    let lines = 0
    let unitsSpent = 0
    while (lines < sought.length && text.startsWith(sought[lines]!, at)) {
      at += sought[lines]!.length
      if (text[at] === "\r") at++
      if (text[at++] !== "\n") break
      unitsSpent += unitsPerItem + sought[lines++]!.length
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
    }
    return lines
  }
  return 0
}

/**
 * Returns a function that tests a file line against a sought line. The test is equality, or containment if the sought
 * text begins or ends within a line.
 */
const lineTestOf = (
  { isLastPartial, lines, isFirstPartial }: Sought,
  index: number
): ((line: string, sought: string) => boolean) => {
  const first = isFirstPartial && index === 0
  const last = isLastPartial && index === lines.length - 1
  if (first && last) return (line, sought) => runAtOnce(indexOf(line, sought)) !== -1
  if (first) return (line, sought) => line.endsWith(sought)
  if (last) return (line, sought) => line.startsWith(sought)
  return (line, sought) => line === sought
}

const lineSpan = (from: number, to: number): string => (from === to ? `line ${from}` : `lines ${from}-${to}`)

const findVariants = function* ({ lines }: Lines, sought: Sought, text: string): Steps<string | undefined> {
  const wanted = sought.lines
  const relations = wanted.map((_, index) => lineTestOf(sought, index))
  const places: Array<number> = []
  let unitsSpent = 0
  for (let at = 0; at + wanted.length <= lines.length && places.length < 4; at++) {
    let same = 0
    while (same < wanted.length && relations[same]!(lines[at + same]!.folded, wanted[same]!.folded)) {
      unitsSpent += unitsPerItem + lines[at + same++]!.folded.length
    }
    if (same === wanted.length) places.push(at)
    unitsSpent += unitsPerItem + (lines[at + same]?.folded.length ?? 0)
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  yield unitsSpent
  const at = places[0]
  if (at === undefined) return undefined
  const reasons = new Set<string>()
  let example = ""
  for (const [index, line] of wanted.entries()) {
    const found = lines[at + index]!
    const why = differences(found.text, line.text, relations[index]!)
    yield 4 * unitsPerFold * (found.text.length + line.text.length)
    for (const reason of why) reasons.add(reason)
    if (why.length > 0 && example === "") {
      const on = wanted.length === 1 ? "" : `on line ${found.number} `
      example = `: ${on}${quoteDifference(found.text, line.text, why.includes(lookalikes))}`
    }
  }
  const row = (place: number, index: number): number => lines[place + index]!.number - lines[place]!.number
  if (wanted.some((line, index) => row(at, index) !== line.number - wanted[0]!.number)) reasons.add("blank lines")
  if (reasons.size === 0) {
    reasons.add(text.includes("\r") ? "line endings, LF in the file and CRLF in the edit" : "the blank lines around it")
  }
  const differ = `${wanted.length === 1 ? "differs" : "differ"} from it only in ${listed([...reasons])}${example}`
  const [here, ...others] = places.map((place) => lineSpan(lines[place]!.number, lines[place + wanted.length - 1]!.number))
  return `${here} ${differ}${others.length === 0 ? "" : `; similar differences are on ${listed(others)}`}`
}

const lookalikes = "characters that look alike"

const differences = (
  line: string,
  sought: string,
  related: (line: string, sought: string) => boolean
): ReadonlyArray<string> => {
  const same = (f: (text: string) => string): boolean => related(f(line), f(sought))
  if (same((text) => text)) return []
  const reasons: Array<string> = []
  if (!same((text) => lower(normalizeLookalikes(text)))) {
    if (same((text) => lower(normalizeLookalikes(text)).trimEnd())) reasons.push("trailing blanks")
    else if (same((text) => lower(normalizeLookalikes(text)).trim())) {
      const mixed = line.slice(0, line.search(/\S/)).includes("\t") !== sought.slice(0, sought.search(/\S/)).includes("\t")
      reasons.push(mixed ? "indentation, tabs against spaces" : "indentation")
    } else reasons.push("white space")
  }
  if (!same((text) => withoutBlanks(normalizeLookalikes(text)))) reasons.push("case")
  if (reasons.length === 0 || !same((text) => lower(withoutBlanks(text)))) reasons.push(lookalikes)
  return reasons
}

const findOverlap = function* ({ lines }: Lines, sought: Sought): Steps<string | undefined> {
  const wanted = sought.lines
  const known = new Map<string, Array<number>>()
  for (const [index, { folded }] of wanted.entries()) {
    const at = known.get(folded)
    if (at === undefined) known.set(folded, [index])
    else at.push(index)
  }
  // One weight for each possible place of the first sought line, including places before the start and near the end.
  const weights = new Int32Array(wanted.length + lines.length)
  let best = 0
  let unitsSpent = 0
  for (const [at, { folded }] of lines.entries()) {
    for (const index of known.get(folded) ?? []) {
      const place = at - index + wanted.length
      weights[place]! += Math.min(folded.length, 40)
      if (weights[place]! > weights[best]!) best = place
      unitsSpent += 4
    }
    unitsSpent += unitsPerItem + folded.length
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  yield unitsSpent
  if (weights[best]! < 4) return undefined
  const at = best - wanted.length
  const first = wanted.findIndex((line, index) => !lineTestOf(sought, index)(lines[at + index]?.folded ?? "", line.folded))
  const same = wanted.filter((line, index) => lines[at + index]?.folded === line.folded).length
  const from = lines[Math.max(0, at)]!.number
  const to = lines[Math.min(lines.length, at + wanted.length) - 1]!.number
  const other = lines[at + first]
  const differs = wanted[first]!.text
  return `the most similar text is on ${lineSpan(from, to)}, with ${same} of its ${wanted.length} lines: ${
    other === undefined
      ? `the file has no line for ${quoteText(differs, 0)}`
      : `on line ${other.number} ${quoteDifference(other.text, differs)}`
  }`
}

const pairs = (text: string): ReadonlyArray<number> => {
  const out: Array<number> = []
  for (let i = 1; i < text.length; i++) out.push(text.charCodeAt(i - 1) * 0x10000 + text.charCodeAt(i))
  return out
}

const findSimilar = function* ({ lines }: Lines, { lines: wanted }: Sought): Steps<string | undefined> {
  const line = longestOf(wanted, ({ folded }) => folded.length)
  const sought = new Set(pairs(line.folded.slice(0, 1000)))
  let unitsSpent = 0
  let best = 0
  let nearest: Line | undefined
  for (const candidate of lines) {
    const own = pairs(candidate.folded)
    unitsSpent += unitsPerItem + 8 * own.length
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
    let common = 0
    for (const pair of own) if (sought.has(pair)) common++
    // The sought text may be only a part of a line, so the length of the line counts only up to twice the sought
    // length.
    const score = (2 * Math.min(common, sought.size)) / (sought.size + Math.min(own.length, 2 * sought.size))
    if (score > best) {
      best = score
      nearest = candidate
    }
  }
  return nearest === undefined || best < 0.5
    ? undefined
    : `the most similar line is line ${nearest.number}: ${quoteDifference(nearest.text, line.text)}`
}

const quoteDifference = (line: string, sought: string, escape = false): string => {
  const start = line.length > maxQuoted ? findLikelyStart(line, sought) : 0
  let same = 0
  while (same < sought.length && line[start + same] === sought[same]) same++
  const from = same > maxQuoted / 2 ? same - maxQuoted / 4 : 0
  return `the file has ${quoteText(line, start + from, escape)}, and the edit has ${quoteText(sought, from, escape)}`
}

const findLikelyStart = (line: string, sought: string): number => {
  const sampleLength = 6
  for (let i = 0; i < sought.length && i < 1000; i += sampleLength) {
    const at = line.indexOf(sought.slice(i, i + sampleLength))
    if (at !== -1) return Math.max(0, at - i)
  }
  return 0
}

const quoteText = (text: string, from: number, escape = false): string => {
  const shown = JSON.stringify(text.slice(from, from + maxQuoted).toWellFormed())
  const told = escape ? shown.replaceAll(/(?=[^\0-\x7f])[\p{M}\p{Z}\p{P}\p{C}\p{S}]/gu, escapeCharacter) : shown
  return `${from > 0 ? "…" : ""}${told}${from + maxQuoted < text.length ? "…" : ""}`
}

const escapeCharacter = (character: string): string => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`
