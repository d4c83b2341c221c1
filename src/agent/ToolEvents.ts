/**
 * What tools did, told to whoever listens. Contents are left out, their sizes stay.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Slice from "../model/Slice.ts"

/**
 * A tool was called: with what, how it ended and how long it took.
 *
 * @since 0.1.0
 */
export class ToolInvoked extends Schema.TaggedClass<ToolInvoked>("fs-algebra/ToolInvoked")("ToolInvoked", {
  tool: Schema.String,
  callId: Schema.String,
  /** As decoded; a text of more than 1,000 characters is replaced by its size. */
  params: Schema.Record(Schema.String, Schema.Unknown),
  success: Schema.Boolean,
  /** Of more than one line, or more than 1,000 characters, the size: it may show what is in a file. */
  message: Schema.String,
  /** Of the first thing that the call touches. */
  path: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  /** Bytes of the content that was read or written. */
  sizeBytes: Schema.optionalKey(Schema.Int),
  durationMillis: Schema.Number,
  at: Schema.DateTimeUtc
}) {}

/**
 * Who is told of each call of a tool. By default nobody.
 *
 * @since 0.1.0
 */
export const ToolEvents: Context.Reference<(event: ToolInvoked) => Effect.Effect<void>> = Context.Reference<
  (event: ToolInvoked) => Effect.Effect<void>
>("fs-algebra/ToolEvents", { defaultValue: () => () => Effect.void })

/**
 * What tools did in a session, the oldest first: it takes what a run publishes, and a rollback keeps it.
 *
 * @since 0.1.0
 */
export const log: Slice.Slice<ToolInvoked> = Slice.make("ToolInvoked", Schema.toCodecJson(ToolInvoked), {
  policy: "log",
  on: [Slice.on(ToolInvoked, Slice.append)]
})
