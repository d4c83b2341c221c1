/**
 * What tools may do, as layers over a toolkit's: each sees the decoded call before it runs, and may give the tools a filesystem that
 * refuses. What is provided last is asked first.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Refused, Touch } from "./definition.ts"
import type { Memory } from "./memory.ts"
import type { ToolResult } from "./ToolResult.ts"

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
  /** What this session has seen. */
  readonly memory: Memory
  /** As it is below all policies. */
  readonly filesystem: Algebra
}

/** @since 0.1.0 */
export interface Policy {
  readonly name: string
  /** What the tools work on instead. */
  readonly filesystem?: ((self: Algebra, memory: Memory) => Algebra) | undefined
  /** Refuses the call, or lets it pass. */
  readonly before?: ((invocation: Invocation) => Effect.Effect<void, Refused>) | undefined
  /** Around the handler; an answer whose `success` is false is a failure too. */
  readonly around?:
    | (<V, R>(invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) => Effect.Effect<ToolResult<V>, never, R>)
    | undefined
}

/** @since 0.1.0 */
export const Policies: Context.Reference<ReadonlyArray<Policy>> = Context.Reference<ReadonlyArray<Policy>>(
  "fs-algebra/Policies",
  {
    defaultValue: () => []
  }
)

/**
 * One more policy, beside those that are there.
 *
 * @since 0.1.0
 */
export const layer = <E, R>(policy: Policy | Effect.Effect<Policy, E, R>): Layer.Layer<never, E, R> =>
  Layer.effect(
    Policies,
    Effect.gen(function* () {
      const others = yield* Policies
      return [...others, Effect.isEffect(policy) ? yield* policy : policy]
    })
  ) as Layer.Layer<never, E, R>
