import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { type Call, define, refused, type ToolFailure } from "../../src/agent/definition.ts"
import { invoke, invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { stat } from "../../src/agent/tools/ls.ts"
import { writeFile } from "../../src/agent/tools/writeFile.ts"
import { ToolEvents, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import { agent, Limits, type LimitsShape } from "../../src/model/Limits.ts"
import { memory } from "./changing.ts"
import { session } from "./policing.ts"

const Parameters = Schema.Struct({
  path: Schema.String.annotate({ description: "A path." }),
  content: Schema.optionalKey(Schema.String.annotate({ description: "Some text." })),
  count: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })).annotate({ description: "1 to 9." })
  ),
  mode: Schema.optionalKey(Schema.Literals(["create", "append"]).annotate({ description: "How." })),
  edits: Schema.optionalKey(
    Schema.Array(Schema.Struct({ path: Schema.String, old_string: Schema.String })).annotate({ description: "Several." })
  )
})

const probe = (handle: (call: Call) => Effect.Effect<{ message: string; value: { size_bytes: number } }, ToolFailure>) =>
  define({
    name: "probe",
    description: "Does what the test says.",
    parameters: Parameters,
    value: Schema.Struct({ size_bytes: Schema.Int }),
    does: "changes",
    idempotent: false,
    examples: [{ path: "src/main.ts" }],
    touches: ({ path }, call) => Effect.map(call.path(path), (path) => [{ access: "write", path }]),
    handle: (_, call) => handle(call)
  })

const fine = probe(() => Effect.succeed({ message: "done", value: { size_bytes: 3 } }))

const said = (input: unknown) =>
  Effect.gen(function* () {
    const { call } = yield* session(yield* memory({}))
    const { message, success, value } = yield* call(fine, input)
    assert.isFalse(success)
    assert.isUndefined(value)
    return message
  })

describe("the arguments of a call", () => {
  const cases: ReadonlyArray<readonly [what: string, input: unknown, parts: ReadonlyArray<string>]> = [
    ["a missing parameter", {}, ['"path" is missing']],
    ["a wrong type", { path: 7 }, ['"path" must be a string, and was 7']],
    ["a number out of its range", { path: "a", count: 10 }, ['"count" must be', "9", "and was 10"]],
    ["a number that is not an integer", { path: "a", count: 1.5 }, ['"count" must be an integer']],
    ["an unknown value of an enumeration", { path: "a", mode: "x" }, ['"mode" must be "create" or "append", and was "x"']],
    [
      "the name that another tool suite uses",
      { uri: "a" },
      ['"uri" is not a parameter; did you mean "path"?', '"path" is missing']
    ],
    ["the name that another tool suite uses, beside the right one", { path: "a", filePath: "b" }, ['did you mean "path"?']],
    ["a misspelled name", { pth: "a" }, ['"pth" is not a parameter; did you mean "path"?']],
    ["a misspelled name, which ends the sentence with a question", { path: "a", pth: "b" }, ['did you mean "path"? Send']],
    ["an unknown name", { path: "a", zzzzzz: 1 }, ["the parameters are path, content, count, mode and edits"]],
    [
      "a misspelled name in a list",
      { edits: [{ path: "a", odl_string: "x" }], path: "a" },
      ['"edits[0].old_string" is missing', 'did you mean "old_string"?']
    ],
    ["an object sent as a string", '{"path":"a"}', ["as a string that contains JSON, not as an object"]],
    ["a string", "src", ["as a string, not as an object"]],
    ["a list", [1], ["must be an object, and were a list"]],
    ["a number", 3, ["must be an object, and were a number"]],
    ["nothing", undefined, ['"path" is missing']]
  ]
  for (const [what, input, parts] of cases) {
    it.effect(`that do not decode are answered with the mistake and an example, for ${what}: ${JSON.stringify(input)}`, () =>
      Effect.map(said(input), (message) => {
        for (const part of parts) assert.include(message, part)
        assert.include(message, '{"path":"src/main.ts"}')
        assert.notMatch(message, /SchemaError|Expected|\n|\u0000/)
      })
    )
  }

  it.effect("that do not decode are not repeated completely in the message if they are long", () =>
    Effect.gen(function* () {
      const long = "x".repeat(1_000_000)
      for (const input of [long, { path: [long] }, { [long]: 1 }, { path: "a", mode: long }, { path: "a", edits: long }]) {
        assert.isAtMost((yield* said(input)).length, 600)
      }
      const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`field${i}`, i]))
      assert.isAtMost((yield* said(many)).length, 1500)
    })
  )

  it.effect("named like members of Object.prototype are refused as unknown parameters", () =>
    Effect.gen(function* () {
      for (const name of ["constructor", "__proto__", "toString"]) {
        assert.include(yield* said(JSON.parse(`{"path":"a","${name}":1}`)), "is not a parameter")
      }
    })
  )

  it.effect("may be null where a parameter is optional", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory({}))
      assert.isTrue((yield* call(fine, { path: "a", content: null, mode: null })).success)
      assert.include(yield* said({ path: null }), '"path" is missing')
    })
  )
})

describe("a call through dispatch", () => {
  it.effect("fails if there is no filesystem", () =>
    Effect.gen(function* () {
      const { message, success } = yield* invoke(fine, { path: "a" }, { memory: Memory.make() })
      assert.isFalse(success)
      assert.include(message, "No filesystem available")
    })
  )

  it.effect("returns a failure without a value, whose message says what happened and what to do", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory({}))
      const failing = probe(() => Effect.fail(refused("It rained.", "Take an umbrella.")))
      assert.deepStrictEqual(yield* call(failing, { path: "a" }), { message: "It rained. Take an umbrella.", success: false })
    })
  )

  it.effect("applies the limits of agents while the tool runs", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory({}))
      let seen: LimitsShape | undefined
      const looking = probe(() =>
        Effect.map(Limits, (limits) => {
          seen = limits
          return { message: "", value: { size_bytes: 0 } }
        })
      )
      yield* call(looking, { path: "a" })
      assert.deepStrictEqual(seen, agent)
      assert.include((yield* call(looking, { path: "d/".repeat(16) + "x" })).message, "too long")
    })
  )

  it.effect("dies with the defect of the tool", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory({}))
      const exit = yield* Effect.exit(
        call(
          probe(() => Effect.die("broken")),
          { path: "a" }
        )
      )
      assert.isTrue(Exit.isFailure(exit))
    })
  )

  it.effect("names no directory on the machine in its messages", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory({}))
      for (const path of ["../../etc/passwd", "a\u0000b", "", "   "]) {
        const { message, success } = yield* call(fine, { path })
        assert.isFalse(success, path)
        assert.notInclude(message, process.cwd())
      }
    })
  )
})

describe("events", () => {
  it.effect("are sent once for each call, even if it fails, dies or is interrupted", () =>
    Effect.gen(function* () {
      const { call, events } = yield* session(yield* memory({}))
      yield* call(fine, { path: "/a/./b", mode: "append" }, "1")
      yield* call(
        probe(() => Effect.fail(refused("No.", "Stop."))),
        { path: "a" },
        "2"
      )
      yield* call(fine, { pth: "a", content: "c" }, "3")
      yield* Effect.exit(
        call(
          probe(() => Effect.die("broken")),
          { path: "a" },
          "4"
        )
      )
      const reached = yield* Deferred.make<void>()
      const waiting = probe(() => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(call(waiting, { path: "a" }, "5"))
      yield* Deferred.await(reached)
      yield* TestClock.adjust(50)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(
        events.map(({ callId, success, tool }) => [tool, callId, success]),
        [
          ["probe", "1", true],
          ["probe", "2", false],
          ["probe", "3", false],
          ["probe", "4", false],
          ["probe", "5", false]
        ]
      )
      const [first, second, third, , fifth] = events
      assert.deepInclude({ ...first }, { path: "a/b", mode: "append", sizeBytes: 3, message: "done" })
      assert.strictEqual(second!.message, "No. Stop.")
      assert.deepStrictEqual(third!.params, { content: "1 character" })
      assert.strictEqual(fifth!.durationMillis, 50)
      assert.strictEqual(DateTime.toEpochMillis(fifth!.at), 50)
    })
  )

  it.effect("contain the mode of a write, even if the tool chose the mode", () =>
    Effect.gen(function* () {
      const { call, events } = yield* session(yield* memory({ a: "1" }))
      yield* call(writeFile, { path: "b", content: "2" })
      yield* call(stat, { path: "a" })
      assert.deepStrictEqual(
        events.map(({ mode }) => mode),
        ["create", undefined]
      )
    })
  )

  it.effect("contain the size of a content above 1,000 characters instead of the content", () =>
    Effect.gen(function* () {
      const long = "c".repeat(1001)
      const { call, events } = yield* session(yield* memory({ "a.txt": long }))
      yield* call("write_file", { path: "b.txt", content: long })
      yield* call("read_file", { path: "a.txt" })
      yield* call("edit_file", { path: "a.txt", old_string: long, new_string: "x" })
      yield* call("edit_file", { edits: [{ path: "b.txt", old_string: long, new_string: "x" }] })
      yield* call("write_file", { path: 3, content: long })
      assert.strictEqual(events.length, 5)
      for (const event of events) assert.notInclude(JSON.stringify(event), "c".repeat(1001))
      assert.strictEqual(events[0]!.params["content"], "1001 characters")
      assert.strictEqual(events[0]!.sizeBytes, 1001)
    })
  )

  it.effect("are sent even for a call without a filesystem", () =>
    Effect.gen(function* () {
      const events: Array<ToolInvoked> = []
      yield* invokeUnknown(fine, { path: "a" }, { memory: Memory.make() }).pipe(
        Effect.provideService(ToolEvents, (event) => Effect.sync(() => void events.push(event)))
      ) as Effect.Effect<unknown>
      assert.deepStrictEqual(
        events.map(({ success, tool }) => [tool, success]),
        [["probe", false]]
      )
    })
  )
})
