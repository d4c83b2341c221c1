import * as Schema from "effect/Schema"

/**
 * A replay that needs data that was not recorded: the former state of a path, or the content from which a file was made.
 *
 * @since 0.1.0
 */
export class NotRecorded extends Schema.TaggedError<NotRecorded>("fs-algebra/NotRecorded")("NotRecorded", {
  operation: Schema.String,
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.operation} ${JSON.stringify(this.path)}: ${this.detail}`
  }
}
