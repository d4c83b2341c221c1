import * as Schema from "effect/Schema"
import { findCommonBlocks, type Lines as Numbered, makeLineNumbering as numberingText } from "../engine/diff.ts"
import type { FsPath } from "../model/FsPath.ts"
import { Buffer } from "../runtime/buffer.ts"
import { maxUnitsPerStep, type Steps, unitsPerItem } from "../runtime/steps.ts"
import type { Node } from "./tree.ts"

// In almost all texts, the line diff reports changes at the positions that git reports.
//
// Two texts can have many shortest diffs. This diff moves each block of changes down as far as possible, so that equal changes
// of both sides have the same position.

/** A text whose lines are numbers. Two lines have the same number if their bytes are equal, including the line terminator. */
interface Lines extends Numbered {
  readonly bytes: Uint8Array
}

/**
 * A replacement of the old lines `from` to `to` by the new lines `start` to `end`. Lines count from 0, and the ends are
 * exclusive. At least one of the two ranges is not empty.
 */
interface Edit {
  readonly from: number
  readonly to: number
  readonly start: number
  readonly end: number
}

/**
 * Returns a function that numbers the lines of several texts consistently. A line ends with LF or at the end of the text. CR is
 * an ordinary byte.
 */
const makeLineNumberer = (): ((bytes: Uint8Array) => Steps<Lines>) => {
  const number = numberingText()
  return function* (bytes) {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")
    return { bytes, ...(yield* number(text)) }
  }
}

/**
 * The budget of one comparison: the number of lines, multiplied by the number of differences. Beyond the budget, the diff is
 * correct but not the shortest.
 */
const maxSteps = 20_000_000

/**
 * A comparison as counts of changed lines. Each side has one count before each unchanged line, and one count after the last
 * unchanged line.
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
 * Moves each block of changed lines down as far as possible, and merges blocks that become adjacent.
 *
 * Then moves each block up to the last position at which the other side has changed lines too.
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

/** Returns the edits in order. Two edits are separated by at least one unchanged line. */
const edits = function* (before: Lines, after: Lines): Steps<ReadonlyArray<Edit>> {
  const gaps = yield* compare(before.ids, after.ids)
  yield* alignGaps(before.ids, gaps.before, gaps.after)
  yield* alignGaps(after.ids, gaps.after, gaps.before)
  return yield* editsOf(gaps)
}

// A three-way merge of texts by lines. Every byte of the result comes from one of the three texts. A change that only one
// side made is taken. Overlapping or adjacent changes of both sides are a conflict, as in git, if their lines differ.

export type Side = "ours" | "theirs"

export type TextMerge =
  | { readonly _tag: "Merged"; readonly bytes: Uint8Array }
  /** The merged bytes, with the lines of the preferred side in each hunk. */
  | { readonly _tag: "Conflicts"; readonly hunks: ReadonlyArray<Hunk>; readonly bytes: Uint8Array }
  | { readonly _tag: "Binary" }
  | { readonly _tag: "TooLarge" }

const maxLines = 1_000_000

/** A group of adjacent edits of one or both sides. Lines count from 0, and the ends are exclusive. */
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
 * Merges `ours` and `theirs`, whose common ancestor is `base`, in steps. Without an ancestor, `base` is empty. For each
 * conflict, takes the lines of the side `prefer`.
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

/** The schema of a path. The schema `FsPath` would reject the `Child.key` of a name that is not text. */
const Path = Schema.String as unknown as Schema.Codec<FsPath, string>

/**
 * A range of whole lines of a file.
 *
 * @since 0.1.0
 */
export const LineRange = Schema.Struct({
  /** The number of the first line, counted from 1. An empty range has the number of the line after the range. */
  start: Schema.Int,
  lines: Schema.Int
})
/** @since 0.1.0 */
export type LineRange = typeof LineRange.Type

/**
 * Lines that both sides changed differently.
 *
 * @since 0.1.0
 */
export const Hunk = Schema.Struct({ base: LineRange, ours: LineRange, theirs: LineRange })
/** @since 0.1.0 */
export type Hunk = typeof Hunk.Type

/**
 * The entry of one side at a path.
 *
 * @since 0.1.0
 */
export const Version = Schema.Struct({
  kind: Schema.Literals(["file", "directory", "symlink"]),
  /** The POSIX permission bits. Absent for symlinks, and if the side has no modes. */
  mode: Schema.optionalKey(Schema.Int),
  /** The size of a file in bytes. */
  sizeBytes: Schema.optionalKey(Schema.Int),
  /** The target of a symlink. */
  target: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type Version = typeof Version.Type

export const versionOf = (node: Node | undefined): Version | undefined => {
  if (node === undefined) return undefined
  if (node.kind === "symlink") return { kind: node.kind, target: node.target }
  const mode = node.mode === undefined ? undefined : { mode: node.mode }
  return node.kind === "file" ? { kind: node.kind, ...mode, sizeBytes: node.sizeBytes } : { kind: node.kind, ...mode }
}

const quoted = (text: string): string => JSON.stringify(text)

const octal = (version: Version | undefined): string =>
  version?.mode === undefined ? "unknown" : `0${version.mode.toString(8)}`

const kindPhrases = { file: "a file", directory: "a directory", symlink: "a link", nothing: "missing" } as const

const kindOf = (version: Version | undefined): string => kindPhrases[version?.kind ?? "nothing"]

const lines = ({ lines, start }: LineRange): string =>
  lines === 0 ? `before line ${start}` : lines === 1 ? `line ${start}` : `lines ${start} to ${start + lines - 1}`

const andMore = (more: number): string => (more === 0 ? "" : `, and ${more} more`)

const messageByReason: { readonly [Reason in Conflict["reason"]]: (conflict: Conflict) => string } = {
  content: ({ base, hunks }) => {
    const first = hunks?.[0]
    const what =
      base === undefined ? "both sides added it, with different lines" : "both sides changed the same or adjacent lines"
    return first === undefined
      ? what
      : `${what} (${lines(first.ours)} of ours, ${lines(first.theirs)} of theirs${andMore(hunks!.length - 1)})`
  },
  binary: ({ base }) =>
    `both sides ${base === undefined ? "added" : "changed"} it, and it is not text, so its lines cannot be merged`,
  size: ({ base }) => `both sides ${base === undefined ? "added" : "changed"} it, and it is too large to merge by lines`,
  deleted: ({ ours, paths }) => {
    const [removed, changed] = ours === undefined ? ["ours", "theirs"] : ["theirs", "ours"]
    const what = paths?.length ? `${quoted(paths[0]!)} in it${andMore(paths.length - 1)}` : "it"
    return `${removed} removed it, ${changed} changed ${what}`
  },
  kind: ({ ours, theirs }) => `it is ${kindOf(ours)} in ours and ${kindOf(theirs)} in theirs`,
  mode: ({ ours, theirs }) => `its mode is ${octal(ours)} in ours and ${octal(theirs)} in theirs`,
  name: ({ names }) => `${(names ?? []).map(quoted).join(" and ")} are the same name in this filesystem`,
  link: ({ ours, theirs }) =>
    `the link points to ${quoted(ours?.target ?? "")} in ours and to ${quoted(theirs?.target ?? "")} in theirs`
}

/**
 * A conflict between the changes of both sides.
 *
 * - `content`: both sides changed the same or adjacent lines; `hunks` lists them
 * - `binary`, `size`: both sides changed or added a file that cannot be merged by lines
 * - `deleted`: one side removed an entry that the other side changed, or a directory in which the other side changed or added
 *   `paths`
 * - `kind`: both sides changed or added an entry, which now has a different kind on each side
 * - `mode`, `link`: both sides changed the mode or the target differently
 * - `name`: the entries `names` have the same name if case is ignored
 *
 * @since 0.1.0
 */
export class Conflict extends Schema.Class<Conflict>("fs-algebra/Conflict")({
  path: Path,
  reason: Schema.Literals(["content", "binary", "size", "deleted", "kind", "mode", "name", "link"]),
  /** The version before both changes. Absent if no entry existed. `ours` and `theirs` are absent for the same reason. */
  base: Schema.optionalKey(Version),
  ours: Schema.optionalKey(Version),
  theirs: Schema.optionalKey(Version),
  hunks: Schema.optionalKey(Schema.Array(Hunk)),
  paths: Schema.optionalKey(Schema.Array(Path)),
  names: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  get message(): string {
    return `${quoted(this.path)}: ${messageByReason[this.reason](this)}`
  }
}

export interface Versions {
  readonly base: Node | undefined
  readonly ours: Node | undefined
  readonly theirs: Node | undefined
}

export const conflict = (
  path: FsPath,
  reason: Conflict["reason"],
  versions: Versions,
  more?: {
    readonly hunks?: ReadonlyArray<Hunk>
    readonly paths?: ReadonlyArray<FsPath>
    readonly names?: ReadonlyArray<string>
  }
): Conflict => {
  const base = versionOf(versions.base)
  const ours = versionOf(versions.ours)
  const theirs = versionOf(versions.theirs)
  return new Conflict({
    path,
    reason,
    ...(base === undefined ? undefined : { base }),
    ...(ours === undefined ? undefined : { ours }),
    ...(theirs === undefined ? undefined : { theirs }),
    ...more
  })
}
