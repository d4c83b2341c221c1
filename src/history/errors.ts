/** What can go wrong with the past of a tree. Within this folder it is plain data, promoted where a call leaves it. */
import * as Schema from "effect/Schema"

/**
 * A snapshot cannot be taken, read or managed.
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
 * A snapshot cannot be restored. Nothing has changed, unless it was `verify` that failed.
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
 * An archive that is not what it should be, or a tree that no archive can hold.
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

/** What a store of snapshots says when it cannot. */
export interface StoreFault {
  readonly _tag: "StoreFault"
  readonly reason: "gitMissing" | "unknown" | "corrupt" | "budget" | "refused" | "unavailable" | "io"
  readonly detail: string
}

export const storeFault = (reason: StoreFault["reason"], detail: string): StoreFault => ({ _tag: "StoreFault", reason, detail })
