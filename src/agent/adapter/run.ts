/** Runs one prompt, rendered once, in one session. Each call works on the filesystem of its tool's section. */
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { randomUUID } from "../../runtime/node.ts"
import { SessionError } from "../../model/sessionError.ts"
import type { Adapter, CallOptions, Needed, Options, Run } from "../Adapter.ts"
import type { Refused } from "../definition.ts"
import { type Host, invokeUnknown, told } from "../dispatch.ts"
import * as Memory from "../memory.ts"
import { offered, together } from "../policy/core.ts"
import { inTime } from "../policy/late.ts"
import * as Prompt from "../Prompt.ts"
import type { Section, SectionError } from "../Section.ts"
import * as ToolContext from "../ToolContext.ts"
import * as Result from "../ToolResult.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { begin } from "./begin.ts"
import { taking } from "./checkpoint.ts"
import * as Grounds from "./grounds.ts"
import { noSuchTool, otherSession, over, shownName, spent } from "./refusals.ts"

export interface How extends CallOptions {
  /**
   * True if another program does the work. That program does not know of our locks and must not wait for them. @default false
   */
  readonly isElsewhere?: boolean | undefined
}

export interface Running {
  readonly run: Run
  /** Runs a tool as a call of this run, even if the tool is not on the list of the run. */
  readonly invoke: (tool: Prompt.RenderedTool, input: unknown, how?: How) => Effect.Effect<Result.ToolResult<unknown>>
}

const earlier = (self: Option.Option<DateTime.Utc>, that: Option.Option<DateTime.Utc>): Option.Option<DateTime.Utc> =>
  Option.isSome(self) && Option.isSome(that)
    ? Option.some(DateTime.min(self.value, that.value))
    : Option.orElse(self, () => that)

/** Combines the context of the run with that of a caller. The earlier deadline holds, and both budgets count. */
const contextOf = (own: ToolContext.Operations, given: ToolContext.Operations | undefined): ToolContext.Operations =>
  given === undefined
    ? own
    : {
        ...given,
        deadline: earlier(own.deadline, given.deadline),
        budgetTracker: Option.orElse(given.budgetTracker, () => own.budgetTracker)
      }

type Budgets = ReadonlySet<ToolContext.BudgetTracker>

const budgetsOf = (...contexts: ReadonlyArray<ToolContext.Operations>): Budgets =>
  new Set(contexts.flatMap(({ budgetTracker }) => Option.toArray(budgetTracker)))

const withinBudgets = (budgets: Budgets): Effect.Effect<void, Refused> =>
  Effect.forEach(
    budgets,
    ({ left, limit }) => Effect.flatMap(left, (amount) => (amount > 0 ? Effect.void : Effect.fail(spent(limit)))),
    { discard: true }
  )

const paying =
  (budgets: Budgets) =>
  ({ message }: Result.ToolResult<unknown>): Effect.Effect<void> =>
    Effect.flatMap(ToolSettings, ({ measure }) =>
      Effect.forEach(budgets, ({ spend }) => spend(measure(message)), { discard: true })
    )

const checked = ({ checkpoint, session }: Options): Effect.Effect<void, SessionError> =>
  checkpoint === undefined || checkpoint.session === session
    ? Effect.void
    : Effect.fail(
        new SessionError({ operation: "Adapter.run", reason: "invalid", detail: "the checkpoint belongs to another session" })
      )

/**
 * The surrounding context without its parent span: a call belongs to the span it is made in, not to the span that made the run.
 */
const ambient = Effect.map(Effect.context<never>(), Context.omit(Tracer.ParentSpan)) as Effect.Effect<Context.Context<never>>

export const make = Effect.fnUntraced(function* <R>(
  adapter: Adapter,
  prompt: Prompt.Prompt<R>,
  options: Options
): Effect.fn.Return<Running, Prompt.PromptError | SectionError, Scope.Scope | Needed<R>> {
  const { session } = options
  yield* checked(options)
  const filesystem = yield* Prompt.filesystem(prompt)
  const rendered = yield* Prompt.render(prompt, options.params)
  const mayBeOffered = yield* offered
  const [services, scope] = [yield* ambient, yield* Effect.scope]
  const context = ToolContext.make({
    prompt,
    renderedPrompt: Option.some(rendered),
    adapter,
    session,
    deadline: earlier(rendered.deadline, Option.map(Option.fromUndefinedOr(options.deadline), DateTime.toUtc)),
    budgetTracker: Option.fromUndefinedOr(options.budgetTracker),
    filesystem
  })
  const tools = rendered.tools.filter(({ definition }) => mayBeOffered(definition))
  const places = new Map(rendered.tools.map((tool) => [tool.definition.name, tool]))
  const memory = Memory.make()
  const grounds = Grounds.make(Option.getOrUndefined(Prompt.workspace(prompt)), memory.session)
  const checkpoints = taking(options)

  const isOver = (): boolean => scope.state._tag === "Closed"

  const isOurs = (section: Section<unknown> | undefined): boolean =>
    section?.session === undefined || section.session === session

  const hostOf = ({ section }: Prompt.RenderedTool, given: ToolContext.Operations, isElsewhere: boolean): Host => ({
    context: given,
    admits: Effect.suspend(() => {
      if (isOver()) return Effect.fail(over)
      const ours = given.session === session && isOurs(section) && isOurs(grounds.placeOf(section))
      const time = Option.match(given.deadline, { onNone: () => Effect.void, onSome: inTime })
      return ours ? Effect.andThen(time, withinBudgets(budgetsOf(context, given))) : Effect.fail(otherSession)
    }),
    ground: grounds.of(section),
    around: checkpoints(isElsewhere),
    tell: (event) => session.publish(event)
  })

  const during = <A>(call: Effect.Effect<A, never, unknown>): Effect.Effect<A> =>
    Effect.updateContext(call as Effect.Effect<A>, (around) => together(services, around))

  const invoke: Running["invoke"] = (place, input, how = {}) =>
    Effect.suspend(() => {
      const given = contextOf(context, how.context)
      const host = hostOf(place, given, how.isElsewhere ?? false)
      const call = invokeUnknown(place.definition, input, { memory, callId: how.callId, host })
      return during(Effect.tap(call, paying(budgetsOf(context, given))))
    })

  const unknown = (name: string, { callId = randomUUID(), context: given }: CallOptions) => {
    const known = tools.map(({ definition }) => definition.name)
    const { advice, happened } = noSuchTool(name, known)
    const result = Effect.succeed({ result: Result.error(`${happened} ${advice}`) })
    const call = told({ tool: shownName(name), callId, params: {} }, result, { tell: (event) => session.publish(event) })
    return during(Effect.tap(call, paying(budgetsOf(context, ...(given === undefined ? [] : [given])))))
  }

  const call: Run["call"] = (name, input, options = {}) =>
    Effect.suspend(() => {
      const place = places.get(name)
      return place === undefined ? unknown(name, options) : invoke(place, input, options)
    })

  const run = Object.freeze<Run>({
    rendered,
    context,
    tools,
    call,
    begin: (name, input, options = {}) =>
      Effect.suspend(() => {
        const place = places.get(name)
        if (place === undefined) return Effect.flatMap(unknown(name, options), Effect.fail)
        // A closed scope cannot start work, so refuse the call in the same words as any other.
        if (isOver()) return Effect.flatMap(invoke(place, input, options), ({ message }) => Effect.fail(Result.error(message)))
        return begin(place.definition, scope, (definition) =>
          invoke({ ...place, definition }, input, { ...options, isElsewhere: true })
        )
      })
  })
  return { run, invoke }
})
