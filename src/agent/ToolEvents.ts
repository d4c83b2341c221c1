/**
 * The events of tool calls. An event contains the sizes of file contents and of long texts, in place of these texts.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Slice from "../model/Slice.ts"

/**
 * The event of a tool call: its arguments, its outcome and its duration.
 *
 * @category models
 * @since 0.1.0
 */
export class ToolInvoked extends Schema.TaggedClass<ToolInvoked>("fs-algebra/ToolInvoked")("ToolInvoked", {
  tool: Schema.String,
  callId: Schema.String,
  /**
   * The decoded arguments, or the known arguments as sent if they cannot be decoded. File contents, and other texts of more than
   * 1,000 characters, are replaced by their sizes in characters or bytes.
   */
  params: Schema.Record(Schema.String, Schema.Unknown),
  success: Schema.Boolean,
  /**
   * The message of the result. A message with several lines or more than 1,000 characters is replaced by its number of
   * characters, because it may show file content.
   */
  message: Schema.String,
  /** The first path that the call touches. */
  path: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  /** The size in bytes that the result states: of the file, or of the content that was read or written. */
  sizeBytes: Schema.optionalKey(Schema.Int),
  durationMillis: Schema.Number,
  at: Schema.DateTimeUtc
}) {}

/**
 * The listener for tool calls. The default listener does nothing.
 *
 * @example
 * ```ts
 * const tools = yield* Effect.provide(FilesystemToolkit.toolkit, FilesystemToolkit.layer)
 * const names: Array<string> = []
 * const call = Effect.flatMap(tools.handle("ls", {}), Stream.runDrain)
 * yield* Effect.provideService(call, ToolEvents.ToolEvents, ({ tool }) => Effect.sync(() => void names.push(tool)))
 * names // => ["ls"]
 * ```
 * @category references
 * @since 0.1.0
 */
export const ToolEvents: Context.Reference<(event: ToolInvoked) => Effect.Effect<void>> = Context.Reference<
  (event: ToolInvoked) => Effect.Effect<void>
>("fs-algebra/ToolEvents", { defaultValue: () => () => Effect.void })

/**
 * The calls of tools in a session, oldest first. The log collects the events that a run publishes. A rollback keeps all events.
 *
 * @since 0.1.0
 */
export const log: Slice.Slice<ToolInvoked> = Slice.make("ToolInvoked", Schema.toCodecJson(ToolInvoked), {
  policy: "log",
  on: [Slice.on(ToolInvoked, Slice.append)]
})
