/** Sections that are interrupted while they open, and sections on machines without git or a container engine. */
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { NodeServices } from "@effect/platform-node"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import * as Section from "../../src/agent/Section.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { layer, Snapshots } from "../../src/history/Snapshots.ts"
import { captureTemporary, directory, names, plant, session } from "./sectioning.ts"

const place = captureTemporary()

const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

const soak = process.env["FS_ALGEBRA_SOAK"] === "1"
const steps = soak ? 200 : 24

describe("an interruption at any step", () => {
  const root = directory("project-")
  const files = Array.from({ length: 20 }, (_, i) => `src/${String(i).padStart(2, "0")}.txt`)
  plant(root, Object.fromEntries(files.map((path) => [path, path])))
  const options = { mounts: [{ hostPath: "src" }], allowedRoots: [root] }

  const isWhole = Effect.fnUntraced(function* (section: Section.Workspace) {
    const filesystem = yield* section.filesystem
    assert.deepStrictEqual(
      (yield* filesystem.glob("src/*")).matches.map(({ path }) => String(path)),
      files
    )
  })

  it.live("of the first use of a workspace leaves no directory, or a complete directory", () =>
    Effect.gen(function* () {
      const outcomes = new Set<string>()
      for (let step = 0; step < steps; step++) {
        const scope = yield* Scope.make()
        const made = yield* Scope.provide(Section.WorkspaceSection(options), scope)
        const first = yield* Effect.forkChild(made.filesystem)
        for (let i = 0; i < step; i++) yield* turn
        yield* Fiber.interrupt(first)
        const left = names(place)
        assert.isAtMost(left.length, 1)
        outcomes.add(left.length === 0 ? "nothing" : "whole")
        yield* isWhole(made)
        // A complete directory stays and is not created again.
        if (left.length === 1) assert.deepStrictEqual(names(place), left)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(names(place), [])
      }
      assert.include([...outcomes], "nothing")
    })
  )

  it.live("of the first use of a virtual filesystem leaves all mounted files in the session, or none", () =>
    Effect.gen(function* () {
      for (let step = 0; step < steps; step++) {
        const own = yield* session()
        const made = yield* Section.VfsSection({ ...options, session: own })
        const first = yield* Effect.forkChild(made.filesystem)
        for (let i = 0; i < step; i++) yield* turn
        yield* Fiber.interrupt(first)
        // A session that was saved and loaded now must contain all of the mounted files or none.
        const copy = yield* own.clone()
        yield* isWhole(yield* made.clone(copy))
        yield* isWhole(made)
      }
    }).pipe(Effect.scoped)
  )

  it.live("of making a section leaves nothing, or a complete section", () =>
    Effect.gen(function* () {
      for (let step = 0; step < steps; step++) {
        const scope = yield* Scope.make()
        const own = yield* session()
        const making = yield* Effect.forkChild(Scope.provide(Section.VfsToolsSection({ ...options, session: own }), scope))
        for (let i = 0; i < step; i++) yield* turn
        const exit = yield* Effect.andThen(Fiber.interrupt(making), Fiber.await(making))
        if (Exit.isSuccess(exit)) yield* isWhole(exit.value)
        else assert.deepStrictEqual(names(place), [])
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(names(place), [])
      }
    })
  )
})

describe("a machine", () => {
  const without = ConfigProvider.layer(ConfigProvider.fromUnknown({ PATH: directory() }))

  it.live("without git keeps snapshots as archives", () =>
    Effect.gen(function* () {
      const root = directory()
      const made = yield* Section.WorkspaceSection({ root })
      const filesystem = yield* made.filesystem
      const snapshots = Context.getUnsafe(yield* made.services, Snapshots)
      yield* filesystem.write("a.txt", "one")
      const taken = yield* snapshots.snapshot()
      assert.match(taken.commitRef, /^zip:/)
      yield* filesystem.write("a.txt", "two")
      yield* snapshots.restore(taken)
      assert.strictEqual(yield* filesystem.readString("a.txt"), "one")
    }).pipe(Effect.scoped, Effect.provide(without))
  )

  it.live(
    "without a container engine makes a sandbox over a directory fail immediately, and a container at its first use, without leftovers",
    () =>
      Effect.gen(function* () {
        const cache = directory()
        const image = { image: "nobody/has-this" }
        const lacking = ConfigProvider.layer(ConfigProvider.fromUnknown({ XDG_CACHE_HOME: cache, PATH: cache }))
        yield* Effect.gen(function* () {
          assert.strictEqual((yield* Effect.flip(Section.PodmanSandboxSection(image)))._tag, "Unavailable")
          const lazy = yield* Section.PodmanSection(image)
          assert.strictEqual((yield* Effect.flip(lazy.filesystem))._tag, "Unavailable")
          assert.strictEqual((yield* Effect.flip(lazy.services))._tag, "Unavailable")
        }).pipe(Effect.provide([lacking, NodeServices.layer]))
        assert.deepStrictEqual(names(cache), [])
      }).pipe(Effect.scoped)
  )
})

describe("the tools of a section", () => {
  it.live("use its filesystem and its snapshots", () =>
    Effect.gen(function* () {
      const made = yield* Section.WorkspaceSection({ snapshotTools: true })
      const services = Context.add(yield* made.services, Filesystem, yield* made.filesystem)
      const memory = Memory.make()
      const call = (name: string, input: unknown) =>
        (
          invokeUnknown(
            made.tools.find((tool) => tool.name === name)!,
            input,
            { memory }
          ) as Effect.Effect<ToolResult<unknown>>
        ).pipe(Effect.provideContext(services))
      const succeeds = (result: ToolResult<unknown>) => assert.isTrue(result.success, result.message)
      succeeds(yield* call("write_file", { path: "a.txt", content: "one" }))
      succeeds(yield* call("snapshot", { tag: "good" }))
      succeeds(yield* call("rm", { path: "a.txt" }))
      succeeds(yield* call("restore", { snapshot_id: "good" }))
      const read = yield* call("read_file", { path: "a.txt" })
      succeeds(read)
      assert.include(read.message, "one")
    }).pipe(Effect.scoped)
  )
})

describe("the snapshots service of a section", () => {
  it.live("has the same abilities as the snapshots service of its backend", () =>
    Effect.gen(function* () {
      const made = yield* Section.VfsSection()
      const filesystem = yield* made.filesystem
      const snapshots = Context.getUnsafe(yield* made.services, Snapshots)
      const own = yield* Layer.build(Layer.provide(layer, Layer.succeed(Filesystem, filesystem)))
      assert.deepStrictEqual(Object.keys(snapshots).sort(), Object.keys(Context.get(own, Snapshots)).sort())

      yield* filesystem.write("a.txt", "one")
      const first = yield* snapshots.snapshot({ tag: "first" })
      assert.strictEqual((yield* snapshots.details(first)).files, 1)
      const wrong = new Error("wrong")
      const failing = Effect.andThen(filesystem.write("b.txt", ""), Effect.fail(wrong))
      assert.strictEqual(yield* Effect.flip(snapshots.transaction(failing)), wrong)
      assert.isFalse(yield* filesystem.exists("b.txt"))
      const fork = yield* snapshots.fork(first)
      yield* fork.write("c.txt", "forked")
      yield* snapshots.merge(fork)
      assert.strictEqual(yield* snapshots.exclusively!(filesystem.readString("c.txt")), "forked")
      assert.isFalse(yield* (yield* snapshots.view(first)).exists("c.txt"))
      assert.deepStrictEqual(
        (yield* snapshots.diff(first)).map(({ path }) => String(path)),
        ["c.txt"]
      )
      yield* snapshots.stats
      yield* snapshots.collect
      yield* snapshots.forget(first)
      assert.notInclude(
        (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
        first.snapshotId
      )
    }).pipe(Effect.scoped)
  )
})
