import * as Schema from "effect/Schema"

/**
 * The error for a session, a slice or a dump that is invalid or cannot be used. `reason` is the kind of failure.
 *
 * @since 0.1.0
 */
export class SessionError extends Schema.TaggedError<SessionError>("fs-algebra/SessionError")("SessionError", {
  operation: Schema.String,
  /**
   * The kind of failure:
   *
   * - `unknownSlice`: no slice of that name is installed
   * - `duplicateSlice`: another slice of that name is installed
   * - `version`: a newer version of this library wrote the data
   * - `corrupt`: the data is damaged, or its items do not fit their schema
   * - `unknown`: no snapshot or checkpoint has that id, or the snapshot belongs to another session
   * - `invalid`: an id or a name is invalid, a checkpoint belongs to another session, or a file in the way is not a dump
   * - `outside`: a participant, which keeps state outside the slices, failed
   * - `io`: the disk failed
   */
  reason: Schema.Literals(["unknownSlice", "duplicateSlice", "version", "corrupt", "unknown", "invalid", "outside", "io"]),
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: ${this.detail}`
  }
}
