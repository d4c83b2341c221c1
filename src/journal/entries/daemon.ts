import * as Schema from "effect/Schema"

/**
 * A change of a daemon's status.
 *
 * @since 0.1.0
 */
export class DaemonChanged extends Schema.TaggedClass<DaemonChanged>("fs-algebra/DaemonChanged")("DaemonChanged", {
  /** The daemon's name, the same after a restart. */
  daemon: Schema.String,
  instance: Schema.String,
  status: Schema.Literals(["Stopped", "Running", "Completed"]),
  /** The error, if the daemon completed because it failed. */
  failure: Schema.optionalKey(Schema.String),
  /** The prefix of the paths that a leaf serves; "." is all paths. Every leaf sets it. */
  prefix: Schema.optionalKey(Schema.String),
  /** True if a leaf appends FileStarted before each change. @default false */
  extended: Schema.optionalKey(Schema.Boolean),
  /** The time in milliseconds that a leaf waits for a leaf that serves a path, before it answers that there is none. @default 5,000 */
  grace: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
}) {}
