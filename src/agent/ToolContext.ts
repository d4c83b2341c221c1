/**
 * What a tool knows of the run that it is called in: the prompt, the session, how long and how much it may, and the filesystem of the
 * section that it stands in.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type * as Session from "../workspace/Session.ts"
import type { Adapter } from "./Adapter.ts"
import type { Prompt, RenderedPrompt } from "./Prompt.ts"

/**
 * How much may still be spent, in whatever is counted; results of tools count as ToolSettings measure them.
 *
 * @since 0.1.0
 */
export interface BudgetTracker {
  readonly limit: number
  /** Never below 0. */
  readonly left: Effect.Effect<number>
  /** More than is left leaves none. */
  readonly spend: (amount: number) => Effect.Effect<void>
}

/** @since 0.1.0 */
export interface Operations {
  readonly prompt: Prompt
  readonly renderedPrompt: Option.Option<RenderedPrompt>
  readonly adapter: Adapter
  readonly session: Session.Operations
  readonly deadline: Option.Option<DateTime.Utc>
  readonly budgetTracker: Option.Option<BudgetTracker>
  /** Of the section that has the tool, else of the prompt. */
  readonly filesystem: Option.Option<Algebra>
}

/** @since 0.1.0 */
export class ToolContext extends Context.Service<ToolContext, Operations>()("fs-algebra/ToolContext") {}
