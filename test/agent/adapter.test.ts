import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { join } from "node:path"
import * as Adapter from "../../src/agent/Adapter.ts"
import { define, refused } from "../../src/agent/definition.ts"
import { invoke, invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Tool from "../../src/agent/Tool.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import * as ToolContexts from "../../src/agent/ToolContext.ts"
import { log, ToolEvents } from "../../src/agent/ToolEvents.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { four, seven } from "../../src/agent/tools.ts"
import { IoError } from "../../src/model/FsError.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import * as Session from "../../src/workspace/Session.ts"
import { inMemory } from "../scratch.ts"
import { done, makeSession, Notes, section, start, tool, Value } from "./adapting.ts"
import { memory } from "./changing.ts"

class Weather extends Context.Service<Weather, string>()("test/Weather") {}

const at = (millis: number) => DateTime.makeUnsafe(millis)
const idle = tool("idle", () => Effect.succeed(done))
const withFiles = (files: Parameters<typeof memory>[0] = {}) =>
  Effect.map(memory(files), (fs) => ({ fs, filesystem: Effect.succeed(fs) }))

/** Asserts a failure without a value, whose message has two sentences: what happened and what to do. */
const assertRefused = (result: { readonly success: boolean; readonly message: string; readonly value?: unknown }) => {
  assert.isFalse(result.success)
  assert.notProperty(result, "value")
  assert.match(result.message, /^\S.+[.!?;] [A-Z].+[.?]$/)
}

describe("a call", () => {
  it.effect("changes the files of the section, and is reported once to the session and to the listener", () =>
    Effect.gen(function* () {
      const { filesystem, fs } = yield* withFiles({})
      const { events, logged, run } = yield* start([section("files", { filesystem, tools: seven })])
      const { message, success } = yield* run.call(
        "write_file",
        { path: "a.txt", content: "hello", mode: "create" },
        { callId: "c-1" }
      )
      assert.isTrue(success, message)
      assert.strictEqual(yield* fs.readString("a.txt"), "hello")
      assert.deepStrictEqual(yield* logged, events)
      assert.strictEqual(events.length, 1)
      assert.deepInclude(
        { ...events[0] },
        { tool: "write_file", callId: "c-1", success: true, path: "a.txt", mode: "create", sizeBytes: 5 }
      )
    })
  )

  it.effect("gets a generated id if none is given", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const { events, run } = yield* start([section("files", { filesystem, tools: [idle] })])
      yield* run.call("idle", {})
      yield* run.call("idle", {})
      assert.strictEqual(new Set(events.map(({ callId }) => callId)).size, 2)
    })
  )

  it.effect("to an unknown tool is answered with the tools of similar names, or else with all tools", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const { events, logged, run } = yield* start([section("files", { filesystem, tools: seven })])
      const near = yield* run.call("red_file", { path: "a" }, { callId: "c" })
      assertRefused(near)
      assert.include(near.message, '"red_file"')
      assert.include(near.message, "read_file")
      assert.notInclude(near.message, "grep")
      const far = yield* run.call("zzzzzzzz", {})
      assertRefused(far)
      for (const { name } of seven) assert.include(far.message, name)
      assert.deepStrictEqual(
        events.map(({ callId, success, tool }) => [tool, callId === "c", success]),
        [
          ["red_file", true, false],
          ["zzzzzzzz", false, false]
        ]
      )
      assert.strictEqual((yield* logged).length, 2)
    })
  )

  it.effect("of a tool whose name has a million characters is answered with at most 500 characters", () =>
    Effect.gen(function* () {
      const { events, run } = yield* start([section("text")])
      const result = yield* run.call("x".repeat(1_000_000), {})
      assertRefused(result)
      assert.isAtMost(result.message.length, 500)
      assert.isAtMost(events[0]!.tool.length, 500)
      assert.isFalse((yield* run.call("constructor", {})).success)
    })
  )

  it.effect("of a tool that a policy hides is refused, and its name is not suggested", () =>
    Effect.gen(function* () {
      const { filesystem, fs } = yield* withFiles({})
      const { run } = yield* start([section("files", { filesystem, tools: seven })], { policies: Policy.readOnly })
      assert.deepStrictEqual(
        run.tools.map(({ definition }) => definition.name),
        ["ls", "read_file", "glob", "grep"]
      )
      assertRefused(yield* run.call("write_file", { path: "a", content: "" }))
      assert.notInclude((yield* run.call("write_fil", {})).message, "write_file")
      assert.isFalse(yield* fs.exists("a"))
    })
  )

  it.effect("with arguments that do not decode is answered with the reason", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const { events, run } = yield* start([section("files", { filesystem, tools: seven })])
      const { message, success } = yield* run.call("read_file", { pth: "a" })
      assert.isFalse(success)
      assert.include(message, 'did you mean "path"?')
      assert.deepStrictEqual(
        events.map(({ success }) => success),
        [false]
      )
    })
  )

  it.effect("dies when the tool dies, and is reported", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const broken = tool("broken", () => Effect.die("broken"))
      const { events, logged, run } = yield* start([section("files", { filesystem, tools: [broken] })])
      assert.isTrue(Exit.hasDies(yield* Effect.exit(run.call("broken", {}))))
      assert.deepStrictEqual([events.length, (yield* logged).length, events[0]!.success], [1, 1, false])
    })
  )

  it.effect("is recorded in the session even if the listener dies", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const { logged, run } = yield* start([section("files", { filesystem, tools: [idle] })], {
        listener: () => Effect.die("deaf")
      })
      assert.isTrue(Exit.hasDies(yield* Effect.exit(run.call("idle", {}))))
      assert.strictEqual((yield* logged).length, 1)
    })
  )

  it.effect("that a tool makes to another tool is reported once, before the call of the first tool", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const self: { run?: Adapter.Run } = {}
      const outer = tool("outer", () => Effect.map(self.run!.call("idle", {}), ({ message }) => ({ message, value: {} })))
      const { events, logged, run } = yield* start([section("files", { filesystem, tools: [outer, idle] })])
      self.run = run
      assert.strictEqual((yield* run.call("outer", {})).message, "done")
      const told = ["idle", "outer"]
      assert.deepStrictEqual(
        events.map(({ tool }) => tool),
        told
      )
      assert.deepStrictEqual(
        (yield* logged).map(({ tool }) => tool),
        told
      )
    })
  )

  it.effect("obeys the policies of the run and of its caller, and reports to the caller's listener", () =>
    Effect.gen(function* () {
      const { filesystem, fs } = yield* withFiles({ "a.txt": "one\n", ".env": "x" })
      const files = section("files", { filesystem, tools: seven })
      const { run } = yield* start([files], { policies: Policy.access({ deny: { read: ".env" } }) })
      assert.isFalse((yield* run.call("read_file", { path: ".env" })).success)
      const write = run.call("write_file", { path: "b.txt", content: "" })
      assertRefused(yield* write.pipe(Effect.provide(Policy.readOnly)))
      assert.isFalse(yield* fs.exists("b.txt"))
      let heard = 0
      yield* Effect.provideService(write, ToolEvents, () => Effect.sync(() => void heard++))
      assert.isTrue(yield* fs.exists("b.txt"))
      assert.strictEqual(heard, 1)
    })
  )

  it.effect("knows the files that other calls of the same run have read", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles({ "a.txt": "one\n" })
      const sections = [section("files", { filesystem, tools: seven })]
      const edit = { path: "a.txt", old_string: "one", new_string: "two" }
      const first = yield* start(sections, { policies: Policy.readBeforeWrite })
      const second = yield* start(sections, { policies: Policy.readBeforeWrite })
      yield* first.run.call("read_file", { path: "a.txt" })
      assertRefused(yield* second.run.call("edit_file", edit))
      assert.isTrue((yield* first.run.call("edit_file", edit)).success)
    })
  )
})

describe("the memory of a run", () => {
  it.effect("counts reads separately for each filesystem, but calls for all filesystems together", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* withFiles({ "a.txt": "same\n" }), yield* withFiles({ "a.txt": "same\n" })]
      const renamed = (name: string, as: string) => ({ ...seven.find((tool) => tool.name === name)!, name: as })
      const sections = [
        section("one", { filesystem: one.filesystem, tools: seven }),
        section("two", { filesystem: two.filesystem, tools: [renamed("write_file", "write_two"), idle] })
      ]
      const policies = Layer.merge(Policy.readBeforeWrite, Policy.order({ idle: ["read_file"] }))
      const { run } = yield* start(sections, { policies })
      const write = { path: "a.txt", content: "new", mode: "overwrite" }
      assertRefused(yield* run.call("idle", {}))
      yield* run.call("read_file", { path: "a.txt" })
      assertRefused(yield* run.call("write_two", write))
      assert.isTrue((yield* run.call("write_file", write)).success)
      assert.isTrue((yield* run.call("idle", {})).success)
      assert.strictEqual(yield* two.fs.readString("a.txt"), "same\n")
    })
  )
})

describe("the event of a call", () => {
  it.effect("can be saved for any parameters, and contains the number of bytes instead of the bytes", () =>
    Effect.gen(function* () {
      const odd = define({
        name: "odd",
        description: "Takes what JSON has not.",
        parameters: Schema.Struct({
          big: Schema.BigIntFromString,
          bytes: Schema.Uint8ArrayFromBase64,
          when: Schema.DateTimeUtcFromString,
          number: Schema.NumberFromString,
          maybe: Schema.OptionFromNullOr(Schema.String).pipe(Schema.optionalKey)
        }),
        value: Value,
        does: "reads",
        idempotent: true,
        needsFilesystem: false,
        examples: [{ big: "1", bytes: "", when: "2026-01-02T03:04:05Z", number: "1" }],
        touches: () => Effect.succeed([]),
        handle: () => Effect.succeed(done)
      })
      const { logged, run, session } = yield* start([section("text", { tools: [odd] })])
      const sent = { big: "12345678901234567890", bytes: "AQID", when: "2026-01-02T03:04:05Z", number: "NaN" }
      const { message, success } = yield* run.call("odd", sent)
      assert.isTrue(success, message)
      const [{ params }] = (yield* logged) as unknown as [{ params: Record<string, unknown> }]
      assert.deepInclude(params, { big: "12345678901234567890", bytes: "3 bytes", number: "NaN" })
      const path = join(inMemory(), "odd.json")
      yield* session.save(path)
      assert.deepStrictEqual(yield* (yield* Session.load(path, { slices: [Notes, log] })).all(log), yield* logged)
    }).pipe(Effect.orDie)
  )
})

describe("the session", () => {
  it.effect("in the caller's context must be the session of the run", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      let ran = 0
      const counting = tool("counting", () => Effect.sync(() => (ran++, done)))
      const { events, logged, run } = yield* start([section("files", { filesystem, tools: [counting] })])
      const other = { ...run.context, session: yield* makeSession }
      assertRefused(yield* run.call("counting", {}, { context: other }))
      assert.strictEqual(ran, 0)
      assert.include((yield* run.call("counting", { path: 1 }, { context: other })).message, '"path"')
      assert.isTrue((yield* run.call("counting", {}, { context: run.context })).success)
      assert.strictEqual(ran, 1)
      assert.strictEqual(events.length, 3)
      assert.strictEqual((yield* logged).length, 3)
    })
  )

  it.effect("that a section declares must be the session of the run", () =>
    Effect.gen(function* () {
      const [ours, theirs] = [yield* makeSession, yield* makeSession]
      const { filesystem } = yield* withFiles()
      const sections = [
        section("ours", { filesystem, tools: [idle], session: ours }),
        section("theirs", { filesystem, tools: [tool("foreign", () => Effect.die("it was called"))], session: theirs })
      ]
      const { run } = yield* start(sections, { session: ours })
      assert.isTrue((yield* run.call("idle", {})).success)
      assertRefused(yield* run.call("foreign", {}))
      assertRefused(yield* run.call("foreign", {}, { context: { ...run.context, session: theirs } }))
    })
  )
})

describe("the deadline", () => {
  const files = Effect.map(withFiles(), ({ filesystem }) => section("files", { filesystem, tools: [idle] }))

  it.effect("of a run is the earlier of the prompt's deadline and the deadline in the options of the run", () =>
    Effect.gen(function* () {
      const sections = [yield* files]
      for (const [prompts, callers, expected] of [
        [100, 200, 100],
        [200, 100, 100],
        [100, undefined, 100],
        [undefined, 200, 200],
        [undefined, undefined, undefined]
      ] as const) {
        const { run } = yield* start(sections, {
          promptDeadline: prompts === undefined ? undefined : at(prompts),
          deadline: callers === undefined ? undefined : at(callers)
        })
        const millis = Option.map(run.context.deadline, DateTime.toEpochMillis)
        assert.strictEqual(Option.getOrUndefined(millis), expected)
      }
    })
  )

  it.effect("refuses calls once it has passed, and cannot be extended by the context of a caller", () =>
    Effect.gen(function* () {
      const { run } = yield* start([yield* files], { deadline: at(1000) })
      assert.isTrue((yield* run.call("idle", {})).success)
      const soon = { ...run.context, deadline: Option.some(DateTime.toUtc(at(500))) }
      const late = { ...run.context, deadline: Option.some(DateTime.toUtc(at(5000))) }
      const never = { ...run.context, deadline: Option.none() }
      yield* TestClock.adjust(500)
      assertRefused(yield* run.call("idle", {}, { context: soon }))
      assert.isTrue((yield* run.call("idle", {}, { context: late })).success)
      yield* TestClock.adjust(500)
      for (const context of [undefined, late, never]) {
        const result = yield* run.call("idle", {}, { context })
        assertRefused(result)
        assert.include(result.message, "1970-01-01T00:00:01.000Z")
      }
    })
  )

  it.effect("prevents a filesystem from being opened once it has passed", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const later = Effect.die("it was made")
      const sections = [section("files", { filesystem }), section("later", { filesystem: later, tools: [idle] })]
      const { run } = yield* start(sections, { deadline: at(1000) })
      yield* TestClock.adjust(1000)
      assertRefused(yield* run.call("idle", {}))
    })
  )

  it.effect("interrupts a running call", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const [reached, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const waiting = tool("waiting", () =>
        Effect.andThen(Deferred.succeed(reached, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
        )
      )
      const { events, run } = yield* start([section("files", { filesystem, tools: [waiting] })], { deadline: at(1000) })
      const fiber = yield* Effect.forkChild(run.call("waiting", {}))
      yield* Deferred.await(reached)
      yield* TestClock.adjust(1000)
      assertRefused(yield* Fiber.join(fiber))
      yield* Deferred.await(ended)
      assert.deepStrictEqual([events.length, events[0]!.durationMillis], [1, 1000])
    })
  )

  it.effect("ends a call that waits for approval", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const policies = Policy.approval(() => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never))
      const { run } = yield* start([yield* files], { deadline: at(1000), policies })
      const fiber = yield* Effect.forkChild(run.call("idle", {}))
      yield* Deferred.await(asked)
      yield* TestClock.adjust(1000)
      assertRefused(yield* Fiber.join(fiber))
    })
  )
})

describe("the budget", () => {
  it.effect("is charged for the messages of results in the configured unit, and refuses calls once it is empty", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      let ran = 0
      const saying = tool("saying", () => Effect.sync(() => (ran++, { message: "four words are here", value: {} })))
      const budgetTracker = yield* ToolContexts.budget(7)
      const words = Layer.succeed(ToolSettings, { ...defaults, measure: (text: string) => text.split(" ").length })
      const { run } = yield* start([section("files", { filesystem, tools: [saying] })], { budgetTracker, policies: words })
      assert.isTrue((yield* run.call("saying", {})).success)
      assert.strictEqual(yield* budgetTracker.left, 3)
      assert.isTrue((yield* run.call("saying", {})).success)
      assert.strictEqual(yield* budgetTracker.left, 0)
      const result = yield* run.call("saying", {})
      assertRefused(result)
      assert.include(result.message, "7")
      assert.strictEqual(ran, 2)
    })
  )

  it.effect("is charged for refusals, and together with a budget in the context of the caller", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles()
      const [own, theirs] = [yield* ToolContexts.budget(1_000_000), yield* ToolContexts.budget(1_000_000)]
      const { run } = yield* start([section("files", { filesystem, tools: [idle] })], { budgetTracker: own })
      const unknown = yield* run.call("nothing", {})
      const undecodable = yield* run.call("idle", { path: 1 })
      const left = 1_000_000 - unknown.message.length - undecodable.message.length
      assert.strictEqual(yield* own.left, left)
      yield* run.call("idle", {}, { context: { ...run.context, budgetTracker: Option.some(theirs) } })
      assert.strictEqual(yield* own.left, left - "done".length)
      assert.strictEqual(yield* theirs.left, 1_000_000 - "done".length)
    })
  )
})

describe("the filesystem of a tool", () => {
  const reading = (name: string) =>
    tool(name, ({ filesystem }) => Effect.map(filesystem.readString("who.txt"), (message) => ({ message, value: {} })))

  it.effect("is the filesystem of its section, or else the first filesystem of the prompt", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* withFiles({ "who.txt": "one" }), yield* withFiles({ "who.txt": "two" })]
      const { run } = yield* start([
        section("text", { tools: [reading("of_text")] }),
        section("outer", {
          tools: [reading("of_outer")],
          children: [section("one", { filesystem: one.filesystem, tools: [reading("of_one")] })]
        }),
        section("two", {
          filesystem: two.filesystem,
          tools: [reading("of_two")],
          children: [section("inner", { tools: [reading("of_inner")] })]
        })
      ])
      const said = (name: string) => Effect.map(run.call(name, {}), ({ message }) => message)
      assert.strictEqual(yield* said("of_one"), "one")
      assert.strictEqual(yield* said("of_two"), "two")
      for (const name of ["of_text", "of_outer", "of_inner"]) assert.strictEqual(yield* said(name), "one", name)
      assert.strictEqual(Option.getOrUndefined(run.context.filesystem), one.fs)
    })
  )

  it.effect("is missing if no section has a filesystem", () =>
    Effect.gen(function* () {
      const { events, run } = yield* start([section("text", { tools: four })])
      const result = yield* run.call("list_directory", {})
      assertRefused(result)
      assert.include(result.message, "No filesystem available")
      assert.strictEqual(events.length, 1)
      assert.isTrue(Option.isNone(run.context.filesystem))
    })
  )

  it.effect("may be missing if the tool declares that it needs none; every use then fails with Unavailable", () =>
    Effect.gen(function* () {
      const free = tool("free", () => Effect.succeed(done), { needsFilesystem: false })
      const curious = tool(
        "curious",
        ({ filesystem }) =>
          Effect.gen(function* () {
            assert.isTrue(Option.isNone((yield* ToolContext).filesystem))
            for (const attempt of [
              filesystem.readString("a"),
              filesystem.write("a", "b"),
              filesystem.list(),
              filesystem.stat("a"),
              filesystem.glob("**"),
              filesystem.grep("a"),
              filesystem.exists("a"),
              filesystem.delete("a", { missing: "ignore" }),
              filesystem.mkdir("d"),
              filesystem.move("a", "b"),
              filesystem.copy("a", "b"),
              filesystem.version("a"),
              filesystem.symlink("a", "b"),
              filesystem.readLink("a")
            ]) {
              const result = yield* Effect.result(attempt as Effect.Effect<unknown, { readonly _tag: string }>)
              assert.strictEqual(Result.isFailure(result) && result.failure._tag, "Unavailable")
            }
            return yield* filesystem.read("a").pipe(Effect.as(done))
          }),
        { needsFilesystem: false }
      )
      const sections = [section("text", { tools: [free, curious] })]
      for (const policies of [Layer.empty, Policy.readBeforeWrite, Policy.access({ deny: { write: "*.env" } })]) {
        const { run } = yield* start(sections, { policies })
        assert.isTrue((yield* run.call("free", {})).success)
        assertRefused(yield* run.call("curious", {}))
      }
    }).pipe(Effect.orDie)
  )

  it.effect("is required only if the tool touches paths, declares the need, or uses the filesystem", () =>
    Effect.gen(function* () {
      const common = { description: "Tells the time.", value: Value }
      const clock = Tool.make({ ...common, name: "clock", handle: () => Effect.succeed(done) })
      const looking = Tool.make({
        ...common,
        name: "looking",
        handle: (_, { filesystem }) => Effect.as(filesystem.list(), done)
      })
      const touching = Tool.make({
        ...common,
        name: "touching",
        touches: () => Effect.succeed([{ access: "read", path: FsPath.root } as const]),
        handle: () => Effect.die("it was called")
      })
      const strict = Tool.make({ ...common, name: "strict", needsFilesystem: true, handle: () => Effect.die("it was called") })
      const { run } = yield* start([section("text", { tools: [clock, looking, touching, strict] })])
      assert.isTrue((yield* run.call("clock", {})).success)
      assert.isTrue((yield* invoke(clock, {}, { memory: Memory.make() })).success)
      for (const name of ["looking", "touching", "strict"]) {
        const result = yield* run.call(name, {})
        assertRefused(result)
        assert.include(result.message, "No filesystem available", name)
      }
    })
  )

  it.effect("may be missing outside of a run if the tool declares that it needs none", () =>
    Effect.gen(function* () {
      const free = tool("free", () => Effect.succeed(done), { needsFilesystem: false })
      for (const [definition, expected] of [
        [free, true],
        [idle, false]
      ] as const) {
        const call = invokeUnknown(definition, {}, { memory: Memory.make() }) as unknown as Effect.Effect<{
          readonly success: boolean
        }>
        assert.strictEqual((yield* call).success, expected)
      }
    })
  )

  it.effect("is passed to the tool even if the tool declares that it needs none", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles({ "who.txt": "one" })
      const free = { ...reading("free"), needsFilesystem: false }
      const { run } = yield* start([section("files", { filesystem }), section("text", { tools: [free] })])
      assert.strictEqual((yield* run.call("free", {})).message, "one")
    })
  )

  it.effect("makes calls that need it fail for as long as it cannot be opened", () =>
    Effect.gen(function* () {
      const { filesystem } = yield* withFiles({ "who.txt": "at last" })
      let tries = 0
      const failing = Effect.suspend(() =>
        tries++ < 2
          ? Effect.fail(new IoError({ operation: "open", path: "", detail: "/secret/place is broken", code: "EIO" }))
          : filesystem
      )
      const first = yield* withFiles({})
      const free = tool("free", () => Effect.succeed(done), { needsFilesystem: false })
      const { run } = yield* start([
        section("files", { filesystem: first.filesystem }),
        section("late", { filesystem: failing, tools: [reading("late"), free] })
      ])
      const result = yield* run.call("late", {})
      assertRefused(result)
      assert.include(result.message, "The late")
      assert.notInclude(result.message, "/secret/place")
      assert.isTrue((yield* run.call("free", {})).success)
      assert.strictEqual((yield* run.call("late", {})).message, "at last")
    })
  )

  it.effect("makes the run fail if it is the first filesystem of the prompt and cannot be opened", () =>
    Effect.gen(function* () {
      const error = new IoError({ operation: "open", path: "", detail: "broken", code: "EIO" })
      const sections = [section("files", { filesystem: Effect.fail(error), tools: [idle] })]
      assert.strictEqual(yield* Effect.flip(start(sections)), error)
    })
  )

  it.effect("comes with the services of its section, also for tools of sections without services", () =>
    Effect.gen(function* () {
      const asking = (name: string) => tool(name, () => Effect.map(Weather, (message) => ({ message, value: {} })))
      const [one, two] = [yield* withFiles(), yield* withFiles()]
      const weather = (text: string) => Effect.succeed(Context.make(Weather, text) as Context.Context<never>)
      const { run } = yield* start([
        section("one", { filesystem: one.filesystem, services: weather("sun"), tools: [asking("of_one")] }),
        section("two", { filesystem: two.filesystem, services: weather("rain"), tools: [asking("of_two")] }),
        section("text", { tools: [asking("of_text")] }),
        section("own", { services: weather("snow"), tools: [asking("of_own")] })
      ]).pipe(Effect.provideService(Weather, "fog"))
      for (const [name, expected] of [
        ["of_one", "sun"],
        ["of_two", "rain"],
        ["of_text", "sun"],
        ["of_own", "snow"]
      ] as const)
        assert.strictEqual((yield* run.call(name, {})).message, expected, name)
    })
  )
})

describe("the context of a tool", () => {
  it.effect(
    "has the prompt, adapter, session, deadline and budget of the run, and the filesystem as the policies restrict it",
    () =>
      Effect.gen(function* () {
        const { filesystem, fs } = yield* withFiles({ "a.txt": "one" })
        const seen: Array<ToolContexts.Operations> = []
        const looking = tool("looking", (call) =>
          Effect.gen(function* () {
            const context = yield* ToolContext
            seen.push(context)
            assert.strictEqual(Option.getOrUndefined(context.filesystem), call.filesystem)
            return done
          })
        )
        const budgetTracker = yield* ToolContexts.budget(1000)
        const sections = [section("files", { filesystem, tools: [looking] })]
        const { run, session } = yield* start(sections, { budgetTracker, deadline: at(5) })
        yield* run.call("looking", {})
        const [context] = seen
        assert.isTrue(Object.isFrozen(context))
        assert.isTrue(Object.isFrozen(run.context))
        assert.strictEqual(context!.session, session)
        assert.strictEqual(context!.adapter, run.context.adapter)
        assert.strictEqual(context!.prompt, run.rendered.prompt)
        assert.strictEqual(Option.getOrUndefined(context!.renderedPrompt), run.rendered)
        assert.strictEqual(Option.getOrUndefined(context!.budgetTracker), budgetTracker)
        assert.strictEqual(DateTime.toEpochMillis(Option.getOrThrow(context!.deadline)), 5)
        assert.strictEqual(Option.getOrUndefined(context!.filesystem), fs)

        const policed = yield* start(sections, { policies: Policy.access({ deny: { read: "a.txt" } }) })
        yield* policed.run.call("looking", {})
        assert.isFalse(yield* Option.getOrThrow(seen[1]!.filesystem).exists("a.txt"))
      })
  )

  it.effect("is available to the handler of a user's tool", () =>
    Effect.gen(function* () {
      const strict = tool("strict", () =>
        Effect.flatMap(ToolContext, ({ session }) => Effect.fail(refused(`Session ${session.id} says no.`, "Ask it.")))
      )
      const { filesystem } = yield* withFiles()
      const { run, session } = yield* start([section("files", { filesystem, tools: [strict] })])
      assert.strictEqual((yield* run.call("strict", {})).message, `Session ${session.id} says no. Ask it.`)
    })
  )
})

describe("the scripted adapter", () => {
  const sections = Effect.map(withFiles({ "a.txt": "one\n" }), ({ filesystem }) => [
    section("files", { filesystem, tools: seven })
  ])

  it.effect("makes the calls of a list, and returns their results", () =>
    Effect.gen(function* () {
      const [session, prompt] = [
        yield* makeSession,
        yield* Prompt.make({ ns: "tests", key: "scripted", sections: yield* sections })
      ]
      const script = [
        { tool: "read_file", input: { path: "a.txt" } },
        { tool: "edit_file", input: { path: "a.txt", old_string: "one", new_string: "two" } },
        { tool: "no_such_tool", input: {} },
        { tool: "read_file", input: { path: "a.txt" } }
      ]
      const transcript = yield* Adapter.scripted(script).run(prompt, { session })
      assert.deepStrictEqual(
        transcript.map(({ input, tool }) => ({ input, tool })),
        script.map(({ input, tool }) => ({ input, tool }))
      )
      assert.deepStrictEqual(
        transcript.map(({ result }) => result.success),
        [true, true, false, true]
      )
      assert.deepInclude(transcript[3]!.result.value as object, { content: "two" })
    })
  )

  it.effect("computes each call from the transcript so far", () =>
    Effect.gen(function* () {
      const prompt = yield* Prompt.make({ ns: "tests", key: "scripted", sections: yield* sections })
      const { run } = Adapter.scripted((transcript) =>
        transcript.length === 0
          ? { tool: "glob", input: { pattern: "*" }, callId: "first" }
          : transcript.at(-1)!.tool === "glob"
            ? Effect.succeed({
                tool: "read_file",
                input: { path: (transcript[0]!.result.value as { matches: [{ path: string }] }).matches[0].path }
              })
            : undefined
      )
      const transcript = yield* run(prompt, { session: yield* makeSession })
      assert.deepStrictEqual(
        transcript.map(({ result, tool }) => [tool, result.success]),
        [
          ["glob", true],
          ["read_file", true]
        ]
      )
    })
  )
})
