/**
 * Structured tools and a file store for LangChain (npm package `@langchain/core`). The classes of the package are parameters, so
 * that this module loads without it.
 *
 * @since 0.1.0
 */
import type { BaseStore } from "@langchain/core/stores"
import type { DynamicStructuredTool } from "@langchain/core/tools"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AnyDefinition, Requirements } from "../agent/definition.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import * as FsPath from "../model/FsPath.ts"
import type { AdapterSupport } from "./support.ts"
import { runner } from "./run.ts"
import { type BoundTool, chooseAndBind, type Output, type ToolOptions } from "./toolCalls.ts"

export type {
  /** @since 0.1.0 */
  Output,
  /** @since 0.1.0 */
  ToolOptions
} from "./toolCalls.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "LangChain",
  package: "@langchain/core",
  version: "1.4.0",
  maps: [
    "`StructuredTool`s with JSON schemas, whose results are content and artifact",
    "images of a result as content blocks",
    "abort signals and tool call ids",
    "`BaseStore<string, Uint8Array>`, whose keys are the paths of files"
  ],
  missing: [
    "keys that are not paths of files, such as a key below another key",
    "events while a tool runs",
    "policies for the store: policies apply only to tools"
  ]
}

type ToolClass = typeof DynamicStructuredTool
type Schema = BoundTool["inputSchema"]

/**
 * A structured tool that runs on a filesystem. Its artifact is the whole result.
 *
 * @since 0.1.0
 */
export type FileTool = DynamicStructuredTool<Schema, unknown, unknown, [Content, Output]>

/**
 * The content of a tool message: a text, or blocks if there are images.
 *
 * @since 0.1.0
 */
export type Content =
  | string
  | ReadonlyArray<
      | { readonly type: "text"; readonly text: string }
      | { readonly type: "image"; readonly mimeType: string; readonly data: string }
    >

const contentOf = ({ images = [], message }: Output): Content =>
  images.length === 0
    ? message
    : [
        { type: "text", text: message },
        ...images.map(({ base64, mediaType }) => ({ type: "image" as const, mimeType: mediaType, data: base64 }))
      ]

interface Config {
  readonly signal?: AbortSignal
  readonly toolCall?: { readonly id?: string }
}

/**
 * Makes the tools of one session. The tools use the services of this effect, and work until the scope of the services closes. A
 * call that fails throws an error whose message tells the model what to do next. Dies if `options.tools` names an unknown tool.
 *
 * @example
 * ```ts
 * import { DynamicStructuredTool } from "@langchain/core/tools"
 * const [write] = yield* LangChain.tools(DynamicStructuredTool, { tools: ["write_file"] })
 * const args = { path: "notes/buy.md", content: "milk" }
 * const call = { type: "tool_call", id: "1", name: "write_file", args } as const
 * yield* Effect.promise(() => write!.invoke(call))
 * yield* fs.readString("notes/buy.md") // => "milk"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const tools = <T extends AnyDefinition<unknown> = AnyDefinition>(
  structuredTool: ToolClass,
  options: ToolOptions<T> = {}
): Effect.Effect<Array<FileTool>, never, Filesystem | Requirements<T>> =>
  Effect.map(chooseAndBind(options), (bound) =>
    bound.map(
      (tool) =>
        new structuredTool<Schema, unknown, unknown, [Content, Output]>({
          name: tool.name,
          description: tool.description,
          schema: structuredClone(tool.inputSchema),
          responseFormat: "content_and_artifact",
          metadata: { does: tool.does },
          func: async (input: unknown, _: unknown, config?: Config): Promise<[Content, Output]> => {
            const output = await tool.call(input, { callId: config?.toolCall?.id, signal: config?.signal })
            if (!output.success) throw new Error(output.message)
            return [contentOf(output), output]
          }
        })
    )
  )

/**
 * The options of `store`.
 *
 * @since 0.1.0
 */
export interface StoreOptions {
  /** The directory of the files, relative to the root. @default the root */
  readonly directory?: string | undefined
}

type Store = BaseStore<string, Uint8Array>

const refuse = (key: unknown, why: string): Error =>
  new Error(`Invalid key ${JSON.stringify(key)}: ${why}. A key is the path of a file, such as "notes/a.md".`)

const operationsOf = (fs: Algebra, directory: FsPath.FsPath) => {
  /** Returns a key as a path. Throws if the key is not a path in normal form, because two keys must not name one file. */
  const pathOf = (key: unknown): FsPath.FsPath => {
    const parsed = typeof key === "string" ? FsPath.parse(key, fs.port.rules?.policy) : undefined
    if (typeof parsed !== "string") throw refuse(key, "it is not a path below the directory of the store")
    if (parsed !== key || parsed === FsPath.root) throw refuse(key, "the path is not in normal form")
    return FsPath.join(directory, parsed)
  }
  const isFile = (path: FsPath.FsPath) =>
    fs.stat(path).pipe(
      Effect.map((stat) => stat.isFile),
      Effect.catchTag("NotFound", () => Effect.succeed(false))
    )
  const read = (path: FsPath.FsPath) =>
    fs.readBytes(path).pipe(
      Effect.map(({ content }): Uint8Array | undefined => content),
      Effect.catchTag("NotFound", () => Effect.succeed(undefined))
    )
  return {
    get: (key: string) => {
      const path = pathOf(key)
      return Effect.flatMap(isFile(path), (exists) => (exists ? read(path) : Effect.succeed(undefined)))
    },
    set: (key: string, value: Uint8Array) => {
      const path = pathOf(key)
      if (!(value instanceof Uint8Array)) throw new TypeError(`The value of ${JSON.stringify(key)} is not a Uint8Array.`)
      return Effect.asVoid(fs.writeBytes(path, value))
    },
    delete: (key: string) => {
      const path = pathOf(key)
      return Effect.flatMap(isFile(path), (exists) =>
        exists ? Effect.asVoid(fs.delete(path, { missing: "ignore" })) : Effect.void
      )
    },
    keys: (prefix: string): Stream.Stream<string, unknown> =>
      Stream.unwrap(
        Effect.map(fs.exists(directory), (exists) =>
          exists
            ? fs.walk(directory).pipe(
                Stream.filter(({ addressable, isFile }) => addressable && isFile),
                Stream.map(({ path }) => (directory === FsPath.root ? path : FsPath.relative(directory, path))),
                Stream.filter((key) => key.startsWith(prefix))
              )
            : Stream.empty
        )
      )
  }
}

/**
 * Makes a store whose keys are the paths of files and whose values are their contents. All keys of a call are checked before the
 * first file changes. Dies if `directory` is not a path.
 *
 * @example
 * ```ts
 * import { BaseStore } from "@langchain/core/stores"
 * const store = yield* LangChain.store(BaseStore, { directory: "notes" })
 * yield* Effect.promise(() => store.mset([["buy.md", new TextEncoder().encode("milk")]]))
 * yield* fs.readString("notes/buy.md") // => "milk"
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const store = (
  baseStore: typeof BaseStore,
  { directory = "" }: StoreOptions = {}
): Effect.Effect<Store, never, Filesystem> =>
  Effect.gen(function* () {
    const fs: Algebra = yield* Filesystem
    const runPromise = yield* runner
    const run = <A, E extends Error>(effect: Effect.Effect<A, E>): Promise<A> =>
      runPromise(Effect.mapError(effect, (error) => new Error(error.message, { cause: error })))
    const parsed = directory === "" ? FsPath.root : FsPath.parse(directory, fs.port.rules?.policy)
    if (typeof parsed !== "string")
      return yield* Effect.die(new Error(`The directory ${JSON.stringify(directory)} is not a path.`))
    const operations = operationsOf(fs, parsed)
    class FileStore extends baseStore<string, Uint8Array> {
      override lc_namespace = ["fs-algebra", "stores"]
      override mget = async (keys: Array<string>): Promise<Array<Uint8Array | undefined>> =>
        run(Effect.all(keys.map(operations.get), { concurrency: 8 }))
      override mset = async (pairs: Array<[string, Uint8Array]>): Promise<void> =>
        run(
          Effect.all(
            pairs.map(([key, value]) => operations.set(key, value)),
            { discard: true }
          )
        )
      override mdelete = async (keys: Array<string>): Promise<void> =>
        run(Effect.all(keys.map(operations.delete), { discard: true }))
      override async *yieldKeys(prefix = ""): AsyncGenerator<string> {
        yield* Stream.toAsyncIterable(operations.keys(prefix))
      }
    }
    return new FileStore()
  })
