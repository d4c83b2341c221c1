/** What a replay may fail with beyond what journals and filesystems do. */
import * as Schema from "effect/Schema"

/**
 * What would have to be known was not recorded: what was at the path before, or what it was made of.
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
