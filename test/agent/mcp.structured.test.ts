/** The messages a client receives with and without structured content, through the official SDK over a pipe. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as McpServer from "../../src/agent/McpServer.ts"
import { define } from "../../src/agent/definition.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { overPipe } from "./mcpClients.ts"

const budget = 48_000

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

const many = Object.fromEntries(
  Array.from({ length: 3000 }, (_, i) => [`a file with a longer name ${i}.txt`, `"needle" \\ ${i}\n`] as const)
)

const files = InMemory.layer({
  tree: {
    many,
    "dot.png": Uint8Array.from(png),
    "few.bin": Uint8Array.from([0, 1, 2, 255]),
    "more.bin": Uint8Array.from({ length: 30_000 }, (_, i) => i % 256),
    "most.bin": Uint8Array.from({ length: 300_000 }, (_, i) => i % 256),
    "long.txt": Array.from({ length: 5000 }, (_, i) => `"${i}"\t\\ of a long file\n`).join(""),
    "wide.txt": "\\".repeat(100_000)
  }
})

interface Sent {
  readonly isError?: boolean
  readonly content: ReadonlyArray<{
    readonly type: string
    readonly text?: string
    readonly data?: string
    readonly mimeType?: string
    readonly resource?: { readonly uri: string; readonly mimeType: string; readonly blob: string }
  }>
  readonly structuredContent?: Readonly<Record<string, any>>
}

type Page = NonNullable<Sent["structuredContent"]>

const connect = (options: McpServer.Options) => overPipe(Effect.provide(McpServer.runStdio(options), files))

const asking = Effect.fnUntraced(function* (options: McpServer.Options) {
  const client = yield* connect(options)
  return (name: string, args: object) =>
    Effect.promise(() => client.callTool({ name, arguments: { ...args } })) as unknown as Effect.Effect<Sent>
})

const text = ({ content }: Sent): string => content[0]!.text!

/** Calls whose answers exceed the budget. */
const large: ReadonlyArray<readonly [tool: string, args: object]> = [
  ["ls", { path: "many" }],
  ["glob", { pattern: "*.txt" }],
  ["grep", { pattern: "needle", context: 2 }],
  ["grep", { pattern: "needle", mode: "files" }],
  ["tree", { max_entries: 1000 }],
  ["read_file", { path: "long.txt" }],
  ["read_file", { path: "wide.txt" }],
  ["read_file", { path: "most.bin", encoding: "base64" }]
]

describe("a server without structured content", () => {
  it.live("sends only text and images, each once, and announces no output schemas", () =>
    Effect.gen(function* () {
      const client = yield* connect({})
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.isTrue(tools.every((tool) => tool.outputSchema === undefined))
      const call = yield* asking({})
      for (const [tool, args] of large) {
        const sent = yield* call(tool, args)
        assert.isUndefined(sent.structuredContent, tool)
        assert.deepStrictEqual(
          sent.content.map(({ type }) => type),
          ["text"],
          tool
        )
        assert.isAtMost(text(sent).length, budget, tool)
      }
      const image = yield* call("read_file", { path: "dot.png" })
      assert.deepStrictEqual(
        image.content.map(({ data, mimeType, type }) => [type, data ?? "", mimeType ?? ""]),
        [
          ["text", "", ""],
          ["image", png.toString("base64"), "image/png"]
        ]
      )
      assert.isUndefined(image.structuredContent)
    }).pipe(Effect.scoped)
  )

  it.live("announces the default kit with snapshots in at most 12,000 characters", () =>
    Effect.gen(function* () {
      const both = Layer.provideMerge(Snapshots.layer, files)
      const client = yield* overPipe(Effect.provide(McpServer.runStdio(), both))
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.strictEqual(tools.length, 17)
      assert.isAtMost(JSON.stringify(tools).length, 12_000)
    }).pipe(Effect.scoped)
  )
})

describe("a binary file that is read as base64", () => {
  it.live("is sent as an embedded resource if it fits the budget, and also as text if it is small", () =>
    Effect.gen(function* () {
      const call = yield* asking({})
      for (const [path, isText] of [
        ["few.bin", true],
        ["more.bin", false]
      ] as const) {
        const sent = yield* call("read_file", { path, encoding: "base64" })
        const bytes = yield* Effect.flatMap(Filesystem, (fs) => fs.readBytes(path)).pipe(Effect.provide(files))
        const base64 = Buffer.from(bytes.content).toString("base64")
        const { resource, type } = sent.content[1]!
        assert.strictEqual(type, "resource")
        assert.deepStrictEqual(resource, { uri: `workspace:///${path}`, mimeType: "application/octet-stream", blob: base64 })
        assert.strictEqual(text(sent).includes(base64), isText, path)
        assert.isAtMost(text(sent).length + base64.length, budget)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is sent as text page by page if it exceeds the budget", () =>
    Effect.gen(function* () {
      const call = yield* asking({})
      const sent = yield* call("read_file", { path: "most.bin", encoding: "base64" })
      assert.strictEqual(sent.content.length, 1)
      assert.match(text(sent), /continue with encoding="base64", offset=\d+$/)
    }).pipe(Effect.scoped)
  )
})

describe("structured content", () => {
  it.live("contains the message, and fits the budget without being shortened, if the tool has pages", () =>
    Effect.gen(function* () {
      const call = yield* asking({ structured: true })
      for (const [tool, args] of large) {
        const sent = yield* call(tool, args)
        const { cut, message } = sent.structuredContent!
        const name = `${tool} ${JSON.stringify(args)}`
        assert.isAtMost(JSON.stringify(sent.structuredContent).length, budget, name)
        assert.strictEqual(message, text(sent), name)
        assert.isUndefined(cut, name)
      }
    }).pipe(Effect.scoped)
  )

  it.live("names the next page, so that a client can read a whole directory and a whole file", () =>
    Effect.gen(function* () {
      const call = yield* asking({ structured: true })
      const names: Array<string> = []
      for (let after: string | undefined = ""; after !== undefined;) {
        const { entries, next }: Page = (yield* call("ls", { path: "many", after })).structuredContent!
        names.push(...entries.map(({ name }: { readonly name: string }) => name))
        after = next
      }
      assert.sameMembers(names, Object.keys(many))
      assert.strictEqual(names.length, 3000)
      let whole = ""
      for (let offset: number | undefined = 0; offset !== undefined;) {
        const { content, next }: Page = (yield* call("read_file", { path: "long.txt", offset })).structuredContent!
        whole += `${content}\n`
        offset = next
      }
      const read = yield* Effect.flatMap(Filesystem, (fs) => fs.readString("long.txt")).pipe(Effect.provide(files))
      assert.strictEqual(whole, read)
    }).pipe(Effect.scoped)
  )

  it.live("is shortened if the tool has no pages, and names the shortened fields", () =>
    Effect.gen(function* () {
      const Value = Schema.Struct({
        text: Schema.String,
        list: Schema.Array(Schema.Struct({ name: Schema.String })),
        few: Schema.Array(Schema.Int)
      })
      const items = Array.from({ length: 20_000 }, (_, i) => ({ name: `item "${i}"` }))
      const big = define({
        name: "big",
        description: "Says a lot.",
        parameters: Schema.Struct({}),
        value: Value,
        does: "reads",
        idempotent: true,
        examples: [{}],
        touches: () => Effect.succeed([]),
        handle: () => Effect.succeed({ message: "short", value: { text: "😀".repeat(100_000), list: items, few: [1, 2] } })
      })
      const call = yield* asking({ structured: true, extra: [big] })
      const { cut, few, list, message, text } = (yield* call("big", {})).structuredContent as typeof Value.Type & {
        readonly cut: unknown
        readonly message: string
      }
      assert.isAtMost(JSON.stringify({ cut, few, list, message, text }).length, budget)
      assert.deepStrictEqual([message, few, cut], ["short", [1, 2], ["text", "list"]])
      assert.deepStrictEqual(list, items.slice(0, list.length))
      assert.isAbove(list.length, 100)
      assert.isTrue(text.isWellFormed())
      assert.isAbove(text.length, 1000)
    }).pipe(Effect.scoped)
  )

  it.live("follows the schema that the tool announces, which the client checks", () =>
    Effect.gen(function* () {
      const client = yield* connect({ structured: true })
      const { tools } = yield* Effect.promise(() => client.listTools())
      assert.isTrue(tools.every((tool) => tool.outputSchema?.required?.includes("message")))
      // The client rejects an answer that violates the schema.
      const write = { path: "new.txt", content: "x\n" }
      const written = (yield* Effect.promise(() =>
        client.callTool({ name: "write_file", arguments: write })
      )) as unknown as Sent
      assert.include(written.structuredContent, { path: "new.txt", bytes_written: 2, message: text(written) })
      const failed = (yield* Effect.promise(() => client.callTool({ name: "write_file", arguments: write }))) as unknown as Sent
      assert.isTrue(failed.isError)
      assert.isUndefined(failed.structuredContent)
    }).pipe(Effect.scoped)
  )
})
