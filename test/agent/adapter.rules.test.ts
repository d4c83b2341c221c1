/**
 * The rules of a run: the choice of the session, the order of checks, policies, checkpoints, budgets, and the end of
 * the run.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { refused, define } from "../../src/agent/definition.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import * as ToolContexts from "../../src/agent/ToolContext.ts"
import { seven } from "../../src/agent/tools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import { checkpointOf, done, makeSession, section, start, tool, Value } from "./adapting.ts"
import { memory } from "./changing.ts"
import * as DateTime from "effect/DateTime"
import type * as Adapter from "../../src/agent/Adapter.ts"
import * as ToolContext from "../../src/agent/ToolContext.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { make as derive } from "../../src/filesystem/Filesystem.ts"
import { IoError } from "../../src/model/FsError.ts"
import { around } from "../../src/port/Backend.ts"
import { isMutation } from "../../src/port/Operation.ts"
import * as Session from "../../src/workspace/Session.ts"

const files = (contents: Parameters<typeof memory>[0] = {}, tools: ReadonlyArray<Tool.AnyDefinition> = seven) =>
  Effect.map(memory(contents), (fs) => ({ fs, section: section("files", { filesystem: Effect.succeed(fs), tools }) }))

const overwriting = (name: string) =>
  Tool.make({
    name,
    description: "Overwrites a file.",
    value: Value,
    handle: (_, { filesystem }) => Effect.as(filesystem.write("a.txt", "changed", { mode: "overwrite" }), done)
  })

describe("the session of a workspace", () => {
  it.effect("must be the session of the run, even if a tool gets the workspace from another section", () =>
    Effect.gen(function* () {
      const [ours, theirs] = [yield* makeSession, yield* makeSession]
      const vfs = yield* Section.VfsSection({ session: theirs })
      const writes = tool("writes", ({ filesystem }) => Effect.as(filesystem.write("x.txt", ""), done))
      const { run } = yield* start([section("text", { tools: [writes] }), vfs], { session: ours })
      assert.include((yield* run.call("writes", {})).message, "a different session")
      assert.isFalse(yield* (yield* vfs.filesystem).exists("x.txt"))
    }).pipe(Effect.scoped, Effect.orDie)
  )
})

describe("the event of a call", () => {
  it.effect("contains no file contents, not even short contents", () =>
    Effect.gen(function* () {
      const { section } = yield* files({ "a.txt": "hunter2\n" })
      const { events, run } = yield* start([section])
      const shown = yield* run.call("read_file", { path: "a.txt" })
      assert.include(shown.message, "hunter2")
      yield* run.call("grep", { pattern: "hunter" })
      yield* run.call("edit_file", { path: "a.txt", old_string: "hunter2", new_string: "hunter3" })
      yield* run.call("write_file", { path: "b.txt", content: "hunter4" })
      assert.deepStrictEqual(
        events.map(({ success }) => success),
        [true, true, true, true]
      )
      for (const event of events) assert.notMatch(JSON.stringify(event), /hunter\d/, event.tool)
      assert.strictEqual(events[0]!.message, `${shown.message.length} characters`)
      assert.match(events[3]!.message, /^created b\.txt/)
    }).pipe(Effect.scoped)
  )
})

describe("policies", () => {
  const forbidding = { name: "forbidding", before: () => Effect.fail(refused("It is forbidden.", "Stop.")) }
  const given = (...policies: ReadonlyArray<Policy.Policy>) => Layer.succeed(Policy.Policies, policies)

  it.effect("of the run apply together with the policies in the context of the call, each once", () =>
    Effect.gen(function* () {
      let asked = 0
      const counting = { name: "counting", before: () => Effect.sync(() => void asked++) }
      const { section } = yield* files()
      const strict = yield* start([section], { policies: given(forbidding) })
      const other = Effect.provideService(strict.run.call("ls", {}), Policy.Policies, [counting])
      assert.include((yield* other).message, "forbidden")
      const lenient = yield* start([section], { policies: given(counting) })
      asked = 0
      assert.isTrue((yield* Effect.provide(lenient.run.call("ls", {}), given(counting))).success)
      assert.strictEqual(asked, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("in the layer of a section apply to its tools, together with the policies of the run", () =>
    Effect.gen(function* () {
      for (const policies of [Policy.readOnly, given(forbidding)]) {
        const own = yield* Section.FilesystemSection({
          key: "own",
          title: "Own",
          template: "",
          tools: seven,
          layer: Layer.merge(InMemory.layer(), policies)
        })
        const { run } = yield* start([own])
        assert.isFalse((yield* run.call("write_file", { path: "a.txt", content: "" })).success)
        assert.isFalse(yield* (yield* own.filesystem).exists("a.txt"))
      }
      const lenient = yield* Section.FilesystemSection({
        key: "own",
        title: "Own",
        template: "",
        tools: seven,
        layer: Layer.merge(InMemory.layer(), given({ name: "lenient" }))
      })
      const { run } = yield* start([lenient], { policies: given(forbidding) })
      assert.include((yield* run.call("ls", {})).message, "forbidden")
    }).pipe(Effect.scoped, Effect.orDie)
  )

  for (const name of ["restore", "snapshot", "diff", "overwrite"]) {
    it.effect(`require a read before a write, even if the tool is called ${name}`, () =>
      Effect.gen(function* () {
        const { fs, section } = yield* files({ "a.txt": "one" }, [overwriting(name)])
        const { run } = yield* start([section], { policies: Policy.readBeforeWrite })
        assert.isFalse((yield* run.call(name, {})).success)
        assert.strictEqual(yield* fs.readString("a.txt"), "one")
      }).pipe(Effect.scoped, Effect.orDie)
    )

    it.effect(`check the access to the root, even if the tool is called ${name}`, () =>
      Effect.gen(function* () {
        let ran = 0
        const everything = Tool.make({
          name,
          description: "Does anything to any file.",
          value: Value,
          touches: () => Effect.succeed([{ access: "write", path: FsPath.root }]),
          handle: () => Effect.sync(() => (ran++, done))
        })
        const { section } = yield* files({}, [everything])
        const { run } = yield* start([section], { policies: Policy.access({ deny: { write: ".env" } }) })
        assert.isFalse((yield* run.call(name, {})).success)
        assert.strictEqual(ran, 0)
      }).pipe(Effect.scoped)
    )
  }
})

describe("a checkpoint", () => {
  it.effect("is taken before a changing tool, even if the name of the tool is snapshot", () =>
    Effect.gen(function* () {
      const failing = Tool.make({
        name: "snapshot",
        description: "Changes a file, and fails.",
        value: Value,
        handle: (_, { filesystem }) =>
          Effect.andThen(
            filesystem.write("a.txt", "changed", { mode: "overwrite" }),
            Effect.fail(refused("It failed.", "Stop."))
          )
      })
      const { fs, section } = yield* files({ "a.txt": "one" }, [failing])
      const session = yield* makeSession
      const { checkpoint } = yield* checkpointOf(session, fs)
      const { run } = yield* start([section], { session, checkpoint })
      assert.isFalse((yield* run.call("snapshot", {})).success)
      assert.strictEqual(yield* fs.readString("a.txt"), "one")
    }).pipe(Effect.scoped, Effect.orDie)
  )
})

describe("the budget of a run", () => {
  it.effect("also limits calls that have a budget of their own, and neither budget can be exceeded", () =>
    Effect.gen(function* () {
      const { section } = yield* files({}, [tool("idle", () => Effect.succeed(done))])
      const [own, theirs] = [yield* ToolContexts.budget(5), yield* ToolContexts.budget(100)]
      const { run } = yield* start([section], { budgetTracker: own })
      const context = { ...run.context, budgetTracker: Option.some(theirs) }
      assert.isTrue((yield* run.call("idle", {}, { context })).success)
      assert.deepStrictEqual([yield* own.left, yield* theirs.left], [1, 96])
      assert.isTrue((yield* run.call("idle", {}, { context })).success)
      const refusal = yield* run.call("idle", {}, { context })
      assert.include(refusal.message, "budget of 5")
      const none = { ...run.context, budgetTracker: Option.none() }
      assert.isFalse((yield* run.call("idle", {}, { context: none })).success)
    }).pipe(Effect.scoped, Effect.orDie)
  )
})

describe("a run that has ended", () => {
  it.effect("refuses every call with the reason that the run is over", () =>
    Effect.gen(function* () {
      let ran = 0
      const { section } = yield* files({}, [tool("counting", () => Effect.sync(() => (ran++, done)))])
      const { events, run } = yield* Effect.scoped(start([section]))
      const called = yield* run.call("counting", {})
      const begun = yield* Effect.flip(run.begin("counting", {}))
      for (const { message, success } of [called, begun]) {
        assert.isFalse(success)
        assert.include(message, "has ended")
      }
      assert.strictEqual(ran, 0)
      assert.strictEqual(events.length, 2)
    }).pipe(Effect.scoped)
  )
})

describe("a call that fails every check", () => {
  it.effect("is refused by the first check, and the later checks do not run", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ "a.txt": "one\n" })
      const session = yield* makeSession
      const { checkpoint } = yield* checkpointOf(session, fs)
      let steps: Array<string> = []
      const step = (name: string) => Effect.sync(() => void steps.push(name))
      const is = { ready: false, approved: false, room: false, able: false }

      const files = Effect.andThen(
        step("files"),
        Effect.suspend(() =>
          is.ready ? Effect.succeed(fs) : Effect.fail(new IoError({ operation: "open", path: ".", detail: "not yet" }))
        )
      )
      const work = define({
        name: "work",
        description: "Does what the test says.",
        parameters: Schema.Struct({ n: Schema.Number.annotate({ description: "A number." }) }),
        value: Value,
        does: "changes",
        idempotent: false,
        examples: [{ n: 1 }],
        touches: () => Effect.succeed([]),
        handle: (_, { filesystem }) =>
          Effect.gen(function* () {
            yield* step("handler")
            yield* filesystem.write("a.txt", "changed")
            return is.able ? done : yield* Effect.fail(refused("It did not work.", "Try another."))
          })
      })
      const full = new Session.SessionError({ operation: "take", reason: "outside", detail: "the disk is full" })
      const { run } = yield* start(
        [section("first", { filesystem: Effect.succeed(fs) }), section("files", { filesystem: files, tools: [work] })],
        {
          session,
          policies: Policy.approval(() => Effect.as(step("policies"), is.approved)),
          listener: () => step("event"),
          checkpoint: {
            ...checkpoint,
            take: (id) => Effect.andThen(step("checkpoint"), is.room ? checkpoint.take(id) : Effect.fail(full)),
            rollback: (id) => Effect.andThen(step("rollback"), checkpoint.rollback(id))
          }
        }
      )
      const late = { ...run.context, deadline: Option.some(DateTime.toUtc(DateTime.makeUnsafe(0))) }
      const poor = { ...run.context, budgetTracker: Option.some(yield* ToolContext.budget(0)) }
      const foreign = { ...late, budgetTracker: poor.budgetTracker, session: yield* makeSession }
      const latePoor = { ...late, budgetTracker: poor.budgetTracker }

      const told = Effect.fnUntraced(function* (
        said: RegExp,
        then: ReadonlyArray<string>,
        options: Adapter.CallOptions = {},
        [tool, input]: readonly [string, unknown] = ["work", { n: 1 }]
      ) {
        steps = []
        const { message, success } = yield* run.call(tool, input, options)
        assert.match(message, said)
        assert.deepStrictEqual(steps, [...then, "event"])
        assert.strictEqual(yield* fs.readString("a.txt"), success ? "changed" : "one\n")
      })
      yield* told(/no tool "wrok"/, [], { context: foreign }, ["wrok", { n: "x" }])
      yield* told(/"n" must be/, [], { context: foreign }, ["work", { n: "x" }])
      yield* told(/a different session/, [], { context: foreign })
      yield* told(/deadline for tool calls has passed/, [], { context: latePoor })
      yield* told(/budget of 0/, [], { context: poor })
      yield* told(/could not be prepared/, ["files"])
      is.ready = true
      yield* told(/not approved/, ["files", "policies"])
      is.approved = true
      yield* told(/no checkpoint could be taken.*full/, ["files", "policies", "checkpoint"])
      is.room = true
      yield* told(/It did not work/, ["files", "policies", "checkpoint", "handler", "rollback"])
      is.able = true
      yield* told(/done/, ["files", "policies", "checkpoint", "handler"])
    })
  )
})

describe("the changes of a tool", () => {
  it.live("pass through the port, so that a recorder sees the path of each change", () =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      const recorded = Effect.map(InMemory.make(), (port) =>
        derive(
          around(port, (operation, next) => {
            if (isMutation(operation)) seen.add("to" in operation ? operation.to : operation.path)
            return next
          })
        )
      )
      const files = yield* Section.FilesystemSection({
        key: "files",
        title: "Files",
        template: "",
        layer: Layer.effect(Filesystem, recorded),
        tools: seven
      })
      const { run } = yield* start([files])
      const after = Effect.fnUntraced(function* (tool: string, input: object) {
        seen.clear()
        const { message, success } = yield* run.call(tool, input)
        assert.isTrue(success, message)
        return [...seen].sort()
      })
      assert.include(yield* after("write_file", { path: "d/a.txt", content: "one\n" }), "d/a.txt")
      assert.include(yield* after("edit_file", { path: "d/a.txt", old_string: "one", new_string: "two" }), "d/a.txt")
      for (const [tool, input] of [
        ["ls", {}],
        ["read_file", { path: "d/a.txt" }],
        ["glob", { pattern: "**" }],
        ["grep", { pattern: "two" }]
      ] as const) {
        assert.deepStrictEqual(yield* after(tool, input), [], tool)
      }
      assert.include(yield* after("rm", { path: "d/a.txt" }), "d/a.txt")
    }).pipe(Effect.scoped)
  )
})
