/** The toolkits of effect/ai, called as a model calls them, in memory and on a directory. */
import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { createHash } from "node:crypto"
import * as FilesystemToolkit from "../../src/agent/FilesystemToolkit.ts"
import { ToolEvents, type ToolInvoked } from "../../src/agent/ToolEvents.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import * as VfsToolkit from "../../src/agent/VfsToolkit.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { fastDirectory } from "../backends/posixHost.ts"

type Result = ToolResult<Record<string, unknown>>

interface Handlers {
  readonly handle: (
    name: string,
    params: unknown
  ) => Effect.Effect<Stream.Stream<{ readonly result: unknown; readonly encodedResult: unknown }>>
}

const call = <Tools extends Record<string, Tool.Any>>(
  kit: Toolkit.Toolkit<Tools>,
  name: string,
  params: unknown
): Effect.Effect<Result, never, Tool.HandlersFor<Tools>> =>
  Effect.flatMap(kit, (handlers) =>
    (handlers as unknown as Handlers).handle(name, params).pipe(
      Stream.unwrap,
      Stream.runCollect,
      Effect.map((results) => {
        const { encodedResult, result } = results.at(-1)!
        assert.deepStrictEqual(JSON.parse(JSON.stringify(encodedResult)), encodedResult)
        return result as Result
      })
    )
  )

const seven = (name: string, params: unknown) => call(FilesystemToolkit.toolkit, name, params)
const four = (name: string, params: unknown) => call(VfsToolkit.toolkit, name, params)

const fails = (result: Result, ...parts: ReadonlyArray<string>): void => {
  assert.isFalse(result.success)
  assert.notProperty(result, "value")
  for (const part of parts) assert.include(result.message, part)
}

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex")

type Backend = Layer.Layer<Filesystem, unknown>

const host = (options: { readonly readOnly?: boolean }): Backend =>
  Layer.unwrap(Effect.map(fastDirectory, (root) => PosixHost.layer({ root, ...options })))

const backends: ReadonlyArray<readonly [name: string, layer: (options?: { readonly readOnly?: boolean }) => Backend]> = [
  ["memory", (options = {}) => InMemory.layer(options)],
  ["a directory", (options = {}) => host(options)]
]

for (const [name, backend] of backends) {
  const tools = (options: { readonly readOnly?: boolean } = {}) =>
    Layer.merge(FilesystemToolkit.layer, VfsToolkit.layer).pipe(Layer.provideMerge(backend(options)))

  describe(`the handlers of the toolkits, on ${name}:`, () => {
    const filled = Effect.fnUntraced(function* (tree: Readonly<Record<string, string>>) {
      const fs = yield* Filesystem
      for (const [path, text] of Object.entries(tree)) yield* fs.write(path, text)
    })

    it.live("a handler reads a page of a file and returns the offset of the next page", () =>
      Effect.gen(function* () {
        yield* filled({ "src/main.py": "1\n2\n3\n4\n5\n6\n7\n" })
        const { message, value } = yield* seven("read_file", { path: "src/main.py", offset: 2, limit: 3 })
        assert.deepStrictEqual<unknown>(
          [value!["path"], value!["content"], value!["total_lines"], value!["truncated"]],
          ["src/main.py", "3\n4\n5", 7, true]
        )
        assert.strictEqual(message, "   3 | 3\n   4 | 4\n   5 | 5\nlines 3-5 of 7; continue with offset=5")
      }).pipe(Effect.provide(tools()))
    )

    it.live("a missing file is a failure that names the file", () =>
      Effect.gen(function* () {
        fails(yield* seven("read_file", { path: "nope.txt" }), "nope.txt")
      }).pipe(Effect.provide(tools()))
    )

    it.live("a refusal of the filesystem is a failure with a message", () =>
      Effect.gen(function* () {
        fails(yield* seven("write_file", { path: "a", content: "" }), "read-only")
        fails(yield* seven("rm", { path: "a", allow_missing: true }), "read-only")
      }).pipe(Effect.provide(tools({ readOnly: true })))
    )

    it.live("a file that is written before the run is visible to the tools, and their writes are visible to the program", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("scratch/notes.txt", "Working notes...")
        const read = yield* seven("read_file", { path: "scratch/notes.txt" })
        assert.strictEqual(read.value!["content"], "Working notes...")
        yield* seven("write_file", { path: "scratch/more.txt", content: "more" })
        assert.strictEqual(yield* fs.readString("scratch/more.txt"), "more")
      }).pipe(Effect.provide(tools()))
    )
  })

  describe(`the seven tools, on ${name}:`, () => {
    it.live("write_file returns the number of bytes and the path", () =>
      Effect.gen(function* () {
        const { message, value } = yield* seven("write_file", { path: "test.txt", content: "hellö" })
        assert.deepStrictEqual<unknown>([value!["path"], value!["bytes_written"]], ["test.txt", 6])
        assert.include(message, "test.txt")
        assert.include(message, "6 bytes")
        assert.strictEqual((yield* seven("read_file", { path: "test.txt" })).value!["content"], "hellö")
      }).pipe(Effect.provide(tools()))
    )

    it.live("rm removes a directory with its files, and counts them", () =>
      Effect.gen(function* () {
        yield* seven("write_file", { path: "a/b.txt", content: "x" })
        assert.strictEqual((yield* seven("rm", { path: "a" })).value!["deleted"], 1)
        fails(yield* seven("read_file", { path: "a/b.txt" }), "a/b.txt")
      }).pipe(Effect.provide(tools()))
    )

    it.live("edit_file replaces one or all matches, and fails for a missing file or text", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("e.txt", "one two two three")
        const edit = (old_string: string, new_string: string, rest: object = {}) =>
          seven("edit_file", { path: "e.txt", old_string, new_string, ...rest })
        assert.isTrue((yield* edit("one", "1")).success)
        fails(yield* edit("four", "4"), "old_string")
        fails(yield* edit("two", "2"), "2")
        assert.strictEqual((yield* edit("two", "2", { replace_all: true })).value!["replacements"], 2)
        assert.strictEqual(yield* fs.readString("e.txt"), "1 2 2 three")
        fails(yield* seven("edit_file", { path: "none.txt", old_string: "a", new_string: "b" }), "none.txt")
      }).pipe(Effect.provide(tools()))
    )

    it.live("ls, glob and grep find written files", () =>
      Effect.gen(function* () {
        yield* seven("write_file", { path: "src/app.py", content: "import os\n# TODO\n" })
        yield* seven("write_file", { path: "README.md", content: "TODO\n" })
        const entries = (yield* seven("ls", {})).value!["entries"] as ReadonlyArray<{ name: string }>
        assert.deepStrictEqual(
          entries.map((entry) => entry.name),
          ["README.md", "src"]
        )
        const globbed = (yield* seven("glob", { pattern: "**/*.py" })).value!["matches"] as ReadonlyArray<{ path: string }>
        assert.deepStrictEqual(
          globbed.map(({ path }) => path),
          ["src/app.py"]
        )
        const found = (yield* seven("grep", { pattern: "TODO" })).value!["matches"] as ReadonlyArray<Record<string, unknown>>
        assert.deepStrictEqual(
          found.map(({ line_number, path }) => [path, line_number]),
          [
            ["README.md", 1],
            ["src/app.py", 2]
          ]
        )
      }).pipe(Effect.provide(tools()))
    )
  })

  describe(`the four tools, on ${name}:`, () => {
    it.live("list, write, read, append and delete work together", () =>
      Effect.gen(function* () {
        const listed = (path?: string) =>
          Effect.map(four("list_directory", path === undefined ? {} : { path }), ({ value }) => value)
        assert.deepStrictEqual<unknown>(yield* listed(), { path: ".", directories: [], files: [] })
        yield* four("write_file", { path: "notes/plan.md", content: "- look\n" })
        yield* four("write_file", { path: "notes/log.txt", content: "start\n" })
        assert.deepStrictEqual<unknown>(yield* listed(), { path: ".", directories: ["notes"], files: [] })
        assert.deepStrictEqual<unknown>(yield* listed("notes"), {
          path: "notes",
          directories: [],
          files: ["log.txt", "plan.md"]
        })
        const first = yield* four("read_file", { path: "notes/log.txt" })
        const before = first.value!["file"] as Record<string, unknown>
        yield* four("write_file", { path: "notes/log.txt", content: "end\n", mode: "append", if_version: before["version"] })
        const second = yield* four("read_file", { path: "notes/log.txt" })
        const after = second.value!["file"] as Record<string, unknown>
        assert.strictEqual(second.value!["content"], "start\nend\n")
        assert.deepStrictEqual<unknown>([before["size_bytes"], after["size_bytes"]], [6, 10])
        assert.strictEqual(after["version"], sha256("start\nend\n"))
        yield* four("delete_file", { path: "notes" })
        assert.deepStrictEqual<unknown>(yield* listed(), { path: ".", directories: [], files: [] })
      }).pipe(Effect.provide(tools()))
    )

    it.live("list_directory lists one level, and fails for a file", () =>
      Effect.gen(function* () {
        yield* four("write_file", { path: "a/b/c.txt", content: "1" })
        const { value } = yield* four("list_directory", { path: "a" })
        assert.deepStrictEqual<unknown>(value, { path: "a", directories: ["b"], files: [] })
        fails(yield* four("list_directory", { path: "a/b/c.txt" }), "a/b/c.txt")
      }).pipe(Effect.provide(tools()))
    )

    it.live("read_file returns the metadata and the content, in base64 if it is binary", () =>
      Effect.gen(function* () {
        const bytes = new Uint8Array([0, 159, 146, 150])
        const content = Buffer.from(bytes).toString("base64")
        yield* four("write_file", { path: "bin", content, encoding: "binary" })
        const { value } = yield* four("read_file", { path: "bin" })
        const { path, encoding, size_bytes, version, created_at, updated_at } = value!["file"] as Record<string, unknown>
        assert.deepStrictEqual<unknown>(
          [path, encoding, size_bytes, version, value!["content"]],
          ["bin", "binary", 4, sha256(bytes), content]
        )
        for (const time of [created_at, updated_at].filter((at) => at !== undefined)) {
          assert.match(time as string, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        }
        fails(yield* four("read_file", { path: "missing" }), "missing")
      }).pipe(Effect.provide(tools()))
    )

    it.live("write_file accepts at most 48,000 characters, or 48,000 decoded bytes", () =>
      Effect.gen(function* () {
        const text = (count: number) => four("write_file", { path: "t", content: "é".repeat(count), mode: "overwrite" })
        const binary = (count: number) =>
          four("write_file", {
            path: "b",
            content: Buffer.alloc(count).toString("base64"),
            encoding: "binary",
            mode: "overwrite"
          })
        for (const write of [text, binary]) {
          assert.isTrue((yield* write(48_000)).success)
          fails(yield* write(48_001), "48,000")
        }
      }).pipe(Effect.provide(tools()))
    )

    it.live("write_file collapses slashes, and refuses paths that leave the root or are too deep", () =>
      Effect.gen(function* () {
        const written = yield* four("write_file", { path: "a//b///c.txt", content: "" })
        assert.strictEqual(written.value!["path"], "a/b/c.txt")
        for (const path of ["../x", "a/../../x", Array.from({ length: 17 }, () => "d").join("/"), "n".repeat(81), ""]) {
          const refused = yield* four("write_file", { path, content: "" })
          assert.isFalse(refused.success, path)
        }
      }).pipe(Effect.provide(tools()))
    )

    it.live("delete_file removes a directory with all files below it, and nothing else", () =>
      Effect.gen(function* () {
        for (const path of ["docs/a.md", "docs/deep/b.md", "docs.md", "docs2/c.md"]) {
          yield* four("write_file", { path, content: "x" })
        }
        assert.strictEqual((yield* four("delete_file", { path: "docs" })).value!["deleted"], 2)
        const { value } = yield* four("list_directory", {})
        assert.deepStrictEqual<unknown>(value, { path: ".", directories: ["docs2"], files: ["docs.md"] })
        fails(yield* four("delete_file", { path: "docs" }), "docs")
        assert.isTrue((yield* four("delete_file", { path: "docs", allow_missing: true })).success)
      }).pipe(Effect.provide(tools()))
    )

    it.live("no name of a tool contains `mount`", () =>
      Effect.sync(() => assert.isEmpty(Object.keys(VfsToolkit.toolkit.tools).filter((tool) => tool.includes("mount"))))
    )
  })

  describe(`the event of a call, on ${name},`, () => {
    it.live("contains path, mode, result and time, and no content", () =>
      Effect.gen(function* () {
        const events: Array<ToolInvoked> = []
        const listening = Layer.succeed(ToolEvents, (event) => Effect.sync(() => void events.push(event)))
        const secret = "s".repeat(2000)
        yield* Effect.gen(function* () {
          yield* seven("write_file", { path: "a.txt", content: secret, mode: "overwrite" })
          yield* seven("read_file", { path: "missing.txt" })
        }).pipe(Effect.provide(FilesystemToolkit.layer.pipe(Layer.provide(listening), Layer.provide(backend()))))
        const [write, read] = events
        assert.deepStrictEqual(
          [write!.tool, write!.path, write!.mode, write!.sizeBytes, write!.success],
          ["write_file", "a.txt", "overwrite", 2000, true]
        )
        assert.deepStrictEqual([read!.tool, read!.path, read!.success], ["read_file", "missing.txt", false])
        assert.isAtLeast(write!.durationMillis, 0)
        assert.isTrue(DateTime.isDateTime(write!.at))
        assert.notInclude(JSON.stringify(events), secret)
      })
    )
  })
}

describe("the seven tools without a filesystem", () => {
  it.effect("each report that no filesystem is available", () =>
    Effect.gen(function* () {
      for (const [tool, params] of [
        ["ls", {}],
        ["read_file", { path: "a" }],
        ["write_file", { path: "a", content: "" }],
        ["edit_file", { path: "a", old_string: "a", new_string: "b" }],
        ["glob", { pattern: "*" }],
        ["grep", { pattern: "a" }],
        ["rm", { path: "a" }]
      ] as const) {
        fails(yield* call(FilesystemToolkit.seven, tool, params), "No filesystem available")
      }
    }).pipe(Effect.provide(FilesystemToolkit.layerSevenContextual))
  )
})
