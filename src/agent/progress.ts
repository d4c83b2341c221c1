/** How far a tool has come, for whoever waits. Nobody does unless the transport says so. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

export interface Progress {
  /** Grows from one report to the next. */
  readonly done: number
  readonly of?: number | undefined
  readonly message?: string | undefined
}

export const ToolProgress: Context.Reference<((progress: Progress) => Effect.Effect<void>) | undefined> = Context.Reference<
  ((progress: Progress) => Effect.Effect<void>) | undefined
>("fs-algebra/ToolProgress", { defaultValue: () => undefined })
