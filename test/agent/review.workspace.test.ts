/** Regression tests of a review of runs, sections and tools. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import { refused } from "../../src/agent/definition.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Prompt from "../../src/agent/Prompt.ts"
import * as Section from "../../src/agent/Section.ts"
import * as Tool from "../../src/agent/Tool.ts"
import * as ToolContexts from "../../src/agent/ToolContext.ts"
import { seven } from "../../src/agent/tools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as FsPath from "../../src/model/FsPath.ts"
import { checkpointOf, done, makeSession, section, start, tool, Value } from "./adapting.ts"
import { memory } from "./changing.ts"
import { project } from "./sectioning.ts"

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
  it.effect("must be the run's also for a tool that gets the workspace from another section", () =>
    Effect.gen(function* () {
      const [ours, theirs] = [yield* makeSession, yield* makeSession]
      const vfs = yield* Section.VfsSection({ session: theirs })
      const writes = tool("writes", ({ filesystem }) => Effect.as(filesystem.write("x.txt", ""), done))
      const { run } = yield* start([section("text", { tools: [writes] }), vfs], { session: ours })
      assert.include((yield* run.call("writes", {})).message, "another session")
      assert.isFalse(yield* (yield* vfs.filesystem).exists("x.txt"))
    }).pipe(Effect.scoped, Effect.orDie)
  )
})

describe("the event of a call", () => {
  it.effect("holds no contents of files, however short they are", () =>
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

  it.effect("given as a value apply together with those around the call, each once", () =>
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

  it.effect("from the layer of a section apply to its tools, together with those of the run", () =>
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
    it.effect(`require a read before a write also of a tool called ${name}`, () =>
      Effect.gen(function* () {
        const { fs, section } = yield* files({ "a.txt": "one" }, [overwriting(name)])
        const { run } = yield* start([section], { policies: Policy.readBeforeWrite })
        assert.isFalse((yield* run.call(name, {})).success)
        assert.strictEqual(yield* fs.readString("a.txt"), "one")
      }).pipe(Effect.scoped, Effect.orDie)
    )

    it.effect(`check the access to the root also of a tool called ${name}`, () =>
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
  it.effect("is taken before a changing tool, even when the tool is called snapshot", () =>
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
  it.effect("is spent by calls with another budget too, and neither budget can be exceeded", () =>
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
  it.effect("refuses every call and says that the run is over", () =>
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

describe("the text for a model", () => {
  const said = (made: Section.Section) =>
    Effect.map(Effect.flatMap(Prompt.make({ ns: "a", key: "b", sections: [made] }), Prompt.render), ({ text }) => text)

  it.live("names no directory of the machine for a mount", () =>
    Effect.gen(function* () {
      const root = project()
      const mounts = [{ hostPath: join(root, "src") }, { hostPath: `${root}/docs/`, mountPath: "manual" }]
      for (const make of [Section.VfsSection, Section.VfsToolsSection, Section.WorkspaceSection]) {
        const text = yield* said(yield* make({ mounts, allowedRoots: [root] }))
        assert.notInclude(text, root)
        assert.include(text, "`src` → `src`")
        assert.include(text, "`docs` → `manual`")
      }
    }).pipe(Effect.scoped, Effect.orDie)
  )

  it.live("mentions binary content only when the tools can write it", () =>
    Effect.gen(function* () {
      for (const made of [yield* Section.VfsSection(), yield* Section.VfsToolsSection()]) {
        const { parameters } = made.tools.find(({ name }) => name === "write_file")!
        const canBinary = Object.hasOwn(parameters.fields, "encoding")
        assert.strictEqual(/Binary content is possible/.test(yield* said(made)), canBinary, made.key)
      }
    }).pipe(Effect.scoped, Effect.orDie)
  )
})

describe("messages for programmer errors", () => {
  it("show the invalid example, its tool and what to do", () => {
    const parameters = Schema.Struct({ url: Schema.String })
    const made = () =>
      Tool.make({ name: "fetch", description: "d", parameters, value: Value, handle: () => Effect.succeed(done) })
    assert.throws(made, /fetch.*example \{\}.*"url".*give examples/)
  })

  it.effect("name the title from which no key can be derived", () =>
    Effect.gen(function* () {
      const sections = [Section.MarkdownSection({ title: "任務", template: "" })]
      const { message, reason } = yield* Effect.flip(Prompt.make({ ns: "a", key: "b", sections }))
      assert.strictEqual(reason, "invalid")
      assert.include(message, '"任務"')
    })
  )
})
