/** A snapshot as a value, which says where a tree is kept and not what is in it. As input it is hostile. */
import * as Schema from "effect/Schema"

/**
 * A value: store it in a session, send it, restore from it in another process.
 *
 * @since 0.1.0
 */
export class FilesystemSnapshot extends Schema.Class<FilesystemSnapshot>("fs-algebra/FilesystemSnapshot")({
  /** A UUID. */
  snapshotId: Schema.String,
  createdAt: Schema.DateTimeUtc,
  /** 40 hex for git, `mem-<n>` for memory, `zip:<sha256>` for archives. */
  commitRef: Schema.String,
  /** As `info.root` of the filesystem says. */
  rootPath: Schema.String,
  /** Where git keeps it. */
  gitDir: Schema.optionalKey(Schema.String),
  tag: Schema.optionalKey(Schema.String)
}) {}
