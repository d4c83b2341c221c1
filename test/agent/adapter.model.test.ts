import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as Policy from "../../src/agent/Policy.ts"
import { seven } from "../../src/agent/tools.ts"
import { checkpointOf, makeSession, section, start, type Starting } from "./adapting.ts"
import { memory } from "./changing.ts"

interface Asked {
  readonly id: string
  readonly name: string
  readonly params: unknown
}

/** Returns a model that makes the given tool calls, and records the options of each request. */
const modelOf = (calls: ReadonlyArray<Asked>) => {
  const seen: Array<LanguageModel.ProviderOptions> = []
  const layer = Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: (options) =>
        Effect.sync(() => {
          seen.push(options)
          return calls.map((call) => ({ type: "tool-call", ...call }) as const)
        }),
      streamText: () => Stream.empty
    })
  )
  return { seen, layer }
}

const started = (options: Starting = {}) =>
  Effect.gen(function* () {
    const fs = yield* memory({ "a.txt": "one\n" })
    const session = yield* makeSession
    const { checkpoint } = yield* checkpointOf(session, fs)
    const sections = [section("files", { filesystem: Effect.succeed(fs), tools: seven, template: "Mind the gap." })]
    return { fs, checkpoint, ...(yield* start(sections, { session, checkpoint, ...options })) }
  })

const asking = (run: Adapter.Run, calls: ReadonlyArray<Asked>) =>
  Effect.gen(function* () {
    const { layer, seen } = modelOf(calls)
    const toolkit = yield* Adapter.toolkit(run)
    const { toolResults } = yield* Effect.provide(
      LanguageModel.generateText({ prompt: run.rendered.text, toolkit, concurrency: 1 }),
      layer
    )
    return { seen, results: toolResults }
  })

describe("the toolkit of a run", () => {
  it.effect("makes the tool calls of a language model in the session", () =>
    Effect.gen(function* () {
      const { checkpoint, fs, logged, run } = yield* started()
      const { results, seen } = yield* asking(run, [
        { id: "1", name: "read_file", params: { path: "a.txt" } },
        { id: "2", name: "edit_file", params: { path: "a.txt", old_string: "one", new_string: "two" } },
        { id: "3", name: "read_file", params: { pth: "a.txt" } }
      ])
      assert.deepStrictEqual(
        results.map(({ id, isFailure, result }) => [id, isFailure, (result as { readonly success: boolean }).success]),
        [
          ["1", false, true],
          ["2", false, true],
          ["3", false, false]
        ]
      )
      assert.include((results[2]!.result as { readonly message: string }).message, 'did you mean "path"?')
      assert.strictEqual(yield* fs.readString("a.txt"), "two\n")
      assert.deepStrictEqual(
        (yield* logged).map(({ callId, tool }) => [tool, callId]),
        [
          ["read_file", "1"],
          ["edit_file", "2"],
          ["read_file", "3"]
        ]
      )
      assert.deepStrictEqual(
        (yield* checkpoint.list).map(({ id }) => id),
        ["pre:edit_file:2"]
      )
      assert.include(JSON.stringify(seen[0]!.prompt), "Mind the gap.")
      assert.deepStrictEqual(
        seen[0]!.tools.map(({ name }) => name),
        seven.map(({ name }) => name)
      )
    }).pipe(Effect.orDie)
  )

  it.effect("has the schemas of the tools that policies permit, and no others", () =>
    Effect.gen(function* () {
      const { run } = yield* started({ policies: Policy.readOnly })
      const { tools } = yield* Adapter.toolkit(run)
      assert.deepStrictEqual(Object.keys(tools), ["ls", "read_file", "glob", "grep"])
      const schema = Tool.getJsonSchema(tools["read_file"]!) as { readonly properties: object }
      assert.includeMembers(Object.keys(schema.properties), ["path", "offset", "limit"])
    }).pipe(Effect.orDie)
  )

  it.effect("calls the tools of its own run when two runs exist", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* started(), yield* started()]
      const write = (text: string) => [{ id: "1", name: "write_file", params: { path: "b.txt", content: text } }]
      const kits = [yield* Adapter.toolkit(first.run), yield* Adapter.toolkit(second.run)]
      assert.strictEqual(kits.length, 2)
      yield* asking(first.run, write("first"))
      yield* asking(second.run, write("second"))
      assert.strictEqual(yield* first.fs.readString("b.txt"), "first")
      assert.strictEqual(yield* second.fs.readString("b.txt"), "second")
    }).pipe(Effect.orDie)
  )
})
