/**
 * Applies edits to a file: all of them or none.
 *
 * Each edit is located in the original text, so the order does not matter and no edit can undo or hide another.
 * Overlapping edits, which would depend on the order, are refused.
 */
import { invalidArgument, limitExceeded } from "../model/Fault.ts"
import type * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import { codePoints } from "../model/FsPath.ts"
import { maxUnitsPerStep, runAtOnce, runInSlices, type Steps, unitsPerItem } from "../runtime/steps.ts"
import { type Replacement, unified } from "./diff.ts"
import { type FindMatches, indexOf, makeFinder, makeReplacer, type Match } from "./endings.ts"
import { explainAbsent, explainAmbiguous, lineAt } from "./nearest.ts"
import { decodeSteps, describeSurrogate, encode, maxStringLength } from "./text.ts"

// `splice` applies replacements of text to the bytes of a file.
//
// The bytes outside the replacements are copied and never re-encoded. So the encoding never changes. The byte order mark, the
// line endings and the last newline change only if a replacement contains them.

interface Document {
  readonly bytes: Uint8Array
  readonly text: string
  readonly encode: (text: string) => Steps<Uint8Array>
  readonly width: number | undefined
}

/** Decodes UTF-8, or UTF-16 after its byte order mark. Returns NotText for other bytes. */
export const documentOf = function* (bytes: Uint8Array): Steps<Document | Fault> {
  const [first, second] = bytes
  // If two zero bytes follow FF FE, they form the byte order mark of UTF-32.
  const isLittleEndian = first === 0xff && second === 0xfe && !(bytes.length >= 4 && bytes[2] === 0 && bytes[3] === 0)
  const isUtf16 = isLittleEndian || (first === 0xfe && second === 0xff)
  const text = yield* decodeSteps(bytes, isUtf16 ? (isLittleEndian ? "utf-16le" : "utf-16be") : "utf-8")
  if (typeof text !== "string") return text
  if (isUtf16) return { bytes, text, encode: (text) => utf16(text, isLittleEndian), width: 2 }
  return { bytes, text, encode: utf8, width: text.length === bytes.length ? 1 : undefined }
}

const utf8 = function* (text: string): Steps<Uint8Array> {
  yield text.length
  return encode(text) as Uint8Array
}

const utf16 = function* (text: string, isLittleEndian: boolean): Steps<Uint8Array> {
  const bytes = new Uint8Array(text.length * 2)
  const view = new DataView(bytes.buffer)
  for (let i = 0; i < text.length; i++) {
    view.setUint16(i * 2, text.charCodeAt(i), isLittleEndian)
    if (i % maxUnitsPerStep === maxUnitsPerStep - 1) yield maxUnitsPerStep
  }
  yield text.length % maxUnitsPerStep
  return bytes
}

const utf8Size = function* (text: string, from: number, to: number): Steps<number> {
  let size = to - from
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) size += unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2
    if ((i - from) % maxUnitsPerStep === maxUnitsPerStep - 1) yield maxUnitsPerStep
  }
  return size
}

/** The maximum length of a map key. V8 hashes strings of 16,384 or more units by their length alone. */
const maxKeyLength = 4096

const bytesPerUnit = 64

/** Applies replacements, which must be in order and must not overlap. */
export const splice = function* (
  { bytes, encode, text: before, width }: Document,
  replacements: ReadonlyArray<Replacement>
): Steps<Uint8Array> {
  const encoded = new Map<string, Uint8Array>()
  const encodedTexts: Array<Uint8Array> = []
  const kept = new Float64Array(replacements.length)
  const removedSizes = new Float64Array(replacements.length)
  let length = bytes.length
  let at = 0
  let unitsSpent = 0
  for (let i = 0; i < replacements.length; i++) {
    const { end, start, text } = replacements[i]!
    // Encode a repeated text only once, because the replacements of one edit usually share one string.
    let encodedText =
      i > 0 && text === replacements[i - 1]!.text
        ? encodedTexts[i - 1]
        : text.length < maxKeyLength
          ? encoded.get(text)
          : undefined
    if (encodedText === undefined) {
      encodedText = yield* encode(text)
      if (text.length < maxKeyLength) encoded.set(text, encodedText)
    }
    encodedTexts.push(encodedText)
    kept[i] = width === undefined ? yield* utf8Size(before, at, start) : (start - at) * width
    removedSizes[i] = width === undefined ? yield* utf8Size(before, start, end) : (end - start) * width
    length += encodedText.length - removedSizes[i]!
    unitsSpent += 4 * unitsPerItem + (width === undefined ? end - at : 0)
    at = end
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  const out = new Uint8Array(length)
  let read = 0
  let written = 0
  const copyKept = (count: number): void => {
    out.set(bytes.subarray(read, read + count), written)
    read += count
    written += count
  }
  for (let i = 0; i < encodedTexts.length; i++) {
    const encodedText = encodedTexts[i]!
    copyKept(kept[i]!)
    out.set(encodedText, written)
    written += encodedText.length
    read += removedSizes[i]!
    unitsSpent += 2 * unitsPerItem + (kept[i]! + encodedText.length) / bytesPerUnit
    if (unitsSpent > maxUnitsPerStep) {
      yield unitsSpent
      unitsSpent = 0
    }
  }
  copyKept(bytes.length - read)
  return out
}

/**
 * One replacement of text in a file.
 *
 * @since 0.1.0
 */
export interface Edit {
  /** The text to replace. The text must occur in the file. An LF also matches CRLF, unless the text contains a CR. */
  readonly oldText: string
  /** The replacement. The replacement takes the line endings of the replaced text, unless `oldText` contains a CR. */
  readonly newText: string
  /**
   * The matches to replace. `unique` requires exactly one match, `first` replaces the first match, and `all` replaces
   * all matches from the left, without overlap. `unique` and `first` prefer matches with the line endings of `oldText`.
   * @default "unique"
   */
  readonly match?: "unique" | "first" | "all" | undefined
}

export interface Edited {
  readonly bytes: Uint8Array
  readonly replacements: number
  readonly diff: string
  readonly inserted: number
}

/** The maximum number of replacements, so that they fit in memory together with their results. */
const maxReplacements = 1_000_000

const argumentName = (edits: ReadonlyArray<Edit>, index: number, field: string): string =>
  edits.length === 1 ? field : `edits[${index}].${field}`

const matchModes: ReadonlySet<unknown> = new Set([undefined, "unique", "first", "all"])

export const checkEdits = (edits: ReadonlyArray<Edit>): Fault | undefined => {
  if (edits.length === 0) return invalidArgument("edits", "the list is empty; give at least one edit")
  for (const [index, edit] of edits.entries()) {
    if (typeof edit !== "object" || edit === null)
      return invalidArgument("edits", "each edit must be an object with oldText and newText")
    for (const field of ["oldText", "newText"] as const) {
      const text: unknown = edit[field]
      if (typeof text !== "string") return invalidArgument(argumentName(edits, index, field), "it must be a string")
      if (!text.isWellFormed())
        return invalidArgument(argumentName(edits, index, field), `it contains a lone surrogate, ${describeSurrogate(text)}`)
    }
    if (edit.oldText === "") {
      return invalidArgument(
        argumentName(edits, index, "oldText"),
        "it is empty; to insert text, give the text next to the insertion point as oldText and repeat it in newText"
      )
    }
    if (!matchModes.has(edit.match))
      return invalidArgument(argumentName(edits, index, "match"), "it must be `unique`, `first` or `all`")
  }
  return undefined
}

interface PlacedReplacement extends Replacement {
  readonly edit: number
}

const selectMatches = function* (
  text: string,
  find: FindMatches,
  edits: ReadonlyArray<Edit>,
  index: number
): Steps<ReadonlyArray<Match> | Fault> {
  const { match = "unique", oldText } = edits[index]!
  const isExact = ({ end, start }: Match): boolean => end - start === oldText.length
  const found = yield* find(oldText, maxReplacements + 1, match === "first" ? isExact : undefined)
  if (found.length === 0)
    return invalidArgument(argumentName(edits, index, "oldText"), yield* explainMissing(text, edits, index))
  if (match === "all") return found
  if (match === "first") return [isExact(found.at(-1)!) ? found.at(-1)! : found[0]!]
  const exact: Array<Match> = []
  for (const [index, match] of found.entries()) {
    if (isExact(match)) exact.push(match)
    if (index % 1024 === 1023) yield 1024 * 2
  }
  const preferred = exact.length === 0 ? found : exact
  return preferred.length === 1
    ? preferred
    : invalidArgument(argumentName(edits, index, "oldText"), yield* explainAmbiguous(text, preferred, maxReplacements))
}

const explainMissing = function* (text: string, edits: ReadonlyArray<Edit>, index: number): Steps<string> {
  const { oldText } = edits[index]!
  for (const [maker, { newText }] of edits.entries()) {
    yield unitsPerItem + newText.length
    if (maker !== index && (yield* indexOf(newText, oldText)) !== -1) {
      return `it does not occur in the original text; edits[${maker}] would insert it, but every edit is matched against the original text, so combine the two`
    }
  }
  return yield* explainAbsent(text, oldText)
}

const mergeRuns = function* (runs: Array<Array<PlacedReplacement>>): Steps<Array<PlacedReplacement>> {
  let rest = runs
  while (rest.length > 1) {
    const merged: Array<Array<PlacedReplacement>> = []
    for (let i = 0; i < rest.length; i += 2) {
      const [a, b = []] = [rest[i]!, rest[i + 1]]
      const out: Array<PlacedReplacement> = []
      let [x, y] = [0, 0]
      while (x < a.length || y < b.length) {
        out.push(y === b.length || (x < a.length && a[x]!.start <= b[y]!.start) ? a[x++]! : b[y++]!)
        if (out.length % 1024 === 0) yield 1024 * unitsPerItem
      }
      yield unitsPerItem
      merged.push(out)
    }
    rest = merged
  }
  return rest[0] ?? []
}

const placeEdits = function* (
  text: string,
  edits: ReadonlyArray<Edit>,
  maxInserted: number
): Steps<Array<PlacedReplacement> | Fault> {
  const find = makeFinder(text)
  const runs: Array<Array<PlacedReplacement>> = []
  let inserted = 0
  let count = 0
  for (const [index, edit] of edits.entries()) {
    const found = yield* selectMatches(text, find, edits, index)
    if ("_tag" in found) return found
    inserted += codePoints(edit.newText) * found.length
    if (inserted > maxInserted) return limitExceeded("maxFileSize", maxInserted, inserted)
    count += found.length
    if (count > maxReplacements) return limitExceeded("maxReplacements", maxReplacements, count)
    const write = yield* makeReplacer(text, edit.oldText, edit.newText)
    const placed: Array<PlacedReplacement> = []
    let unitsSpent = edit.newText.length
    for (const match of found) {
      const written = write(match)
      const put = typeof written === "string" ? written : yield* written
      placed.push({ start: match.start, end: match.end, text: put, edit: index })
      unitsSpent += unitsPerItem
      if (unitsSpent > maxUnitsPerStep) {
        yield unitsSpent
        unitsSpent = 0
      }
    }
    yield unitsSpent
    runs.push(placed)
  }
  const placed = yield* mergeRuns(runs)
  for (let i = 1; i < placed.length; i++) {
    const before = placed[i - 1]!
    const { edit, start } = placed[i]!
    if (start < before.end) {
      const both = `edits[${Math.min(before.edit, edit)}] and edits[${Math.max(before.edit, edit)}]`
      return invalidArgument("edits", `${both} overlap on line ${yield* lineAt(text, start)}; combine them`)
    }
    if (i % 1024 === 0) yield 1024 * unitsPerItem
  }
  return placed
}

const applySteps = function* (
  bytes: Uint8Array,
  edits: ReadonlyArray<Edit>,
  path: string,
  maxInserted: number
): Steps<Edited | Fault> {
  const fault = checkEdits(edits)
  if (fault !== undefined) return fault
  const document = yield* documentOf(bytes)
  if ("_tag" in document) return document
  const { text } = document
  const placed = yield* placeEdits(text, edits, maxInserted)
  if ("_tag" in placed) return placed
  const points = edits.map(({ newText }) => codePoints(newText))
  let units = text.length
  let inserted = 0
  for (const [index, replacement] of placed.entries()) {
    units += replacement.text.length - (replacement.end - replacement.start)
    // The replacement may be longer than `newText` because it takes CRs from the file.
    inserted += points[replacement.edit]! + replacement.text.length - edits[replacement.edit]!.newText.length
    if (index % 1024 === 0) yield 1024 * unitsPerItem
  }
  if (inserted > maxInserted) return limitExceeded("maxFileSize", maxInserted, inserted)
  // The new text must fit in a string, so that the file can be read again. The diff can be about as long as the text.
  if (units > maxStringLength) return limitExceeded("maxStringLength", maxStringLength, units)
  try {
    const spliced = yield* splice(document, placed)
    return { bytes: spliced, replacements: placed.length, diff: yield* unified(path, text, placed), inserted }
  } catch (error) {
    if (error instanceof RangeError) return limitExceeded("maxStringLength", maxStringLength, text.length + units)
    throw error
  }
}

/**
 * Applies edits to the content of a file, in slices. `path` is the name in the header of the diff.
 *
 * Returns these faults:
 * - InvalidArgument for edits that `checkEdits` refuses, that overlap, or whose `oldText` does not occur as often as
 *   `match` requires. The message names the lines of the matches, or the most similar text.
 * - NotText for bytes that are neither UTF-8 nor UTF-16 with a byte order mark.
 * - LimitExceeded for more than `maxInserted` inserted code points, for more than 1,000,000 replacements, and for a text
 *   or diff that exceeds the largest string.
 *
 * @default maxInserted: no bound
 */
export const applyEdits = (
  bytes: Uint8Array,
  edits: ReadonlyArray<Edit>,
  path: string,
  maxInserted = Number.POSITIVE_INFINITY
): Effect.Effect<Edited | Fault> => runInSlices(() => applySteps(bytes, edits, path, maxInserted))

export const applyEditsAtOnce = (
  bytes: Uint8Array,
  edits: ReadonlyArray<Edit>,
  path: string,
  maxInserted = Number.POSITIVE_INFINITY
): Edited | Fault => runAtOnce(applySteps(bytes, edits, path, maxInserted))
