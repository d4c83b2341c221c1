/**
 * What a tool answers: a message for a model, and a value for a program. A failure is an answer too, so that a model can go on.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/** @since 0.1.0 */
export interface ToolResult<Value> {
  /** What happened; for a failure also what to do next. */
  readonly message: string
  readonly success: boolean
  /** Absent when the tool has failed. */
  readonly value?: Value
}

/**
 * The schema of the results whose values have this schema.
 *
 * @since 0.1.0
 */
export const ToolResult = <Value extends Schema.Top>(value: Value) =>
  Schema.Struct({ message: Schema.String, success: Schema.Boolean, value: Schema.optionalKey(value) })

/**
 * The answer of a tool that has done what it was asked for.
 *
 * @since 0.1.0
 */
export const ok = <Value>(message: string, value: Value): ToolResult<Value> => ({ message, success: true, value })

/**
 * The answer of a tool that has not; the message says why, and what to do instead.
 *
 * @since 0.1.0
 */
export const error = (message: string): ToolResult<never> => ({ message, success: false })
