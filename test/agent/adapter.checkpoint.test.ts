import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import { inMemory } from "../scratch.ts"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import type * as Adapter from "../../src/agent/Adapter.ts"
import { type Call, refused, type ToolFailure } from "../../src/agent/definition.ts"
import * as Policy from "../../src/agent/Policy.ts"
import { ToolContext } from "../../src/agent/ToolContext.ts"
import { log, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import { seven, snapshotTools } from "../../src/agent/tools.ts"
import * as Session from "../../src/workspace/Session.ts"
import { SnapshotError, SnapshotRestoreError } from "../../src/history/errors.ts"
import { Snapshots } from "../../src/history/Snapshots.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { capture, type Files, plant } from "../../src/testing/Files.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import { checkpointOf, done, makeSession, Notes, section, start, type Starting, tool } from "./adapting.ts"
import * as Grounds from "./changing.ts"

const files: Files = { "a.txt": "one\n", "d/b.txt": "two\n" }

/** Changes two files and a slice of the session, then runs the given effect. */
const half = (then: Effect.Effect<{ message: string; value: {} }, ToolFailure>, name = "half") =>
  tool(name, ({ filesystem }: Call) =>
    Effect.gen(function* () {
      yield* filesystem.write("a.txt", "changed")
      yield* filesystem.delete("d", { recursive: true })
      yield* (yield* ToolContext).session.dispatch(Notes, "changed").pipe(Effect.orDie)
      return yield* then
    })
  )

const ok = Effect.succeed(done)
const fails = Effect.fail(refused("It did not work.", "Try another."))

/** Reads the filesystem's tree and the slice that a rollback restores. */
const pictureOf = (fs: Algebra, session: Session.Operations) =>
  Effect.gen(function* () {
    return { tree: yield* capture(fs.port), notes: yield* session.all(Notes) }
  })

/** A function that makes a filesystem. Some filesystems keep their files in the session, whose rollback restores them. */
type Ground = (files: Files, session: Session.Operations) => Effect.Effect<Algebra, unknown, Scope.Scope>

const memory: Ground = (files) => Grounds.memory(files)
const host: Ground = (files) => Grounds.host(files)

const inSession: Ground = (files, session) =>
  Effect.gen(function* () {
    const port = yield* InMemory.makeSession(session)
    yield* plant(port, files)
    return make(port)
  })

const inVfsState: Ground = (files, session) =>
  Effect.gen(function* () {
    const { filesystem } = yield* VfsState.make({ session, directory: inMemory() })
    yield* plant(filesystem.port, files)
    return filesystem
  })

const started = (
  ground: Ground,
  tools: ReadonlyArray<ReturnType<typeof half>>,
  options: Starting & { readonly around?: (checkpoint: Checkpoint.Operations) => Checkpoint.Operations } = {}
) =>
  Effect.gen(function* () {
    const session = yield* makeSession
    const fs = yield* ground(files, session)
    yield* session.dispatch(Notes, "before")
    const { checkpoint, snapshots } = yield* checkpointOf(session, fs)
    const sections = [section("files", { filesystem: Effect.succeed(fs), tools: [...seven, ...tools] })]
    const { around = (self) => self, ...rest } = options
    const run = yield* start(sections, { session, checkpoint: around(checkpoint), ...rest })
    const picture = pictureOf(fs, session)
    return { ...run, fs, checkpoint, snapshots, picture, before: yield* picture }
  }).pipe(Effect.orDie)

const idsOf = ({ list }: Checkpoint.Operations) => Effect.map(list, (all) => all.map(({ id }) => id))

for (const [name, ground] of [
  ["memory", memory],
  ["a host", host],
  ["memory in the session", inSession],
  ["the virtual filesystem of the session", inVfsState]
] as ReadonlyArray<readonly [string, Ground]>) {
  describe(`a checkpoint of a session and ${name}`, () => {
    it.live("is taken before a changing tool runs, named after the tool and the call, and kept after a success", () =>
      Effect.gen(function* () {
        const { before, checkpoint, fs, picture, run, session } = yield* started(ground, [half(ok)])
        yield* run.call("read_file", { path: "a.txt" }, { callId: "c-1" })
        yield* run.call("edit_file", { path: 1 }, { callId: "c-2" })
        assert.deepStrictEqual(yield* idsOf(checkpoint), [])
        assert.isTrue((yield* run.call("half", {}, { callId: "c-3" })).success)
        assert.deepStrictEqual(yield* idsOf(checkpoint), ["pre:half:c-3"])
        assert.strictEqual(yield* fs.readString("a.txt"), "changed")
        assert.deepStrictEqual(yield* session.all(Notes), ["before", "changed"])
        yield* checkpoint.rollback("pre:half:c-3")
        assert.deepStrictEqual(yield* picture, before)
      }).pipe(Effect.orDie)
    )

    it.live("is restored and forgotten after a failure, a defect or an interruption, before the call is reported", () =>
      Effect.gen(function* () {
        const reached = yield* Deferred.make<void>()
        const looking: { picture?: Effect.Effect<unknown> } = {}
        const found: Array<unknown> = []
        const listener = () => Effect.flatMap(looking.picture!, (now) => Effect.sync(() => void found.push(now)))
        const stuck = Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
        const tools = [half(fails, "fails"), half(Effect.die("broken"), "dies"), half(stuck, "waits")]
        const { before, checkpoint, events, logged, picture, run, session, snapshots } = yield* started(ground, tools, {
          listener
        })
        looking.picture = Effect.orDie(picture)

        const failed = yield* run.call("fails", {})
        assert.deepStrictEqual(failed, { message: "It did not work. Try another.", success: false })
        assert.deepStrictEqual(yield* picture, before)

        assert.isTrue(Exit.hasDies(yield* Effect.exit(run.call("dies", {}))))
        assert.deepStrictEqual(yield* picture, before)

        const fiber = yield* Effect.forkChild(run.call("waits", {}))
        yield* Deferred.await(reached)
        assert.notDeepEqual(yield* picture, before)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* picture, before)

        assert.deepStrictEqual(found, [before, before, before])
        assert.deepStrictEqual(
          (yield* logged).map(({ success, tool }) => [tool, success]),
          [
            ["fails", false],
            ["dies", false],
            ["waits", false]
          ]
        )
        assert.deepStrictEqual(yield* logged, events)
        assert.deepStrictEqual(yield* idsOf(checkpoint), [])
        assert.deepStrictEqual(yield* snapshots.list, [])
        assert.deepStrictEqual(yield* session.snapshots, [])
      }).pipe(Effect.orDie)
    )
  })
}

describe("a checkpoint", () => {
  it.effect("is restored if the deadline passes during the call", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const stuck = Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
      const { before, picture, run } = yield* started(memory, [half(stuck)], { deadline: DateTime.makeUnsafe(1000) })
      const fiber = yield* Effect.forkChild(run.call("half", {}))
      yield* Deferred.await(reached)
      yield* TestClock.adjust(1000)
      const { message, success } = yield* Fiber.join(fiber)
      assert.isFalse(success)
      assert.include(message, "passed")
      assert.deepStrictEqual(yield* picture, before)
    }).pipe(Effect.orDie)
  )

  it.effect("is restored if a policy turns the result into a failure", () =>
    Effect.gen(function* () {
      const policies = Policy.layer({
        name: "critic",
        around: (_, call) => Effect.map(call, () => ({ success: false, message: "I do not like it. Do better." }))
      })
      const { before, picture, run } = yield* started(memory, [half(ok)], { policies })
      assert.strictEqual((yield* run.call("half", {})).message, "I do not like it. Do better.")
      assert.deepStrictEqual(yield* picture, before)
    }).pipe(Effect.orDie)
  )

  it.effect("is not taken for a refused call, nor for the snapshot tool", () =>
    Effect.gen(function* () {
      let taken = 0
      const around = (self: Checkpoint.Operations): Checkpoint.Operations => ({
        ...self,
        take: (id) =>
          Effect.andThen(
            Effect.sync(() => void taken++),
            self.take(id)
          )
      })
      const { checkpoint, fs, run, session, snapshots } = yield* started(memory, [half(ok)], {
        around,
        policies: Policy.approval(({ tool }) => Effect.succeed(tool !== "half"))
      })
      assert.isFalse((yield* run.call("half", {})).success)
      assert.isFalse((yield* run.call("write_file", { path: "a.txt" })).success)
      assert.isFalse((yield* run.call("nothing", {})).success)
      const other = { ...run.context, session: yield* makeSession }
      assert.isFalse((yield* run.call("rm", { path: "a.txt" }, { context: other })).success)
      const keeping = yield* start([section("files", { filesystem: Effect.succeed(fs), tools: snapshotTools })], {
        session,
        checkpoint: around(checkpoint)
      })
      const snap = keeping.run.call("snapshot", {})
      assert.isTrue((yield* Effect.provideService(snap, Snapshots, snapshots)).success)
      assert.strictEqual(taken, 0)
    }).pipe(Effect.orDie)
  )

  it.effect("that cannot be taken prevents the call", () =>
    Effect.gen(function* () {
      const error = new SnapshotError({ operation: "snapshot", reason: "budget", detail: "there is no room" })
      const { before, events, picture, run } = yield* started(memory, [half(Effect.die("it was called"))], {
        around: (self) => ({ ...self, take: () => Effect.fail(error) })
      })
      const { message, success } = yield* run.call("half", {})
      assert.isFalse(success)
      assert.include(message, "there is no room")
      assert.deepStrictEqual(yield* picture, before)
      assert.strictEqual(events.length, 1)
    }).pipe(Effect.orDie)
  )

  it.effect("is kept, and named in the message, if it cannot be restored", () =>
    Effect.gen(function* () {
      const error = new SnapshotRestoreError({ snapshotId: "1", reason: "io", detail: "the disk is gone" })
      const { before, checkpoint, picture, run } = yield* started(
        memory,
        [half(fails, "fails"), half(Effect.die("x"), "dies")],
        {
          around: (self) => ({ ...self, rollback: () => Effect.fail(error) })
        }
      )
      const { message, success } = yield* run.call("fails", {}, { callId: "c" })
      assert.isFalse(success)
      for (const part of ["It did not work.", "the disk is gone", "pre:fails:c"]) assert.include(message, part)
      const exit = yield* Effect.exit(run.call("dies", {}, { callId: "d" }))
      assert.include(JSON.stringify(exit), "the disk is gone")
      assert.deepStrictEqual(yield* idsOf(checkpoint), ["pre:fails:c", "pre:dies:d"])
      yield* checkpoint.rollback("pre:fails:c")
      assert.deepStrictEqual(yield* picture, before)
    }).pipe(Effect.orDie)
  )

  it.effect("of another session is refused when a run starts", () =>
    Effect.gen(function* () {
      const session = yield* makeSession
      const { checkpoint } = yield* checkpointOf(session, yield* Grounds.memory(files))
      const error = yield* Effect.flip(start([section("text")], { checkpoint }))
      assert.deepInclude({ ...error }, { _tag: "SessionError", reason: "invalid" })
    })
  )

  it.effect("gets a valid id that differs for every call id", () =>
    Effect.gen(function* () {
      const { checkpoint, run } = yield* started(memory, [])
      const long = "x".repeat(5000)
      const ids = ["", "a/b", "a_b", "a\\b", "a\nb", "a\u0085b", "\ud800", long, `${long}y`, "..", "ünï 文"]
      for (const [index, callId] of ids.entries()) {
        const { message, success } = yield* run.call("write_file", { path: `${index}`, content: "" }, { callId })
        assert.isTrue(success, `${JSON.stringify(callId.slice(0, 10))}: ${message}`)
      }
      const taken = yield* idsOf(checkpoint)
      assert.strictEqual(new Set(taken).size, ids.length)
      for (const id of taken) assert.isTrue(id.startsWith("pre:write_file:"), id)
      assert.include(taken, "pre:write_file:a_b")
    }).pipe(Effect.orDie)
  )

  it.effect("is kept for the last hundred successful calls by default", () =>
    Effect.gen(function* () {
      const { checkpoint, run } = yield* started(memory, [half(ok)], {})
      const ids = Array.from({ length: 102 }, (_, i) => `${i}`)
      for (const callId of ids) yield* run.call("write_file", { path: callId, content: "" }, { callId })
      assert.deepStrictEqual(
        yield* idsOf(checkpoint),
        ids.slice(2).map((id) => `pre:write_file:${id}`)
      )
    }).pipe(Effect.orDie)
  )

  it.effect("is kept for the last `keep` successful calls, and for at least one", () =>
    Effect.gen(function* () {
      for (const [keep, expected] of [
        [Number.POSITIVE_INFINITY, ["1", "2", "3", "4"]],
        [2, ["3", "4"]],
        [1, ["4"]],
        [0, ["4"]]
      ] as const) {
        const { checkpoint, run } = yield* started(memory, [half(ok)], { keep })
        yield* checkpoint.take("mine")
        for (const callId of ["1", "2", "3", "4"]) yield* run.call("write_file", { path: callId, content: "" }, { callId })
        assert.deepStrictEqual(yield* idsOf(checkpoint), ["mine", ...expected.map((id) => `pre:write_file:${id}`)])
      }
    }).pipe(Effect.orDie)
  )

  it.effect("of a failed call does not count towards `keep`", () =>
    Effect.gen(function* () {
      const { checkpoint, run } = yield* started(memory, [half(fails, "fails")], { keep: 2 })
      yield* run.call("write_file", { path: "1", content: "" }, { callId: "1" })
      yield* run.call("fails", {}, { callId: "2" })
      yield* run.call("write_file", { path: "3", content: "" }, { callId: "3" })
      assert.deepStrictEqual(yield* idsOf(checkpoint), ["pre:write_file:1", "pre:write_file:3"])
    }).pipe(Effect.orDie)
  )

  it.effect("makes other writers wait until the failed call is rolled back, so that their writes are kept", () =>
    Effect.gen(function* () {
      const [reached, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = half(Effect.andThen(Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go)), fails), "slow")
      const { checkpoint, fs, run } = yield* started(memory, [slow])
      const first = yield* Effect.forkChild(run.call("slow", {}))
      yield* Deferred.await(reached)
      const second = yield* Effect.forkChild(run.call("write_file", { path: "second.txt", content: "kept" }))
      const third = yield* Effect.forkChild(Effect.orDie(checkpoint.take("third")))
      const written = yield* Effect.forkChild(Effect.orDie(fs.write("third.txt", "kept")))
      assert.isTrue((yield* run.call("read_file", { path: "a.txt" })).success)
      for (let i = 0; i < 500; i++) yield* Effect.yieldNow
      assert.isFalse(yield* fs.exists("second.txt"))
      assert.isFalse(yield* fs.exists("third.txt"))
      yield* Deferred.succeed(go, undefined)
      assert.isFalse((yield* Fiber.join(first)).success)
      assert.isTrue((yield* Fiber.join(second)).success)
      yield* Fiber.join(written)
      const { id } = yield* Fiber.join(third)
      assert.strictEqual(id, "third")
      assert.strictEqual(yield* fs.readString("second.txt"), "kept")
      assert.strictEqual(yield* fs.readString("third.txt"), "kept")
      assert.strictEqual(yield* fs.readString("a.txt"), "one\n")
    }).pipe(Effect.orDie)
  )

  it.effect("of a tool covers the calls that the tool makes to other tools", () =>
    Effect.gen(function* () {
      const self: { run?: Adapter.Run } = {}
      const calling = (name: string, then: Effect.Effect<typeof done, ToolFailure>) =>
        tool(name, () => Effect.andThen(self.run!.call("half", {}, { callId: "inner" }), then))
      const { before, checkpoint, fs, picture, run } = yield* started(memory, [
        half(ok),
        calling("outer", ok),
        calling("failing", fails)
      ])
      self.run = run
      assert.isFalse((yield* run.call("failing", {}, { callId: "1" })).success)
      assert.deepStrictEqual(yield* picture, before)
      assert.isTrue((yield* run.call("outer", {}, { callId: "2" })).success)
      assert.strictEqual(yield* fs.readString("a.txt"), "changed")
      assert.include(yield* idsOf(checkpoint), "pre:outer:2")
    }).pipe(Effect.orDie)
  )
})

describe("a call that starts with `begin`", () => {
  const elsewhere = tool("elsewhere", () => Effect.die("it was called"))
  const begun = (options: Parameters<typeof started>[2] = {}) =>
    Effect.gen(function* () {
      const all = yield* started(memory, [elsewhere], options)
      const change = Effect.gen(function* () {
        yield* all.fs.write("a.txt", "changed")
        yield* all.session.dispatch(Notes, "changed")
      }).pipe(Effect.orDie)
      return { ...all, change }
    })
  const toldOf = (events: ReadonlyArray<ToolInvoked>) => events.map(({ callId, success, tool }) => [tool, callId, success])

  it.effect("keeps its changes and its checkpoint after `end`, and is reported", () =>
    Effect.gen(function* () {
      const { change, checkpoint, events, fs, run, session } = yield* begun()
      const { end } = yield* run.begin("elsewhere", { path: "a.txt" }, { callId: "c" })
      assert.strictEqual(events.length, 0)
      yield* change
      const result = yield* end({ message: "all is well", value: { answer: 42 } })
      assert.deepStrictEqual(result, { message: "all is well", success: true, value: { answer: 42 } })
      assert.strictEqual(yield* fs.readString("a.txt"), "changed")
      assert.deepStrictEqual(yield* session.all(Notes), ["before", "changed"])
      assert.deepStrictEqual(yield* idsOf(checkpoint), ["pre:elsewhere:c"])
      assert.deepStrictEqual(toldOf(events), [["elsewhere", "c", true]])
      assert.strictEqual(events[0]!.message, "all is well")
    }).pipe(Effect.orDie)
  )

  it.effect("is rolled back after `abort`, and is reported with the reason", () =>
    Effect.gen(function* () {
      const { before, change, events, picture, run } = yield* begun()
      const { abort } = yield* run.begin("elsewhere", {}, { callId: "c" })
      yield* change
      const { message, success } = yield* abort("it rained")
      assert.isFalse(success)
      assert.match(message, /^it rained\. [A-Z].+\.$/)
      assert.deepStrictEqual(yield* picture, before)
      assert.deepStrictEqual(toldOf(events), [["elsewhere", "c", false]])
    }).pipe(Effect.orDie)
  )

  it.effect("ends only once: a later `end` or `abort` changes nothing and reports nothing", () =>
    Effect.gen(function* () {
      const { change, events, fs, run } = yield* begun()
      const first = yield* run.begin("elsewhere", {})
      yield* change
      yield* first.end({ message: "well" })
      const tooLate = yield* first.abort("too late")
      assert.isFalse(tooLate.success)
      assert.include(tooLate.message, "its changes stay")
      assert.strictEqual(yield* fs.readString("a.txt"), "changed")
      assert.strictEqual((yield* first.end({ message: "again" })).message, "well")

      const second = yield* run.begin("elsewhere", {})
      yield* fs.write("a.txt", "changed again")
      const aborted = yield* second.abort("no")
      assert.deepStrictEqual(yield* second.abort("no, no"), aborted)
      assert.isFalse((yield* second.end()).success)
      assert.strictEqual(yield* fs.readString("a.txt"), "changed")
      assert.strictEqual(events.length, 2)
    }).pipe(Effect.orDie)
  )

  it.effect("is refused for the same reasons as any other call, and each refusal is reported", () =>
    Effect.gen(function* () {
      const { events, run } = yield* begun({ policies: Policy.readOnly })
      const other = { ...run.context, session: yield* makeSession }
      const attempts = [
        run.begin("elsewhere", {}),
        run.begin("elsewhere", { path: 1 }),
        run.begin("elsewhere", {}, { context: other }),
        run.begin("elsewher", {})
      ]
      for (const attempt of attempts) {
        const refusal = yield* Effect.flip(attempt)
        assert.isFalse(refusal.success)
        assert.isNotEmpty(refusal.message)
      }
      assert.strictEqual(events.length, attempts.length)
    }).pipe(Effect.orDie)
  )

  it.effect("is refused only while another call with the same id is running", () =>
    Effect.gen(function* () {
      const { before, change, picture, run } = yield* begun()
      const { abort } = yield* run.begin("elsewhere", {}, { callId: "c" })
      yield* change
      assert.include((yield* Effect.flip(run.begin("elsewhere", {}, { callId: "c" }))).message, '"c"')
      const { end } = yield* run.begin("elsewhere", {}, { callId: "d" })
      yield* end()
      yield* abort("no")
      assert.deepStrictEqual(yield* picture, before)
      yield* (yield* run.begin("elsewhere", {}, { callId: "c" })).end()
    }).pipe(Effect.orDie)
  )

  it.effect("is aborted by the deadline, after which `end` returns a failure", () =>
    Effect.gen(function* () {
      const { before, change, events, picture, run } = yield* begun({ deadline: DateTime.makeUnsafe(1000) })
      const { end } = yield* run.begin("elsewhere", {})
      yield* change
      yield* TestClock.adjust(1000)
      assert.isFalse((yield* end()).success)
      assert.deepStrictEqual(yield* picture, before)
      assert.strictEqual(events.length, 1)
    }).pipe(Effect.orDie)
  )

  it.effect("is aborted by the end of its run, after which `begin`, `end` and `abort` fail", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { before, change, events, picture, run } = yield* Scope.provide(begun(), scope)
      const { abort, end } = yield* run.begin("elsewhere", {})
      yield* change
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* picture, before)
      assert.strictEqual(events.length, 1)
      assert.isFalse((yield* end()).success)
      assert.isFalse((yield* abort("late")).success)
      assert.isFalse((yield* Effect.flip(run.begin("elsewhere", {}))).success)
    }).pipe(Effect.orDie)
  )

  it.effect("takes no checkpoint if its caller is interrupted while approval is pending", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const policies = Policy.approval(() => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never))
      const { checkpoint, events, run } = yield* begun({ policies })
      const fiber = yield* Effect.forkChild(run.begin("elsewhere", {}))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(events.length, 1)
      assert.deepStrictEqual(yield* idsOf(checkpoint), [])
    }).pipe(Effect.orDie)
  )

  it.effect("charges the budget for the messages of its results", () =>
    Effect.gen(function* () {
      const { budget } = yield* Effect.promise(() => import("../../src/agent/ToolContext.ts"))
      const budgetTracker = yield* budget(10)
      const { run } = yield* begun({ budgetTracker })
      yield* (yield* run.begin("elsewhere", {})).end({ message: "12345" })
      assert.strictEqual(yield* budgetTracker.left, 5)
      yield* (yield* run.begin("elsewhere", {})).end({ message: "1234567" })
      assert.isFalse((yield* Effect.flip(run.begin("elsewhere", {}))).success)
    }).pipe(Effect.orDie)
  )
})

describe("the log of calls in a session", () => {
  it.effect("is saved and loaded with the session", () =>
    Effect.gen(function* () {
      const { run, session, logged } = yield* started(memory, [half(ok)])
      yield* run.call("write_file", { path: "x.txt", content: "12345", mode: "create" }, { callId: "c" })
      const path = join(inMemory(), "log.json")
      yield* session.save(path)
      const loaded = yield* Session.load(path, { slices: [Notes, log, Checkpoint.FilesystemSnapshots] })
      assert.deepStrictEqual(yield* loaded.all(log), yield* logged)
      assert.strictEqual((yield* logged)[0]!.sizeBytes, 5)
    }).pipe(Effect.orDie)
  )
})
