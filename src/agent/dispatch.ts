/**
 * From arguments to a result, the same way for every tool and whoever asks: decode, ask the policies, run, and say what happened. A
 * failure is a result; only a defect of the program and an interruption are none. Every call is told once, however it ends.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { randomUUID } from "node:crypto"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import { Limits } from "../model/Limits.ts"
import { describe } from "./advice.ts"
import type { AnyDefinition, Call, Definition, ToolFailure } from "./definition.ts"
import { refused } from "./definition.ts"
import { eventOf } from "./event.ts"
import type { Memory } from "./memory.ts"
import { inForce, type Invocation, type Policy, type ToolKind } from "./policy/core.ts"
import { undecodable } from "./undecodable.ts"
import * as ToolPath from "./toolPath.ts"
import { ToolEvents } from "./ToolEvents.ts"
import * as Result from "./ToolResult.ts"
import { ToolSettings } from "./ToolSettings.ts"

export interface Options {
  readonly memory: Memory
  /** @default a new UUID */
  readonly callId?: string | undefined
}

/** A result, and the first path that the call touches. */
interface Outcome<V> {
  readonly result: Result.ToolResult<V>
  readonly path?: string | undefined
}

const noFilesystem = refused("No filesystem available.", "Provide a layer of fs-algebra's Filesystem to the tools.")

const viewOf = (policies: ReadonlyArray<Policy>, base: Algebra, memory: Memory, tool: ToolKind): Algebra => {
  const made = policies.reduce((self, policy) => policy.filesystem?.(self, memory) ?? self, base)
  return policies.reduce((self, policy) => policy.guard?.(self, memory, tool) ?? self, made)
}

const ranks = { first: 0, between: 1, last: 2 } as const

const asked = (policies: ReadonlyArray<Policy>, invocation: Invocation) =>
  Effect.forEach(
    [...policies].reverse().sort((a, b) => ranks[a.asked ?? "between"] - ranks[b.asked ?? "between"]),
    (policy) => policy.before?.(invocation) ?? Effect.void,
    { discard: true }
  )

const wrapped = <V, R>(
  policies: ReadonlyArray<Policy>,
  invocation: Invocation,
  run: Effect.Effect<Result.ToolResult<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  policies.reduce((inner, policy) => policy.around?.(invocation, inner) ?? inner, run)

const described = (failure: ToolFailure, call: Call): Effect.Effect<Result.ToolResult<never>> =>
  Effect.map(describe(failure, call), Result.error)

const answering = <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  call: Call,
  base: Algebra,
  policies: ReadonlyArray<Policy>
): Effect.Effect<Outcome<V["Type"]>, never, R> =>
  Effect.matchEffect(definition.touches(params, call), {
    onFailure: (failure) => Effect.map(described(failure, call), (result): Outcome<V["Type"]> => ({ result })),
    onSuccess: (touches) => {
      const invocation: Invocation = {
        tool: definition.name,
        callId: call.callId,
        params: params as Record<string, unknown>,
        touches,
        mutates: definition.does !== "reads",
        memory: call.memory,
        filesystem: base,
        view: call.filesystem
      }
      const run = Effect.matchEffect(definition.handle(params, call), {
        onFailure: (failure): Effect.Effect<Result.ToolResult<V["Type"]>> => described(failure, call),
        onSuccess: ({ message, value }) => Effect.succeed(Result.ok<V["Type"]>(message, value))
      })
      const permitted = Effect.andThen(asked(policies, invocation), wrapped(policies, invocation, run))
      return Effect.map(
        Effect.catch(permitted, (refusal) => described(refusal, call)),
        (result): Outcome<V["Type"]> => ({ result, path: touches[0]?.path })
      )
    }
  })

const longestMessage = 1000

/** A message may be the content of a file. */
const brief = ({ message, ...result }: Result.ToolResult<unknown>): Result.ToolResult<unknown> => ({
  ...result,
  message: message.length > longestMessage ? `${message.length} characters` : message
})

const unfinished = (cause: Cause.Cause<never>): Result.ToolResult<never> =>
  Result.error(Cause.hasInterruptsOnly(cause) ? "The call was interrupted." : "The call ended in a defect of the program.")

/** Runs the call, and tells how it ended. */
const told = <V, R>(
  call: { readonly tool: string; readonly callId: string; readonly params: object },
  run: Effect.Effect<Outcome<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (started) => {
    const tell = Effect.fnUntraced(function* ({ path, result }: Outcome<unknown>) {
      const at = yield* DateTime.now
      const durationMillis = at.epochMilliseconds - started
      yield* (yield* ToolEvents)(eventOf({ ...call, result: brief(result), path, durationMillis, at }))
    })
    const ended = Effect.onExit(run, (exit) => tell(Exit.isSuccess(exit) ? exit.value : { result: unfinished(exit.cause) }))
    return Effect.map(ended, ({ result }) => result)
  })

const running = Effect.fnUntraced(function* <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  memory: Memory,
  callId: string
): Effect.fn.Return<Outcome<V["Type"]>, never, R> {
  const services = yield* Effect.context<never>()
  const base = Context.getOption(services, Filesystem)
  if (Option.isNone(base)) return { result: Result.error(`${noFilesystem.happened} ${noFilesystem.advice}`) }
  const settings = yield* ToolSettings
  const policies = yield* inForce
  const filesystem = viewOf(policies, base.value, memory, definition)
  const call: Call = {
    tool: definition.name,
    filesystem,
    settings,
    memory,
    callId,
    path: ToolPath.make(definition.name, settings, base.value.port.rules?.policy)
  }
  const theirs = policies.reduce((known, policy) => policy.services?.(known, filesystem) ?? known, services)
  return yield* answering(definition, params, call, base.value, policies).pipe(
    Effect.provideContext(
      theirs.pipe(Context.add(Limits, settings.limits), Context.add(Filesystem, filesystem)) as Context.Context<never>
    )
  )
})

/** Runs the tool on decoded arguments. */
export const invoke = <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  options: Options
): Effect.Effect<Result.ToolResult<V["Type"]>, never, R> =>
  Effect.suspend(() => {
    const callId = options.callId ?? randomUUID()
    return told({ tool: definition.name, callId, params }, running(definition, params, options.memory, callId))
  })

/** Of what does not decode, the parameters that the tool has. */
const known = ({ parameters }: AnyDefinition, input: unknown): object =>
  typeof input === "object" && input !== null
    ? Object.fromEntries(Object.entries(input).filter(([name]) => Object.hasOwn(parameters.fields, name)))
    : {}

/** A struct without fields would take anything but null. */
const accepted = ({ parameters }: AnyDefinition): Schema.Codec<Readonly<Record<string, unknown>>, unknown> =>
  Object.keys(parameters.fields as object).length === 0
    ? Schema.Record(Schema.String, Schema.Never)
    : (parameters as unknown as Schema.Codec<Readonly<Record<string, unknown>>, unknown>)

/** Runs the tool on whatever was sent; what does not decode is a result too, that says what is wrong with it. */
export const invokeUnknown = (
  definition: AnyDefinition,
  input: unknown,
  options: Options
): Effect.Effect<Result.ToolResult<unknown>, never, unknown> => {
  const decode = Schema.decodeUnknownEffect(accepted(definition), { onExcessProperty: "error", errors: "all" })
  const sent = withoutNulls(input)
  return Effect.matchEffect(decode(sent), {
    onFailure: (error) =>
      told(
        { tool: definition.name, callId: options.callId ?? randomUUID(), params: known(definition, sent) },
        Effect.succeed({ result: Result.error(undecodable(definition, sent, error)) })
      ),
    onSuccess: (params) => invoke(definition, params, options)
  })
}

/** Models send null for what they leave out, at any depth. */
const withoutNulls = (input: unknown): unknown => (input === undefined || input === null ? {} : stripped(input))

/** No parameter is deeper than that. */
const deepest = 16

const stripped = (value: unknown, depth = 0): unknown =>
  typeof value !== "object" || value === null || depth > deepest
    ? value
    : Array.isArray(value)
      ? value.map((item) => stripped(item, depth + 1))
      : Object.fromEntries(
          Object.entries(value).flatMap(([key, item]) => (item === null ? [] : [[key, stripped(item, depth + 1)]]))
        )
