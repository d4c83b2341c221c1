/** Policies that decide on the call alone: in which order, by whose leave, until when, and whether anything may change at all. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Decorator from "../../filesystem/Decorator.ts"
import { listed } from "../changedLines.ts"
import { refused } from "../definition.ts"
import type { Memory } from "../memory.ts"
import * as Result from "../ToolResult.ts"
import { ToolSettings, type ToolSettingsShape } from "../ToolSettings.ts"
import { type Invocation, layer } from "./core.ts"

/**
 * Tools that need others first: `{ edit_file: ["read_file", "grep"] }` refuses edit_file until both have succeeded in the session.
 *
 * @since 0.1.0
 */
export const order = (needs: Readonly<Record<string, ReadonlyArray<string>>>): Layer.Layer<never> => {
  const done = new WeakMap<Memory, Set<string>>()
  return layer({
    name: "order",
    before: ({ memory, tool }) => {
      const missing = (Object.hasOwn(needs, tool) ? needs[tool]! : []).filter((name) => done.get(memory)?.has(name) !== true)
      if (missing.length === 0) return Effect.void
      const names = listed(missing, "and")
      return Effect.fail(refused(`${tool} needs ${names} first.`, `Call ${names}, then ${tool} again.`))
    },
    around: ({ memory, tool }, call) =>
      Effect.tap(call, ({ success }) =>
        Effect.sync(() => {
          if (success) done.set(memory, (done.get(memory) ?? new Set()).add(tool))
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

const late = (at: DateTime.Utc) =>
  refused(`The time for calling tools was over at ${DateTime.formatIso(at)}.`, "Call no more tools; answer with what is known.")

/**
 * Refuses calls from then on, and ends what still runs.
 *
 * @since 0.1.0
 */
export const deadline = (at: DateTime.DateTime): Layer.Layer<never> => {
  const end = DateTime.toUtc(at)
  const left = Effect.map(Clock.currentTimeMillis, (now) => end.epochMilliseconds - now)
  const { advice, happened } = late(end)
  return layer({
    name: "deadline",
    asked: "first",
    before: () => Effect.flatMap(left, (millis) => (millis > 0 ? Effect.void : Effect.fail(late(end)))),
    around: (_, call) =>
      Effect.flatMap(left, (millis) =>
        Effect.timeoutOrElse(call, {
          duration: Math.max(0, millis),
          orElse: () => Effect.succeed(Result.error(`${happened} ${advice}`))
        })
      )
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
