import { InMemoryStore, BaseStore } from "@langchain/core/stores"
import { DynamicStructuredTool, StructuredTool } from "@langchain/core/tools"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as LangChain from "../../src/adapters/LangChain.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tool from "../../src/agent/Tool.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { randomOf } from "./random.ts"
import { slowTool } from "./slowTool.ts"

const files = (tree: InMemory.Tree = {}) => InMemory.layer({ tree })

const toolNamed = (tools: ReadonlyArray<LangChain.FileTool>, name: string): LangChain.FileTool =>
  tools.find((tool) => tool.name === name)!

const call = (name: string, args: Record<string, unknown>, id = "call_1") => ({ type: "tool_call" as const, name, args, id })

const rejection = (promise: Promise<unknown>): Effect.Effect<Error> =>
  Effect.promise(() =>
    promise.then(
      () => new Error("it did not reject"),
      (error: unknown) => error as Error
    )
  )

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (value: Uint8Array | undefined): string | undefined => value && new TextDecoder().decode(value)

describe("LangChain.tools", () => {
  it.effect("a tool call of a model returns a tool message with the result as its artifact", () =>
    Effect.gen(function* () {
      const tools = yield* LangChain.tools(DynamicStructuredTool, { tools: "seven" })
      assert.isTrue(tools.every((tool) => tool instanceof StructuredTool))
      const message = yield* Effect.promise(() =>
        toolNamed(tools, "write_file").invoke(call("write_file", { path: "a.md", content: "x" }))
      )
      const { artifact, content, tool_call_id: id } = message as unknown as Record<string, unknown>
      assert.match(String(content), /^created a\.md/)
      assert.strictEqual(id, "call_1")
      assert.isTrue((artifact as LangChain.Output).success)
      assert.strictEqual(yield* (yield* Filesystem).readString("a.md"), "x")
    }).pipe(Effect.provide(files()))
  )

  it.effect("a call with plain arguments returns only the content", () =>
    Effect.gen(function* () {
      const [read] = yield* LangChain.tools(DynamicStructuredTool, { tools: ["read_file"] })
      const answer: unknown = yield* Effect.promise(() => read!.invoke({ path: "a.md" }))
      assert.isString(answer)
      assert.match(String(answer), /one/)
    }).pipe(Effect.provide(files({ "a.md": "one" })))
  )

  it.effect("an image is a content block", () =>
    Effect.gen(function* () {
      const [read] = yield* LangChain.tools(DynamicStructuredTool, { tools: ["read_file"] })
      const content = yield* Effect.promise(() => read!.invoke({ path: "dot.gif", encoding: "base64" }))
      assert.deepStrictEqual(
        (content as unknown as ReadonlyArray<{ readonly type: string }>).map(({ type }) => type),
        ["text", "image"]
      )
    }).pipe(Effect.provide(files({ "dot.gif": bytes("GIF89a\u0001\u0000\u0001\u0000\u0000\u0000\u0000;") })))
  )

  for (const [title, args] of [
    ["of the wrong type", { path: 7 }],
    ["that is missing", {}],
    ["that is unknown", { path: "a.md", colour: "red" }],
    ["that climbs out of the root", { path: "../a.md" }],
    ["that names a missing file", { path: "none.md" }]
  ] as ReadonlyArray<readonly [string, Record<string, unknown>]>) {
    it.effect(`a call with an argument ${title} rejects with a message`, () =>
      Effect.gen(function* () {
        const [read] = yield* LangChain.tools(DynamicStructuredTool, { tools: ["read_file"] })
        const { message } = yield* rejection(read!.invoke(call("read_file", args)))
        assert.notStrictEqual(message, "it did not reject")
        assert.isAbove(message.length, 10)
      }).pipe(Effect.provide(files({ "a.md": "one" })))
    )
  }

  it.effect("a read-only policy removes tools, and a custom tool runs", () =>
    Effect.gen(function* () {
      const double = Tool.make({
        name: "double",
        description: "Doubles a number.",
        parameters: Schema.Struct({ number: Schema.Finite }),
        value: Schema.Finite,
        does: "reads",
        examples: [{ number: 2 }],
        handle: ({ number }) => Effect.succeed({ message: `${number * 2}`, value: number * 2 })
      })
      const tools = yield* LangChain.tools(DynamicStructuredTool, { tools: "seven", extra: [double] })
      assert.isUndefined(tools.find(({ name }) => name === "write_file"))
      assert.strictEqual(String(yield* Effect.promise(() => toolNamed(tools, "double").invoke({ number: 4 }))), "8")
    }).pipe(Effect.provide([files(), Policy.readOnly]))
  )

  it.effect("aborting a call interrupts the tool, which writes nothing", () =>
    Effect.gen(function* () {
      const { ended, slow, started } = yield* slowTool
      const [tool] = yield* LangChain.tools(DynamicStructuredTool, { tools: [], extra: [slow] })
      const abort = new AbortController()
      const rejected = rejection(tool!.invoke({}, { signal: abort.signal }))
      const running = Effect.runPromise(rejected)
      yield* Deferred.await(started)
      abort.abort()
      yield* Deferred.await(ended)
      assert.notStrictEqual((yield* Effect.promise(() => running)).message, "it did not reject")
      assert.isFalse(yield* (yield* Filesystem).exists("late.md"))
    }).pipe(Effect.provide(files()))
  )
})

const collect = async (keys: AsyncGenerator<string>): Promise<ReadonlyArray<string>> => {
  const all: Array<string> = []
  for await (const key of keys) all.push(key)
  return all.sort()
}

describe("LangChain.store", () => {
  it.effect("random programs have the same results as with LangChain's own InMemoryStore", () =>
    Effect.gen(function* () {
      const keys = ["a.md", "b.txt", "d/a.md", "d/e/f.md", "d/e/g", ".hidden", "with blank", "ä😀.md"]
      for (let seed = 1; seed <= 30; seed++) {
        const random = randomOf(seed)
        const some = (): Array<string> => Array.from({ length: random(4) }, () => keys[random(keys.length)]!)
        yield* Effect.gen(function* () {
          const ours = yield* LangChain.store(BaseStore)
          assert.isTrue(ours instanceof BaseStore)
          const theirs = new InMemoryStore<Uint8Array>()
          for (let step = 0; step < 40; step++) {
            const chosen = some()
            const pairs = chosen.map((key): [string, Uint8Array] => [key, bytes(`${random(1000)}`)])
            const prefix = ["", "d", "d/", "d/e", "none", undefined][random(6)]
            const [mine, expected] = yield* Effect.promise(async () => {
              switch (random(4)) {
                case 0:
                  return [await ours.mset(pairs), await theirs.mset(pairs)]
                case 1:
                  return [await ours.mdelete(chosen), await theirs.mdelete(chosen)]
                case 2:
                  return [await collect(ours.yieldKeys(prefix)), await collect(theirs.yieldKeys(prefix))]
                default:
                  return [(await ours.mget(chosen)).map(text), (await theirs.mget(chosen)).map(text)]
              }
            })
            assert.deepStrictEqual(mine, expected, `seed ${seed}, step ${step}`)
          }
        }).pipe(Effect.provide(files()))
      }
    })
  )

  it.effect("keys are paths below the directory of the store", () =>
    Effect.gen(function* () {
      const store = yield* LangChain.store(BaseStore, { directory: "kept/here" })
      assert.deepStrictEqual(yield* Effect.promise(() => collect(store.yieldKeys() as AsyncGenerator<string>)), [])
      yield* Effect.promise(() => store.mset([["d/a.md", bytes("one")]]))
      assert.strictEqual(yield* (yield* Filesystem).readString("kept/here/d/a.md"), "one")
      assert.deepStrictEqual(yield* Effect.promise(() => collect(store.yieldKeys() as AsyncGenerator<string>)), ["d/a.md"])
    }).pipe(Effect.provide(files({ "other.md": "x" })))
  )

  for (const key of ["", "/a", "../a", "a/../b", "a//b", "./a", "a/", "a\u0000", 7, null, undefined, {}]) {
    it.effect(`a key such as ${JSON.stringify(key)} is refused before anything changes`, () =>
      Effect.gen(function* () {
        const store = yield* LangChain.store(BaseStore)
        const bad = key as string
        for (const attempt of [
          store.mget([bad]),
          store.mset([
            ["good", bytes("x")],
            [bad, bytes("x")]
          ]),
          store.mdelete([bad])
        ])
          assert.match((yield* rejection(attempt)).message, /^Invalid key/)
        assert.deepStrictEqual(yield* (yield* Filesystem).list(), [])
      }).pipe(Effect.provide(files()))
    )
  }

  it.effect("a value that is not bytes is refused before anything changes", () =>
    Effect.gen(function* () {
      const store = yield* LangChain.store(BaseStore)
      const pairs = [
        ["good", bytes("x")],
        ["bad", "text"]
      ] as unknown as Array<[string, Uint8Array]>
      assert.instanceOf(yield* rejection(store.mset(pairs)), TypeError)
      assert.deepStrictEqual(yield* (yield* Filesystem).list(), [])
    }).pipe(Effect.provide(files()))
  )

  it.effect("a directory is not a value: the store does not read, replace or delete it", () =>
    Effect.gen(function* () {
      const store = yield* LangChain.store(BaseStore)
      assert.deepStrictEqual(yield* Effect.promise(() => store.mget(["d", "d/a.md/b"])), [undefined, undefined])
      yield* Effect.promise(() => store.mdelete(["d", "empty"]))
      const refused = yield* rejection(store.mset([["d", bytes("x")]]))
      assert.strictEqual(refused.constructor, Error)
      assert.match(refused.message, /d/)
      const fs = yield* Filesystem
      assert.isTrue(yield* fs.exists("d/a.md"))
      assert.isTrue(yield* fs.exists("empty"))
    }).pipe(Effect.provide(files({ d: { "a.md": "x" }, empty: {} })))
  )

  it.effect("yieldKeys may be stopped after the first key", () =>
    Effect.gen(function* () {
      const store = yield* LangChain.store(BaseStore)
      const first = yield* Effect.promise(async () => {
        for await (const key of store.yieldKeys()) return key
        return undefined
      })
      assert.strictEqual(first, "a.md")
    }).pipe(Effect.provide(files({ "a.md": "x", "b.md": "x" })))
  )
})
