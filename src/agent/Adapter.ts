/**
 * Between a model and the tools of a prompt: an adapter renders the prompt once, and calls tools in its session by name with whatever the
 * model has sent.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import type * as Effect from "effect/Effect"
import type * as Session from "../workspace/Session.ts"
import type * as Checkpoint from "../workspace/Checkpoint.ts"
import type { Params } from "./Section.ts"
import type { RenderedPrompt } from "./Prompt.ts"
import type { BudgetTracker, Operations as ToolContext } from "./ToolContext.ts"
import type { ToolResult } from "./ToolResult.ts"

/** @since 0.1.0 */
export interface Adapter {
  readonly name: string
}

/** @since 0.1.0 */
export interface Options {
  readonly session: Session.Operations
  readonly params?: Params | undefined
  /** The earlier of this and the prompt's. @default the prompt's */
  readonly deadline?: DateTime.DateTime | undefined
  /** @default no bound */
  readonly budgetTracker?: BudgetTracker | undefined
  /** Taken before each tool that may change something, rolled back where it fails, dies or is interrupted. @default none */
  readonly checkpoint?: Checkpoint.Operations | undefined
}

/** @since 0.1.0 */
export interface CallOptions {
  /** @default a new UUID */
  readonly callId?: string | undefined
  /** Of whom the call is; the tools of a section refuse a context of another session. @default the run's own */
  readonly context?: ToolContext | undefined
}

/**
 * A tool that somebody else runs, such as one built into a model's provider: it is judged and remembered as if we had run it.
 *
 * @since 0.1.0
 */
export interface Elsewhere {
  /** It has ended well: what it changed stays. */
  readonly end: (result?: { readonly message?: string | undefined; readonly value?: unknown }) => Effect.Effect<void>
  /** It has failed: what it changed is taken back. Answers what to tell the model. */
  readonly abort: (reason: string) => Effect.Effect<ToolResult<never>>
}

/**
 * One prompt at work in one session.
 *
 * @since 0.1.0
 */
export interface Run {
  readonly rendered: RenderedPrompt
  readonly context: ToolContext
  /** Never fails: a tool that is not there, what does not decode, and what failed are results. */
  readonly call: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<ToolResult<unknown>>
  /** Fails with the result of a refusal. */
  readonly begin: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<Elsewhere, ToolResult<never>>
}
