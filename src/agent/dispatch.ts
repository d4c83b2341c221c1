/**
 * Carries out a tool call: decodes the arguments, asks the policies, runs the handler, and describes the result. Every call
 * emits one event, even a call that dies or is interrupted.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem, make } from "../filesystem/Filesystem.ts"
import { WriteMode } from "../model/Entry.ts"
import { type Fault, type FsError, promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits } from "../model/Limits.ts"
import { Buffer } from "../runtime/buffer.ts"
import { randomUUID } from "../runtime/node.ts"
import { type RunContext, ToolContext } from "./model.ts"
import { ToolEvents, ToolInvoked } from "./ToolEvents.ts"
import * as Result from "./ToolResult.ts"
import type { ToolResult } from "./ToolResult.ts"
import { ToolSettings } from "./ToolSettings.ts"
import { describe } from "./advice.ts"
import {
  type AnyDefinition,
  type Call,
  type Definition,
  type Refused,
  refused,
  resultOfRefusal,
  type ToolFailure
} from "./definition.ts"
import type { Memory } from "./memory.ts"
import { describeDecodeError, rewriteArguments } from "./parameters.ts"
import { inForce, interruptAt, type Invocation, type Policy, type ToolKind } from "./policy/core.ts"
import { splitsPair } from "./text/fit.ts"
import * as ToolPath from "./toolPath.ts"

export const unavailableFilesystem = (detail: string): Algebra => {
  const fault: Fault = { _tag: "Unavailable", detail }
  const failUnavailable = () => Effect.fail(fault)
  return make({
    info: { name: "none", root: "", caseSensitive: true, readOnly: false, confinement: "virtual" },
    stat: failUnavailable,
    list: failUnavailable,
    open: failUnavailable,
    write: failUnavailable,
    makeDirectory: failUnavailable,
    remove: failUnavailable,
    rename: failUnavailable,
    links: { read: failUnavailable, make: failUnavailable },
    attributes: { set: failUnavailable },
    watch: () => Stream.fail(fault)
  })
}

const maxArgumentCharacters = 1000

const contentParameters: ReadonlySet<string> = new Set([
  "code",
  "content",
  "diff",
  "file_text",
  "insert_text",
  "new_str",
  "new_string",
  "old_str",
  "old_string",
  "patch",
  "stdin"
])

const describeSize = (text: string): string => (text.length === 1 ? "1 character" : `${text.length} characters`)

const maxNestingDepth = 16

const asJson = (value: unknown): unknown =>
  value === null || typeof value === "boolean" || Number.isFinite(value) ? value : value === undefined ? null : String(value)

const withoutContents = (value: unknown, name = "", depth = 0): unknown => {
  if (depth > maxNestingDepth) return "…"
  if (typeof value === "string")
    return contentParameters.has(name) || value.length > maxArgumentCharacters ? describeSize(value) : value
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
  if (Array.isArray(value)) return value.map((item) => withoutContents(item, "", depth + 1))
  if (typeof value !== "object" || value === null) return asJson(value)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutContents(item, key, depth + 1)]))
}

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {})

const sizeOf = (value: Fields): number | undefined => {
  const { bytes_written: written, content, encoding, file, size_bytes: size } = value
  const known = [written, size, fieldsOf(file)["size_bytes"]].find((bytes) => typeof bytes === "number")
  if (known !== undefined || typeof content !== "string") return known
  return Buffer.byteLength(content, encoding === "binary" || encoding === "base64" ? "base64" : "utf8")
}

const isWriteMode = Schema.is(WriteMode)

const modeOf = ({ mode: requestedMode }: Fields, { mode: resultMode }: Fields): string | undefined =>
  typeof requestedMode === "string" ? requestedMode : isWriteMode(resultMode) ? resultMode : undefined

const eventOf = (call: {
  readonly tool: string
  readonly callId: string
  readonly params: object
  readonly result: ToolResult<unknown>
  readonly path: string | undefined
  readonly durationMillis: number
  readonly at: DateTime.Utc
}): ToolInvoked => {
  const { path, result, ...rest } = call
  const mode = modeOf(fieldsOf(call.params), fieldsOf(result.value))
  const sizeBytes = sizeOf(fieldsOf(result.value))
  return new ToolInvoked({
    ...rest,
    params: withoutContents(call.params) as Fields,
    success: result.success,
    message: result.message,
    ...(path !== undefined && { path }),
    ...(mode !== undefined && { mode }),
    ...(sizeBytes !== undefined && { sizeBytes })
  })
}

// An MCP server with structured content also sends the value of a result. Some clients show a model only the value. The value
// therefore includes the message, and both count against the budget.

export const Structured: Context.Reference<boolean> = Context.Reference("fs-algebra/Structured", { defaultValue: () => false })

export type Json = { readonly [key: string]: unknown }

export const withMessage = (message: string, value: Json): Json => ({ message, ...value })

const sentText =
  (isStructured: boolean) =>
  (message: string, value: () => object): string =>
    isStructured ? JSON.stringify(withMessage(message, value() as Json)) : message

const cutText = (text: string, maxLength: number): string => {
  if (text.length <= maxLength && JSON.stringify(text).length <= maxLength) return text
  let [low, high] = [0, Math.min(text.length, maxLength)]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (JSON.stringify(text.slice(0, middle)).length <= maxLength) low = middle
    else high = middle - 1
  }
  return text.slice(0, splitsPair(text, low) ? low - 1 : low)
}

const cutList = (list: ReadonlyArray<unknown>, maxLength: number): ReadonlyArray<unknown> => {
  const kept: Array<unknown> = []
  let length = 2
  for (const item of list) {
    const short = cut(item, maxLength)
    length += JSON.stringify(short).length + 1
    if (length > maxLength) break
    kept.push(short)
  }
  return kept.length === list.length && kept.every((item, index) => item === list[index]) ? list : kept
}

const cut = (value: unknown, maxLength: number): unknown => {
  if (typeof value === "string") return cutText(value, maxLength)
  if (Array.isArray(value)) return cutList(value, maxLength)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [key, cut(item, maxLength)] as const)
  return entries.every(([key, item]) => item === (value as Json)[key]) ? value : Object.fromEntries(entries)
}

/**
 * Shortens all texts and lists of an object to the same length, so that its JSON fits. Lists the names of the shortened fields in
 * the field `cut`. An object that fits already, such as a page that a tool has shortened, is returned as it is.
 */
export const shortenToFit = (value: Json, fits: (text: string) => boolean): Json => {
  const whole = JSON.stringify(value)
  if (fits(whole)) return value
  const shortened = (maxLength: number): Json => {
    const short = cut(value, maxLength) as Json
    return { ...short, cut: Object.keys(value).filter((key) => short[key] !== value[key]) }
  }
  let [low, high] = [2, whole.length]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (fits(JSON.stringify(shortened(middle)))) low = middle
    else high = middle - 1
  }
  return shortened(low)
}

export interface Ground {
  readonly filesystem: Algebra | undefined
  readonly missing: Refused
  readonly memory?: Memory | undefined
  readonly services: Context.Context<never>
}

export interface Host {
  readonly context: RunContext
  readonly admitCall: Effect.Effect<void, Refused>
  readonly toolSource: Effect.Effect<Ground>
  readonly around: NonNullable<Policy["around"]>
  readonly tell: (event: ToolInvoked) => Effect.Effect<void>
}

interface Options {
  readonly memory: Memory
  readonly callId?: string | undefined
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

const finishInterruptedChanges = ({ filesystem: { port } }: Call, tool: string): Effect.Effect<void, FsError> =>
  Effect.mapError(port.hostRoots?.settleTransactions(() => true) ?? Effect.void, (fault) => promote(fault, tool, FsPath.root))

const describeFailure = (failure: ToolFailure, call: Call): Effect.Effect<Result.ToolResult<never>> =>
  Effect.map(describe(failure, call), Result.error)

/** The pattern of effect's defect message for a missing service. Effect has no typed error for a missing service. */
const missingServicePattern = /^Service not found: (.+)$/

/**
 * Turns the defect of a missing service into a failure. Types do not always force a caller to provide a service that a tool
 * uses.
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
            "Go on without this tool, and tell the user."
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
      // Apply the deadline inside `around`, which rolls back a failed call. A late call is then also rolled back.
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

const noListener = Context.get(Context.empty(), ToolEvents)

const withoutLongMessage = ({ message, ...result }: Result.ToolResult<unknown>): Result.ToolResult<unknown> => ({
  ...result,
  message: message.length > maxMessageLength || message.includes("\n") ? `${message.length} characters` : message
})

const unfinishedResult = (cause: Cause.Cause<never>): Result.ToolResult<never> =>
  Result.error(
    Cause.hasInterruptsOnly(cause) ? "The call was interrupted." : "The call failed because of a bug in the program."
  )

export const told = <V, R>(
  call: { readonly tool: string; readonly callId: string; readonly params: object },
  run: Effect.Effect<Outcome<V>, never, R>,
  host: Pick<Host, "tell"> | undefined
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (started) => {
    const tell = Effect.fnUntraced(function* ({ path, result }: Outcome<unknown>) {
      const listener = yield* ToolEvents
      if (host === undefined && listener === noListener) return
      const at = yield* DateTime.now
      const durationMillis = at.epochMilliseconds - started
      const event = eventOf({ ...call, result: withoutLongMessage(result), path, durationMillis, at })
      yield* host === undefined ? listener(event) : Effect.ensuring(host.tell(event), listener(event))
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
  } as RunContext
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

/** The schema for a tool without parameters. A struct without fields would accept every value except null and undefined. */
const noParameters = Schema.Record(Schema.String, Schema.Never)

const parameterSchema = ({ parameters }: AnyDefinition<unknown>): Schema.Codec<Readonly<Record<string, unknown>>, unknown> =>
  Object.keys(parameters.fields as object).length === 0
    ? noParameters
    : (parameters as unknown as Schema.Codec<Readonly<Record<string, unknown>>, unknown>)

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

/** Drops null properties, also of nested objects, because models send null for omitted arguments. */
const withoutNulls = (input: unknown): unknown => (input === undefined || input === null ? {} : withoutNestedNulls(input))

const withoutNestedNulls = (value: unknown, depth = 0): unknown =>
  typeof value !== "object" || value === null || depth > maxNestingDepth
    ? value
    : Array.isArray(value)
      ? value.map((item) => withoutNestedNulls(item, depth + 1))
      : Object.fromEntries(
          Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, withoutNestedNulls(item, depth + 1)]]))
        )
