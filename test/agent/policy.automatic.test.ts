import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import { automatic } from "../../src/agent/policy/automatic.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { applyPatch } from "../../src/agent/tools/applyPatch.ts"
import { editFile } from "../../src/agent/tools/editFile.ts"
import { move } from "../../src/agent/tools/transfer.ts"
import { readFile } from "../../src/agent/tools/readFile.ts"
import { rm } from "../../src/agent/tools/rm.ts"
import { restore, snapshot } from "../../src/agent/tools/snapshots.ts"
import { writeFile } from "../../src/agent/tools/writeFile.ts"
import * as ToolSettings from "../../src/agent/ToolSettings.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { SnapshotError } from "../../src/history/errors.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"

type Services = Filesystem | Snapshots.Snapshots

const tree = { "a.txt": "a\n", build: { "out.js": "1\n", deep: { "x.js": "2\n" } }, tmp: { "y.js": "3\n" } }

const session = () => {
  const memory = Memory.make()
  return (tool: AnyDefinition, input: object) =>
    invokeUnknown(tool, input, { memory }) as Effect.Effect<ToolResult<Record<string, unknown>>, never, Services>
}

const files = Layer.provideMerge(Snapshots.layer, InMemory.layer({ tree }))
const policed = Layer.provideMerge(
  automatic((short) => `restore ${short} brings them back`),
  files
)

const list = Snapshots.Snapshots.use(({ list }) => list)
const tags = Effect.map(list, (all) => all.map(({ tag }) => tag))

const checkpoint = /\nCheckpoint ([0-9a-f]{8}) contains all files as they were before (.*); restore \1 brings them back\.$/
const idIn = ({ message }: ToolResult<unknown>): string => checkpoint.exec(message)?.[1] ?? `no checkpoint in ${message}`

describe("automatic checkpoints", () => {
  it.effect("are taken before the first change of a session, but not before later changes, and are reported", () =>
    Effect.gen(function* () {
      const call = session()
      assert.notMatch((yield* call(readFile, { path: "a.txt" })).message, checkpoint)
      assert.deepStrictEqual(yield* tags, [])
      const first = yield* call(writeFile, { path: "a.txt", content: "b\n", mode: "overwrite" })
      assert.strictEqual(checkpoint.exec(first.message)?.[2], "this session's first change")
      assert.notInclude((yield* call(writeFile, { path: "c.txt", content: "c\n" })).message, "heckpoint")
      assert.deepStrictEqual(yield* tags, ["automatic checkpoint before write_file"])
      assert.isTrue((yield* call(restore, { snapshot_id: idIn(first) })).success)
      const fs = yield* Filesystem
      assert.strictEqual(yield* fs.readString("a.txt"), "a\n")
      assert.isFalse(yield* fs.exists("c.txt"))
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are taken before the first change of each session", () =>
    Effect.gen(function* () {
      for (const call of [session(), session()])
        idIn(yield* call(writeFile, { path: "a.txt", content: "b\n", mode: "overwrite" }))
      assert.lengthOf(yield* list, 2)
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are taken before each removal of a directory, but not before a removal of a file or a move", () =>
    Effect.gen(function* () {
      const call = session()
      const first = yield* call(rm, { path: "tmp" })
      assert.strictEqual(checkpoint.exec(first.message)?.[2], "this session's first change")
      assert.notInclude((yield* call(rm, { path: "a.txt" })).message, "heckpoint")
      assert.notInclude((yield* call(move, { from: "build/deep", to: "moved" })).message, "heckpoint")
      const removed = yield* call(rm, { path: "build" })
      assert.strictEqual(checkpoint.exec(removed.message)?.[2], "this removal")
      assert.isTrue((yield* call(restore, {})).success)
      const fs = yield* Filesystem
      assert.deepStrictEqual([yield* fs.exists("build/out.js"), yield* fs.exists("tmp")], [true, false])
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are removed if the call fails, so that the next change counts as the first", () =>
    Effect.gen(function* () {
      const call = session()
      const failed = yield* call(editFile, { path: "a.txt", old_string: "nowhere", new_string: "x" })
      assert.isFalse(failed.success)
      assert.notInclude(failed.message, "heckpoint")
      assert.deepStrictEqual(yield* tags, [])
      assert.match((yield* call(writeFile, { path: "a.txt", content: "b\n", mode: "overwrite" })).message, checkpoint)
      assert.isFalse((yield* call(rm, { path: "none" })).success)
      assert.lengthOf(yield* list, 1)
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are kept if another call changes files while the checkpoint of a failed call is checked for changes", () => {
    let afterDiff: Effect.Effect<unknown> = Effect.void
    const delayed = Layer.effect(
      Snapshots.Snapshots,
      Effect.map(Snapshots.Snapshots, (real) => ({
        ...real,
        diff: (...of: Parameters<typeof real.diff>) => Effect.tap(real.diff(...of), () => afterDiff)
      }))
    ).pipe(Layer.provideMerge(files))
    const layer = Layer.provideMerge(
      automatic((short) => `restore ${short} brings them back`),
      delayed
    )
    return Effect.gen(function* () {
      const call = session()
      let id = ""
      afterDiff = call(writeFile, { path: "a.txt", content: "b\n", mode: "overwrite" }).pipe(
        Effect.tap((wrote) => Effect.sync(() => void (id = idIn(wrote)))),
        Effect.provideContext(yield* Effect.context<Services>())
      )
      assert.isFalse((yield* call(editFile, { path: "a.txt", old_string: "nowhere", new_string: "x" })).success)
      const restored = yield* call(restore, { snapshot_id: id })
      assert.isTrue(restored.success, restored.message)
      assert.strictEqual(yield* (yield* Filesystem).readString("a.txt"), "a\n")
    }).pipe(Effect.provide(layer, { local: true }))
  })

  it.effect("are kept and reported if a call fails after it changed files", () =>
    Effect.gen(function* () {
      const call = session()
      const halfway: AnyDefinition = {
        ...rm,
        handle: () =>
          Effect.gen(function* () {
            const fs = yield* Filesystem
            yield* fs.delete("build/out.js")
            return yield* fs.readString("none")
          })
      } as never
      const failed = yield* call(halfway, { path: "build" })
      assert.isFalse(failed.success)
      assert.match(failed.message, checkpoint)
      assert.isTrue((yield* call(restore, { snapshot_id: idIn(failed) })).success)
      assert.isTrue(yield* (yield* Filesystem).exists("build/out.js"))
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("never displace a snapshot of the user or the first checkpoint of the session", () =>
    Effect.gen(function* () {
      const call = session()
      const fs = yield* Filesystem
      const tag = "automatic checkpoint before release"
      assert.isTrue((yield* call(snapshot, { tag })).success)
      const first = idIn(yield* call(writeFile, { path: "c.txt", content: "c\n" }))
      for (let i = 0; i < 24; i++) {
        yield* fs.write(`gone${i}/x`, "x")
        assert.isTrue((yield* call(rm, { path: `gone${i}` })).success)
      }
      const all = yield* list
      assert.include(
        all.map((one) => one.tag),
        tag
      )
      assert.isTrue(all.some(({ snapshotId }) => snapshotId.startsWith(first)))
      assert.isAtMost(all.length, 23)
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are taken once for concurrent calls, before all of them", () =>
    Effect.gen(function* () {
      const call = session()
      const results = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, i) => i),
        (i) => call(writeFile, { path: `n${i}.txt`, content: "x" }),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        results.filter(({ message }) => checkpoint.test(message)),
        1
      )
      const [only, ...others] = yield* list
      assert.lengthOf(others, 0)
      const then = yield* Snapshots.Snapshots.use(({ view }) => view(only!))
      assert.deepStrictEqual(
        (yield* then.list(".")).map(({ name }) => name),
        ["a.txt", "build", "tmp"]
      )
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are not taken before snapshot and restore, which save the files themselves", () =>
    Effect.gen(function* () {
      const call = session()
      yield* call(snapshot, { tag: "mine" })
      yield* (yield* Filesystem).write("a.txt", "changed\n")
      assert.notInclude((yield* call(restore, { snapshot_id: "mine" })).message, "heckpoint")
      assert.deepStrictEqual(yield* tags, ["mine", "before restoring mine"])
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are limited to the newest 20, while snapshots of the user stay", () =>
    Effect.gen(function* () {
      yield* session()(snapshot, { tag: "mine" })
      for (let i = 0; i < 25; i++) yield* session()(writeFile, { path: "a.txt", content: `${i}\n`, mode: "overwrite" })
      const [mine, ...own] = yield* list
      assert.strictEqual(mine!.tag, "mine")
      assert.lengthOf(own, 20)
      const oldest = yield* Snapshots.Snapshots.use(({ view }) => view(own[0]!))
      assert.strictEqual(yield* oldest.readString("a.txt"), "4\n")
    }).pipe(Effect.provide(policed, { local: true }))
  )

  it.effect("are reported within the budget of the message", () =>
    Effect.gen(function* () {
      const patch = `*** Begin Patch\n${Array.from({ length: 40 }, (_, i) => `*** Add File: n${i}.txt\n+x\n`).join("")}*** End Patch`
      const { message, success } = yield* session()(applyPatch, { patch }).pipe(
        Effect.provideService(ToolSettings.ToolSettings, { ...ToolSettings.defaults, budget: 400 })
      )
      assert.isTrue(success)
      assert.isAtMost(message.length, 400)
      assert.match(message, /Checkpoint [0-9a-f]{8} contains/)
    }).pipe(Effect.provide(policed, { local: true }))
  )
})

describe("a checkpoint that cannot be taken", () => {
  /** Builds snapshots that cannot be taken, and counts the attempts. */
  const failing = (take: Snapshots.Operations["snapshot"]) => {
    const seen = { tries: 0 }
    const layer = Layer.effect(
      Snapshots.Snapshots,
      Effect.map(Snapshots.Snapshots, (real) => ({
        ...real,
        snapshot: (options: Snapshots.SnapshotOptions | undefined) => {
          seen.tries++
          return take(options)
        }
      }))
    ).pipe(Layer.provideMerge(files))
    const undo = () => "nothing brings them back"
    return { seen, layer: Layer.provideMerge(automatic(undo), layer) }
  }

  const works = Effect.gen(function* () {
    const call = session()
    const first = yield* call(writeFile, { path: "a.txt", content: "b\n", mode: "overwrite" })
    const second = yield* call(writeFile, { path: "a.txt", content: "c\n", mode: "overwrite" })
    const removed = yield* call(rm, { path: "build" })
    assert.deepStrictEqual([first.success, second.success, removed.success], [true, true, true])
    assert.notInclude(second.message, "heckpoint")
    return [first.message, removed.message].map((message) => message.split("\n").at(-1))
  })

  it.effect("does not prevent the call, and is reported once per session and per removal", () =>
    Effect.gen(function* () {
      const detail = "there are more than 50,000 files; raise maxFiles to capture them"
      const { layer, seen } = failing((options) => {
        assert.isDefined(options?.maxFiles)
        assert.isDefined(options?.maxBytes)
        return Effect.fail(new SnapshotError({ operation: "snapshot", reason: "budget", detail }))
      })
      assert.deepStrictEqual(yield* Effect.provide(works, layer, { local: true }), [
        "No checkpoint was taken before this session's first change: there are more than 50,000 files.",
        "No checkpoint was taken before this removal: there are more than 50,000 files."
      ])
      assert.strictEqual(seen.tries, 1)
    })
  )

  it.effect("is retried after a failure that may be temporary", () =>
    Effect.gen(function* () {
      const { layer, seen } = failing(() =>
        Effect.fail(new SnapshotError({ operation: "snapshot", reason: "io", detail: "the disk is busy" }))
      )
      assert.include((yield* Effect.provide(works, layer, { local: true }))[1], "the disk is busy")
      assert.strictEqual(seen.tries, 2)
    })
  )

  it.effect("is abandoned after ten seconds, after which the call runs", () =>
    Effect.gen(function* () {
      const { layer } = failing(() => Effect.never)
      const fiber = yield* Effect.forkChild(Effect.provide(works, layer, { local: true }))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* Fiber.join(fiber), [
        "No checkpoint was taken before this session's first change: it would have taken longer than 10 seconds.",
        "No checkpoint was taken before this removal: it would have taken longer than 10 seconds."
      ])
    })
  )
})
