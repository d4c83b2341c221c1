/**
 * A three-way merge of texts by lines. Every byte of the result comes from one of the three texts.
 *
 * A change of one side is taken. Changes of both sides that overlap or touch are a conflict, as in git, unless both
 * sides have the same lines.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { unitsPerItem, type Steps } from "../../runtime/steps.ts"
import type { Hunk, LineRange } from "./conflict.ts"
import { type Edit, edits, type Lines, makeLineNumberer } from "./lines.ts"

export type Side = "ours" | "theirs"

export type TextMerge =
  | { readonly _tag: "Merged"; readonly bytes: Uint8Array }
  /** The merge with the preferred side's lines in each hunk. */
  | { readonly _tag: "Conflicts"; readonly hunks: ReadonlyArray<Hunk>; readonly bytes: Uint8Array }
  | { readonly _tag: "Binary" }
  | { readonly _tag: "TooLarge" }

const maxLines = 1_000_000

/** A group of adjacent edits of one side or both, in 0-based lines with exclusive ends. */
interface EditRegion {
  readonly from: number
  readonly to: number
  readonly ours: ReadonlyArray<Edit>
  readonly theirs: ReadonlyArray<Edit>
}

const editRegions = function* (ours: ReadonlyArray<Edit>, theirs: ReadonlyArray<Edit>): Generator<EditRegion> {
  let o = 0
  let t = 0
  while (o < ours.length || t < theirs.length) {
    const firstOurs = o
    const firstTheirs = t
    const from = Math.min(ours[o]?.from ?? Infinity, theirs[t]?.from ?? Infinity)
    let to = from
    for (;;) {
      if (o < ours.length && ours[o]!.from <= to) to = Math.max(to, ours[o++]!.to)
      else if (t < theirs.length && theirs[t]!.from <= to) to = Math.max(to, theirs[t++]!.to)
      else break
    }
    yield { from, to, ours: ours.slice(firstOurs, o), theirs: theirs.slice(firstTheirs, t) }
  }
}

type LineSpan = readonly [start: number, end: number]

const spanOf = ({ from, to }: EditRegion, own: ReadonlyArray<Edit>): LineSpan => {
  const first = own[0]!
  const last = own.at(-1)!
  return [first.start - (first.from - from), last.end + (to - last.to)]
}

const sameLines = (a: Lines, [start, end]: LineSpan, b: Lines, [otherStart, otherEnd]: LineSpan): boolean => {
  if (end - start !== otherEnd - otherStart) return false
  for (let i = 0; i < end - start; i++) if (a.ids[start + i] !== b.ids[otherStart + i]) return false
  return true
}

const rangeOf = ([start, end]: LineSpan): LineRange => ({ start: start + 1, lines: end - start })

const bytesOf = ({ bytes, starts }: Lines, [start, end]: LineSpan): Uint8Array => bytes.subarray(starts[start]!, starts[end]!)

const LF = 10

const isText = (bytes: Uint8Array): boolean => !bytes.includes(0)

const hasTooManyLines = (bytes: Uint8Array): boolean => {
  let lines = 0
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) if (++lines > maxLines) return true
  return false
}

const isEqual = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && Buffer.compare(a, b) === 0

const mergedText = (bytes: Uint8Array): TextMerge => ({ _tag: "Merged", bytes })

const mergeLines = function* (base: Lines, ours: Lines, theirs: Lines, prefer: Side): Steps<TextMerge> {
  const parts: Array<Uint8Array> = []
  const hunks: Array<Hunk> = []
  let at = 0
  for (const region of editRegions(yield* edits(base, ours), yield* edits(base, theirs))) {
    yield 4 * unitsPerItem + region.to - region.from
    parts.push(bytesOf(base, [at, region.from]))
    at = region.to
    const mine = region.ours.length === 0 ? undefined : spanOf(region, region.ours)
    const other = region.theirs.length === 0 ? undefined : spanOf(region, region.theirs)
    if (mine === undefined || other === undefined || sameLines(ours, mine, theirs, other)) {
      parts.push(mine === undefined ? bytesOf(theirs, other!) : bytesOf(ours, mine))
    } else {
      parts.push(prefer === "ours" ? bytesOf(ours, mine) : bytesOf(theirs, other))
      hunks.push({ base: rangeOf([region.from, region.to]), ours: rangeOf(mine), theirs: rangeOf(other) })
    }
  }
  parts.push(bytesOf(base, [at, base.ids.length]))
  const bytes = new Uint8Array(Buffer.concat(parts))
  return hunks.length === 0 ? mergedText(bytes) : { _tag: "Conflicts", hunks, bytes }
}

/**
 * Merges `ours` and `theirs`, whose common origin is `base`, in steps. `base` is empty if there is none.
 *
 * @default prefer: "ours"
 */
export const mergeText = function* (
  base: Uint8Array,
  ours: Uint8Array,
  theirs: Uint8Array,
  prefer: Side = "ours"
): Steps<TextMerge> {
  if (isEqual(ours, theirs) || isEqual(base, theirs)) return mergedText(ours)
  if (isEqual(base, ours)) return mergedText(theirs)
  if (![base, ours, theirs].every(isText)) return { _tag: "Binary" }
  if ([base, ours, theirs].some(hasTooManyLines)) return { _tag: "TooLarge" }
  const lines = makeLineNumberer()
  return yield* mergeLines(yield* lines(base), yield* lines(ours), yield* lines(theirs), prefer)
}
