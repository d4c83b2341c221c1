/** What sessions fail with. */
import * as Schema from "effect/Schema"

/**
 * A session, a slice or a dump is not what it was taken for; `reason` says how.
 *
 * @since 0.1.0
 */
export class SessionError extends Schema.TaggedError<SessionError>("fs-algebra/SessionError")("SessionError", {
  operation: Schema.String,
  /**
   * `unknownSlice`: a name that nobody has installed. `duplicateSlice`: another slice of that name is installed. `version`: written by a
   * newer version. `corrupt`: it is not what was written, or its items do not fit their schema. `unknown`: no snapshot of that id, or
   * one of another session. `invalid`: an id or name that cannot be one. `outside`: what is kept outside the slices failed. `io`: the disk did.
   */
  reason: Schema.Literals(["unknownSlice", "duplicateSlice", "version", "corrupt", "unknown", "invalid", "outside", "io"]),
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: ${this.detail}`
  }
}
