/** What a policy is, and which are in force: each has a key of its own in the context, so that none can take the place of another. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { AnyDefinition, Refused, Touch } from "../definition.ts"
import type { Memory } from "../memory.ts"
import type { ToolResult } from "../ToolResult.ts"

/**
 * A call as policies see it: decoded, with its paths normalised.
 *
 * @since 0.1.0
 */
export interface Invocation {
  readonly tool: string
  readonly callId: string
  /** As decoded, in the names of the wire. */
  readonly params: Readonly<Record<string, unknown>>
  readonly touches: ReadonlyArray<Touch>
  /** Whether the tool may change anything. */
  readonly mutates: boolean
  /** What it does with snapshots, if it is one of our tools for these. */
  readonly past?: AnyDefinition["past"]
  /** What this session has seen. */
  readonly memory: Memory
  /** As it is below all policies. */
  readonly filesystem: Algebra
  /** As the tool sees it, with all policies around it. */
  readonly view: Algebra
}

/**
 * What is known of a tool without a call of it.
 *
 * @since 0.1.0
 */
export type ToolKind = Pick<AnyDefinition, "name" | "does" | "past">

/**
 * What tools may do. Every part is optional; a part that is there is asked for every call.
 *
 * @since 0.1.0
 */
export interface Policy {
  readonly name: string
  /** What the tools work on instead: a filesystem made anew, below every `guard`. */
  readonly filesystem?: ((self: Algebra, memory: Memory) => Algebra) | undefined
  /** The same for single operations of it, around what every `filesystem` has made. */
  readonly guard?: ((self: Algebra, memory: Memory, tool: ToolKind) => Algebra) | undefined
  /** What else the tools get from the context, where it would lead past the policy. `view` is what they work on. */
  readonly services?: ((services: Context.Context<never>, view: Algebra) => Context.Context<never>) | undefined
  /** Refuses the call, or lets it pass. */
  readonly before?: ((invocation: Invocation) => Effect.Effect<void, Refused>) | undefined
  /** Whether `before` is asked before or after those of the others. @default between them, the newest policy first */
  readonly asked?: "first" | "last" | undefined
  /** Around the handler; an answer whose `success` is false is a failure too. */
  readonly around?:
    | (<V, R>(invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) => Effect.Effect<ToolResult<V>, never, R>)
    | undefined
  /** Whether a tool stands in lists of tools at all. @default it does */
  readonly offers?: ((tool: ToolKind) => boolean) | undefined
}

/**
 * Policies given as a value; those that come as layers are in force beside them.
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
let made = 0

/**
 * One more policy, beside those that are there: layers of policies may be provided one after another or merged, in any order.
 *
 * @since 0.1.0
 */
export const layer = <E = never, R = never>(policy: Policy | Effect.Effect<Policy, E, R>): Layer.Layer<never, E, R> => {
  const key = Context.Service<Policy>(`${prefix}${String(made++).padStart(12, "0")}`)
  return Layer.effect(key, Effect.isEffect(policy) ? policy : Effect.succeed(policy)) as Layer.Layer<never, E, R>
}

/**
 * All that are in force here, the oldest first.
 *
 * @since 0.1.0
 */
export const inForce: Effect.Effect<ReadonlyArray<Policy>> = Effect.flatMap(Policies, (given) =>
  Effect.map(Effect.context<never>(), ({ mapUnsafe }) => {
    const keys = [...mapUnsafe.keys()].filter((key) => key.startsWith(prefix)).sort()
    return [...given, ...keys.map((key) => mapUnsafe.get(key) as Policy)]
  })
)

/** The second over the first, but no policy in the place of another. */
export const together = (first: Context.Context<never>, second: Context.Context<never>): Context.Context<never> => {
  const both = Context.merge(first, second)
  const given = new Set([...Context.get(first, Policies), ...Context.get(second, Policies)])
  return given.size === 0 ? both : Context.add(both, Policies, [...given])
}

/**
 * Which tools may stand in a list, by the policies in force. What does not is refused too when it is called.
 *
 * @since 0.1.0
 */
export const offered: Effect.Effect<(tool: ToolKind) => boolean> = Effect.map(
  inForce,
  (policies) => (tool) => policies.every((policy) => policy.offers?.(tool) ?? true)
)
