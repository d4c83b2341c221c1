/** What a mount is, what is known of it before anything is copied, and what it fails with. */
import * as Schema from "effect/Schema"

/**
 * `outside`: in none of the allowed roots, or in a store of snapshots. `missing`: nothing is there, or no longer. `invalid`: a path,
 * pattern or number that cannot be one. `budget`: more than `maxBytes`, or more links than anybody could want followed. `unreadable`: a
 * file or directory that may not be read, or is none. `changed`: it became another while it was copied.
 *
 * @since 0.1.0
 */
export class MountError extends Schema.TaggedError<MountError>("fs-algebra/MountError")("MountError", {
  /** As it was given; an allowed root where that is at fault. */
  hostPath: Schema.String,
  reason: Schema.Literals(["outside", "missing", "invalid", "budget", "unreadable", "changed"]),
  /** Below the source, where one file is at fault. */
  path: Schema.optionalKey(Schema.String),
  detail: Schema.String
}) {
  override get message(): string {
    return `${JSON.stringify(this.hostPath)} cannot be mounted: ${this.detail}`
  }
}

/**
 * A file or directory of the machine that is copied into a workspace.
 *
 * @since 0.1.0
 */
export interface HostMount {
  /**
   * Absolute, or relative to an allowed root; each is tried in turn. Any well-formed text without control characters, `..` and blanks
   * alone; that a target takes only ASCII says nothing of where its files come from.
   */
  readonly hostPath: string
  /**
   * Where it goes: a path, or its segments. A directory's files go below it; a file goes into it, under its own name.
   *
   * @default `hostPath` where that is relative, else its last name; a file is then that itself
   */
  readonly mountPath?: string | ReadonlyArray<string> | undefined
  /**
   * Globs as `Filesystem.glob` takes them, relative to the source; of a file, its name. Blank ones are ignored; those that may not
   * mean what they look like are refused. @default everything
   */
  readonly include?: ReadonlyArray<string> | undefined
  /** Beats `include`; as the `exclude` of a glob. Where links are followed, also by where these lead. @default nothing */
  readonly exclude?: ReadonlyArray<string> | undefined
  /** Of all files together. 0 admits only empty ones. @default no bound */
  readonly maxBytes?: number | undefined
  /** Copy what links lead to, inside the allowed root. @default false: they are left out */
  readonly followSymlinks?: boolean | undefined
}

/**
 * Where sources of mounts may lie.
 *
 * @since 0.1.0
 */
export interface Options {
  /** Absolute directories that sources must lie in, all of which must be there. With none, every mount is refused. */
  readonly allowedRoots: ReadonlyArray<string>
}

/**
 * What the globs name and is not copied. `link`: links are not followed. `outside`: it leads out of the allowed root, or into a store of
 * snapshots. `dangling`: it leads nowhere. `loop`: to a directory that it is in. `other`: a FIFO, a socket, a device, which is never
 * opened.
 *
 * @since 0.1.0
 */
export interface LeftOut {
  /** Below the source; of a source that is a file, its name. */
  readonly path: string
  readonly why: "link" | "outside" | "dangling" | "loop" | "other"
}

/**
 * What a mount has copied, or would copy.
 *
 * @since 0.1.0
 */
export interface Preview {
  /** As it was given. */
  readonly source: string
  /** In the filesystem; of a source that is a file, that file. */
  readonly target: string
  /** Paths in the filesystem, in path order, at most 20. */
  readonly entries: ReadonlyArray<string>
  readonly files: number
  readonly bytes: number
  /** In path order, at most 20 of them; and how many there are. */
  readonly leftOut: { readonly count: number; readonly entries: ReadonlyArray<LeftOut> }
}
