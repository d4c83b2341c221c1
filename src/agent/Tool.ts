/**
 * Tools of one's own, beside those of the kits: what is said of one here is what policies, toolkits, prompts and servers go by.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { define, type Definition } from "./definition.ts"

export {
  /** @since 0.1.0 */
  type Access,
  /** @since 0.1.0 */
  type AnyDefinition,
  /** @since 0.1.0 */
  type Call,
  /** @since 0.1.0 */
  type Definition,
  /** @since 0.1.0 */
  refused,
  /** @since 0.1.0 */
  type Requirements,
  /** @since 0.1.0 */
  type Touch
} from "./definition.ts"

type Defaulted = "parameters" | "does" | "idempotent" | "needsFilesystem" | "examples" | "touches"

/** What only our own tools say of themselves. */
type Ours = "past"

/**
 * A definition of which only what has to be is said.
 *
 * @since 0.1.0
 */
export interface Options<Name extends string, Params extends Schema.Struct.Fields, Value extends Schema.Top, R> extends Omit<
  Definition<Name, Params, Value, R>,
  Defaulted | Ours
> {
  /** @default none */
  readonly parameters?: Schema.Struct<Params> | undefined
  /** @default "changes", which is what policies are strictest with */
  readonly does?: "reads" | "adds" | "changes" | undefined
  /** @default false */
  readonly idempotent?: boolean | undefined
  /** Refuses calls where there is no filesystem. @default true for a tool that says what it `touches` */
  readonly needsFilesystem?: boolean | undefined
  /** Needed where there are parameters that cannot be left out. @default one without arguments */
  readonly examples?: ReadonlyArray<Schema.Struct<Params>["Encoded"]> | undefined
  /** @default nothing by its arguments; what it does to the filesystem is judged there all the same */
  readonly touches?: Definition<Name, Params, Value, R>["touches"] | undefined
}

/**
 * Dies where a name, a description or an example cannot be one: that is a mistake of the programmer.
 *
 * @since 0.1.0
 */
export const make = <const Name extends string, Value extends Schema.Top, Params extends Schema.Struct.Fields = {}, R = never>(
  options: Options<Name, Params, Value, R>
): Definition<Name, Params, Value, R> =>
  define({
    ...options,
    past: undefined,
    parameters: options.parameters ?? (Schema.Struct({}) as unknown as Schema.Struct<Params>),
    does: options.does ?? "changes",
    idempotent: options.idempotent ?? false,
    needsFilesystem: options.needsFilesystem ?? options.touches !== undefined,
    examples: options.examples ?? [{} as Schema.Struct<Params>["Encoded"]],
    touches: options.touches ?? (() => Effect.succeed([]))
  })
