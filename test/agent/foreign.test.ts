/** Tools from other authors or from another copy of this package: their names, their failures, and missing services. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Adapter from "../../src/agent/Adapter.ts"
import * as McpServer from "../../src/agent/McpServer.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { IoError } from "../../src/model/FsError.ts"
import { makeSession, section, start } from "./adapting.ts"
import { memory } from "./changing.ts"
import { overPipe } from "./mcpClients.ts"

class Weather extends Context.Service<Weather, string>()("test/Weather") {}

const Value = Schema.Struct({})

const asking = Tool.make({
  name: "asking",
  description: "Says what its service says.",
  value: Value,
  handle: () => Effect.map(Weather, (message) => ({ message, value: {} }))
})

/** A copy of the tool without its requirements, as a caller without types passes it. */
const untyped = asking as Tool.Definition<"asking", {}, typeof Value, any>

const answering = (name: string) =>
  Tool.make({
    name,
    description: "Answers its name.",
    value: Value,
    handle: () => Effect.succeed({ message: name, value: {} })
  })

describe("a missing service", () => {
  it.effect("makes the call fail, but not the run, with the names of the tool and the service", () =>
    Effect.gen(function* () {
      const { events, run } = yield* start([section("untyped", { tools: [untyped, answering("other")] })])
      const result = yield* run.call("asking", {})
      assert.isFalse(result.success)
      assert.strictEqual(
        result.message,
        'asking could not run: the service "test/Weather" is not provided. Go on without this tool, and tell the user.'
      )
      assert.strictEqual((yield* run.call("other", {})).message, "other")
      assert.deepStrictEqual(
        events.map(({ success, tool }) => [tool, success]),
        [
          ["asking", false],
          ["other", true]
        ]
      )
    })
  )

  it.effect("makes only the call fail if the section of the tool could not provide the service", () =>
    Effect.gen(function* () {
      const error = new IoError({ operation: "open", path: "", detail: "broken", code: "EIO" })
      const { run } = yield* start([section("broken", { services: Effect.fail(error), tools: [untyped] })])
      assert.include((yield* run.call("asking", {})).message, '"test/Weather"')
    })
  )

  it.live("is reported as a tool error over MCP", () =>
    Effect.gen(function* () {
      const fs = Layer.succeed(Filesystem, yield* memory({}))
      const client = yield* overPipe(McpServer.runStdio({ extra: [untyped] }).pipe(Effect.provide(fs)))
      const result = yield* Effect.promise(() => client.callTool({ name: "asking", arguments: {} }))
      assert.isTrue(result.isError)
      assert.include(JSON.stringify(result.content), "test/Weather")
    }).pipe(Effect.scoped)
  )

  it.effect("makes the call fail, whereas other defects make the call die", () =>
    Effect.gen(function* () {
      const dying = Tool.make({ name: "dying", description: "Dies.", value: Value, handle: () => Effect.die(new Error("bug")) })
      const { run } = yield* start([section("dying", { tools: [dying] })])
      const exit = yield* Effect.exit(run.call("dying", {}))
      assert.strictEqual(exit._tag, "Failure")
    })
  )
})

describe("a tool named like a member of Object.prototype", () => {
  it.effect("is called, described and ordered by its own name", () =>
    Effect.gen(function* () {
      const session = yield* makeSession
      const kit = Section.make({
        key: "kit",
        title: "Kit",
        template: "",
        tools: [answering("constructor")],
        acceptsOverrides: true
      })
      const prompt = yield* Prompt.make({ ns: "tests", key: "names", sections: [kit], overrides: { constructor: "Builds." } })
      const run = yield* Adapter.run(Adapter.make("test"), prompt, { session }).pipe(
        Effect.provide(Policy.order({ other: ["constructor"] }))
      )
      assert.strictEqual(run.tools[0]!.definition.description, "Builds.")
      assert.strictEqual((yield* run.call("constructor", {})).message, "constructor")
      const answers = yield* Stream.runCollect(yield* (yield* Adapter.toolkit(run)).handle("constructor", {}))
      assert.strictEqual((answers[0]!.result as { readonly message: string }).message, "constructor")
      const fs = Layer.succeed(Filesystem, yield* memory({}))
      const client = yield* overPipe(McpServer.runStdio({ extra: [answering("constructor")] }).pipe(Effect.provide(fs)))
      const result = yield* Effect.promise(() => client.callTool({ name: "constructor", arguments: {} }))
      assert.include(JSON.stringify(result.content), "constructor")
    }).pipe(Effect.scoped)
  )

  it.effect("is unknown unless it is defined", () =>
    Effect.gen(function* () {
      const { run } = yield* start([section("kit", { tools: [answering("one")] })])
      for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
        const result = yield* run.call(name, {})
        assert.isFalse(result.success)
        assert.include(result.message, `There is no tool ${JSON.stringify(name)}`)
      }
    })
  )
})

describe("a tool definition from another package", () => {
  const foreign = (name: string) => ({ ...answering("one"), name })

  it.effect("is refused if its name is invalid", () =>
    Effect.gen(function* () {
      for (const name of ["__proto__", "a b", "", "Upper", "line\nbreak", "x".repeat(65)]) {
        const sections = [Section.make({ key: "kit", title: "Kit", template: "", tools: [foreign(name)] })]
        const error = yield* Effect.flip(Prompt.make({ ns: "tests", key: "names", sections }))
        assert.strictEqual(error.reason, "invalid", name)
        assert.include(error.detail, "cannot be the name of a tool")
      }
    })
  )

  it.effect("returns a failure with a message if its handler fails with an unknown type of error", () =>
    Effect.gen(function* () {
      const failing = (failure: unknown) =>
        Tool.make({
          name: "failing",
          description: "Fails.",
          value: Value,
          handle: () => Effect.fail(failure as ReturnType<typeof Tool.refused>)
        })
      for (const failure of [
        Object.assign(new Error("newer than this"), { _tag: "Newer" }),
        { _tag: "constructor", message: "newer than this" },
        { _tag: "__proto__", message: "newer than this" },
        new Error("newer than this")
      ]) {
        const { run } = yield* start([section("kit", { tools: [failing(failure)] })])
        const result = yield* run.call("failing", {})
        assert.isFalse(result.success)
        assert.strictEqual(
          result.message,
          "failing failed: newer than this. Complete the task without this call, or tell the user."
        )
      }
      for (const failure of [undefined, null, "text", 1, { _tag: "Newer" }]) {
        const { run } = yield* start([section("kit", { tools: [failing(failure)] })])
        assert.isFalse((yield* run.call("failing", {})).success)
      }
    })
  )
})
