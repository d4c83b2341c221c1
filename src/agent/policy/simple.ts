import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Decorator from "../../filesystem/Decorator.ts"
import { listed } from "../../model/words.ts"
import { refused, resultOfRefusal } from "../definition.ts"
import { ToolSettings, type ToolSettingsShape } from "../ToolSettings.ts"
import { checkDeadline, interruptAt, type Invocation, layer } from "./core.ts"

/**
 * Requires that other tools succeed first. For example, `{ edit_file: ["read_file", "grep"] }` refuses edit_file until
 * read_file and grep have succeeded in the session.
 *
 * @category policies
 * @since 0.1.0
 */
export const order = (needs: Readonly<Record<string, ReadonlyArray<string>>>): Layer.Layer<never> => {
  const succeededTools = new WeakMap<object, Set<string>>()
  return layer({
    name: "order",
    before: ({ memory, tool }) => {
      const missing = (Object.hasOwn(needs, tool) ? needs[tool]! : []).filter(
        (name) => succeededTools.get(memory.session)?.has(name) !== true
      )
      if (missing.length === 0) return Effect.void
      const names = listed(missing)
      return Effect.fail(refused(`${tool} needs ${names} first.`, `Call ${names}, then ${tool} again.`))
    },
    around: ({ memory, tool }, call) =>
      Effect.tap(call, ({ success }) =>
        Effect.sync(() => {
          if (success) succeededTools.set(memory.session, (succeededTools.get(memory.session) ?? new Set()).add(tool))
        })
      )
  })
}

/**
 * Asks for approval before each call, after all other policies have allowed it. `false` or a reason refuses the call. `mutates`
 * of the invocation is true for calls that may change something.
 *
 * @category policies
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
                  "Do not repeat the same call; ask the user what to do instead."
                )
              )
        )
    }))
  )

/**
 * Refuses calls from the given time on, and interrupts the calls that are running at that time.
 *
 * @category policies
 * @since 0.1.0
 */
export const deadline = (at: DateTime.DateTime): Layer.Layer<never> => {
  const endTime = DateTime.toUtc(at)
  return layer({
    name: "deadline",
    asked: "first",
    before: () => checkDeadline(endTime),
    around: (_, call) => Effect.catch(interruptAt(endTime, call), (refusal) => Effect.succeed(resultOfRefusal(refusal)))
  })
}

/**
 * Refuses all changes, and offers only tools that change nothing.
 *
 * @category policies
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
 * Overrides the given settings and keeps all other settings. To combine two layers of settings, provide one to the other;
 * `Layer.merge` would keep only one of them.
 *
 * @category policies
 * @since 0.1.0
 */
export const settings = (overrides: Partial<ToolSettingsShape>): Layer.Layer<never> =>
  Layer.effect(
    ToolSettings,
    Effect.map(ToolSettings, (others) => ({ ...others, ...overrides }))
  )

/**
 * Sets the absolute directory, such as `/workspace`, that stands for the root at the beginning of a path.
 *
 * @category policies
 * @since 0.1.0
 */
export const mountPoint = (path: string): Layer.Layer<never> => settings({ mountPoint: path })
