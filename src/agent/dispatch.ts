/**
 * Takes every call from its arguments to a result: decode, ask the policies, run, describe. Every call emits one event,
 * however it ends; a defect and an interruption are no results.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { randomUUID } from "../runtime/node.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import { type FsError, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits } from "../model/Limits.ts"
import { describe } from "./advice.ts"
import type { AnyDefinition, Call, Definition, Refused, ToolFailure } from "./definition.ts"
import { refused } from "./definition.ts"
import { eventOf } from "./event.ts"
import type { Memory } from "./memory.ts"
import { inForce, type Invocation, type Policy, type ToolKind } from "./policy/core.ts"
import { interruptAt } from "./policy/late.ts"
import { sentText, Structured } from "./sent.ts"
import { unavailableFilesystem } from "./standIn.ts"
import { rewriteArguments } from "./spellings.ts"
import { describeDecodeError } from "./undecodable.ts"
import * as ToolPath from "./toolPath.ts"
import { type Operations as Run, ToolContext } from "./ToolContext.ts"
import { ToolEvents, type ToolInvoked } from "./ToolEvents.ts"
import * as Result from "./ToolResult.ts"
import { ToolSettings } from "./ToolSettings.ts"

export interface Ground {
  readonly filesystem: Algebra | undefined
  readonly missing: Refused
  /** The versions that the session has seen on this filesystem. @default the memory of the call */
  readonly memory?: Memory | undefined
  readonly services: Context.Context<never>
}

/** The additions of a prompt's run to a call of one of its tools. */
export interface Host {
  readonly context: Run
  /** Decides whether the call may proceed, once the arguments are decoded. */
  readonly admitCall: Effect.Effect<void, Refused>
  readonly toolSource: Effect.Effect<Ground>
  /** Wraps the part of the call after the policies allow it and before the result is returned. */
  readonly around: NonNullable<Policy["around"]>
  readonly tell: (event: ToolInvoked) => Effect.Effect<void>
}

export interface Options {
  readonly memory: Memory
  /** @default a new UUID */
  readonly callId?: string | undefined
  /** @default none */
  readonly host?: Host | undefined
}

interface Outcome<V> {
  readonly result: Result.ToolResult<V>
  readonly path?: string | undefined
}

const noFilesystem = refused("No filesystem available.", "Provide a layer of fs-algebra's Filesystem to the tools.")

const contextSource: Effect.Effect<Ground> = Effect.map(Effect.context<never>(), (services) => ({
  filesystem: Option.getOrUndefined(Context.getOption(services, Filesystem)),
  missing: noFilesystem,
  services
}))

const resultOfRefusal = ({ advice, happened }: Refused): Result.ToolResult<never> => Result.error(`${happened} ${advice}`)

const applyPolicies = (policies: ReadonlyArray<Policy>, base: Algebra, memory: Memory, tool: ToolKind): Algebra => {
  const made = policies.reduce((self, policy) => policy.filesystem?.(self, memory) ?? self, base)
  return policies.reduce((self, policy) => policy.guard?.(self, memory, tool) ?? self, made)
}

const ranks = { first: 0, between: 1, last: 2 } as const

const askPolicies = (policies: ReadonlyArray<Policy>, invocation: Invocation) =>
  Effect.forEach(
    [...policies].reverse().sort((a, b) => ranks[a.asked ?? "between"] - ranks[b.asked ?? "between"]),
    (policy) => policy.before?.(invocation) ?? Effect.void,
    { discard: true }
  )

const wrapInPolicies = <V, R>(
  policies: ReadonlyArray<Policy>,
  invocation: Invocation,
  run: Effect.Effect<Result.ToolResult<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  policies.reduce((inner, policy) => policy.around?.(invocation, inner) ?? inner, run)

/**
 * Finishes changes of several files that another process left half done when it was killed since the last call. No tool may see
 * half of such a change.
 */
const finishInterruptedChanges = ({ filesystem: { port } }: Call, tool: string): Effect.Effect<void, FsError> =>
  Effect.mapError(port.hostRoots?.settleTransactions(() => true) ?? Effect.void, (fault) => promote(fault, tool, FsPath.root))

const describeFailure = (failure: ToolFailure, call: Call): Effect.Effect<Result.ToolResult<never>> =>
  Effect.map(describe(failure, call), Result.error)

/** The message of effect's defect for a missing service. Effect reports it in no other way. */
const missingServicePattern = /^Service not found: (.+)$/

/**
 * Fails, instead of dying, if the tool uses a service that is not provided or not ready. Types do not always force a caller to
 * provide it.
 */
const refuseMissingServices = <A, E, R>(tool: string, handled: Effect.Effect<A, E, R>): Effect.Effect<A, E | Refused, R> =>
  Effect.catchCause(handled, (cause): Effect.Effect<never, E | Refused> => {
    const defects = cause.reasons.filter(Cause.isDieReason).map(({ defect }) => defect)
    const [service] = defects.flatMap((defect) =>
      defect instanceof Error ? (missingServicePattern.exec(defect.message)?.[1] ?? []) : []
    )
    return service === undefined
      ? Effect.failCause(cause)
      : Effect.fail(
          refused(
            `${tool} could not run: the service ${JSON.stringify(service)} is not provided.`,
            "Go on without it and tell the user."
          )
        )
  })

const answerCall = <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  call: Call,
  base: Algebra,
  policies: ReadonlyArray<Policy>,
  host: Host | undefined
): Effect.Effect<Outcome<V["Type"]>, never, R> =>
  Effect.matchEffect(definition.touches(params, call), {
    onFailure: (failure) => Effect.map(describeFailure(failure, call), (result): Outcome<V["Type"]> => ({ result })),
    onSuccess: (touches) => {
      const invocation: Invocation = {
        tool: definition.name,
        callId: call.callId,
        params: params as Record<string, unknown>,
        touches,
        mutates: definition.does !== "reads",
        past: definition.past,
        memory: call.memory,
        filesystem: base,
        view: call.filesystem
      }
      const handled = refuseMissingServices(definition.name, definition.handle(params, call))
      const run = Effect.matchEffect(Effect.andThen(finishInterruptedChanges(call, definition.name), handled), {
        onFailure: (failure): Effect.Effect<Result.ToolResult<V["Type"]>> => describeFailure(failure, call),
        onSuccess: ({ message, value }) => Effect.succeed(Result.ok<V["Type"]>(message, value))
      })
      const withinDeadline = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Refused, R> =>
        Option.match(host?.context.deadline ?? Option.none(), { onNone: () => self, onSome: (at) => interruptAt(at, self) })
      // Apply the deadline inside the host's rollback, so that the rollback sees a failed result.
      const policedRun = Effect.catch(withinDeadline(wrapInPolicies(policies, invocation, run)), (late) =>
        describeFailure(late, call)
      )
      const permittedCall = Effect.andThen(
        withinDeadline(askPolicies(policies, invocation)),
        Effect.suspend(() => host?.around(invocation, policedRun) ?? policedRun)
      )
      return Effect.map(
        Effect.catch(permittedCall, (refusal) => describeFailure(refusal, call)),
        (result): Outcome<V["Type"]> => ({ result, path: touches[0]?.path })
      )
    }
  })

const maxMessageLength = 1000

/** Replaces a long or multi-line message by its size, because the message may show file content. */
const withoutLongMessage = ({ message, ...result }: Result.ToolResult<unknown>): Result.ToolResult<unknown> => ({
  ...result,
  message: message.length > maxMessageLength || message.includes("\n") ? `${message.length} characters` : message
})

const unfinishedResult = (cause: Cause.Cause<never>): Result.ToolResult<never> =>
  Result.error(Cause.hasInterruptsOnly(cause) ? "The call was interrupted." : "The call ended in a defect of the program.")

export const told = <V, R>(
  call: { readonly tool: string; readonly callId: string; readonly params: object },
  run: Effect.Effect<Outcome<V>, never, R>,
  host: Pick<Host, "tell"> | undefined
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (started) => {
    const tell = Effect.fnUntraced(function* ({ path, result }: Outcome<unknown>) {
      const at = yield* DateTime.now
      const durationMillis = at.epochMilliseconds - started
      const event = eventOf({ ...call, result: withoutLongMessage(result), path, durationMillis, at })
      const listener = (yield* ToolEvents)(event)
      yield* host === undefined ? listener : Effect.ensuring(host.tell(event), listener)
    })
    const reportedRun = Effect.onExit(run, (exit) =>
      tell(Exit.isSuccess(exit) ? exit.value : { result: unfinishedResult(exit.cause) })
    )
    return Effect.map(reportedRun, ({ result }) => result)
  })

const runTool = Effect.fnUntraced(function* <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  { host, memory: known }: Options,
  callId: string
): Effect.fn.Return<Outcome<V["Type"]>, Refused, R> {
  if (host !== undefined) yield* host.admitCall
  const { filesystem: ownFilesystem, memory = known, missing, services } = yield* host?.toolSource ?? contextSource
  if (ownFilesystem === undefined && definition.needsFilesystem !== false) return yield* Effect.fail(missing)
  const base = ownFilesystem ?? unavailableFilesystem(missing.happened)
  const [settings, policies] = yield* Effect.provideContext(Effect.all([ToolSettings, inForce]), services)
  const filesystem = applyPolicies(policies, base, memory, definition)
  const call: Call = {
    tool: definition.name,
    filesystem,
    settings,
    memory,
    callId,
    sent: sentText(yield* Structured),
    path: ToolPath.make(definition.name, settings, base.port.rules?.policy)
  }
  const toolServices = policies.reduce((known, policy) => policy.services?.(known, filesystem) ?? known, services)
  const runContext = {
    ...host?.context,
    filesystem: ownFilesystem === undefined ? Option.none() : Option.some(filesystem)
  } as Run
  return yield* answerCall(definition, params, call, base, policies, host).pipe(
    Effect.provideContext(
      toolServices.pipe(
        Context.add(Limits, settings.limits),
        Context.add(Filesystem, filesystem),
        host === undefined ? (known) => known : Context.add(ToolContext, Object.freeze(runContext))
      ) as Context.Context<never>
    )
  )
})

export const invoke = <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  options: Options
): Effect.Effect<Result.ToolResult<V["Type"]>, never, R> =>
  Effect.suspend(() => {
    const callId = options.callId ?? randomUUID()
    const run = Effect.catch(runTool(definition, params, options, callId), (refusal) =>
      Effect.succeed<Outcome<V["Type"]>>({ result: resultOfRefusal(refusal) })
    )
    return told({ tool: definition.name, callId, params }, run, options.host)
  })

const known = ({ parameters }: AnyDefinition<unknown>, input: unknown): object =>
  typeof input === "object" && input !== null
    ? Object.fromEntries(Object.entries(input).filter(([name]) => Object.hasOwn(parameters.fields, name)))
    : {}

/** Returns the schema of the parameters. A struct without fields would accept everything but null. */
const parameterSchema = ({ parameters }: AnyDefinition<unknown>): Schema.Codec<Readonly<Record<string, unknown>>, unknown> =>
  Object.keys(parameters.fields as object).length === 0
    ? Schema.Record(Schema.String, Schema.Never)
    : (parameters as unknown as Schema.Codec<Readonly<Record<string, unknown>>, unknown>)

/** Runs the tool on the input as sent. Input that does not decode gives a result that says what is wrong with it. */
export const invokeUnknown = <R>(
  definition: AnyDefinition<R>,
  input: unknown,
  options: Options
): Effect.Effect<Result.ToolResult<unknown>, never, R> => {
  const decode = Schema.decodeUnknownEffect(parameterSchema(definition), { onExcessProperty: "error", errors: "all" })
  const sent = withoutNulls(input)
  const refuse = (sent: unknown, error: Schema.SchemaError) =>
    told(
      { tool: definition.name, callId: options.callId ?? randomUUID(), params: known(definition, sent) },
      Effect.succeed({ result: Result.error(describeDecodeError(definition, sent, error)) }),
      options.host
    )
  const onSuccess = (params: Readonly<Record<string, unknown>>) => invoke(definition, params, options)
  return Effect.matchEffect(decode(sent), {
    onFailure: () => {
      const correctedInput = rewriteArguments(definition, sent)
      return Effect.matchEffect(decode(correctedInput), { onFailure: (error) => refuse(correctedInput, error), onSuccess })
    },
    onSuccess
  })
}

/** Drops nulls at any depth; models send null for arguments that they leave out. */
const withoutNulls = (input: unknown): unknown => (input === undefined || input === null ? {} : withoutNestedNulls(input))

const maxNestingDepth = 16

const withoutNestedNulls = (value: unknown, depth = 0): unknown =>
  typeof value !== "object" || value === null || depth > maxNestingDepth
    ? value
    : Array.isArray(value)
      ? value.map((item) => withoutNestedNulls(item, depth + 1))
      : Object.fromEntries(
          Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, withoutNestedNulls(item, depth + 1)]]))
        )
