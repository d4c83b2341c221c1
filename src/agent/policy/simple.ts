/** Policies that decide on the call alone: in which order, by whose leave, until when, and whether anything may change at all. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Decorator from "../../filesystem/Decorator.ts"
import { listed } from "../changedLines.ts"
import { refused } from "../definition.ts"
import * as Result from "../ToolResult.ts"
import { ToolSettings, type ToolSettingsShape } from "../ToolSettings.ts"
import { type Invocation, layer } from "./core.ts"
import { inTime, until } from "./late.ts"

/**
 * Tools that need others first: `{ edit_file: ["read_file", "grep"] }` refuses edit_file until both have succeeded in the session.
 *
 * @since 0.1.0
 */
export const order = (needs: Readonly<Record<string, ReadonlyArray<string>>>): Layer.Layer<never> => {
  const done = new WeakMap<object, Set<string>>()
  return layer({
    name: "order",
    before: ({ memory, tool }) => {
      const missing = (Object.hasOwn(needs, tool) ? needs[tool]! : []).filter(
        (name) => done.get(memory.session)?.has(name) !== true
      )
      if (missing.length === 0) return Effect.void
      const names = listed(missing, "and")
      return Effect.fail(refused(`${tool} needs ${names} first.`, `Call ${names}, then ${tool} again.`))
    },
    around: ({ memory, tool }, call) =>
      Effect.tap(call, ({ success }) =>
        Effect.sync(() => {
          if (success) done.set(memory.session, (done.get(memory.session) ?? new Set()).add(tool))
        })
      )
  })
}

/**
 * Asks before each call, after all other policies have let it pass, and refuses it on `false` or a reason. `mutates` of the invocation
 * tells those that may change something.
 *
 * @since 0.1.0
 */
export const approval = <R = never>(
  ask: (invocation: Invocation) => Effect.Effect<boolean | { readonly reason: string }, never, R>
): Layer.Layer<never, never, R> =>
  layer(
    Effect.map(Effect.context<R>(), (context) => ({
      name: "approval",
      asked: "last" as const,
      before: (invocation: Invocation) =>
        Effect.flatMap(Effect.provideContext(ask(invocation), context), (answer) =>
          answer === true
            ? Effect.void
            : Effect.fail(
                refused(
                  `${invocation.tool} was not approved${answer === false ? "" : `: ${answer.reason}`}.`,
                  "Do not try it again in the same way; ask the user what to do instead."
                )
              )
        )
    }))
  )

/**
 * Refuses calls from then on, and ends what still runs.
 *
 * @since 0.1.0
 */
export const deadline = (at: DateTime.DateTime): Layer.Layer<never> => {
  const end = DateTime.toUtc(at)
  return layer({
    name: "deadline",
    asked: "first",
    before: () => inTime(end),
    around: (_, call) =>
      Effect.catch(until(end, call), ({ advice, happened }) => Effect.succeed(Result.error(`${happened} ${advice}`)))
  })
}

/**
 * No tool changes anything, and none that could is offered.
 *
 * @since 0.1.0
 */
export const readOnly: Layer.Layer<never> = layer({
  name: "readOnly",
  asked: "first",
  filesystem: Decorator.readOnly,
  offers: ({ does }) => does === "reads",
  before: ({ mutates, tool }) =>
    mutates
      ? Effect.fail(
          refused(`${tool} was refused: the files may be read but not changed.`, "Report what you would have changed instead.")
        )
      : Effect.void
})

/**
 * Some settings, beside those that are there: of two layers of settings one is provided to the other, since merging keeps only one.
 *
 * @since 0.1.0
 */
export const settings = (some: Partial<ToolSettingsShape>): Layer.Layer<never> =>
  Layer.effect(
    ToolSettings,
    Effect.map(ToolSettings, (others) => ({ ...others, ...some }))
  )

/**
 * The absolute directory, such as `/workspace`, that paths may begin with; it stands for the root.
 *
 * @since 0.1.0
 */
export const mountPoint = (path: string): Layer.Layer<never> => settings({ mountPoint: path })
