/** A snapshot as a value: it names the place of a tree, not its content. Values from outside are untrusted. */
import * as Schema from "effect/Schema"

/**
 * A snapshot value. It can be stored in a session, sent, or used for a restore in another process.
 *
 * @since 0.1.0
 */
export class FilesystemSnapshot extends Schema.Class<FilesystemSnapshot>("fs-algebra/FilesystemSnapshot")({
  /** A UUID. */
  snapshotId: Schema.String,
  createdAt: Schema.DateTimeUtc,
  /** 40 hexadecimal digits for git, `mem-<n>` for memory, `zip:<sha256>` for archives. */
  commitRef: Schema.String,
  /** The `info.root` of the filesystem. */
  rootPath: Schema.String,
  /** The git directory of the store. */
  gitDir: Schema.optionalKey(Schema.String),
  tag: Schema.optionalKey(Schema.String)
}) {}
