/**
 * A mock filesystem for tests of code that uses a filesystem. The mock records all calls. A call with a fixed answer returns
 * this answer. All other calls go to a filesystem in memory, or fail.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { isBytes } from "../model/realms.ts"
import * as InMemory from "../backends/InMemory.ts"
import { type Algebra, Filesystem, make as fromBackend } from "../filesystem/Filesystem.ts"
import { type InvalidArgument, type InvalidPath, type PathTooLong, Unavailable } from "../model/FsError.ts"

/**
 * The methods of a filesystem that a mock can answer and record.
 *
 * @since 0.1.0
 */
export type Operations = Omit<Algebra, "root" | "readOnly" | "name" | "port">

/**
 * A recorded call.
 *
 * @since 0.1.0
 */
export interface Call {
  readonly operation: keyof Operations
  /** The first argument of the call if it is a string: the path, or the pattern of a search. */
  readonly path: string | undefined
  /** The last of several arguments, if it is a record. In most calls this record holds the options. */
  readonly options: object | undefined
  readonly arguments: ReadonlyArray<unknown>
}

/**
 * The answers and the initial tree of a mock.
 *
 * @since 0.1.0
 */
export interface Options {
  /** The fixed answers, as functions with the signatures of the methods. */
  readonly answers?: Partial<Operations> | undefined
  /** The behaviour of calls without a fixed answer. With `fail`, such a call fails with Unavailable. @default "memory" */
  readonly otherwise?: "memory" | "fail" | undefined
  /** The initial tree in memory. @default empty */
  readonly tree?: InMemory.Tree | undefined
}

/**
 * A filesystem that returns fixed answers and records every call.
 *
 * @since 0.1.0
 */
export interface Mock {
  readonly filesystem: Algebra
  /** The calls since the start or the last `forget`, in order. */
  readonly calls: ReadonlyArray<Call>
  readonly callsOf: (operation: keyof Operations) => ReadonlyArray<Call>
  readonly forget: Effect.Effect<void>
}

/**
 * The service with the recorded calls. `layer` provides this service together with the filesystem.
 *
 * @category services
 * @since 0.1.0
 */
export class MockFilesystem extends Context.Service<MockFilesystem, Mock>()("fs-algebra/testing/MockFilesystem") {}

const streamOperations: ReadonlySet<string> = new Set(["walk", "globStream", "grepStream", "stream", "lines", "watch"])

/** Returns a failure as the operation's kind of result: an effect, a stream or a sink. */
const failUnanswered = (operation: string, path: string): unknown => {
  const error = new Unavailable({
    operation,
    path,
    detail: "the mock has no fixed answer for this call; add an answer to the option `answers`"
  })
  return operation === "sink" ? Sink.fail(error) : streamOperations.has(operation) ? Stream.fail(error) : Effect.fail(error)
}

type UntypedCall = (...args: ReadonlyArray<unknown>) => unknown

const isOptions = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isBytes(value) && !(value instanceof RegExp)

const callOf = (operation: keyof Operations, args: ReadonlyArray<unknown>): Call => {
  const last = args.length > 1 ? args.at(-1) : undefined
  return {
    operation,
    path: typeof args[0] === "string" ? args[0] : undefined,
    options: isOptions(last) ? last : undefined,
    arguments: args
  }
}

type TreeError = InvalidPath | PathTooLong | InvalidArgument

/** The options without a tree. Creating a mock with these options cannot fail. */
type OptionsWithoutTree = Omit<Options, "tree"> & { readonly tree?: undefined }

const mock = (memory: Algebra, options: Options): Mock => {
  const answers: Readonly<Record<string, unknown>> = { ...options.answers }
  const calls: Array<Call> = []
  const filesystem: Record<string, unknown> = { ...memory }
  for (const [key, original] of Object.entries(memory)) {
    if (typeof original !== "function") continue
    const operation = key as keyof Operations
    filesystem[key] = (...args: ReadonlyArray<unknown>): unknown => {
      const call = callOf(operation, args)
      calls.push(call)
      const answer = answers[key]
      if (answer !== undefined) return (answer as UntypedCall)(...args)
      return options.otherwise === "fail" ? failUnanswered(operation, call.path ?? "") : (original as UntypedCall)(...args)
    }
  }
  return {
    filesystem: filesystem as unknown as Algebra,
    calls,
    callsOf: (operation) => calls.filter((call) => call.operation === operation),
    forget: Effect.sync(() => void calls.splice(0))
  }
}

/**
 * Returns a new mock. Fails if `tree` is invalid.
 *
 * @example
 * ```ts
 * const mock = yield* MockFilesystem.make({ answers: { exists: () => Effect.succeed(true) } })
 * yield* mock.filesystem.exists("missing.md") // => true
 * mock.calls.map(({ operation, path }) => `${operation} ${path}`) // => ["exists missing.md"]
 * ```
 * @category constructors
 * @since 0.1.0
 */
export function make(options?: OptionsWithoutTree): Effect.Effect<Mock>
export function make(options: Options): Effect.Effect<Mock, InvalidPath | PathTooLong | InvalidArgument>
export function make(options: Options = {}): Effect.Effect<Mock, TreeError> {
  return Effect.map(InMemory.make({ tree: options.tree }), (port) => mock(fromBackend(port), options))
}

/**
 * Provides the mock as the filesystem of a program, together with its recorded calls.
 *
 * @category layers
 * @since 0.1.0
 */
export function layer(options?: OptionsWithoutTree): Layer.Layer<Filesystem | MockFilesystem>
export function layer(options: Options): Layer.Layer<Filesystem | MockFilesystem, InvalidPath | PathTooLong | InvalidArgument>
export function layer(options: Options = {}): Layer.Layer<Filesystem | MockFilesystem, TreeError> {
  return Layer.effectContext(
    Effect.map(make(options), (mock) => Context.make(Filesystem, mock.filesystem).pipe(Context.add(MockFilesystem, mock)))
  )
}
