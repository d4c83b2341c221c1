/**
 * From arguments to a result, the same way for every tool and whoever asks: decode, ask the policies, run, and say what happened. A
 * failure is a result; only a defect of the program and an interruption are none.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
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
import { type Invocation, Policies, type Policy } from "./Policy.ts"
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

const noFilesystem = refused("No filesystem available.", "Provide a layer of fs-algebra's Filesystem to the tools.")

const viewOf = (policies: ReadonlyArray<Policy>, base: Algebra, memory: Memory): Algebra =>
  policies.reduce((self, policy) => policy.filesystem?.(self, memory) ?? self, base)

const asked = (policies: ReadonlyArray<Policy>, invocation: Invocation) =>
  Effect.forEach([...policies].reverse(), (policy) => policy.before?.(invocation) ?? Effect.void, { discard: true })

const wrapped = <V, R>(
  policies: ReadonlyArray<Policy>,
  invocation: Invocation,
  run: Effect.Effect<Result.ToolResult<V>, never, R>
): Effect.Effect<Result.ToolResult<V>, never, R> =>
  policies.reduce((inner, policy) => policy.around?.(invocation, inner) ?? inner, run)

const answering = Effect.fnUntraced(function* <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  call: Call,
  base: Algebra,
  policies: ReadonlyArray<Policy>
): Effect.fn.Return<{ readonly result: Result.ToolResult<V["Type"]>; readonly path?: string }, ToolFailure, R> {
  const touches = yield* definition.touches(params, call)
  const invocation: Invocation = {
    tool: definition.name,
    callId: call.callId,
    params: params as Record<string, unknown>,
    touches,
    mutates: definition.does !== "reads",
    memory: call.memory,
    filesystem: base
  }
  yield* asked(policies, invocation)
  const run = definition.handle(params, call).pipe(
    Effect.map(({ message, value }) => Result.ok<V["Type"]>(message, value)),
    Effect.catch((failure) => Effect.map(describe(failure, call), Result.error))
  )
  const result = yield* wrapped(policies, invocation, run)
  return { result, ...(touches[0] !== undefined && { path: touches[0].path }) }
})

/** Runs the tool on decoded arguments. */
export const invoke = Effect.fnUntraced(function* <N extends string, P extends Schema.Struct.Fields, V extends Schema.Top, R>(
  definition: Definition<N, P, V, R>,
  params: Schema.Struct<P>["Type"],
  options: Options
): Effect.fn.Return<Result.ToolResult<V["Type"]>, never, R> {
  const settings = yield* ToolSettings
  const policies = yield* Policies
  const callId = options.callId ?? randomUUID()
  const started = yield* Clock.currentTimeMillis
  const base = yield* Effect.serviceOption(Filesystem)
  if (Option.isNone(base)) return Result.error(`${noFilesystem.happened} ${noFilesystem.advice}`)
  const filesystem = viewOf(policies, base.value, options.memory)
  const call: Call = {
    tool: definition.name,
    filesystem,
    settings,
    memory: options.memory,
    callId,
    path: ToolPath.make(definition.name, settings, base.value.port.rules?.policy)
  }
  const { path, result } = yield* answering(definition, params, call, base.value, policies).pipe(
    Effect.catch((failure) =>
      Effect.map(describe(failure, call), (message) => ({ result: Result.error(message), path: undefined }))
    ),
    Effect.provideContext(
      Context.make(Limits, settings.limits).pipe(Context.add(Filesystem, filesystem)) as Context.Context<never>
    )
  )
  const at = yield* DateTime.now
  const durationMillis = (yield* Clock.currentTimeMillis) - started
  yield* (yield* ToolEvents)(eventOf({ tool: definition.name, callId, params, result, path, durationMillis, at }))
  return result
})

/** Runs the tool on whatever was sent; what does not decode is a result too, that says what is wrong with it. */
export const invokeUnknown = (
  definition: AnyDefinition,
  input: unknown,
  options: Options
): Effect.Effect<Result.ToolResult<unknown>, never, unknown> => {
  const decode = Schema.decodeUnknownEffect(
    definition.parameters as unknown as Schema.Codec<Record<string, unknown>, unknown>,
    {
      onExcessProperty: "error",
      errors: "all"
    }
  )
  return Effect.matchEffect(decode(withoutNulls(input)), {
    onFailure: (error) => Effect.succeed(Result.error(undecodable(definition, input, error))),
    onSuccess: (params) => invoke(definition, params, options)
  })
}

/** Models send null for what they leave out. */
const withoutNulls = (input: unknown): unknown =>
  typeof input === "object" && input !== null && !Array.isArray(input)
    ? Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null))
    : (input ?? {})
