/** The answers of tools to unusual requests, and the advice in these answers. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as tools from "../../src/agent/tools.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { call, withTree } from "./looking.ts"
import { removeTree } from "../../src/engine/remove.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { host } from "./changing.ts"
import * as Tools from "../../src/agent/tools.ts"
import * as Request from "../../src/port/Request.ts"

const all = [...tools.seven, ...tools.extras]
const invoke = (tool: string, args: object) =>
  call(
    all.find(({ name }) => name === tool)!,
    args
  )

const lines = Array.from({ length: 50 }, (_, i) => `line ${i + 1}\n`).join("")

describe("read_file counts lines from 1 and from the end", () => {
  const rows: ReadonlyArray<readonly [args: object, first: string, footer: string]> = [
    [{ line: 1, limit: 1 }, "   1 | line 1", "lines 1-1 of 50; continue with offset=1"],
    [{ line: 49 }, "  49 | line 49", "lines 49-50 of 50"],
    [{ line: -20 }, "  31 | line 31", "lines 31-50 of 50"],
    [{ line: -20, limit: 2 }, "  31 | line 31", "lines 31-32 of 50; continue with offset=32"],
    [{ line: -500, limit: 1 }, "   1 | line 1", "lines 1-1 of 50; continue with offset=1"],
    [{ line: 3, offset: 2, limit: 1 }, "   3 | line 3", "lines 3-3 of 50; continue with offset=3"]
  ]
  for (const [args, first, footer] of rows) {
    it.effect(`for the arguments ${JSON.stringify(args)}`, () =>
      Effect.gen(function* () {
        const { message } = yield* invoke("read_file", { path: "a", ...args })
        const shown = message.split("\n")
        assert.deepStrictEqual([shown[0], shown.at(-1)], [first, footer])
      }).pipe(withTree({ a: lines }))
    )
  }

  it.effect("for a file that exceeds the read limit", () =>
    Effect.gen(function* () {
      const count = 400_000
      const fs = yield* Filesystem
      yield* fs.write("big", Array.from({ length: count }, (_, i) => `a line of a long log ${i + 1}\n`).join(""))
      const { message } = yield* invoke("read_file", { path: "big", line: -3, limit: 2 })
      const shown = [count - 2, count - 1].map((n) => `${n} | a line of a long log ${n}`)
      assert.strictEqual(
        message,
        [...shown, `lines ${count - 2}-${count - 1} of ${count}; continue with offset=${count - 1}`].join("\n")
      )
    }).pipe(Effect.provide(InMemory.layer({})))
  )
})

describe("edit_file leaves no mixed line endings", () => {
  const rows: ReadonlyArray<readonly [was: string, old: string, text: string, is: string]> = [
    ["a\r\nb\r\nc\r\n", "a\r\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n"],
    ["a\r\nb\r\nc\r\n", "a\nb", "a\r\nx\nb", "a\r\nx\r\nb\r\nc\r\n"],
    ["a\nb\nc\n", "a\nb", "a\r\nx\r\nb", "a\nx\nb\nc\n"]
  ]
  for (const [was, old, text, is] of rows) {
    it.effect(`if ${JSON.stringify(old)} becomes ${JSON.stringify(text)} in ${JSON.stringify(was)}`, () =>
      Effect.gen(function* () {
        const { message, success } = yield* invoke("edit_file", { path: "a", old_string: old, new_string: text })
        assert.isTrue(success, message)
        assert.strictEqual(yield* (yield* Filesystem).readString("a"), is)
      }).pipe(withTree({ a: was }))
    )
  }
})

describe("advice", () => {
  it.effect("of edit_file suggests more context or replace_all once, and only if the text occurs twice", () =>
    Effect.gen(function* () {
      const edit = (path: string, old_string: string) => invoke("edit_file", { path, old_string, new_string: "x" })
      const [absent, twice, empty] = [yield* edit("a", "nowhere"), yield* edit("a", "line 1"), yield* edit("e", "line")]
      assert.notInclude(absent.message, "replace_all")
      assert.strictEqual(twice.message.split("replace_all").length, 2)
      assert.strictEqual(twice.message.split("occurs only once").length, 2)
      assert.notInclude(empty.message, "copy")
      assert.include(empty.message, "write_file")
    }).pipe(withTree({ a: lines, e: "" }))
  )
})

describe("the message of rm counts the removed entries", () => {
  const rows: ReadonlyArray<readonly [path: string, message: string]> = [
    ["empty", "removed empty, an empty directory"],
    ["one", "removed one with everything in it: 1 directory, 1 file"],
    ["hollow", "removed hollow with everything in it: 2 directories, 0 files"]
  ]
  for (const [path, expected] of rows) {
    it.effect(`for the directory ${path}`, () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* invoke("rm", { path })).message, expected)
      }).pipe(withTree({ empty: {}, one: { a: "x" }, hollow: { inner: {} } }))
    )
  }
})

it.effect("write fails with InvalidPath for an empty path, and with NotAFile for the root", () =>
  Effect.gen(function* () {
    const fs = yield* Filesystem
    assert.strictEqual((yield* Effect.flip(fs.write("", "x")))._tag, "InvalidPath")
    assert.strictEqual((yield* Effect.flip(fs.writeBytes("", new Uint8Array())))._tag, "InvalidPath")
    assert.strictEqual((yield* Effect.flip(fs.write("/", "x")))._tag, "NotAFile")
  }).pipe(Effect.provide(InMemory.layer({})))
)

const tool = (name: string) => [...Tools.seven, ...Tools.extras].find((each) => each.name === name)!

describe("a directory with a file that cannot be removed", () => {
  for (const remove of [
    Tools.seven.find(({ name }) => name === "rm")!,
    Tools.four.find(({ name }) => name === "delete_file")!
  ]) {
    it.live(`stays whole if ${remove.name} fails`, () =>
      Effect.gen(function* () {
        const sound = yield* host({ "d/a": "a", "d/b": "b", "d/c": "c" })
        const failing = faulty([
          { operation: "Remove", path: "d/b", fault: { _tag: "IoError", code: "EIO", detail: "planned" } }
        ])
        const { port } = failing(sound)
        // Uses a native removal of trees, as a host does.
        const fs = make({
          ...port,
          explore: undefined,
          perform: Request.handlers({ RemoveTree: ({ path }) => Effect.asSome(removeTree(port, path)) })
        })
        const { success } = yield* call(remove, { path: "d" }).pipe(Effect.provideService(Filesystem, fs))
        const left = yield* Effect.orElseSucceed(
          Effect.map(sound.list("d"), (entries) => entries.length),
          () => 0
        )
        assert.strictEqual(left, success ? 0 : 3)
      })
    )
  }
})

describe("arguments that are nested 20,000 levels deep", () => {
  it.effect("are refused with a message that names the parameter", () =>
    Effect.gen(function* () {
      let path: unknown = "a.txt"
      for (let i = 0; i < 20_000; i++) path = [path]
      const { message, success } = yield* call(tool("ls"), { path })
      assert.isFalse(success)
      assert.include(message, '"path" must be a string')
    }).pipe(withTree({ "a.txt": "a" }))
  )
})
