import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import type { FsError, InvalidArgument, InvalidPath, PathTooLong, Unsupported } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { SessionError } from "../model/sessionError.ts"
import * as Result from "./ToolResult.ts"
import type { ToolSettingsShape } from "./ToolSettings.ts"
import type { Memory } from "./memory.ts"

export interface Progress {
  readonly done: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export const ToolProgress: Context.Reference<((progress: Progress) => Effect.Effect<void>) | undefined> = Context.Reference<
  ((progress: Progress) => Effect.Effect<void>) | undefined
>("fs-algebra/ToolProgress", { defaultValue: () => undefined })

/** The kind of access to a path. "write" creates or changes an entry. A move deletes its source and writes its destination. */
export type Access = "read" | "write" | "delete"

/** A path that a call may read, write or delete. */
export interface Touch {
  readonly access: Access
  readonly path: FsPath
}

export interface Refused {
  readonly _tag: "Refused"
  readonly happened: string
  readonly advice: string
}

/** Makes a refusal. The arguments tell the model what happened and what to do instead. */
export const refused = (happened: string, advice: string): Refused => ({ _tag: "Refused", happened, advice })

/** Returns a refusal as the result of the call. */
export const resultOfRefusal = ({ advice, happened }: Refused): Result.ToolResult<never> =>
  Result.error(`${happened} ${advice}`)

export type ToolFailure = FsError | Unsupported | SnapshotError | SnapshotRestoreError | ArchiveError | SessionError | Refused

/** The context in which a handler runs. */
export interface Call {
  readonly tool: string
  /**
   * The filesystem, with the policies applied. In the run of a prompt, it is the filesystem of the tool's section or, if the
   * section has none, of the prompt.
   */
  readonly filesystem: Algebra
  readonly settings: ToolSettingsShape
  readonly memory: Memory
  readonly callId: string
  readonly sent: (message: string, value: () => object) => string
  /**
   * Parses a path in the form that a model writes: trims blanks, and removes the mount point and leading slashes. If `blank` is
   * "root", a blank path means the root; otherwise a blank path fails.
   */
  readonly path: (
    input: string,
    options?: { readonly argument?: string | undefined; readonly blank?: "root" | undefined }
  ) => Effect.Effect<FsPath, InvalidArgument | InvalidPath | PathTooLong>
}

/** Returns the touches of a tool that accesses only the path in its parameter `path`. */
export const touching =
  (access: Access, options?: Parameters<Call["path"]>[1]) =>
  ({ path = "" }: { readonly path?: string | undefined }, call: Call): Effect.Effect<ReadonlyArray<Touch>, ToolFailure> =>
    Effect.map(call.path(path, options), (path) => [{ access, path }])

export interface Answer<Value> {
  readonly message: string
  readonly value: Value
}

export interface Image {
  readonly mediaType: string
  readonly base64: string
}

export interface Attachment {
  readonly path: string
  readonly mediaType: string
  readonly base64: string
  readonly message: string
}

/** A tool: its name, its description for a model, its parameters, and its handler. */
export interface Definition<Name extends string, Params extends Schema.Struct.Fields, Value extends Schema.Top, R> {
  readonly name: Name
  /** The description for a model: 1 to 200 printable characters on one line. */
  readonly description: string
  readonly parameters: Schema.Struct<Params>
  readonly value: Value
  /**
   * The tool's effect on files. `reads` changes nothing, `adds` only creates entries, and `changes` may also replace or remove
   * them.
   */
  readonly does: "reads" | "adds" | "changes"
  readonly idempotent: boolean
  /**
   * True if calls without a filesystem are refused. If false, the tool runs without a filesystem, and every operation on
   * `Call.filesystem` fails with Unavailable. @default true
   */
  readonly needsFilesystem?: boolean | undefined
  /**
   * The tool's use of snapshots, for which policies have separate rules. Only tools of this package may set `past`, so that no
   * other tool can evade a policy.
   */
  readonly past?: "keeps" | "restores" | "shows" | undefined
  /** Example arguments, in the form that a model sends. At least one example is required, and every example must decode. */
  readonly examples: ReadonlyArray<Schema.Struct<Params>["Encoded"]>
  /** Returns the paths that the call may touch, for policies. If an argument is not a valid path, the call fails. */
  readonly touches: (params: Schema.Struct<Params>["Type"], call: Call) => Effect.Effect<ReadonlyArray<Touch>, ToolFailure>
  readonly handle: (params: Schema.Struct<Params>["Type"], call: Call) => Effect.Effect<Answer<Value["Type"]>, ToolFailure, R>
  /** Returns the images of the value. A model sees these images as images and not as text. */
  readonly images?: (value: Value["Type"]) => ReadonlyArray<Image>
  /** Returns the file that an MCP server embeds in the result as a resource. Takes the value and the message of the result. */
  readonly attachment?: (value: Value["Type"], message: string) => Attachment | undefined
}

/**
 * A tool with any name, parameters and value, whose handler needs at most the services `R`. `AnyDefinition<unknown>` is any
 * tool.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- variance: handlers take what their own schema decodes
export type AnyDefinition<R = never> = Definition<string, any, any, R>

/** The services that the handler of a tool needs. */
export type Requirements<T extends AnyDefinition<unknown>> = Effect.Services<ReturnType<T["handle"]>>

export const optional = <S extends Schema.Top>(schema: S, description: string) =>
  Schema.optionalKey(schema.annotate({ description }))

const namePattern = /^[a-z][a-z0-9_-]{0,63}$/

export const nameRule = 'a name has 1 to 64 lower-case letters, digits, "_" and "-", and begins with a letter'

/** Tests whether a tool may have this name. A definition that `define` did not make may have an invalid name. */
export const isName = (name: unknown): name is string => typeof name === "string" && namePattern.test(name)

// oxlint-disable-next-line no-control-regex
const descriptionPattern = /^[^\u0000-\u001f\u007f-\u009f]{1,200}$/u

const exampleError = (tool: string, example: unknown, error: unknown): Error => {
  const why = error instanceof Error ? error.message.replace(/\s*\n\s*/g, " ") : String(error)
  const message = `${tool} does not accept the example ${JSON.stringify(example)}: ${why}; give examples that match its parameters`
  return new Error(message, { cause: error })
}

/**
 * Checks the name, the description and the examples of a definition. Throws if one of them is invalid, because this is a
 * programming error.
 */
export const define = <const Name extends string, Params extends Schema.Struct.Fields, Value extends Schema.Top, R = never>(
  definition: Definition<Name, Params, Value, R>
): Definition<Name, Params, Value, R> => {
  const { description, examples, name, parameters } = definition
  if (!isName(name)) throw new Error(`${JSON.stringify(name)} is not a valid tool name: ${nameRule}`)
  if (!descriptionPattern.test(description))
    throw new Error(`the description of ${name} must have 1 to 200 printable characters`)
  if (examples.length === 0) throw new Error(`the tool ${name} must have at least one example`)
  const decode = Schema.decodeUnknownSync(parameters as unknown as Schema.Codec<unknown>, { onExcessProperty: "error" })
  for (const example of examples) {
    try {
      decode(example)
    } catch (error) {
      throw exampleError(name, example, error)
    }
  }
  return definition
}
