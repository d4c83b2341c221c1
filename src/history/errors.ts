/** The errors of snapshots and archives. A store fails with a `StoreFault`, which the services convert to a SnapshotError. */
import * as Schema from "effect/Schema"

/**
 * The failure to take, read or manage a snapshot.
 *
 * @since 0.1.0
 */
export class SnapshotError extends Schema.TaggedError<SnapshotError>("fs-algebra/SnapshotError")("SnapshotError", {
  operation: Schema.String,
  reason: Schema.Literals(["gitMissing", "unknown", "corrupt", "budget", "refused", "unavailable", "io"]),
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: ${this.detail}`
  }
}

/**
 * The failure to restore a snapshot. Nothing has changed, except when `verify` failed.
 *
 * @since 0.1.0
 */
export class SnapshotRestoreError extends Schema.TaggedError<SnapshotRestoreError>("fs-algebra/SnapshotRestoreError")(
  "SnapshotRestoreError",
  {
    snapshotId: Schema.String,
    reason: Schema.Literals(["unknown", "incompatible", "corrupt", "readOnly", "unavailable", "io"]),
    detail: Schema.String
  }
) {
  override get message(): string {
    return `restore of ${JSON.stringify(this.snapshotId)}: ${this.detail}`
  }
}

/**
 * The failure of an invalid archive, or of a tree that an archive cannot contain.
 *
 * @since 0.1.0
 */
export class ArchiveError extends Schema.TaggedError<ArchiveError>("fs-algebra/ArchiveError")("ArchiveError", {
  /** The name of the entry, as the archive spells it. */
  entry: Schema.optionalKey(Schema.String),
  reason: Schema.Literals(["corrupt", "encrypted", "unsupported", "name", "duplicate", "link", "tooLarge", "version"]),
  detail: Schema.String
}) {
  override get message(): string {
    return this.entry === undefined ? `archive: ${this.detail}` : `archive, ${JSON.stringify(this.entry)}: ${this.detail}`
  }
}

export interface StoreFault {
  readonly _tag: "StoreFault"
  readonly reason: SnapshotError["reason"]
  readonly detail: string
}

export const storeFault = (reason: StoreFault["reason"], detail: string): StoreFault => ({ _tag: "StoreFault", reason, detail })
