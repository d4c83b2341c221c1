/**
 * Custom tools, in addition to the tools of the kits. Policies, toolkits, prompts and servers all read the definition that
 * `make` returns.
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

/** The options that only this package's own tools may set. */
type InternalOptions = "past"

/**
 * The properties of a definition, of which some have defaults.
 *
 * @since 0.1.0
 */
export interface Options<Name extends string, Params extends Schema.Struct.Fields, Value extends Schema.Top, R> extends Omit<
  Definition<Name, Params, Value, R>,
  Defaulted | InternalOptions
> {
  /** @default none */
  readonly parameters?: Schema.Struct<Params> | undefined
  /** The effect of the tool on files. @default "changes", which policies restrict most */
  readonly does?: "reads" | "adds" | "changes" | undefined
  /** @default false */
  readonly idempotent?: boolean | undefined
  /** True if calls without a filesystem are refused. @default true if `touches` is given */
  readonly needsFilesystem?: boolean | undefined
  /**
   * Example arguments, in the form that a model sends. At least one example is required if the tool has mandatory parameters.
   * @default one example without arguments
   */
  readonly examples?: ReadonlyArray<Schema.Struct<Params>["Encoded"]> | undefined
  /**
   * Returns the paths that a call touches, as far as its arguments show. Policies also check every operation on the filesystem.
   * @default none; policies then judge only the operations on the filesystem
   */
  readonly touches?: Definition<Name, Params, Value, R>["touches"] | undefined
}

/**
 * Makes a tool. Throws if the name, the description or an example is invalid, because this is a programming error.
 *
 * @example
 * ```ts
 * const countWords = Tool.make({
 *   name: "count_words",
 *   description: "Counts the words of a text.",
 *   parameters: Schema.Struct({ text: Schema.String }),
 *   value: Schema.Int,
 *   examples: [{ text: "two words" }],
 *   handle: ({ text }) => Effect.succeed({ message: "Counted.", value: text.split(" ").length })
 * })
 * countWords.name // => "count_words"
 * ```
 * @category constructors
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
