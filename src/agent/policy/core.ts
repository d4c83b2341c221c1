/** Defines policies and stores each under a separate key in the context, so that no policy replaces another. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { ToolResult } from "../ToolResult.ts"
import { type AnyDefinition, type Refused, refused, type Touch } from "../definition.ts"
import type { Memory } from "../memory.ts"

const deadlineRefusal = (at: DateTime.Utc): Refused =>
  refused(
    `The deadline for tool calls has passed (${DateTime.formatIso(at)}).`,
    "Call no more tools; answer with what you know."
  )

const remainingMillis = (at: DateTime.Utc): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (now) => at.epochMilliseconds - now)

export const checkDeadline = (at: DateTime.Utc): Effect.Effect<void, Refused> =>
  Effect.flatMap(remainingMillis(at), (millis) => (millis > 0 ? Effect.void : Effect.fail(deadlineRefusal(at))))

export const interruptAt = <A, E, R>(at: DateTime.Utc, self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Refused, R> =>
  Effect.flatMap(remainingMillis(at), (duration) =>
    duration > 0
      ? Effect.timeoutOrElse(self, { duration, orElse: () => Effect.fail(deadlineRefusal(at)) })
      : Effect.fail<Refused>(deadlineRefusal(at))
  )

/**
 * A decoded call, as policies receive it, with the normalised paths that it touches.
 *
 * @since 0.1.0
 */
export interface Invocation {
  readonly tool: string
  readonly callId: string
  /** The decoded parameters, under the names that the model sends. */
  readonly params: Readonly<Record<string, unknown>>
  readonly touches: ReadonlyArray<Touch>
  readonly mutates: boolean
  /** The call's use of snapshots. Only this package's snapshot tools have this property. */
  readonly past?: AnyDefinition["past"]
  /** The file versions that this session has seen. */
  readonly memory: Memory
  /** The filesystem without any policy. */
  readonly filesystem: Algebra
  /** The filesystem with all policies applied, as the tool sees it. */
  readonly view: Algebra
}

/**
 * The properties of a tool that do not depend on a call.
 *
 * @since 0.1.0
 */
export type ToolKind = Pick<AnyDefinition, "name" | "does" | "past">

/**
 * A rule for tools and their calls. Every property except `name` is optional. An omitted property changes nothing.
 *
 * @since 0.1.0
 */
export interface Policy {
  readonly name: string
  /** Returns the filesystem for the tools, made from `self`. Every `guard` wraps the result. */
  readonly filesystem?: ((self: Algebra, memory: Memory) => Algebra) | undefined
  /** Returns a filesystem that guards some operations of `self`. `self` is the result of all `filesystem` properties. */
  readonly guard?: ((self: Algebra, memory: Memory, tool: ToolKind) => Algebra) | undefined
  /** Replaces services through which a tool could bypass the policy. `view` is the filesystem of the tools. */
  readonly services?: ((services: Context.Context<never>, view: Algebra) => Context.Context<never>) | undefined
  /** Refuses the call by failing, or allows it. */
  readonly before?: ((invocation: Invocation) => Effect.Effect<void, Refused>) | undefined
  /**
   * The order in which `before` of this policy runs, relative to all other policies. Among equals, the newest policy runs first.
   * @default after all "first" and before all "last"
   */
  readonly asked?: "first" | "last" | undefined
  /** Wraps the handler. A failed call succeeds with a result whose `success` is false. */
  readonly around?:
    | (<V, R>(invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) => Effect.Effect<ToolResult<V>, never, R>)
    | undefined
  /** Tests whether lists of tools include the tool. @default always true */
  readonly offers?: ((tool: ToolKind) => boolean) | undefined
}

/**
 * Policies that are provided as a value. Policies from layers apply in addition.
 *
 * @since 0.1.0
 */
export const Policies: Context.Reference<ReadonlyArray<Policy>> = Context.Reference<ReadonlyArray<Policy>>(
  "fs-algebra/Policies",
  {
    defaultValue: () => []
  }
)

const prefix = "fs-algebra/Policy/"
let layerCount = 0

/**
 * Adds a policy to the policies in force. Policy layers may be provided one after another or merged, in any order.
 *
 * @category constructors
 * @since 0.1.0
 */
export const layer = <E = never, R = never>(policy: Policy | Effect.Effect<Policy, E, R>): Layer.Layer<never, E, R> => {
  const key = Context.Service<Policy>(`${prefix}${String(layerCount++).padStart(12, "0")}`)
  return Layer.effect(key, Effect.isEffect(policy) ? policy : Effect.succeed(policy)) as Layer.Layer<never, E, R>
}

/**
 * All policies in force in the current context, oldest first.
 *
 * @since 0.1.0
 */
export const inForce: Effect.Effect<ReadonlyArray<Policy>> = Effect.flatMap(Policies, (given) =>
  Effect.map(Effect.context<never>(), ({ mapUnsafe }) => {
    const keys = [...mapUnsafe.keys()].filter((key) => key.startsWith(prefix)).sort()
    return [...given, ...keys.map((key) => mapUnsafe.get(key) as Policy)]
  })
)

/** Merges two contexts. Services of the second context win, except that the policies of both contexts are kept. */
export const mergeContexts = (first: Context.Context<never>, second: Context.Context<never>): Context.Context<never> => {
  const both = Context.merge(first, second)
  const given = new Set([...Context.get(first, Policies), ...Context.get(second, Policies)])
  return given.size === 0 ? both : Context.add(both, Policies, [...given])
}

/**
 * A test of whether the policies in force offer a tool. Lists of tools omit a tool that is not offered.
 *
 * @since 0.1.0
 */
export const offered: Effect.Effect<(tool: ToolKind) => boolean> = Effect.map(
  inForce,
  (policies) => (tool) => policies.every((policy) => policy.offers?.(tool) ?? true)
)
