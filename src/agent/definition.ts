/**
 * A tool as data: what it is called and takes, what it may touch, and the program that does it. Toolkits, the MCP server and policies
 * all read the same definition.
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { ArchiveError, SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import type { FsError, InvalidArgument, InvalidPath, PathTooLong, Unsupported } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { Memory } from "./memory.ts"
import type { ToolSettingsShape } from "./ToolSettings.ts"

/** What is done to a path: looked at, made or changed, removed. A move removes here and writes there. */
export type Access = "read" | "write" | "delete"

/** A path that a call will read, write or delete. */
export interface Touch {
  readonly access: Access
  readonly path: FsPath
}

/** What no error of the filesystem can say: `happened` in one sentence, `advice` on what to do next in another. */
export interface Refused {
  readonly _tag: "Refused"
  readonly happened: string
  readonly advice: string
}

/** A refusal, in the words that a model reads: what happened, and what to do instead. */
export const refused = (happened: string, advice: string): Refused => ({ _tag: "Refused", happened, advice })

export type ToolFailure = FsError | Unsupported | SnapshotError | SnapshotRestoreError | ArchiveError | SessionError | Refused

/** What a handler has in its hands. */
export interface Call {
  readonly tool: string
  /** As policies let it be seen and changed. In a run of a prompt: that of the tool's section, else of the prompt. */
  readonly filesystem: Algebra
  readonly settings: ToolSettingsShape
  readonly memory: Memory
  readonly callId: string
  /** Returns the text of an answer that counts against the budget: the message, and the value where that is sent too. */
  readonly sent: (message: string, value: () => object) => string
  /** A path as a model writes it: trimmed, without the mount point and leading slashes. Blank is the root, or fails without `blank`. */
  readonly path: (
    input: string,
    options?: { readonly argument?: string | undefined; readonly blank?: "root" | undefined }
  ) => Effect.Effect<FsPath, InvalidArgument | InvalidPath | PathTooLong>
}

export interface Answer<Value> {
  readonly message: string
  readonly value: Value
}

export interface Image {
  /** As in `image/png`. */
  readonly mediaType: string
  readonly base64: string
}

/** A file that is sent beside a message, where that is possible. */
export interface Attachment {
  /** The path of the file, relative to the root. */
  readonly path: string
  readonly mediaType: string
  readonly base64: string
  /** The message beside it, which need not hold the bytes once more. */
  readonly message: string
}

/** A tool: its name, what a model is told of it, its parameters, and what it does. */
export interface Definition<Name extends string, Params extends Schema.Struct.Fields, Value extends Schema.Top, R> {
  readonly name: Name
  /** 1 to 200 printable characters. */
  readonly description: string
  readonly parameters: Schema.Struct<Params>
  readonly value: Value
  /** `reads` changes nothing; `adds` destroys nothing; `changes` may. */
  readonly does: "reads" | "adds" | "changes"
  /** Whether doing it again does nothing more. */
  readonly idempotent: boolean
  /** A tool that needs none works without one; whatever it does on `Call.filesystem` then fails Unavailable. @default true */
  readonly needsFilesystem?: boolean | undefined
  /**
   * What it does with snapshots, which policies hold to their rules by themselves. Only our own tools say so: by a name alone no tool is
   * let past anything.
   */
  readonly past?: "keeps" | "restores" | "shows" | undefined
  /** Arguments as a model sends them; each must decode. At least one. */
  readonly examples: ReadonlyArray<Schema.Struct<Params>["Encoded"]>
  /** What the call may touch, for policies. An argument that is no path fails the call. */
  readonly touches: (params: Schema.Struct<Params>["Type"], call: Call) => Effect.Effect<ReadonlyArray<Touch>, ToolFailure>
  readonly handle: (params: Schema.Struct<Params>["Type"], call: Call) => Effect.Effect<Answer<Value["Type"]>, ToolFailure, R>
  /** What of the value a model should see, not read. */
  readonly images?: (value: Value["Type"]) => ReadonlyArray<Image>
  /** Returns the file that an MCP server sends as an embedded resource, given the value and the message. */
  readonly attachment?: (value: Value["Type"], message: string) => Attachment | undefined
}

/** Any tool whose handler needs no services but `R`; for tables. `AnyDefinition<unknown>` is any tool at all. */
// oxlint-disable-next-line typescript/no-explicit-any -- variance: handlers take what their own schema decodes
export type AnyDefinition<R = never> = Definition<string, any, any, R>

/** The services that the handler of a tool needs. */
export type Requirements<T extends AnyDefinition<unknown>> = Effect.Services<ReturnType<T["handle"]>>

const namePattern = /^[a-z][a-z0-9_-]{0,63}$/

export const nameRule = 'a name has 1 to 64 of lower case, digits, "_" and "-", beginning with a letter'

/** Tells whether a tool may be called this; a definition that was not made by `define` may have any name. */
export const isName = (name: unknown): name is string => typeof name === "string" && namePattern.test(name)

// oxlint-disable-next-line no-control-regex
const printable = /^[^\u0000-\u001f\u007f-\u009f]{1,200}$/u

const wrongExample = (tool: string, example: unknown, error: unknown): Error => {
  const why = error instanceof Error ? error.message.replace(/\s*\n\s*/g, " ") : String(error)
  const message = `${tool} does not take the example ${JSON.stringify(example)}: ${why}; give examples that its parameters take`
  return new Error(message, { cause: error })
}

/** Dies where the definition breaks the rules above: that is a mistake of the programmer. */
export const define = <const Name extends string, Params extends Schema.Struct.Fields, Value extends Schema.Top, R = never>(
  definition: Definition<Name, Params, Value, R>
): Definition<Name, Params, Value, R> => {
  const { description, examples, name, parameters } = definition
  if (!isName(name)) throw new Error(`${JSON.stringify(name)} is no name of a tool`)
  if (!printable.test(description)) throw new Error(`the description of ${name} must have 1 to 200 printable characters`)
  if (examples.length === 0) throw new Error(`${name} has no example`)
  const decode = Schema.decodeUnknownSync(parameters as unknown as Schema.Codec<unknown>, { onExcessProperty: "error" })
  for (const example of examples) {
    try {
      decode(example)
    } catch (error) {
      throw wrongExample(name, example, error)
    }
  }
  return definition
}
