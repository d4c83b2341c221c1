/**
 * What all tools go by, read at each call, so that a layer or a scope can set it and nothing has to be passed down.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import { agent, type LimitsShape } from "../model/Limits.ts"

/**
 * What the tools of a kit have in common: limits, the budget of an answer, where paths begin.
 *
 * @since 0.1.0
 */
export interface ToolSettingsShape {
  /** In force while a tool runs. @default Limits.agent */
  readonly limits: LimitsShape
  /**
   * An absolute directory, such as `/workspace`, that paths may begin with; it stands for the root. Or several. Or, by the directory, what
   * it stands for: `{ "/home/me/app": "app" }`.
   *
   * @default none
   */
  readonly mountPoint?: string | ReadonlyArray<string> | Readonly<Record<string, string>> | undefined
  /** How much of a result's message is sent, as `measure` measures it. @default 48,000 */
  readonly budget: number
  /** How large a text is; for one a counter of tokens. It must not shrink when text is added. @default UTF-16 code units */
  readonly measure: (text: string) => number
  /** Whether "overwrite" and "append" of the four-tool kit fail where there is no file. @default false */
  readonly strict: boolean
}

/**
 * The settings where nobody sets any.
 *
 * @since 0.1.0
 */
export const defaults: ToolSettingsShape = { limits: agent, budget: 48_000, measure: (text) => text.length, strict: false }

/**
 * The settings in force.
 *
 * @since 0.1.0
 */
export const ToolSettings: Context.Reference<ToolSettingsShape> = Context.Reference("fs-algebra/ToolSettings", {
  defaultValue: () => defaults
})
