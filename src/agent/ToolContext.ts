/**
 * The run in which a tool is called: its prompt, session, deadline and budget, and the filesystem of the tool's section.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { InvalidArgument } from "../model/FsError.ts"
import { root } from "../model/FsPath.ts"
import type { BudgetTracker, RunContext } from "./model.ts"

export { type BudgetTracker, type RunContext as Operations, ToolContext } from "./model.ts"

/**
 * The options of `make`. Each property that is optional here defaults to `Option.none()`.
 *
 * @since 0.1.0
 */
export type Options = Pick<RunContext, "prompt" | "adapter" | "session"> & Partial<RunContext>

/**
 * Makes a frozen context, so that no tool can change the context of another tool.
 *
 * @since 0.1.0
 */
export const make = (options: Options): RunContext =>
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
      const detail = "the limit must be a number of at least 0"
      return Effect.fail(new InvalidArgument({ operation: "ToolContext.budget", path: root, argument: "limit", detail }))
    }
    let left = limit
    return Effect.succeed({
      limit,
      left: Effect.sync(() => left),
      // An invalid amount, such as NaN or a negative number, does not change the budget.
      spend: (amount) => Effect.sync(() => void (left = amount >= left ? 0 : amount > 0 ? left - amount : left))
    })
  })
