/** What a daemon cannot do. */
import * as Schema from "effect/Schema"

const whys = {
  notStarted: "it has not been started",
  completed: "it has completed, and does not start again",
  failed: "it failed"
} as const

/**
 * A daemon that was asked for what it cannot do any more, or not yet (`completed`, `notStarted`), or that has failed (`failed`, then
 * `cause` is what it failed with).
 *
 * @since 0.1.0
 */
export class DaemonError extends Schema.TaggedError<DaemonError>("fs-algebra/DaemonError")("DaemonError", {
  /** Which. */
  daemon: Schema.String,
  operation: Schema.Literals(["start", "run", "shutdown", "awaitStatus"]),
  reason: Schema.Literals(["notStarted", "completed", "failed"]),
  detail: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    const detail = this.detail === undefined ? "" : `, ${this.detail}`
    return `${this.operation} ${JSON.stringify(this.daemon)}: ${whys[this.reason]}${detail}`
  }
}
