/**
 * The result of a tool: a message for a model and a value for a program. A failure is a result too, so that a model can go on.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * The result of a tool: a message for a model, the success of the tool, and its value.
 *
 * @since 0.1.0
 */
export interface ToolResult<Value> {
  /** The text that says what happened and, after a failure, what to do next. */
  readonly message: string
  readonly success: boolean
  /** The value; absent if the tool failed. */
  readonly value?: Value
}

/**
 * Returns the schema of the results whose values have the given schema.
 *
 * @since 0.1.0
 */
export const ToolResult = <Value extends Schema.Top>(value: Value) =>
  Schema.Struct({ message: Schema.String, success: Schema.Boolean, value: Schema.optionalKey(value) })

/**
 * Makes the result of a tool that succeeded.
 *
 * @example
 * ```ts
 * ToolResult.ok("2 words", { words: 2 }) // => { message: "2 words", success: true, value: { words: 2 } }
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const ok = <Value>(message: string, value: Value): ToolResult<Value> => ({ message, success: true, value })

/**
 * Makes the result of a tool that failed. The message should say why, and what to do instead.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (message: string): ToolResult<never> => ({ message, success: false })
