import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AnthropicStructuredOutput from "effect/ai/AnthropicStructuredOutput"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as OpenAiStructuredOutput from "effect/ai/OpenAiStructuredOutput"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as FilesystemToolkit from "../../src/agent/FilesystemToolkit.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as SandboxToolkit from "../../src/agent/SandboxToolkit.ts"
import { extras, four, sandboxTools, seven, snapshotTools } from "../../src/agent/tools.ts"
import { ToolEvents, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { toTool } from "../../src/agent/toolkit.ts"
import * as VfsToolkit from "../../src/agent/VfsToolkit.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { canned } from "./sandboxes.ts"

type Result = ToolResult<Record<string, unknown>>

interface Handlers {
  readonly handle: (name: string, params: unknown, id: string) => Effect.Effect<Stream.Stream<{ readonly result: unknown }>>
}

/** Calls a tool as a provider does: by name, with the model's parameters. */
const call = <Tools extends Record<string, Tool.Any>>(
  kit: Toolkit.Toolkit<Tools>,
  name: string,
  params: unknown,
  id = "call_1"
): Effect.Effect<Result, never, Tool.HandlersFor<Tools>> =>
  Effect.flatMap(kit, (handlers) =>
    (handlers as unknown as Handlers).handle(name, params, id).pipe(
      Stream.unwrap,
      Stream.runCollect,
      Effect.map((results) => results.at(-1)!.result as Result)
    )
  )

/** Builds a model that gives prepared answers and records its prompts. */
const scripted = (turns: ReadonlyArray<ReadonlyArray<Response.PartEncoded>>) => {
  const shown: Array<Prompt.Prompt> = []
  const layer = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: ({ prompt }) => Effect.sync(() => [...turns[shown.push(prompt) - 1]!]),
      streamText: () => Stream.empty
    })
  )
  return { layer, shown }
}

const asks = (id: string, name: string, params: unknown): Response.PartEncoded => ({ type: "tool-call", id, name, params })

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

const definitions = [...seven, ...extras, ...snapshotTools, ...four, ...sandboxTools]

describe("a model with the tools", () => {
  it.effect("gets messages and images, while the program gets the values", () =>
    Effect.gen(function* () {
      const model = scripted([
        [asks("1", "write_file", { path: "a.txt", content: "one\ntwo\n" }), asks("2", "read_file", { path: "i.png" })],
        [asks("3", "edit_file", { path: "a.txt", old_string: "two", new_string: "2" }), asks("4", "ls", { directory: "x" })],
        [{ type: "text", text: "done" }]
      ])
      const fs = InMemory.layer({ tree: { "i.png": Buffer.from(png, "base64") } })
      yield* Effect.gen(function* () {
        const chat = yield* Chat.empty
        const first = yield* chat.generateText({ prompt: "go", toolkit: FilesystemToolkit.toolkit, concurrency: 1 })
        const written = first.toolResults[0]!.result as Result
        assert.deepStrictEqual<unknown>([written.success, written.value!["bytes_written"]], [true, 8])
        const second = yield* chat.generateText({ prompt: [], toolkit: FilesystemToolkit.toolkit, concurrency: 1 })
        assert.isFalse((second.toolResults[1]!.result as Result).success)
        yield* chat.generateText({ prompt: [], toolkit: FilesystemToolkit.toolkit })
        assert.strictEqual(yield* (yield* Filesystem).readString("a.txt"), "one\n2\n")
      }).pipe(Effect.provide(FilesystemToolkit.layer.pipe(Layer.provideMerge(fs), Layer.merge(model.layer))))
      const read = model.shown[2]!.content.flatMap((message) => (message.role === "tool" ? message.content : []))
      const outputs = read.flatMap((part) => (part.type === "tool-result" ? [[part.id, part.modelOutput ?? []] as const] : []))
      const texts = Object.fromEntries(
        outputs.map(([id, parts]) => [id, parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join()])
      )
      assert.include(texts["1"]!, "a.txt")
      assert.include(texts["3"]!, "+2")
      assert.include(texts["4"]!, "directory")
      const files = outputs.flatMap(([id, parts]) =>
        parts.flatMap((part) => (part.type === "file" ? [[id, part.mediaType, part.data]] : []))
      )
      assert.deepStrictEqual<unknown>(files, [["2", "image/png", png]])
    })
  )
})

describe("the arguments of a call", () => {
  const wrong: ReadonlyArray<readonly [sent: unknown, said: string]> = [
    [{}, "path"],
    [{ path: 7 }, "path"],
    [{ path: "a", offset: "x" }, "offset"],
    [{ path: "a", color: "red" }, "color"],
    [null, "path"],
    [undefined, "path"],
    ["a", "read_file"],
    [[1], "read_file"]
  ]
  for (const [sent, said] of wrong) {
    it.effect(`that do not decode are answered with a failure that names ${said}: ${JSON.stringify(sent)}`, () =>
      Effect.gen(function* () {
        const result = yield* call(FilesystemToolkit.toolkit, "read_file", sent)
        assert.deepStrictEqual(Object.keys(result).sort(), ["message", "success"])
        assert.isFalse(result.success)
        assert.include(result.message, said)
      }).pipe(Effect.provide(FilesystemToolkit.layer.pipe(Layer.provide(InMemory.layer({ tree: { a: "" } })))))
    )
  }

  it.effect("may be null where a parameter is optional", () =>
    Effect.gen(function* () {
      const result = yield* call(FilesystemToolkit.toolkit, "read_file", { path: "a", offset: null, limit: null })
      assert.isTrue(result.success, result.message)
    }).pipe(Effect.provide(FilesystemToolkit.layer.pipe(Layer.provide(InMemory.layer({ tree: { a: "x" } })))))
  )
})

describe("the filesystem of a toolkit's handlers", () => {
  const names = (result: Result): ReadonlyArray<string> =>
    (result.value!["entries"] as ReadonlyArray<{ readonly name: string }>).map(({ name }) => name)

  it.effect("is the filesystem of the layer, even if the caller provides another", () =>
    Effect.gen(function* () {
      const other = yield* Effect.map(Layer.build(InMemory.layer({ tree: { theirs: "" } })), Context.get(Filesystem))
      const found = yield* call(FilesystemToolkit.toolkit, "ls", {}).pipe(Effect.provideService(Filesystem, other))
      assert.deepStrictEqual(names(found), ["mine"])
    }).pipe(Effect.provide(FilesystemToolkit.layer.pipe(Layer.provide(InMemory.layer({ tree: { mine: "" } })))))
  )

  it.effect("is the filesystem of the caller for a contextual layer; without a filesystem its calls fail", () =>
    Effect.gen(function* () {
      const ls = call(FilesystemToolkit.toolkit, "ls", {})
      for (const name of ["a", "b"]) {
        assert.deepStrictEqual(names(yield* ls.pipe(Effect.provide(InMemory.layer({ tree: { [name]: "" } })))), [name])
      }
      const nowhere = yield* ls
      assert.isFalse(nowhere.success)
      assert.include(nowhere.message, "No filesystem available")
    }).pipe(Effect.provide(FilesystemToolkit.layerContextual))
  )

  it.effect("is the filesystem of the caller also for the contextual layers of seven and of four tools", () =>
    Effect.gen(function* () {
      const around = Effect.provide(InMemory.layer({ tree: { a: "" } }))
      const some = yield* call(FilesystemToolkit.seven, "ls", {}).pipe(
        Effect.provide(FilesystemToolkit.layerSevenContextual),
        around
      )
      const own = yield* call(FilesystemToolkit.seven, "ls", {}).pipe(Effect.provide(FilesystemToolkit.layerSeven), around)
      assert.deepStrictEqual(names(some), names(own))
      const four = yield* call(VfsToolkit.toolkit, "list_directory", {}).pipe(
        Effect.provide(VfsToolkit.layerContextual),
        around
      )
      assert.deepStrictEqual<unknown>(four.value!["files"], ["a"])
    })
  )
})

describe("the services of a toolkit's layer", () => {
  it.effect("include the settings, policies and events for its handlers", () =>
    Effect.gen(function* () {
      const events: Array<ToolInvoked> = []
      const listening = Layer.succeed(ToolEvents, (event) => Effect.sync(() => void events.push(event)))
      const settings = Layer.succeed(ToolSettings, { ...defaults, mountPoint: "/work", budget: 200 })
      const denying = Policy.layer({
        name: "nothing is removed",
        before: ({ tool }) =>
          tool === "rm"
            ? Effect.fail({ _tag: "Refused", happened: "Nothing is removed here.", advice: "Leave it." } as const)
            : Effect.void
      })
      const tools = FilesystemToolkit.layer.pipe(
        Layer.provide([denying, settings, listening, InMemory.layer({ tree: { "a.txt": "0123456789\n".repeat(99) } })])
      )
      yield* Effect.gen(function* () {
        const read = yield* call(FilesystemToolkit.toolkit, "read_file", { path: "/work/a.txt" }, "call_7")
        assert.strictEqual(read.value!["path"], "a.txt")
        assert.isAtMost(read.message.length, 200)
        const refused = yield* call(FilesystemToolkit.toolkit, "rm", { path: "a.txt" }, "call_8")
        assert.isFalse(refused.success)
        assert.include(refused.message, "Nothing is removed here. Leave it.")
      }).pipe(Effect.provide(tools))
      assert.deepStrictEqual(
        events.map(({ callId, success, tool }) => [tool, callId, success]),
        [
          ["read_file", "call_7", true],
          ["rm", "call_8", false]
        ]
      )
    })
  )

  it.effect("include a new session for each build", () =>
    Effect.gen(function* () {
      const fs = yield* Layer.build(InMemory.layer({ tree: { a: "one" } }))
      const build = Layer.build(
        Layer.fresh(FilesystemToolkit.layer).pipe(
          Layer.provide(Policy.readBeforeWrite),
          Layer.provide(Layer.succeedContext(fs))
        )
      )
      const [first, second] = [yield* build, yield* build]
      const on = (session: typeof first, name: string, params: unknown) =>
        call(FilesystemToolkit.toolkit, name, params).pipe(Effect.provideContext(session))
      const edit = { path: "a", old_string: "one", new_string: "two" }
      assert.isTrue((yield* on(first, "read_file", { path: "a" })).success)
      assert.isFalse((yield* on(second, "edit_file", edit)).success)
      assert.isTrue((yield* on(first, "edit_file", edit)).success)
    })
  )

  it.effect("include snapshots; after a restore, the changed files must be read again", () =>
    Effect.gen(function* () {
      const on = (name: string, params: unknown) => call(FilesystemToolkit.all, name, params)
      yield* on("snapshot", { tag: "before" })
      yield* on("read_file", { path: "a" })
      yield* on("read_file", { path: "b" })
      assert.isTrue((yield* on("edit_file", { path: "a", old_string: "one", new_string: "two" })).success)
      assert.isTrue((yield* on("restore", { snapshot_id: "before" })).success)
      assert.isFalse((yield* on("edit_file", { path: "a", old_string: "one", new_string: "three" })).success)
      assert.isTrue((yield* on("edit_file", { path: "b", old_string: "two", new_string: "three" })).success)
      yield* on("read_file", { path: "a" })
      assert.isTrue((yield* on("edit_file", { path: "a", old_string: "one", new_string: "three" })).success)
    }).pipe(
      Effect.provide(
        FilesystemToolkit.layerAll.pipe(
          Layer.provide(Policy.readBeforeWrite),
          Layer.provide(Snapshots.layer),
          Layer.provide(InMemory.layer({ tree: { a: "one", b: "two" } }))
        )
      )
    )
  )

  it.effect("include the sandbox of the layer", () =>
    Effect.gen(function* () {
      const { asked, layer } = canned({ stdout: "hi\n" })
      const tools = SandboxToolkit.layer.pipe(Layer.provide([layer, InMemory.layer()]))
      const result = yield* call(SandboxToolkit.toolkit, "shell", { command: ["echo", "hi"] }).pipe(Effect.provide(tools))
      assert.strictEqual(result.value!["stdout"], "hi\n")
      assert.deepStrictEqual(asked[0]!.command, ["echo", "hi"])
    })
  )
})

describe("the lists of tools", () => {
  const named = (list: ReadonlyArray<{ readonly name: string }>): ReadonlyArray<string> => list.map(({ name }) => name)
  const keys = (kit: { readonly tools: Record<string, unknown> }): ReadonlyArray<string> => Object.keys(kit.tools)

  it("contain the documented names of the tools", () => {
    assert.deepStrictEqual(named(seven), ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"])
    assert.deepStrictEqual(named(extras), ["move", "copy", "mkdir", "stat", "tree", "apply_patch"])
    assert.deepStrictEqual(named(snapshotTools), ["snapshot", "snapshots", "restore", "diff"])
    assert.deepStrictEqual(named(four), ["list_directory", "read_file", "write_file", "delete_file"])
    assert.deepStrictEqual(named(sandboxTools), ["shell", "eval"])
  })

  it("contain the names of the toolkits", () => {
    assert.deepStrictEqual(keys(FilesystemToolkit.seven), named(seven))
    assert.deepStrictEqual(keys(FilesystemToolkit.toolkit), named([...seven, ...extras]))
    assert.deepStrictEqual(keys(FilesystemToolkit.snapshots), named(snapshotTools))
    assert.deepStrictEqual(keys(FilesystemToolkit.all), named([...seven, ...extras, ...snapshotTools]))
    assert.deepStrictEqual(keys(VfsToolkit.toolkit), named(four))
    assert.deepStrictEqual(keys(SandboxToolkit.toolkit), named(sandboxTools))
  })

  it.effect("have separate handlers for tools of equal names in different toolkits", () =>
    Effect.gen(function* () {
      const of = (kit: { readonly tools: Record<string, Tool.Any> }) => Object.values(kit.tools).map(({ id }) => id)
      const ids = [...of(FilesystemToolkit.all), ...of(VfsToolkit.toolkit), ...of(SandboxToolkit.toolkit)]
      assert.strictEqual(new Set(ids).size, ids.length)
      const [seven, four] = [
        yield* call(FilesystemToolkit.toolkit, "read_file", { path: "a", limit: 1 }),
        yield* call(VfsToolkit.toolkit, "read_file", { path: "a" })
      ]
      assert.strictEqual(seven.value!["total_lines"], 2)
      assert.property(four.value, "file")
    }).pipe(
      Effect.provide(
        Layer.mergeAll(FilesystemToolkit.layer, VfsToolkit.layer).pipe(Layer.provide(InMemory.layer({ tree: { a: "1\n2\n" } })))
      )
    )
  )

  it("have annotations that say whether a tool reads, destroys or may be repeated", () => {
    const hints = (name: keyof typeof FilesystemToolkit.all.tools) => {
      const { annotations } = FilesystemToolkit.all.tools[name]
      return [Tool.Readonly, Tool.Destructive, Tool.Idempotent, Tool.OpenWorld].map((hint) => Context.get(annotations, hint))
    }
    assert.deepStrictEqual(hints("grep"), [true, false, true, false])
    assert.deepStrictEqual(hints("rm").slice(0, 2), [false, true])
    assert.deepStrictEqual(hints("mkdir").slice(0, 2), [false, false])
    assert.deepStrictEqual(hints("snapshot"), [false, false, false, false])
    assert.deepStrictEqual(hints("diff"), [true, false, true, false])
  })
})

describe("the definition", () => {
  type Json = { readonly [key: string]: unknown }

  const walk = (schema: unknown, visit: (node: Json) => void): void => {
    if (typeof schema !== "object" || schema === null) return
    if (!Array.isArray(schema)) visit(schema as Json)
    for (const value of Object.values(schema)) walk(value, visit)
  }

  const properties = (schema: Json): Record<string, Json> => (schema["properties"] ?? {}) as Record<string, Json>

  /** Checks the rules of https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". */
  const strict = (schema: Json): void => {
    assert.strictEqual(schema["type"], "object")
    assert.notProperty(schema, "anyOf")
    let [nodes, names] = [0, 0]
    walk(schema, (node) => {
      for (const forbidden of ["allOf", "not", "if", "oneOf", "patternProperties", "dependentRequired", "$ref"]) {
        assert.notProperty(node, forbidden)
      }
      if (node["type"] !== "object") return
      nodes++
      const own = Object.keys(properties(node))
      names += own.length
      assert.strictEqual(node["additionalProperties"], false)
      assert.deepStrictEqual([...((node["required"] as Array<string> | undefined) ?? [])].sort(), own.sort())
    })
    assert.isAtMost(names, 100)
    assert.isAtMost(nodes, 5)
  }

  /** Writes the value as a model under the strict schema does: null for every absent field. */
  const strictly = (schema: Json, value: unknown): unknown => {
    const options = (schema["anyOf"] as ReadonlyArray<Json> | undefined)?.filter(({ type }) => type !== "null")
    if (options !== undefined) return value === undefined ? null : strictly(options[0]!, value)
    if (Array.isArray(value)) return value.map((item) => strictly(schema["items"] as Json, item))
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(
      Object.entries(properties(schema)).map(([key, property]) => [key, strictly(property, (value as Json)[key])])
    )
  }

  const transformers = [
    ["OpenAI", OpenAiStructuredOutput.toCodecOpenAI],
    ["Anthropic", AnthropicStructuredOutput.toCodecAnthropic]
  ] as const

  for (const definition of definitions) {
    const { description, examples, name } = definition
    const kit = four.includes(definition) ? " (four)" : ""
    const tool = toTool(definition)

    it(`of ${name}${kit} has an object schema without references, and describes every parameter`, () => {
      const schema = Tool.getJsonSchema(tool) as Json
      assert.strictEqual(schema["type"], "object")
      for (const keyword of ["anyOf", "oneOf", "allOf", "$ref", "not"]) assert.notProperty(schema, keyword)
      walk(schema, (node) => {
        assert.notProperty(node, "$ref")
        if (typeof node["pattern"] === "string") assert.notMatch(node["pattern"], /\(\?[=!<]/)
        for (const [key, property] of Object.entries(node["type"] === "object" ? properties(node) : {})) {
          const said = property["description"]
          assert.isTrue(typeof said === "string" && said.length > 5 && said.length <= 500, `${name}.${key}: ${String(said)}`)
        }
      })
    })

    it(`of ${name}${kit} has a name of at most 64 characters, and a description of at most 200`, () => {
      assert.match(name, /^[a-z][a-z0-9_-]{0,63}$/)
      assert.match(description, /^[^\p{Cc}]{1,200}$/u)
      assert.strictEqual(Tool.getDescription(tool), description)
    })

    for (const [provider, transformer] of transformers) {
      it(`of ${name}${kit} is strict for ${provider}, and the answer decodes to the same arguments`, () => {
        const { codec, jsonSchema } = transformer(tool.parametersSchema as never)
        strict(jsonSchema as Json)
        const plain = Schema.decodeUnknownSync(definition.parameters as unknown as Schema.Codec<unknown>)
        for (const example of examples) {
          const sent = strictly(jsonSchema as Json, example)
          assert.deepStrictEqual(plain(Schema.decodeUnknownSync(codec as never)(sent)), plain(example))
        }
      })
    }
  }
})
