/**
 * Settings that apply to all tools. Each call reads the settings again, so that a layer or a scope can set them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import { agent, type LimitsShape } from "../model/Limits.ts"

/**
 * The settings that the tools of a kit share: limits, the budget of an answer, and mount points.
 *
 * @since 0.1.0
 */
export interface ToolSettingsShape {
  /** The limits in force while a tool runs. @default Limits.agent */
  readonly limits: LimitsShape
  /**
   * The absolute directory, such as `/workspace`, that stands for the root at the beginning of a path. A list names several
   * directories. A record maps each directory to a path below the root: `{ "/home/me/app": "app" }`.
   *
   * @default none
   */
  readonly mountPoint?: string | ReadonlyArray<string> | Readonly<Record<string, string>> | undefined
  /**
   * The largest size of a result's message, in the unit of `measure`. The tools of this package shorten longer results.
   * @default 48,000
   */
  readonly budget: number
  /**
   * Returns the size of a text, for example its number of tokens. The size must not shrink when text is added.
   *
   * @default UTF-16 code units
   */
  readonly measure: (text: string) => number
  /** True if "overwrite" and "append" of the four-tool kit fail for a file that does not exist. @default false */
  readonly strict: boolean
}

/**
 * The default settings.
 *
 * @since 0.1.0
 */
export const defaults: ToolSettingsShape = { limits: agent, budget: 48_000, measure: (text) => text.length, strict: false }

/**
 * The current settings of the tools.
 *
 * @example
 * ```ts
 * const budget = Effect.map(ToolSettings.ToolSettings, ({ budget }) => budget)
 * const settings = { ...ToolSettings.defaults, budget: 10_000 }
 * yield* Effect.provideService(budget, ToolSettings.ToolSettings, settings) // => 10_000
 * ```
 * @category references
 * @since 0.1.0
 */
export const ToolSettings: Context.Reference<ToolSettingsShape> = Context.Reference("fs-algebra/ToolSettings", {
  defaultValue: () => defaults
})
