import * as Schema from "effect/Schema"
import type { FsPath } from "../../model/FsPath.ts"
import type { Node } from "../tree.ts"

/** A path as plain text: it may contain the key of a name that is not text, which the path schema rejects. */
const Path = Schema.String as unknown as Schema.Codec<FsPath, string>

/**
 * A range of whole lines of a file.
 *
 * @since 0.1.0
 */
export const LineRange = Schema.Struct({
  /** The 1-based first line; for an empty range, the line that would follow. */
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
 * The version of one side at a path.
 *
 * @since 0.1.0
 */
export const Version = Schema.Struct({
  kind: Schema.Literals(["file", "directory", "symlink"]),
  /** POSIX permission bits; absent for symlinks, and if the side has no modes. */
  mode: Schema.optionalKey(Schema.Int),
  /** The size of a file. */
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

const kindPhrases = { file: "a file", directory: "a directory", symlink: "a link", nothing: "nothing" } as const

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
    `both sides ${base === undefined ? "added" : "changed"} it, and it is no text that could be merged by lines`,
  size: ({ base }) => `both sides ${base === undefined ? "added" : "changed"} it, and it is too large to be merged by lines`,
  deleted: ({ ours, paths }) => {
    const [removed, changed] = ours === undefined ? ["ours", "theirs"] : ["theirs", "ours"]
    const what = paths?.length ? `${quoted(paths[0]!)} in it${andMore(paths.length - 1)}` : "it"
    return `${removed} removed it, ${changed} changed ${what}`
  },
  kind: ({ ours, theirs }) => `it is ${kindOf(ours)} in ours and ${kindOf(theirs)} in theirs`,
  mode: ({ ours, theirs }) => `its mode is ${octal(ours)} in ours and ${octal(theirs)} in theirs`,
  name: ({ names }) => `${(names ?? []).map(quoted).join(" and ")} are one name here`,
  link: ({ ours, theirs }) =>
    `the link leads to ${quoted(ours?.target ?? "")} in ours and to ${quoted(theirs?.target ?? "")} in theirs`
}

/**
 * A place where a merge needs a decision.
 *
 * - `content`: both sides changed the same or adjacent lines; `hunks` lists them
 * - `binary`, `size`: both sides changed a file that is not merged by lines
 * - `deleted`: one side removed an entry that the other changed, or a directory in which the other changed or added
 *   `paths`
 * - `kind`: both sides changed an entry, and its kinds now differ
 * - `mode`, `link`: both sides changed the mode or the target differently
 * - `name`: `names` are the same where case is ignored
 *
 * @since 0.1.0
 */
export class Conflict extends Schema.Class<Conflict>("fs-algebra/Conflict")({
  path: Path,
  reason: Schema.Literals(["content", "binary", "size", "deleted", "kind", "mode", "name", "link"]),
  /** The version before both changes; absent if nothing was there. `ours` and `theirs` are absent in the same way. */
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
