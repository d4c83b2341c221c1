/**
 * The run that a tool is called in: its prompt, session, deadline and budget, and the filesystem of the tool's section.
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
 * A budget and how much of it is left, in any unit. Results of tools are counted as ToolSettings measure them.
 *
 * @since 0.1.0
 */
export interface BudgetTracker {
  readonly limit: number
  /** The amount that is left, never below 0. */
  readonly left: Effect.Effect<number>
  /** Spends an amount. An amount above the remaining budget leaves 0. */
  readonly spend: (amount: number) => Effect.Effect<void>
}

/**
 * The context of a call, as its tool sees it.
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
  /**
   * The filesystem of the tool's section, or else of the prompt, with the policies applied. The filesystem that `prompt` gives
   * has no policies.
   */
  readonly filesystem: Option.Option<Algebra>
}

/**
 * The service through which a tool reads its context.
 *
 * @category services
 * @since 0.1.0
 */
export class ToolContext extends Context.Service<ToolContext, Operations>()("fs-algebra/ToolContext") {}

/**
 * The options of `make`; each optional part defaults to none.
 *
 * @since 0.1.0
 */
export type Options = Pick<Operations, "prompt" | "adapter" | "session"> & Partial<Operations>

/**
 * Makes a frozen context, so that a tool cannot change it for others.
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
 * Makes a budget that counts down. Fails with InvalidArgument unless the limit is a number of at least 0; Infinity is allowed.
 *
 * @example
 * ```ts
 * const budget = yield* ToolContext.budget(1_000)
 * yield* budget.spend(300)
 * yield* budget.left // => 700
 * ```
 * @category constructors
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
      // An invalid amount, such as NaN or a negative number, changes nothing.
      spend: (amount) => Effect.sync(() => void (left = amount >= left ? 0 : amount > 0 ? left - amount : left))
    })
  })
