import { assert, describe, it } from "@effect/vitest"
import { generateText, isStepCount, type ModelMessage, simulateReadableStream, streamText } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AiSdk from "../../src/adapters/AiSdk.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { ToolEvents, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { slowTool } from "./slowTool.ts"

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

type Part = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>["content"][number]
type Streamed = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"]
type Chunk = Streamed extends ReadableStream<infer C> ? C : never

const call = (toolName: string, input: unknown, toolCallId = "call_1"): Part => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: typeof input === "string" ? input : JSON.stringify(input)
})

const say = (text: string): Part => ({ type: "text", text })

/** Returns a model that answers with the given turns in order. */
const scripted = (...turns: ReadonlyArray<ReadonlyArray<Part>>) => {
  const left = [...turns]
  return new MockLanguageModelV4({
    doGenerate: () => {
      const content = [...(left.shift() ?? [say("Done.")])]
      const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop"
      return Promise.resolve({ content, finishReason: { unified, raw: undefined }, usage, warnings: [] })
    },
    doStream: () => {
      const content = left.shift() ?? [say("Done.")]
      const unified = content.some(({ type }) => type === "tool-call") ? ("tool-calls" as const) : ("stop" as const)
      const chunks = content.flatMap((part): ReadonlyArray<Chunk> => {
        if (part.type === "text") {
          return [
            { type: "text-start", id: "1" },
            { type: "text-delta", id: "1", delta: part.text },
            { type: "text-end", id: "1" }
          ]
        }
        if (part.type !== "tool-call") return []
        const { input, toolCallId: id, toolName } = part
        return [
          { type: "tool-input-start", id, toolName },
          { type: "tool-input-delta", id, delta: input },
          { type: "tool-input-end", id },
          part
        ]
      })
      return Promise.resolve({
        stream: simulateReadableStream<Chunk>({
          chunks: [
            { type: "stream-start", warnings: [] },
            ...chunks,
            { type: "finish", finishReason: { unified, raw: undefined }, usage }
          ],
          initialDelayInMs: null,
          chunkDelayInMs: null
        })
      })
    }
  })
}

const stopWhen = isStepCount(10)
const prompt = "Work on the files."

/** Returns the first result of the last tool message that the model received. */
const lastResult = (model: MockLanguageModelV4, calls = model.doGenerateCalls): unknown => {
  const message = calls.at(-1)!.prompt.at(-1)!
  const part = message.role === "tool" ? message.content[0] : undefined
  return part?.type === "tool-result" ? part.output : part
}

const files = (tree: InMemory.Tree = {}) => InMemory.layer({ tree })

const png = Uint8Array.from(
  Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64")
)

describe("AiSdk with generateText", () => {
  it.effect("a model writes, edits and reads files through several steps", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: "seven" })
      const model = scripted(
        [call("write_file", { path: "a.md", content: "one two\n" }, "1"), call("ls", {}, "2")],
        [call("edit_file", { path: "a.md", old_string: "two", new_string: "three" }, "3")],
        [call("read_file", { path: "a.md" }, "4")],
        [say("All done.")]
      )
      const { steps, text } = yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
      assert.strictEqual(text, "All done.")
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "one three\n")
      assert.deepStrictEqual(
        steps.flatMap(({ toolResults }) =>
          toolResults.map(({ output, toolName }) => [toolName, (output as AiSdk.Output).success])
        ),
        [
          ["write_file", true],
          ["ls", true],
          ["edit_file", true],
          ["read_file", true]
        ]
      )
      assert.match(JSON.stringify(lastResult(model)), /one three/)
    }).pipe(Effect.provide(files()))
  )

  it.effect("the model gets the description and the JSON Schema of each tool", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools()
      const model = scripted()
      yield* Effect.promise(() => generateText({ model, tools, prompt }))
      const sent = model.doGenerateCalls[0]!.tools!
      assert.deepStrictEqual(
        sent.map(({ name }) => name),
        Object.keys(tools)
      )
      for (const tool of sent) {
        assert.isTrue(tool.type === "function" && tool.description!.length > 10, tool.name)
        const schema = tool.type === "function" ? tool.inputSchema : {}
        assert.deepStrictEqual([schema.type, schema.additionalProperties], ["object", false], tool.name)
        if (tool.name === "grep") assert.containsAllKeys(schema.properties, ["pattern", "path"])
      }
    }).pipe(Effect.provide(files()))
  )

  it.effect("a call that fails becomes a tool error that names the path", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: ["read_file"] })
      const model = scripted([call("read_file", { path: "none.md" })])
      const { steps } = yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
      assert.strictEqual(steps[0]!.content.at(-1)!.type, "tool-error")
      const { type, value } = lastResult(model) as { readonly type: string; readonly value: string }
      assert.strictEqual(type, "error-text")
      assert.match(value, /none\.md/)
    }).pipe(Effect.provide(files()))
  )

  for (const [title, input] of [
    ["of the wrong type", { path: 7 }],
    ["that is unknown", { path: "a.md", colour: "red" }],
    ["that climbs out of the root", { path: "../../etc/passwd" }],
    ["that is not an object", [1]],
    ["that is not JSON", "{"]
  ] as const) {
    it.effect(`an argument ${title} becomes a tool error, and the next call works`, () =>
      Effect.gen(function* () {
        const tools = yield* AiSdk.tools({ tools: ["read_file"] })
        const model = scripted([call("read_file", input)], [call("read_file", { path: "a.md" })])
        const { steps } = yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
        assert.strictEqual(steps[0]!.content.at(-1)!.type, "tool-error")
        assert.strictEqual(steps[1]!.content.at(-1)!.type, "tool-result")
      }).pipe(Effect.provide(files({ "a.md": "one" })))
    )
  }

  it.effect("an image reaches the model exactly once, as a file", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: ["read_file"] })
      const model = scripted([call("read_file", { path: "dot.png", encoding: "base64" })])
      const { steps } = yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
      const { value } = lastResult(model) as { readonly value: ReadonlyArray<{ readonly type: string }> }
      assert.deepStrictEqual(
        value.map(({ type }) => type),
        ["text", "file"]
      )
      const base64 = Buffer.from(png).toString("base64")
      const output = steps[0]!.toolResults[0]!.output as AiSdk.Output
      assert.deepStrictEqual(output.images, [{ mediaType: "image/png", base64 }])
      assert.notInclude(JSON.stringify(output.value), base64)
    }).pipe(Effect.provide(files({ "dot.png": png })))
  )

  it.effect("a read-only policy removes tools, a custom tool runs, and an event reports its call", () => {
    const events: Array<ToolInvoked> = []
    const countWords = Tool.make({
      name: "count_words",
      description: "Counts the words of a text.",
      parameters: Schema.Struct({ text: Schema.String }),
      value: Schema.Int,
      does: "reads",
      examples: [{ text: "two words" }],
      handle: ({ text }) => Effect.succeed({ message: "Counted.", value: text.split(" ").length })
    })
    return Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: "seven", extra: [countWords] })
      assert.doesNotHaveAnyKeys(tools, ["write_file", "edit_file", "rm"])
      const model = scripted([call("count_words", { text: "a b c" }, "id-7")])
      const { steps } = yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
      assert.strictEqual((steps[0]!.toolResults[0]!.output as AiSdk.Output).value, 3)
      assert.deepStrictEqual(
        events.map(({ callId, success, tool }) => [tool, callId, success]),
        [["count_words", "id-7", true]]
      )
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          files(),
          Policy.readOnly,
          Layer.succeed(ToolEvents, (event) => Effect.sync(() => void events.push(event)))
        )
      )
    )
  })

  it.effect("the option readOnly also prevents changes by a custom tool that claims to read", () =>
    Effect.gen(function* () {
      const sly = Tool.make({
        name: "sly",
        description: "Says that it reads, and writes.",
        value: Schema.Null,
        does: "reads",
        needsFilesystem: true,
        handle: (_, { filesystem }) => Effect.as(filesystem.write("a.md", "x"), { message: "Written.", value: null })
      })
      const tools = yield* AiSdk.tools({ tools: "seven", readOnly: true, extra: [sly] })
      const model = scripted([call("sly", {})])
      const { steps } = yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
      assert.strictEqual(steps[0]!.content.at(-1)!.type, "tool-error")
      assert.isFalse(yield* (yield* Filesystem).exists("a.md"))
    }).pipe(Effect.provide(files()))
  )
})

describe("AiSdk with streamText", () => {
  it.effect("tool inputs, results and text arrive in order", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: "seven" })
      const model = scripted([call("write_file", { path: "a.md", content: "x" })], [say("Done.")])
      const types = yield* Effect.promise(async () => {
        const seen: Array<string> = []
        for await (const { type } of streamText({ model, tools, stopWhen, prompt }).fullStream) seen.push(type)
        return seen
      })
      const expected = ["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call", "tool-result", "text-delta"]
      assert.deepStrictEqual(
        types.filter((type) => expected.includes(type)),
        expected
      )
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "x")
    }).pipe(Effect.provide(files()))
  )

  it.effect("aborting a stream interrupts the running call, which writes nothing", () =>
    Effect.gen(function* () {
      const { ended, slow, started } = yield* slowTool
      const tools = yield* AiSdk.tools({ tools: [], extra: [slow] })
      const abort = new AbortController()
      const { fullStream } = streamText({
        model: scripted([call("slow", {})]),
        tools,
        stopWhen,
        prompt,
        abortSignal: abort.signal,
        onError: () => {}
      })
      const drained = (async () => {
        const seen: Array<string> = []
        for await (const { type } of fullStream) seen.push(type)
        return seen
      })()
      yield* Deferred.await(started)
      abort.abort()
      yield* Deferred.await(ended)
      assert.include(yield* Effect.promise(() => drained), "abort")
      assert.isFalse(yield* (yield* Filesystem).exists("late.md"))
    }).pipe(Effect.provide(files()))
  )
})

describe("AiSdk with approval", () => {
  const answer = (approved: boolean) =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: "seven" })
      const model = scripted([call("ls", {}, "1")], [call("rm", { path: "a.md" }, "2")], [say("Done.")])
      const toolApproval = AiSdk.approval(tools)
      const first = yield* Effect.promise(() => generateText({ model, tools, toolApproval, stopWhen, prompt }))
      const request = first.content.find((part) => part.type === "tool-approval-request")
      assert.strictEqual(request?.toolCall.toolName, "rm")
      assert.isTrue(yield* (yield* Filesystem).exists("a.md"))
      const messages: Array<ModelMessage> = [
        { role: "user", content: prompt },
        ...first.responseMessages,
        { role: "tool", content: [{ type: "tool-approval-response", approvalId: request!.approvalId, approved }] }
      ]
      const { text } = yield* Effect.promise(() => generateText({ model, tools, toolApproval, stopWhen, messages }))
      assert.strictEqual(text, "Done.")
      return yield* (yield* Filesystem).exists("a.md")
    }).pipe(Effect.provide(files({ "a.md": "one" })))

  it.effect("a call that deletes a file runs only after the user has approved it", () =>
    Effect.map(answer(true), (exists) => assert.isFalse(exists))
  )

  it.effect("a call that the user has refused does not run", () => Effect.map(answer(false), (exists) => assert.isTrue(exists)))

  it.effect("a policy of this package refuses a call that the SDK would run", () =>
    Effect.gen(function* () {
      const tools = yield* AiSdk.tools({ tools: "seven" })
      const model = scripted([call("rm", { path: "a.md" })])
      yield* Effect.promise(() => generateText({ model, tools, stopWhen, prompt }))
      assert.match(JSON.stringify(lastResult(model)), /rm was not approved: not today/)
      assert.isTrue(yield* (yield* Filesystem).exists("a.md"))
    }).pipe(
      Effect.provide([
        files({ "a.md": "one" }),
        Policy.approval(({ mutates }) => Effect.succeed(mutates ? { reason: "not today" } : true))
      ])
    )
  )
})
