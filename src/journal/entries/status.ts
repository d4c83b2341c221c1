import * as Schema from "effect/Schema"

const nonNegativeInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/**
 * The leaves at the position `through`, up to which every request has an answer. A later leaf looks for open requests after
 * this position only. Only leaves with `extended` append checkpoints. A leaf trusts a checkpoint if `code` proves that the leaf's
 * own installation made the checkpoint, and `digest` matches the entry at `through`. Otherwise the leaf reads the journal from
 * the beginning.
 *
 * @since 0.1.0
 */
export class LeafCheckpoint extends Schema.TaggedClass<LeafCheckpoint>("fs-algebra/LeafCheckpoint")("LeafCheckpoint", {
  through: nonNegativeInt,
  /** The SHA-256 of the entry at `through`. */
  digest: Schema.String,
  leaves: Schema.Array(
    Schema.Struct({
      daemon: Schema.String,
      instance: Schema.String,
      prefix: Schema.String,
      extended: Schema.Boolean,
      /** The time, in milliseconds, that the leaf lets a request wait if no leaf serves its path. */
      grace: nonNegativeInt,
      position: nonNegativeInt,
      /** True if the leaf is running and was not replaced. */
      running: Schema.Boolean,
      /** True if the leaf has ended and was not replaced. */
      down: Schema.Boolean,
      /** True if the leaf has not announced its end. */
      unfinished: Schema.Boolean,
      /** True if the leaf appends no FileStarted before a change, and has not ended normally. */
      silent: Schema.Boolean
    })
  ),
  /** An authentication code over all other fields, which only the leaf's installation can compute. */
  code: Schema.String
}) {}

/**
 * A change of a daemon's status.
 *
 * @since 0.1.0
 */
export class DaemonChanged extends Schema.TaggedClass<DaemonChanged>("fs-algebra/DaemonChanged")("DaemonChanged", {
  /** The daemon's name, which stays the same after a restart. */
  daemon: Schema.String,
  instance: Schema.String,
  status: Schema.Literals(["Stopped", "Running", "Completed"]),
  /** The error of a daemon that has failed. */
  failure: Schema.optionalKey(Schema.String),
  /** The prefix of the paths that a leaf serves. "." means all paths. Every leaf has a prefix; other daemons have none. */
  prefix: Schema.optionalKey(Schema.String),
  /** True if a leaf appends FileStarted before each change. @default false */
  extended: Schema.optionalKey(Schema.Boolean),
  /** The time, in milliseconds, that a leaf lets a request wait if no leaf serves its path. @default 5,000 */
  grace: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
}) {}
