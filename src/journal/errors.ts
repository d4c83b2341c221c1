import * as Schema from "effect/Schema"

/**
 * A journal that cannot be read or written.
 *
 * `corrupt`: the stored data differs from what was appended, or a content is missing. `busy`: this process or another is already writing
 * it. `closed`: its scope has ended. `readOnly`: it was opened for reading only. `invalid`: this journal does not accept the entry or the
 * option. `tooLarge`: an entry does not fit. `unavailable`: the server cannot be reached. `version`: a later version of fs-algebra wrote
 * it. `io`: the disk fails. `compacted`: `Journal.compact` has removed the entries at that position.
 *
 * @since 0.1.0
 */
export class JournalError extends Schema.TaggedError<JournalError>("fs-algebra/JournalError")("JournalError", {
  operation: Schema.String,
  reason: Schema.Literals([
    "corrupt",
    "busy",
    "closed",
    "readOnly",
    "invalid",
    "tooLarge",
    "unavailable",
    "version",
    "io",
    "compacted"
  ]),
  /** The position of the affected entry, if there is one. */
  position: Schema.optionalKey(Schema.Int),
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: ${this.detail}`
  }
}
