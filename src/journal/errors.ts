/** What a journal itself may fail with, apart from what its entries say. */
import * as Schema from "effect/Schema"

/**
 * The journal cannot be read or written.
 *
 * `corrupt`: what is stored is not what was appended, or a content is missing. `busy`: this process or another writes it already.
 * `closed`: its scope has ended. `readOnly`: it was opened for reading only. `invalid`: an entry, or an option, is not what this journal
 * takes. `tooLarge`: an entry does not fit. `unavailable`: the server cannot be reached. `version`: a later fs-algebra wrote it. `io`: the
 * disk fails. `compacted`: the entries at that position were removed by `Journal.compact`.
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
  /** Of the entry that it is about, where there is one. */
  position: Schema.optionalKey(Schema.Int),
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation}: ${this.detail}`
  }
}
