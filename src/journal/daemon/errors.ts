import * as Schema from "effect/Schema"

const reasonTexts = {
  notStarted: "it has not been started",
  completed: "it has completed, and does not start again",
  failed: "it failed"
} as const

/**
 * A daemon that cannot do what was requested, or that has failed. `notStarted`: it has not been started. `completed`: it has completed, and
 * cannot start again. `failed`: it failed, and `cause` is its error.
 *
 * @since 0.1.0
 */
export class DaemonError extends Schema.TaggedError<DaemonError>("fs-algebra/DaemonError")("DaemonError", {
  daemon: Schema.String,
  operation: Schema.Literals(["start", "run", "shutdown", "awaitStatus"]),
  reason: Schema.Literals(["notStarted", "completed", "failed"]),
  detail: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    const detail = this.detail === undefined ? "" : `, ${this.detail}`
    return `${this.operation} ${JSON.stringify(this.daemon)}: ${reasonTexts[this.reason]}${detail}`
  }
}
