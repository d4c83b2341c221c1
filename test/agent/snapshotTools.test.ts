import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { diff } from "../../src/agent/tools/diff.ts"
import { restore, snapshot, snapshots } from "../../src/agent/tools/snapshots.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { hasGit } from "../history/badInput.ts"

type Value = Record<string, unknown>
type Services = Filesystem | Snapshots.Snapshots

interface Change {
  readonly path: string
  readonly change: string
}

const session = () => {
  const memory = Memory.make()
  const call =
    (tool: AnyDefinition) =>
    (input: unknown, callId = "call_1") =>
      invokeUnknown(tool, input, { memory, callId }) as Effect.Effect<ToolResult<Value>, never, Services>
  return { memory, take: call(snapshot), list: call(snapshots), restore: call(restore), diff: call(diff) }
}

const changesOf = ({ value }: ToolResult<Value>): ReadonlyArray<string> =>
  (value!["changes"] as ReadonlyArray<Change>).map(({ change, path }) => `${change} ${path}`)

const snapshotsOf = ({ value }: ToolResult<Value>) => value!["snapshots"] as ReadonlyArray<Value>

const place: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => realpathSync(mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "fs-algebra-tools-")))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const files: Readonly<Record<string, string>> = {
  "README.md": "# One\n\ntext\n",
  "src/a.ts": Array.from({ length: 20 }, (_, i) => `line ${i}\n`).join(""),
  "src/b.ts": "no newline at the end",
  "old/gone.txt": "1\n2\n3\n"
}

const plant = Effect.gen(function* () {
  const fs = yield* Filesystem
  for (const [path, text] of Object.entries(files)) yield* fs.write(path, text)
})

/** The changes between two snapshots. */
const work = Effect.gen(function* () {
  const fs = yield* Filesystem
  yield* fs.edit("src/a.ts", { oldText: "line 9\n", newText: "line nine\nand a half\n" })
  yield* fs.write("src/b.ts", "no newline\nat all")
  yield* fs.delete("old", { recursive: true })
  yield* fs.write("new/with blank.txt", "x\n")
  yield* fs.writeBytes("bin", new Uint8Array([0, 1, 2]))
})

const host = Layer.unwrap(Effect.map(place, (root) => PosixHost.layer({ root })))

const kinds: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Services, unknown>]> = [
  ["memory", Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer()))],
  ["archives", Snapshots.layerArchive.pipe(Layer.provideMerge(InMemory.layer()))],
  ...(hasGit ? ([["a directory and git", Snapshots.layer.pipe(Layer.provideMerge(host))]] as const) : [])
]

for (const [name, layer] of kinds) {
  describe(`snapshot tools on ${name}`, () => {
    const provided = Effect.provide(layer, { local: true })

    it.live("list snapshots newest first, with their changes and the calls that took them", () =>
      Effect.gen(function* () {
        const { list, take } = session()
        assert.include((yield* list({})).message, "no snapshot yet")
        yield* plant
        const first = yield* take({ tag: " works " }, "call_a")
        assert.strictEqual(first.value!["files"], 4)
        yield* work
        const second = yield* take({}, "call_b")
        const listed = yield* list({})
        const [newest, oldest] = snapshotsOf(listed)
        assert.deepStrictEqual(
          [newest!["snapshot_id"], oldest!["snapshot_id"]],
          [second.value!["snapshot_id"], first.value!["snapshot_id"]]
        )
        assert.deepStrictEqual([oldest!["tag"], oldest!["tool"], oldest!["call_id"]], ["works", "snapshot", "call_a"])
        // Lines changed: a.ts +2 -1, b.ts +2 -1, gone.txt -3, "with blank.txt" +1; bin has no lines.
        assert.deepStrictEqual(
          [newest!["files_changed"], newest!["lines_added"], newest!["lines_removed"], newest!["call_id"]],
          [5, 5, 5, "call_b"]
        )
        const [line, other] = listed.message.split("\n")
        assert.match(line!, /^[0-9a-f]{8} \d{4}-.*Z: 5 files; 5 files changed, \+5 -5; by snapshot, call call_b$/)
        assert.match(other!, /^[0-9a-f]{8} "works" \d{4}-.*; by snapshot, call call_a$/)
      }).pipe(provided)
    )

    it.live("show changes file by file and line by line", () =>
      Effect.gen(function* () {
        const { diff, take } = session()
        yield* plant
        yield* take({ tag: "before" })
        yield* work
        const since = yield* diff({ snapshot_id: "before" })
        const expected = [
          "added bin",
          "added new",
          "added new/with blank.txt",
          "removed old",
          "removed old/gone.txt",
          "modified src/a.ts",
          "modified src/b.ts"
        ]
        assert.deepStrictEqual(changesOf(since), expected)
        const { value } = since
        assert.deepStrictEqual([value!["files_changed"], value!["lines_added"], value!["lines_removed"]], [5, 5, 5])
        const changes = value!["changes"] as ReadonlyArray<Value>
        assert.deepStrictEqual(changes[5], { path: "src/a.ts", change: "modified", lines_added: 2, lines_removed: 1 })
        assert.deepStrictEqual(changes[0], { path: "bin", change: "added" })
        assert.match(since.message, /^5 files changed, \+5 -5 from [0-9a-f]{8} to the current files\n/)
        assert.include(since.message, "-line 9\n+line nine\n+and a half\n")
        yield* take({ tag: "after" })
        const between = yield* diff({ snapshot_id: "before", to: "after" })
        assert.deepStrictEqual(changesOf(between), expected)
        assert.strictEqual(between.value!["diff"], value!["diff"])
        const back = yield* diff({ snapshot_id: "after", to: "before" })
        assert.deepStrictEqual([back.value!["lines_added"], back.value!["lines_removed"]], [5, 5])
        assert.include((yield* diff({ snapshot_id: "after" })).message, "0 files changed")
      }).pipe(provided)
    )

    it.live("restore all files, save the replaced files, tell how to undo the restore, and change nothing with dry_run", () =>
      Effect.gen(function* () {
        const { diff, memory, restore, take } = session()
        const fs = yield* Filesystem
        yield* plant
        yield* take({ tag: "before" })
        yield* work
        for (const path of ["src/a.ts", "README.md"]) memory.saw(path as never, yield* fs.version(path))
        const dry = yield* restore({ snapshot_id: "before", dry_run: true })
        assert.lengthOf(changesOf(dry), 7)
        assert.isTrue(yield* fs.exists("bin"))
        assert.isDefined(memory.seen("src/a.ts" as never))

        const done = yield* restore({ snapshot_id: "before" })
        assert.deepStrictEqual(changesOf(done), changesOf(dry))
        for (const [path, text] of Object.entries(files)) assert.strictEqual(yield* fs.readString(path), text)
        assert.isFalse(yield* fs.exists("new"))
        assert.include((yield* diff({ snapshot_id: "before" })).message, "0 files changed")
        assert.isUndefined(memory.seen("src/a.ts" as never))
        assert.isDefined(memory.seen("README.md" as never))

        const hint = JSON.parse(/call restore with (\{.*\})\./.exec(done.message)![1]!) as Value
        assert.isTrue((done.value!["safety_snapshot_id"] as string).startsWith(hint["snapshot_id"] as string))
        assert.isTrue((yield* restore(hint)).success)
        assert.isTrue(yield* fs.exists("new/with blank.txt"))
        assert.strictEqual(yield* fs.readString("src/b.ts"), "no newline\nat all")
        // The safety snapshot is not the latest, because then a second restore would undo the first.
        assert.isTrue((yield* restore({})).success)
        assert.isFalse(yield* fs.exists("new"))
        const again = yield* restore({ snapshot_id: "latest" })
        assert.include(again.message, "Nothing changed")
        assert.notProperty(again.value, "safety_snapshot_id")
      }).pipe(provided)
    )

    it.live("restore only the given paths", () =>
      Effect.gen(function* () {
        const { restore, take } = session()
        const fs = yield* Filesystem
        yield* plant
        yield* take({})
        yield* work
        const done = yield* restore({ snapshot_id: "latest", paths: ["/src/", "old/gone.txt"] })
        assert.deepStrictEqual(changesOf(done), ["added old", "added old/gone.txt", "modified src/a.ts", "modified src/b.ts"])
        assert.isTrue(yield* fs.exists("bin"))
        const nowhere = yield* restore({ snapshot_id: "latest", paths: ["src", "nowhere"] })
        assert.isFalse(nowhere.success)
        assert.include(nowhere.message, "nowhere")
      }).pipe(provided)
    )
  })
}

describe("snapshot tools", () => {
  const memory = Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer())), { local: true })

  it.effect("accept the whole id of a snapshot, a unique prefix of the id, a tag, or latest", () =>
    Effect.gen(function* () {
      const { list, restore, take } = session()
      yield* plant
      yield* take({ tag: "first" })
      yield* work
      const { value } = yield* take({ tag: "mine" })
      const id = value!["snapshot_id"] as string
      const [short] = (yield* list({})).message.split(" ")
      for (const snapshot_id of [id, short!, id.toUpperCase(), "mine", " mine ", "latest"]) {
        const result = yield* restore({ snapshot_id })
        assert.strictEqual(result.value?.["snapshot_id"], id, result.message)
      }
    }).pipe(memory)
  )

  it.effect("fail with advice for an id that matches no snapshot or several snapshots, and change nothing", () =>
    Effect.gen(function* () {
      const { diff, restore, take } = session()
      const fails = (result: ToolResult<Value>, ...parts: ReadonlyArray<string>) => {
        assert.isFalse(result.success)
        for (const part of parts) assert.include(result.message, part)
      }
      fails(yield* restore({ snapshot_id: "latest" }), "no snapshot yet", "with the tool snapshot")
      yield* plant
      yield* take({ tag: "same" })
      yield* work
      yield* take({ tag: "same" })
      fails(yield* restore({ snapshot_id: "same" }), "matches 2 snapshots", "(same)")
      fails(yield* restore({ snapshot_id: "never" }), '"never"', "with the tool snapshots")
      fails(yield* restore({ snapshot_id: "" }), "with the tool snapshots")
      fails(yield* diff({ snapshot_id: "never" }), '"never"')
      fails(yield* diff({ snapshot_id: "latest", to: "x".repeat(1000) }), "with the tool snapshots")
      fails(yield* restore({ snapshot_id: "latest", paths: ["../up"] }), "..")
      assert.isTrue(yield* (yield* Filesystem).exists("bin"))
    }).pipe(memory)
  )

  it.effect("refuse a tag that is not one line of at most 1,000 characters, and ignore a blank tag", () =>
    Effect.gen(function* () {
      const { list, take } = session()
      for (const tag of ["a\nb", "x".repeat(1001), "\u0000"]) {
        const result = yield* take({ tag })
        assert.isFalse(result.success)
        assert.include(result.message, "tag")
      }
      assert.deepStrictEqual(snapshotsOf(yield* list({})), [])
      assert.notProperty((yield* take({ tag: "  " })).value, "tag")
    }).pipe(memory)
  )

  it.effect("each report that snapshots are not available if none are kept", () =>
    Effect.gen(function* () {
      const tools: ReadonlyArray<readonly [AnyDefinition, Value]> = [
        [snapshot, {}],
        [snapshots, {}],
        [restore, { snapshot_id: "latest" }],
        [diff, { snapshot_id: "latest" }]
      ]
      for (const [tool, input] of tools) {
        const result = yield* invokeUnknown(tool, input, { memory: Memory.make() }) as Effect.Effect<ToolResult<Value>>
        assert.isFalse(result.success)
        assert.include(result.message, "Snapshots are not available")
      }
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("return the time of a snapshot in UTC, with milliseconds", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 1, 3, 4, 5, 6, 7))
      const { take } = session()
      assert.strictEqual((yield* take({})).value!["created_at"], "2026-02-03T04:05:06.007Z")
    }).pipe(memory)
  )
})

describe("long answers", () => {
  it.effect("are cut to the budget at the end of a line", () =>
    Effect.gen(function* () {
      const { diff, list, restore, take } = session()
      const fs = yield* Filesystem
      yield* take({ tag: "empty" })
      for (let i = 0; i < 60; i++) {
        yield* fs.write(`f${i}`, "some text\n".repeat(20))
        yield* take({})
      }
      const small = Effect.provideService(ToolSettings, { ...defaults, budget: 300 })
      for (const result of [
        yield* list({}).pipe(small),
        yield* diff({ snapshot_id: "empty" }).pipe(small),
        yield* restore({ snapshot_id: "empty", dry_run: true }).pipe(small)
      ]) {
        assert.isTrue(result.success)
        assert.isAtMost(result.message.length, 300)
        assert.match(result.message.split("\n").at(-1)!, /^\[cut: /)
      }
      assert.lengthOf(snapshotsOf(yield* list({}).pipe(small)), 61)
    }).pipe(Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer()))))
  )
})

describe("the diff of the diff tool", () => {
  it.live.runIf(hasGit)("is applied by git, and turns the old tree into the new one", () =>
    Effect.gen(function* () {
      const { diff, take } = session()
      const fs = yield* Filesystem
      yield* plant
      yield* take({ tag: "before" })
      yield* work
      yield* fs.delete("bin")
      const patch = (yield* diff({ snapshot_id: "before" })).value!["diff"] as string
      // Git's manual specifies that /dev/null stands for a file that did not exist or no longer exists.
      assert.include(patch, "--- /dev/null\n+++ b/new/with blank.txt\t\n@@ -0,0 +1 @@\n+x\n")
      assert.include(patch, "--- a/old/gone.txt\n+++ /dev/null\n")
      const root = yield* place
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(join(root, dirname(path)), { recursive: true })
        writeFileSync(join(root, path), text)
      }
      const expected = yield* place
      cpSync(root, expected, { recursive: true })
      yield* Effect.gen(function* () {
        const there = yield* Filesystem
        for (const path of ["src/a.ts", "src/b.ts", "new/with blank.txt"]) yield* there.write(path, yield* fs.readString(path))
        yield* there.delete("old", { recursive: true })
      }).pipe(Effect.provide(PosixHost.layer({ root: expected }), { local: true }))
      execFileSync("git", ["apply", "-"], { cwd: root, input: patch })
      const same = execFileSync("diff", ["-r", root, expected], { encoding: "utf8" })
      assert.strictEqual(same, "")
    }).pipe(Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer()))))
  )

  it.effect("shows small changes that follow a change above the budget", () =>
    Effect.gen(function* () {
      const { diff, take } = session()
      const fs = yield* Filesystem
      yield* take({ tag: "before" })
      yield* fs.write("a.txt", "\n".repeat(1024 * 1024))
      yield* fs.write("b.txt", "small\n")
      const { value } = yield* diff({ snapshot_id: "before" })
      assert.strictEqual(value!["files_changed"], 2)
      assert.strictEqual(value!["diff"], "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+small\n")
    }).pipe(Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer()))))
  )
})
