/**
 * What two sides cannot both have. A conflict names one place and what either side has there, so that a person or a model can settle
 * it without looking at the trees again; everything that is not named by one has been joined.
 */
import * as Schema from "effect/Schema"
import type { FsPath } from "../../model/FsPath.ts"
import type { Node } from "../tree.ts"

/** A path may hold a key for a name that is no text, which no caller's path could. */
const Path = Schema.String as unknown as Schema.Codec<FsPath, string>

/**
 * Whole lines of a file.
 *
 * @since 0.1.0
 */
export const LineRange = Schema.Struct({
  /** 1-based; where there are no lines, the line before which they would stand. */
  start: Schema.Int,
  lines: Schema.Int
})
/** @since 0.1.0 */
export type LineRange = typeof LineRange.Type

/**
 * Lines that both sides changed, each in its own way.
 *
 * @since 0.1.0
 */
export const Hunk = Schema.Struct({ base: LineRange, ours: LineRange, theirs: LineRange })
/** @since 0.1.0 */
export type Hunk = typeof Hunk.Type

/**
 * What one side has at a path.
 *
 * @since 0.1.0
 */
export const Version = Schema.Struct({
  kind: Schema.Literals(["file", "directory", "symlink"]),
  /** POSIX permission bits; left out for links, and where the side has none. */
  mode: Schema.optionalKey(Schema.Int),
  /** Of a file. */
  sizeBytes: Schema.optionalKey(Schema.Int),
  /** Of a link. */
  target: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type Version = typeof Version.Type

/** What stands at a path, told without its content; nothing for nothing. */
export const versionOf = (node: Node | undefined): Version | undefined => {
  if (node === undefined) return undefined
  if (node.kind === "symlink") return { kind: node.kind, target: node.target }
  const mode = node.mode === undefined ? undefined : { mode: node.mode }
  return node.kind === "file" ? { kind: node.kind, ...mode, sizeBytes: node.sizeBytes } : { kind: node.kind, ...mode }
}

const quoted = (text: string): string => JSON.stringify(text)

const octal = (version: Version | undefined): string =>
  version?.mode === undefined ? "unknown" : `0${version.mode.toString(8)}`

const a = { file: "a file", directory: "a directory", symlink: "a link", nothing: "nothing" } as const

const kindOf = (version: Version | undefined): string => a[version?.kind ?? "nothing"]

const lines = ({ lines, start }: LineRange): string =>
  lines === 0 ? `before line ${start}` : lines === 1 ? `line ${start}` : `lines ${start} to ${start + lines - 1}`

const and = (more: number): string => (more === 0 ? "" : `, and ${more} more`)

const sentences: { readonly [Reason in Conflict["reason"]]: (conflict: Conflict) => string } = {
  content: ({ base, hunks }) => {
    const first = hunks?.[0]
    const what =
      base === undefined ? "both sides added it, with different lines" : "both sides changed the same or adjacent lines"
    return first === undefined
      ? what
      : `${what} (${lines(first.ours)} of ours, ${lines(first.theirs)} of theirs${and(hunks!.length - 1)})`
  },
  binary: ({ base }) =>
    `both sides ${base === undefined ? "added" : "changed"} it, and it is no text that could be merged by lines`,
  size: ({ base }) => `both sides ${base === undefined ? "added" : "changed"} it, and it is too large to be merged by lines`,
  deleted: ({ ours, paths }) => {
    const [removed, changed] = ours === undefined ? ["ours", "theirs"] : ["theirs", "ours"]
    const what = paths?.length ? `${quoted(paths[0]!)} in it${and(paths.length - 1)}` : "it"
    return `${removed} removed it, ${changed} changed ${what}`
  },
  kind: ({ ours, theirs }) => `it is ${kindOf(ours)} in ours and ${kindOf(theirs)} in theirs`,
  mode: ({ ours, theirs }) => `its mode is ${octal(ours)} in ours and ${octal(theirs)} in theirs`,
  name: ({ names }) => `${(names ?? []).map(quoted).join(" and ")} are one name here`,
  link: ({ ours, theirs }) =>
    `the link leads to ${quoted(ours?.target ?? "")} in ours and to ${quoted(theirs?.target ?? "")} in theirs`
}

/**
 * One place where a merge needs a decision.
 *
 * - `content`: both sides changed the same lines, or adjacent ones; `hunks` says which
 * - `binary`, `size`: both sides changed a file that is not merged by lines
 * - `deleted`: one side removed what the other changed, or a directory in which the other changed or added `paths`
 * - `kind`: both changed it, and it is no longer of one kind
 * - `mode`, `link`: both gave it another mode, or another target
 * - `name`: `names` are one where case does not distinguish them
 *
 * @since 0.1.0
 */
export class Conflict extends Schema.Class<Conflict>("fs-algebra/Conflict")({
  path: Path,
  reason: Schema.Literals(["content", "binary", "size", "deleted", "kind", "mode", "name", "link"]),
  /** What was there before either side changed it; left out where nothing was. So are the sides. */
  base: Schema.optionalKey(Version),
  ours: Schema.optionalKey(Version),
  theirs: Schema.optionalKey(Version),
  hunks: Schema.optionalKey(Schema.Array(Hunk)),
  paths: Schema.optionalKey(Schema.Array(Path)),
  names: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  get message(): string {
    return `${quoted(this.path)}: ${sentences[this.reason](this)}`
  }
}

/** The three versions of one entry. */
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
