/** What a daemon becomes, as an entry of the journal that it works on. */
import * as Schema from "effect/Schema"

/**
 * A daemon has changed: which, and to what.
 *
 * @since 0.1.0
 */
export class DaemonChanged extends Schema.TaggedClass<DaemonChanged>("fs-algebra/DaemonChanged")("DaemonChanged", {
  /** What it is called, the same after a restart. */
  daemon: Schema.String,
  /** Of this run. */
  instance: Schema.String,
  status: Schema.Literals(["Stopped", "Running", "Completed"]),
  /** Why it completed, where it failed. */
  failure: Schema.optionalKey(Schema.String),
  /** Of a leaf, which always says it: the paths it serves are those from this one down; "." is all of them. */
  prefix: Schema.optionalKey(Schema.String),
  /** Of a leaf: it appends FileStarted before each change. @default false */
  extended: Schema.optionalKey(Schema.Boolean),
  /** Of a leaf: how many milliseconds it waits for a leaf that serves a path, before it says that there is none. @default 5,000 */
  grace: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
}) {}
