import * as Schema from "effect/Schema"

/**
 * The failure to read or write a journal.
 *
 * - `corrupt`: the stored data differs from the appended data, or a content is missing
 * - `busy`: this process or another process is already writing the journal
 * - `closed`: the scope of the journal has ended
 * - `readOnly`: the journal was opened for reading only
 * - `invalid`: this journal does not accept the entry or the option
 * - `tooLarge`: the entry is too large, or a limit of the server or its stream is exceeded
 * - `unavailable`: the server cannot be reached, or refuses the request
 * - `version`: a later version of fs-algebra wrote the journal
 * - `io`: the operating system reported an error, or the journal file was removed
 * - `compacted`: `Journal.compact` has removed the entries at the position
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
  /** The position of the affected entry, if the error concerns one entry. */
  position: Schema.optionalKey(Schema.Int),
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: ${this.detail}`
  }
}
