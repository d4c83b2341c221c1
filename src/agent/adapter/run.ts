/**
 * Runs a prompt in a session. The prompt is rendered once. Each call works on the filesystem of its tool's section or, if the
 * section has none, of the workspace.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { nameDistance } from "../../engine/nearest.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import { SessionError } from "../../model/sessionError.ts"
import { listed } from "../../model/words.ts"
import { createHash, randomUUID } from "../../runtime/node.ts"
import type * as Checkpoint from "../../workspace/Checkpoint.ts"
import * as Prompt from "../Prompt.ts"
import * as ToolContext from "../ToolContext.ts"
import * as Result from "../ToolResult.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { recoverChanges } from "../changes.ts"
import { type Answer, type AnyDefinition, type Refused, refused, resultOfRefusal } from "../definition.ts"
import { type Ground, type Host, invokeUnknown, told } from "../dispatch.ts"
import * as Memory from "../memory.ts"
import type {
  Adapter,
  BudgetTracker,
  CallOptions,
  Elsewhere,
  Given,
  Prompt as PromptOf,
  PromptError,
  RenderedTool,
  Run,
  RunContext,
  RunOptions,
  Section,
  SectionError
} from "../model.ts"
import { asLabel, checkpointTag, needsCheckpoint, rollBackOnFailure, type StateKeeper } from "../policy/checkpoint.ts"
import { checkDeadline, type Invocation, mergeContexts, offered, type Policy } from "../policy/core.ts"

const maxSuggestions = 3
const maxNameLength = 100

const shownName = (name: string): string =>
  name.length > maxNameLength ? `${name.slice(0, maxNameLength).toWellFormed()}…` : name.toWellFormed()

const noSuchTool = (name: string, known: ReadonlyArray<string>): Refused => {
  const near = known
    .map((candidate) => ({ candidate, distance: nameDistance(name, candidate) }))
    .filter(({ distance }) => distance < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxSuggestions)
    .map(({ candidate }) => candidate)
  const advice =
    known.length === 0
      ? "No tools are offered; answer without calling any."
      : near.length > 0
        ? `Did you mean ${listed(near, "or")}?`
        : `Call one of these: ${listed(known)}.`
  return refused(`There is no tool ${JSON.stringify(shownName(name))}.`, advice)
}

const wrongSession: Refused = refused(
  "The tool belongs to a different session, so the call was not run.",
  "Call the tools of your own session."
)

const runIsOver: Refused = refused("The run of this call has ended.", "Call no more tools; answer with what you know.")

const budgetIsSpent = (limit: number): Refused =>
  refused(`The budget of ${limit} for tool results is used up.`, "Call no more tools; answer with what you know.")

const callIsUnderWay = (callId: string): Refused =>
  refused(
    `A call of this tool with the id ${JSON.stringify(shownName(callId))} is still running.`,
    "Wait until it has ended, or call with another id."
  )

const noFilesystemInPrompt: Refused = refused(
  "No filesystem available.",
  "Go on without files, and tell the user: the prompt needs a section with a filesystem for this tool."
)

/**
 * Returns a refusal without the error's detail. The detail may name directories on the machine, so only the log contains it.
 */
const filesystemNotReady = ({ title }: Pick<Section, "title">, { _tag }: SectionError): Refused =>
  refused(
    `The filesystem of ${JSON.stringify(title)} could not be prepared (${_tag}).`,
    "Try once more; if it fails again, go on without these files and tell the user."
  )

// Chooses the filesystem of a section's tools: the filesystem of the section or, if it has none, of the workspace. The workspace
// is the first section with a filesystem. In the second case a tool gets the services of its own section and of the workspace.
// So snapshot tools capture the same files that file tools change.

interface ToolSources {
  readonly sectionWithFilesystem: (section: Section<unknown>) => Section<unknown> | undefined
  readonly sourceOf: (section: Section<unknown>) => Effect.Effect<Ground>
}

const servicesOf = (section: Section<unknown> | undefined): Effect.Effect<Context.Context<never>, SectionError> =>
  section?.services ?? Effect.succeed(Context.empty())

const makeGrounds = (workspace: Section<unknown> | undefined, session: object): ToolSources => {
  const memories = new WeakMap<Algebra, Memory.Memory>()
  // Keep a separate record of read files for each filesystem, because the same path names a different file on each filesystem.
  const memoryOf = (filesystem: Algebra): Memory.Memory => {
    const known = memories.get(filesystem) ?? Memory.make(session)
    memories.set(filesystem, known)
    return known
  }
  const recoveredFilesystems = new WeakSet<Algebra>()
  const recoverOnce = (filesystem: Algebra): Effect.Effect<Algebra> =>
    recoveredFilesystems.has(filesystem)
      ? Effect.succeed(filesystem)
      : Effect.as(
          Effect.tap(recoverChanges(filesystem), () => Effect.sync(() => recoveredFilesystems.add(filesystem))),
          filesystem
        )

  const sectionWithFilesystem = (section: Section<unknown>): Section<unknown> | undefined =>
    section.filesystem === undefined ? workspace : section

  const sourceOf = Effect.fnUntraced(function* (section: Section<unknown>): Effect.fn.Return<Ground> {
    const surroundingContext = yield* Effect.context<never>()
    const owner = sectionWithFilesystem(section)
    const made = Effect.gen(function* () {
      const filesystem = owner?.filesystem === undefined ? undefined : yield* recoverOnce(yield* owner.filesystem)
      const services = mergeContexts(yield* servicesOf(owner), yield* servicesOf(section))
      return {
        filesystem,
        missing: noFilesystemInPrompt,
        memory: filesystem && memoryOf(filesystem),
        services: mergeContexts(surroundingContext, services)
      } satisfies Ground
    })
    return yield* Effect.catch(made, (error) =>
      Effect.as(Effect.logWarning(`fs-algebra: ${(owner ?? section).key}: ${error.message}`), {
        filesystem: undefined,
        missing: filesystemNotReady(owner ?? section, error),
        services: surroundingContext
      })
    )
  })
  return { sectionWithFilesystem, sourceOf }
}

// Takes a checkpoint of session and filesystem before each tool that may change something, and rolls back calls that fail, die
// or are interrupted. The checkpoint of a successful call is kept under the name `pre:<tool>:<call id>`.

const maxIdLength = 100

/** Returns a checkpoint id that a session accepts. Model providers may send any text as the id of a call. */
const idOf = ({ callId, tool }: Invocation): string => {
  const label = asLabel(callId).replaceAll(/[/\\\u0080-\u009f]/g, "_")
  if (label === callId && label.length <= maxIdLength) return checkpointTag(tool, callId)
  const digest = createHash("sha256").update(callId).digest("hex").slice(0, 16)
  return checkpointTag(tool, `${label.slice(0, maxIdLength).toWellFormed()}-${digest}`)
}

type Around = NonNullable<Policy["around"]>

const withoutCheckpoint: Around = (_, call) => call

const keeperOf = (checkpoint: Checkpoint.Operations, id: string, makeRoom: Effect.Effect<void>): StateKeeper<string> => ({
  take: Effect.andThen(makeRoom, Effect.as(checkpoint.take(id), id)),
  restoreState: () => Effect.andThen(checkpoint.rollback(id), Effect.ignore(checkpoint.forget(id))),
  describeState: () => `checkpoint ${id}`
})

const withoutOtherChanges = <A, E, R>(
  checkpoint: Checkpoint.Operations,
  { filesystem }: Invocation,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => checkpoint.exclusively(withExclusiveLock(filesystem.port, call))

/**
 * Returns a function that wraps the calls of one run. If `isElsewhere` is true, another program does the work of a call. The
 * wrapper then takes no locks, because the other program needs the files during the call.
 */
const checkpointCalls = ({ checkpoint, keep = 100 }: RunOptions): ((isElsewhere: boolean) => Around) => {
  if (checkpoint === undefined) return () => withoutCheckpoint
  const runningIds = new Set<string>()
  const keptIds = new Set<string>()
  const makeRoom = Effect.suspend(() => {
    const old = [...keptIds].slice(0, Math.max(0, keptIds.size + 1 - keep))
    for (const id of old) keptIds.delete(id)
    return Effect.forEach(old, (id) => Effect.ignore(checkpoint.forget(id)), { discard: true })
  })
  return (isElsewhere) => (invocation, call) =>
    Effect.suspend(() => {
      if (!needsCheckpoint(invocation)) return call
      const id = idOf(invocation)
      if (runningIds.has(id)) return Effect.succeed(resultOfRefusal(callIsUnderWay(invocation.callId)))
      runningIds.add(id)
      keptIds.delete(id)
      const rolledBackCall = Effect.map(rollBackOnFailure(keeperOf(checkpoint, id, makeRoom), call), (result) => {
        if (result.success) keptIds.add(id)
        return result
      })
      return Effect.ensuring(
        isElsewhere ? rolledBackCall : withoutOtherChanges(checkpoint, invocation, rolledBackCall),
        Effect.sync(() => runningIds.delete(id))
      )
    })
}

// Runs a call whose work another program does. The handler of the call waits until that program reports an outcome. Policies,
// the deadline and the rollback therefore apply as they do to every other call.

type CallResult = Result.ToolResult<unknown>

const asFailure = (result: CallResult): Result.ToolResult<never> => Result.error(result.message)

const interruptedResult = Result.error("The call was interrupted.")

const resultOf = (exit: Exit.Exit<CallResult>): Effect.Effect<CallResult> =>
  Exit.isSuccess(exit)
    ? Effect.succeed(exit.value)
    : Cause.hasInterruptsOnly(exit.cause)
      ? Effect.succeed(interruptedResult)
      : Effect.failCause(exit.cause)

const asSentence = (text: string): string => {
  const words = text.trim()
  return words === "" ? "The tool failed and gave no reason." : /[.!?]$/.test(words) ? words : `${words}.`
}

const begin = (
  definition: AnyDefinition<unknown>,
  scope: Scope.Scope,
  invoke: (definition: AnyDefinition<unknown>) => Effect.Effect<CallResult>
): Effect.Effect<Elsewhere, Result.ToolResult<never>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const handlerStarted = yield* Deferred.make<void>()
      const outcome = yield* Deferred.make<Answer<unknown>, Refused>()
      const awaitOutcome = Effect.andThen(Deferred.succeed(handlerStarted, undefined), Deferred.await(outcome))
      const fiber = yield* Effect.forkIn(invoke({ ...definition, handle: () => awaitOutcome }), scope)
      const finalResult = Effect.flatMap(Fiber.await(fiber), resultOf)
      const refusal = Effect.flatMap(finalResult, (result) => Effect.fail(asFailure(result)))
      yield* restore(Effect.raceFirst(Deferred.await(handlerStarted), refusal)).pipe(
        Effect.onInterrupt(() => Fiber.interrupt(fiber))
      )
      return Object.freeze<Elsewhere>({
        end: ({ message = `${definition.name} is done.`, value } = {}) =>
          Effect.andThen(Deferred.succeed(outcome, { message, value }), finalResult),
        abort: (reason) =>
          Effect.andThen(
            Deferred.fail(outcome, refused(asSentence(reason), "Check the current files before you try again.")),
            Effect.map(finalResult, (result) =>
              result.success ? Result.error(`${definition.name} had already finished, so its changes stay.`) : asFailure(result)
            )
          )
      })
    })
  )

interface InvokeOptions extends CallOptions {
  /** True if another program does the work of the call. If so, the call takes no locks. @default false */
  readonly isElsewhere?: boolean | undefined
}

interface InternalRun {
  readonly run: Run
  readonly invoke: (
    tool: RenderedTool,
    input: unknown,
    invokeOptions?: InvokeOptions
  ) => Effect.Effect<Result.ToolResult<unknown>>
}

const earlierDeadline = (self: Option.Option<DateTime.Utc>, that: Option.Option<DateTime.Utc>): Option.Option<DateTime.Utc> =>
  Option.isSome(self) && Option.isSome(that)
    ? Option.some(DateTime.min(self.value, that.value))
    : Option.orElse(self, () => that)

const contextOf = (own: RunContext, callContext: RunContext | undefined): RunContext =>
  callContext === undefined
    ? own
    : {
        ...callContext,
        deadline: earlierDeadline(own.deadline, callContext.deadline),
        budgetTracker: Option.orElse(callContext.budgetTracker, () => own.budgetTracker)
      }

type Budgets = ReadonlySet<BudgetTracker>

const budgetsOf = (...contexts: ReadonlyArray<RunContext>): Budgets =>
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

const checkCheckpointSession = ({ checkpoint, session }: RunOptions): Effect.Effect<void, SessionError> =>
  checkpoint === undefined || checkpoint.session === session
    ? Effect.void
    : Effect.fail(
        new SessionError({
          operation: "Adapter.run",
          reason: "invalid",
          detail: "the checkpoint of the run belongs to another session"
        })
      )

/**
 * The surrounding context without its parent span. The parent of a call's span is the span of the caller, not the span in which
 * the run was made.
 */
const contextWithoutSpan = Effect.map(Effect.context<never>(), Context.omit(Tracer.ParentSpan)) as Effect.Effect<
  Context.Context<never>
>

export const make = Effect.fnUntraced(function* <R>(
  adapter: Adapter,
  prompt: PromptOf<R>,
  options: RunOptions
): Effect.fn.Return<InternalRun, PromptError | SectionError, Scope.Scope | Exclude<R, Given>> {
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
  const toolSources = makeGrounds(Option.getOrUndefined(Prompt.workspace(prompt)), memory.session)
  const checkpoints = checkpointCalls(options)

  const isRunOver = (): boolean => scope.state._tag === "Closed"

  const isOurs = (section: Section<unknown> | undefined): boolean =>
    section?.session === undefined || section.session === session

  const hostOf = ({ section }: RenderedTool, callContext: RunContext, isElsewhere: boolean): Host => ({
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
    const result = Effect.succeed({ result: resultOfRefusal(noSuchTool(name, known)) })
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
        // A closed scope cannot start a fiber. `invoke` refuses the call, with the message that all late calls get.
        if (isRunOver())
          return Effect.flatMap(invoke(renderedTool, input, options), ({ message }) => Effect.fail(Result.error(message)))
        return begin(renderedTool.definition, scope, (definition) =>
          invoke({ ...renderedTool, definition }, input, { ...options, isElsewhere: true })
        )
      })
  })
  return { run, invoke }
})
