/**
 * What a tool knows of the run that it is called in: the prompt, the session, how long and how much it may, and the filesystem of the
 * section that it stands in.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Algebra } from "../filesystem/Filesystem.ts"
import { InvalidArgument } from "../model/FsError.ts"
import { root } from "../model/FsPath.ts"
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

/**
 * What a tool can know of the call that it is in.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly prompt: Prompt<unknown>
  readonly renderedPrompt: Option.Option<RenderedPrompt>
  readonly adapter: Adapter
  readonly session: Session.Operations
  readonly deadline: Option.Option<DateTime.Utc>
  readonly budgetTracker: Option.Option<BudgetTracker>
  /** Of the section that has the tool, else of the prompt, as policies let it be seen; what `prompt` answers is below them. */
  readonly filesystem: Option.Option<Algebra>
}

/**
 * The service by which a tool asks for its context.
 *
 * @since 0.1.0
 */
export class ToolContext extends Context.Service<ToolContext, Operations>()("fs-algebra/ToolContext") {}

/**
 * What may be left out is none.
 *
 * @since 0.1.0
 */
export type Options = Pick<Operations, "prompt" | "adapter" | "session"> & Partial<Operations>

/**
 * Frozen: what a tool is given it cannot change for others.
 *
 * @since 0.1.0
 */
export const make = (options: Options): Operations =>
  Object.freeze({
    prompt: options.prompt,
    renderedPrompt: options.renderedPrompt ?? Option.none(),
    adapter: options.adapter,
    session: options.session,
    deadline: options.deadline ?? Option.none(),
    budgetTracker: options.budgetTracker ?? Option.none(),
    filesystem: options.filesystem ?? Option.none()
  })

/**
 * A budget that is counted down. Fails with InvalidArgument unless the limit is a number from 0 on; Infinity is one.
 *
 * @since 0.1.0
 */
export const budget = (limit: number): Effect.Effect<BudgetTracker, InvalidArgument> =>
  Effect.suspend(() => {
    if (typeof limit !== "number" || !(limit >= 0)) {
      const detail = "it must be a number from 0 on"
      return Effect.fail(new InvalidArgument({ operation: "ToolContext.budget", path: root, argument: "limit", detail }))
    }
    let left = limit
    return Effect.succeed({
      limit,
      left: Effect.sync(() => left),
      // What is no amount takes nothing, and gives nothing back.
      spend: (amount) => Effect.sync(() => void (left = amount >= left ? 0 : amount > 0 ? left - amount : left))
    })
  })
