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
import { offered, mergeContexts } from "../policy/core.ts"
import { checkDeadline } from "../policy/late.ts"
import * as Prompt from "../Prompt.ts"
import type { Section, SectionError } from "../Section.ts"
import * as ToolContext from "../ToolContext.ts"
import * as Result from "../ToolResult.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { begin } from "./begin.ts"
import { checkpointCalls } from "./checkpoint.ts"
import * as Grounds from "./grounds.ts"
import { noSuchTool, wrongSession, runIsOver, shownName, budgetIsSpent } from "./refusals.ts"

export interface InvokeOptions extends CallOptions {
  /**
   * True if another program does the work. That program does not know of our locks and must not wait for them. @default false
   */
  readonly isElsewhere?: boolean | undefined
}

export interface InternalRun {
  readonly run: Run
  /** Runs a tool as a call of this run, even if the tool is not on the list of the run. */
  readonly invoke: (
    tool: Prompt.RenderedTool,
    input: unknown,
    invokeOptions?: InvokeOptions
  ) => Effect.Effect<Result.ToolResult<unknown>>
}

const earlierDeadline = (self: Option.Option<DateTime.Utc>, that: Option.Option<DateTime.Utc>): Option.Option<DateTime.Utc> =>
  Option.isSome(self) && Option.isSome(that)
    ? Option.some(DateTime.min(self.value, that.value))
    : Option.orElse(self, () => that)

/** Combines the context of the run with that of a caller. The earlier deadline holds, and both budgets count. */
const contextOf = (own: ToolContext.Operations, callContext: ToolContext.Operations | undefined): ToolContext.Operations =>
  callContext === undefined
    ? own
    : {
        ...callContext,
        deadline: earlierDeadline(own.deadline, callContext.deadline),
        budgetTracker: Option.orElse(callContext.budgetTracker, () => own.budgetTracker)
      }

type Budgets = ReadonlySet<ToolContext.BudgetTracker>

const budgetsOf = (...contexts: ReadonlyArray<ToolContext.Operations>): Budgets =>
  new Set(contexts.flatMap(({ budgetTracker }) => Option.toArray(budgetTracker)))

const checkBudgets = (budgets: Budgets): Effect.Effect<void, Refused> =>
  Effect.forEach(
    budgets,
    ({ left, limit }) => Effect.flatMap(left, (amount) => (amount > 0 ? Effect.void : Effect.fail(budgetIsSpent(limit)))),
    { discard: true }
  )

const spendOnResult =
  (budgets: Budgets) =>
  ({ message }: Result.ToolResult<unknown>): Effect.Effect<void> =>
    Effect.flatMap(ToolSettings, ({ measure }) =>
      Effect.forEach(budgets, ({ spend }) => spend(measure(message)), { discard: true })
    )

const checkCheckpointSession = ({ checkpoint, session }: Options): Effect.Effect<void, SessionError> =>
  checkpoint === undefined || checkpoint.session === session
    ? Effect.void
    : Effect.fail(
        new SessionError({ operation: "Adapter.run", reason: "invalid", detail: "the checkpoint belongs to another session" })
      )

/**
 * The surrounding context without its parent span: a call belongs to the span it is made in, not to the span that made the run.
 */
const contextWithoutSpan = Effect.map(Effect.context<never>(), Context.omit(Tracer.ParentSpan)) as Effect.Effect<
  Context.Context<never>
>

export const make = Effect.fnUntraced(function* <R>(
  adapter: Adapter,
  prompt: Prompt.Prompt<R>,
  options: Options
): Effect.fn.Return<InternalRun, Prompt.PromptError | SectionError, Scope.Scope | Needed<R>> {
  const { session } = options
  yield* checkCheckpointSession(options)
  const filesystem = yield* Prompt.filesystem(prompt)
  const rendered = yield* Prompt.render(prompt, options.params)
  const mayBeOffered = yield* offered
  const [services, scope] = [yield* contextWithoutSpan, yield* Effect.scope]
  const context = ToolContext.make({
    prompt,
    renderedPrompt: Option.some(rendered),
    adapter,
    session,
    deadline: earlierDeadline(rendered.deadline, Option.map(Option.fromUndefinedOr(options.deadline), DateTime.toUtc)),
    budgetTracker: Option.fromUndefinedOr(options.budgetTracker),
    filesystem
  })
  const tools = rendered.tools.filter(({ definition }) => mayBeOffered(definition))
  const toolsByName = new Map(rendered.tools.map((tool) => [tool.definition.name, tool]))
  const memory = Memory.make()
  const toolSources = Grounds.make(Option.getOrUndefined(Prompt.workspace(prompt)), memory.session)
  const checkpoints = checkpointCalls(options)

  const isRunOver = (): boolean => scope.state._tag === "Closed"

  const isOurs = (section: Section<unknown> | undefined): boolean =>
    section?.session === undefined || section.session === session

  const hostOf = ({ section }: Prompt.RenderedTool, callContext: ToolContext.Operations, isElsewhere: boolean): Host => ({
    context: callContext,
    admitCall: Effect.suspend(() => {
      if (isRunOver()) return Effect.fail(runIsOver)
      const ours = callContext.session === session && isOurs(section) && isOurs(toolSources.sectionWithFilesystem(section))
      const time = Option.match(callContext.deadline, { onNone: () => Effect.void, onSome: checkDeadline })
      return ours ? Effect.andThen(time, checkBudgets(budgetsOf(context, callContext))) : Effect.fail(wrongSession)
    }),
    toolSource: toolSources.sourceOf(section),
    around: checkpoints(isElsewhere),
    tell: (event) => session.publish(event)
  })

  const inRunContext = <A>(call: Effect.Effect<A, never, unknown>): Effect.Effect<A> =>
    Effect.updateContext(call as Effect.Effect<A>, (around) => mergeContexts(services, around))

  const invoke: InternalRun["invoke"] = (renderedTool, input, invokeOptions = {}) =>
    Effect.suspend(() => {
      const callContext = contextOf(context, invokeOptions.context)
      const host = hostOf(renderedTool, callContext, invokeOptions.isElsewhere ?? false)
      const call = invokeUnknown(renderedTool.definition, input, { memory, callId: invokeOptions.callId, host })
      return inRunContext(Effect.tap(call, spendOnResult(budgetsOf(context, callContext))))
    })

  const callUnknownTool = (name: string, { callId = randomUUID(), context: callContext }: CallOptions) => {
    const known = tools.map(({ definition }) => definition.name)
    const { advice, happened } = noSuchTool(name, known)
    const result = Effect.succeed({ result: Result.error(`${happened} ${advice}`) })
    const call = told({ tool: shownName(name), callId, params: {} }, result, { tell: (event) => session.publish(event) })
    return inRunContext(
      Effect.tap(call, spendOnResult(budgetsOf(context, ...(callContext === undefined ? [] : [callContext]))))
    )
  }

  const call: Run["call"] = (name, input, options = {}) =>
    Effect.suspend(() => {
      const renderedTool = toolsByName.get(name)
      return renderedTool === undefined ? callUnknownTool(name, options) : invoke(renderedTool, input, options)
    })

  const run = Object.freeze<Run>({
    rendered,
    context,
    tools,
    call,
    begin: (name, input, options = {}) =>
      Effect.suspend(() => {
        const renderedTool = toolsByName.get(name)
        if (renderedTool === undefined) return Effect.flatMap(callUnknownTool(name, options), Effect.fail)
        // A closed scope cannot start work, so refuse the call in the same words as any other.
        if (isRunOver())
          return Effect.flatMap(invoke(renderedTool, input, options), ({ message }) => Effect.fail(Result.error(message)))
        return begin(renderedTool.definition, scope, (definition) =>
          invoke({ ...renderedTool, definition }, input, { ...options, isElsewhere: true })
        )
      })
  })
  return { run, invoke }
})
