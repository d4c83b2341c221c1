/** Progress reports of tools, which are dropped if no transport listens. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

export interface Progress {
  /** The amount done, which grows with each report. */
  readonly done: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export const ToolProgress: Context.Reference<((progress: Progress) => Effect.Effect<void>) | undefined> = Context.Reference<
  ((progress: Progress) => Effect.Effect<void>) | undefined
>("fs-algebra/ToolProgress", { defaultValue: () => undefined })
