import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as Toolkit from "effect/ai/Toolkit"
import { define, type Definition, refused } from "../../src/agent/definition.ts"
import * as FilesystemToolkit from "../../src/agent/FilesystemToolkit.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as Tools from "../../src/agent/tools.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import { capture, type Files } from "../../src/testing/Files.ts"
import { type Ground, host, memory } from "./changing.ts"
import { session, snapshotsOf } from "./policing.ts"

const files: Files = { "a.txt": "one\n", "d/b.txt": "two\n" }

/** Builds a tool that writes `a.txt` and removes `d`, then runs the given effect. */
const half = (
  then: Effect.Effect<{ message: string; value: {} }, ReturnType<typeof refused>>
): Definition<"half", {}, typeof Value, never> =>
  define({
    name: "half",
    description: "Changes two things, and then does what the test says.",
    parameters: Schema.Struct({}),
    value: Value,
    does: "changes",
    idempotent: false,
    examples: [{}],
    touches: () => Effect.succeed([]),
    handle: (_, { filesystem }) =>
      Effect.andThen(Effect.andThen(filesystem.write("a.txt", "changed"), filesystem.delete("d", { recursive: true })), then)
  })
const Value = Schema.Struct({})
const ok = Effect.succeed({ message: "done", value: {} })

const tagsOf = (services: Context.Context<never>) =>
  Effect.map(Context.getUnsafe(services as Context.Context<Snapshots>, Snapshots).list, (all) => all.map(({ tag }) => tag))

for (const [name, ground] of [
  ["memory", memory],
  ["a host", host]
] as ReadonlyArray<readonly [string, Ground]>) {
  describe(`Policy.checkpoint in ${name}`, () => {
    const started = Effect.gen(function* () {
      const fs = yield* ground(files)
      const services = yield* snapshotsOf(fs)
      return { ...(yield* session(fs, Policy.checkpoint, services)), services }
    })

    it.live("takes a snapshot named after tool and call before a changing tool, and none before a reading tool", () =>
      Effect.gen(function* () {
        const { call, services } = yield* started
        yield* call("read_file", { path: "a.txt" }, "call-1")
        assert.deepStrictEqual(yield* tagsOf(services), [])
        yield* call("edit_file", { path: "a.txt", old_string: "one", new_string: "x" }, "call-2")
        assert.deepStrictEqual(yield* tagsOf(services), ["pre:edit_file:call-2"])
        const snapshots = Context.getUnsafe(services as Context.Context<Snapshots>, Snapshots)
        const [snapshot] = yield* snapshots.list
        const { callId, tool } = yield* snapshots.details(snapshot!)
        assert.deepStrictEqual({ callId, tool }, { callId: "call-2", tool: "edit_file" })
        assert.strictEqual(yield* (yield* snapshots.view(snapshot!)).readString("a.txt"), "one\n")
      }).pipe(Effect.orDie)
    )

    it.live("restores the files and removes the snapshot if a tool fails", () =>
      Effect.gen(function* () {
        const { call, fs, services } = yield* started
        const before = yield* capture(fs.port)
        const { message, success } = yield* call(half(Effect.fail(refused("It did not work.", "Try another."))), {})
        assert.isFalse(success)
        assert.strictEqual(message, "It did not work. Try another.")
        assert.deepStrictEqual(yield* capture(fs.port), before)
        assert.deepStrictEqual(yield* tagsOf(services), [])
      }).pipe(Effect.orDie)
    )

    it.live("restores the files if a tool dies", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* started
        const before = yield* capture(fs.port)
        const exit = yield* Effect.exit(call(half(Effect.die("broken")), {}))
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(yield* capture(fs.port), before)
      }).pipe(Effect.orDie)
    )

    it.live("restores the files if a tool is interrupted", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* started
        const before = yield* capture(fs.port)
        const reached = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          call(half(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)), {})
        )
        yield* Deferred.await(reached)
        assert.notDeepEqual(yield* capture(fs.port), before)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* capture(fs.port), before)
      }).pipe(Effect.orDie)
    )

    it.live("makes other writers wait, and keeps their writes at a rollback", () =>
      Effect.gen(function* () {
        const { call, fs } = yield* started
        const reached = yield* Deferred.make<void>()
        const go = yield* Deferred.make<void>()
        const failing = Effect.andThen(
          Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go)),
          Effect.fail(refused("It did not work.", "Try another."))
        )
        const fiber = yield* Effect.forkChild(call(half(failing), {}))
        yield* Deferred.await(reached)
        const other = yield* Effect.forkChild(fs.write("theirs.txt", "theirs"))
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(fiber)
        yield* Fiber.join(other)
        assert.strictEqual(yield* fs.readString("theirs.txt"), "theirs")
        assert.strictEqual(yield* fs.readString("a.txt"), "one\n")
      }).pipe(Effect.orDie)
    )

    it.live("accepts a call id of several lines with invalid characters", () =>
      Effect.gen(function* () {
        const { call } = yield* started
        const { message, success } = yield* call("mkdir", { path: "new" }, `a\nb\u0000${"x".repeat(5000)}\ud800`)
        assert.isTrue(success, message)
      }).pipe(Effect.orDie)
    )
  })
}

describe("Policy.checkpoint", () => {
  it.effect("refuses the call and changes nothing if no snapshot can be taken", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const services = yield* snapshotsOf(fs)
      const snapshots = Context.getUnsafe(services as Context.Context<Snapshots>, Snapshots)
      const { SnapshotError } = yield* Effect.promise(() => import("../../src/history/Snapshots.ts"))
      const broken = Effect.fail(new SnapshotError({ operation: "snapshot", reason: "budget", detail: "there is too much" }))
      const { call } = yield* session(
        fs,
        Policy.checkpoint,
        Context.add(services, Snapshots, { ...snapshots, snapshot: () => broken }) as Context.Context<never>
      )
      const before = yield* capture(fs.port)
      const { message, success } = yield* call("rm", { path: "a.txt" })
      assert.isFalse(success)
      assert.include(message, "there is too much")
      assert.deepStrictEqual(yield* capture(fs.port), before)
    })
  )

  it.effect("is not necessary for atomic writes: an interrupted write leaves the old file or the new file", () =>
    Effect.gen(function* () {
      const { call, fs } = yield* session(yield* host(files))
      const before = yield* capture(fs.port)
      const fiber = yield* Effect.forkChild(
        call("write_file", { path: "a.txt", content: "x".repeat(40_000), mode: "overwrite" })
      )
      yield* Fiber.interrupt(fiber)
      const after = yield* capture(fs.port)
      assert.isTrue(after["a.txt"] === before["a.txt"] || after["a.txt"] === `file ${JSON.stringify("x".repeat(40_000))}`)
      assert.deepStrictEqual(Object.keys(after), Object.keys(before))
    })
  )
})

describe("Policy.order", () => {
  it.effect("refuses a tool until its prerequisites have succeeded", () =>
    Effect.gen(function* () {
      const { call } = yield* session(yield* memory(files), Policy.order({ rm: ["ls", "read_file"] }))
      assert.include((yield* call("rm", { path: "a.txt" })).message, "rm needs ls and read_file first.")
      yield* call("ls", {})
      yield* call("read_file", { path: "missing" })
      assert.include((yield* call("rm", { path: "a.txt" })).message, "rm needs read_file first.")
      yield* call("read_file", { path: "a.txt" })
      assert.isTrue((yield* call("rm", { path: "a.txt" })).success)
    })
  )

  it.effect("counts calls for each session separately", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const policy = Policy.order({ rm: ["ls"] })
      yield* (yield* session(fs, policy)).call("ls", {})
      assert.isFalse((yield* (yield* session(fs, policy)).call("rm", { path: "a.txt" })).success)
    })
  )
})

describe("Policy.approval", () => {
  it.effect("passes the decoded call to its function, and prevents a refused call", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const policy = Policy.approval(({ callId, mutates, params, tool, touches }) =>
        Effect.sync(() => {
          asked.push({ callId, mutates, params, tool, touches })
          return mutates ? { reason: "not on a Sunday" } : true
        })
      )
      const { call, fs } = yield* session(yield* memory(files), policy)
      const before = yield* capture(fs.port)
      assert.isTrue((yield* call("ls", {})).success)
      const { message, success } = yield* call("rm", { path: "/d/../a.txt", allow_missing: null }, "7")
      assert.isFalse(success)
      assert.include(message, "rm was not approved: not on a Sunday.")
      assert.deepStrictEqual(asked[1], {
        callId: "7",
        mutates: true,
        params: { path: "/d/../a.txt" },
        tool: "rm",
        touches: [{ access: "delete", path: "a.txt" }]
      })
      assert.deepStrictEqual(yield* capture(fs.port), before)
    })
  )

  it.effect("does not ask about a call that is refused for another reason", () =>
    Effect.gen(function* () {
      let asked = 0
      const policies = Layer.mergeAll(
        Policy.access({ deny: { delete: "a.txt" } }),
        Policy.approval(() => Effect.sync(() => ++asked > 0)),
        Policy.readBeforeWrite
      )
      const { call } = yield* session(yield* memory(files), policies)
      yield* call("rm", { path: "a.txt" })
      yield* call("rm", { path: "d/b.txt" })
      yield* call("rm", { path: 3 })
      yield* call("rm", { path: "d" })
      assert.strictEqual(asked, 0)
      yield* call("mkdir", { path: "new" })
      assert.strictEqual(asked, 1)
    })
  )

  it.effect("may use services, which the layer of the policy then requires", () =>
    Effect.gen(function* () {
      class Human extends Context.Service<Human, { readonly says: boolean }>()("test/Human") {}
      const policy = Policy.approval(() => Effect.map(Human, ({ says }) => says))
      const { call } = yield* session(yield* memory(files), policy.pipe(Layer.provide(Layer.succeed(Human, { says: false }))))
      assert.include((yield* call("ls", {})).message, "ls was not approved.")
    })
  )
})

describe("Policy.deadline", () => {
  it.effect("interrupts a running call at the deadline, and refuses later calls", () =>
    Effect.gen(function* () {
      const at = DateTime.makeUnsafe(1000)
      const { call } = yield* session(yield* memory(files), Policy.deadline(at))
      assert.isTrue((yield* call("ls", {})).success)
      const fiber = yield* Effect.forkChild(call(half(Effect.never), {}))
      yield* TestClock.adjust(1000)
      const { message, success } = yield* Fiber.join(fiber)
      assert.isFalse(success)
      assert.include(message, "1970-01-01T00:00:01.000Z")
      assert.include((yield* call("ls", {})).message, "1970-01-01T00:00:01.000Z")
    })
  )
})

describe("Policy.readOnly", () => {
  it.effect("hides changing tools and refuses their calls", () =>
    Effect.gen(function* () {
      const { call, fs } = yield* session(yield* memory(files), Policy.readOnly)
      const offers = yield* Effect.scoped(
        Effect.flatMap(Layer.build(Policy.readOnly), (context) => Effect.provideContext(Policy.offered, context))
      )
      const before = yield* capture(fs.port)
      const every = [...Tools.seven, ...Tools.extras, ...Tools.snapshotTools, ...Tools.four, ...Tools.sandboxTools]
      for (const tool of every) {
        assert.strictEqual(offers(tool), tool.does === "reads", tool.name)
        if (tool.does === "reads") continue
        const { message, success } = yield* call(tool, tool.examples[0])
        assert.isFalse(success)
        assert.include(message, "may be read but not changed")
      }
      assert.isTrue((yield* call("read_file", { path: "a.txt" })).success)
      assert.deepStrictEqual(yield* capture(fs.port), before)
    })
  )

  it.effect("stops the writes of a tool that claims only to read", () =>
    Effect.gen(function* () {
      const { call, fs } = yield* session(yield* memory(files), Policy.readOnly)
      const before = yield* capture(fs.port)
      const { message } = yield* call({ ...half(ok), does: "reads" }, {})
      assert.include(message, "read-only")
      assert.deepStrictEqual(yield* capture(fs.port), before)
    })
  )
})

describe("the settings", () => {
  it.effect("of several policies apply together, such as a mount point and a budget", () =>
    Effect.gen(function* () {
      const policies = Policy.mountPoint("/workspace").pipe(Layer.provideMerge(Policy.settings({ budget: 300 })))
      const { call } = yield* session(yield* memory({ "a.txt": "x\n".repeat(500) }), policies)
      const { message, success } = yield* call("read_file", { path: "/workspace/a.txt" })
      assert.isTrue(success)
      assert.isAtMost(message.length, 300)
    })
  )
})

describe("policies over a toolkit", () => {
  const kit = Effect.gen(function* () {
    return yield* Toolkit.merge(FilesystemToolkit.toolkit)
  })

  it.effect("apply when they are provided to the toolkit's layer", () =>
    Effect.gen(function* () {
      const fs = yield* memory(files)
      const layer = FilesystemToolkit.layer.pipe(
        Layer.provide(Policy.access({ deny: { read: "d" } })),
        Layer.provide([Policy.readBeforeWrite, Policy.order({ mkdir: ["ls"] })]),
        Layer.provide(Layer.succeed(Filesystem, fs))
      )
      const messages = yield* Effect.gen(function* () {
        const tools = yield* kit
        const answer = (name: string, params: object) =>
          Effect.map(
            Effect.flatMap(tools.handle(name as never, params as never), (stream) => collected(stream)),
            (all) => JSON.stringify(all)
          )
        return {
          denied: yield* answer("read_file", { path: "d/b.txt" }),
          unread: yield* answer("edit_file", { path: "a.txt", old_string: "one", new_string: "x" }),
          early: yield* answer("mkdir", { path: "new" })
        }
      }).pipe(Effect.provide(layer))
      assert.include(messages.denied, "policy")
      assert.include(messages.unread, "with read_file")
      assert.include(messages.early, "mkdir needs ls first")
    })
  )
})

const collected = (stream: unknown) =>
  Effect.promise(() => import("effect/Stream")).pipe(
    Effect.flatMap((Stream) => Stream.runCollect(stream as never) as Effect.Effect<ReadonlyArray<unknown>>)
  )
