import { assert, describe, it } from "@effect/vitest"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpTest from "effect/ai/McpTest"
import * as McpServer from "../../src/agent/McpServer.ts"
import { access } from "../../src/agent/policy/access.ts"
import { define, ToolProgress } from "../../src/agent/definition.ts"
import { changeNotices } from "../../src/agent/mcp/plan.ts"
import { plan } from "../../src/agent/mcp/plan.ts"
import { makeFlow } from "../../src/agent/mcp/stdio.ts"
import * as kits from "../../src/agent/mcp/guide.ts"
import { instructions } from "../../src/agent/mcp/guide.ts"
import * as Lines from "../../src/agent/mcp/stdio.ts"
import * as tools from "../../src/agent/tools.ts"
import { defaults } from "../../src/agent/ToolSettings.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

const tree = {
  "a.txt": "one\ntwo\n",
  "dot.png": Uint8Array.from(png),
  "secret.env": "TOKEN=1\n",
  src: { "b c#?.ts": "export const b = 1\n", "main.ts": "main\n" },
  empty: {}
}

const files = InMemory.layer({ tree })

const connect = (options: McpServer.Options = {}, protocol: McpProtocol.ProtocolAdapter = McpProtocol.v2025_11_25) =>
  McpTest.makeClient(McpServer.registrations(options), { protocols: [protocol] })

const text = (result: { readonly content: ReadonlyArray<unknown> }): string =>
  (result.content[0] as { readonly text: string }).text

const seven = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
const extras = ["move", "copy", "mkdir", "stat", "tree", "apply_patch"]

describe("the list of tools", () => {
  const names = (options: McpServer.Options = {}) =>
    Effect.map(
      Effect.flatMap(connect(options), (client) => client.listTools()),
      ({ tools }) => tools.map(({ name }) => name)
    )

  it.effect("contains the seven tools and the extra tools, and no snapshot tools without snapshots", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* names(), [...seven, ...extras])
      assert.deepStrictEqual(yield* names({ tools: "seven" }), seven)
      assert.deepStrictEqual(yield* names({ tools: ["grep", "ls"] }), ["ls", "grep"])
      assert.deepStrictEqual(yield* names({ tools: "vfs" }), ["list_directory", "read_file", "write_file", "delete_file"])
    }).pipe(Effect.provide(files))
  )

  it.effect("contains the four snapshot tools if snapshots are provided", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* names()).slice(-4), ["snapshot", "snapshots", "restore", "diff"])
    }).pipe(Effect.provide(Layer.provideMerge(Snapshots.layer, files)))
  )

  it.effect("contains no changing tools on a read-only server, and their calls fail as unknown tools", () =>
    Effect.gen(function* () {
      const client = yield* connect({ readOnly: true })
      const { tools } = yield* client.listTools()
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["ls", "read_file", "glob", "grep", "stat", "tree", "snapshots", "diff"]
      )
      assert.isTrue(tools.every(({ annotations }) => annotations?.readOnlyHint === true))
      const call = (name: string) =>
        Effect.flip(client.callTool({ name, arguments: { path: "a.txt", content: "x", mode: "overwrite" } }))
      const [written, unknown] = [yield* call("write_file"), yield* call("no_such_tool")]
      assert.strictEqual(written.code, -32602)
      assert.strictEqual(unknown.code, -32602)
      assert.strictEqual(written.message, unknown.message.replace("no_such_tool", "write_file"))
      const fs = yield* Filesystem
      assert.strictEqual(yield* fs.readString("a.txt"), "one\ntwo\n")
    }).pipe(Effect.provide(Layer.provideMerge(Snapshots.layer, files)))
  )
})

describe("the tools over MCP", () => {
  it.effect(
    "have object schemas without additional properties, references or top-level unions, and describe every parameter",
    () =>
      Effect.gen(function* () {
        for (const kit of ["all", "vfs"] as const) {
          const { tools } = yield* (yield* connect({ tools: kit, structured: true })).listTools()
          for (const { annotations, inputSchema, name, outputSchema, title } of tools) {
            const schema = inputSchema as unknown as {
              readonly type: string
              readonly additionalProperties: unknown
              readonly properties?: Readonly<Record<string, { readonly description?: string }>>
            }
            assert.strictEqual(schema.type, "object", name)
            assert.strictEqual(schema.additionalProperties, false, name)
            assert.notMatch(JSON.stringify(schema), /"\$ref"|\(\?[=!<]/, name)
            for (const key of ["anyOf", "oneOf", "allOf"]) assert.notProperty(schema, key, name)
            for (const [key, value] of Object.entries(schema.properties ?? {})) {
              assert.match(JSON.stringify(value), /"description"/, `${name}.${key}`)
            }
            assert.strictEqual(outputSchema?.["type"], "object", name)
            assert.strictEqual(annotations?.openWorldHint, false, name)
            assert.isString(title, name)
            if (annotations?.readOnlyHint === true) assert.isFalse(annotations.destructiveHint, name)
          }
        }
      }).pipe(Effect.provide(files))
  )

  it.effect("return a message and a value, or only a message after a failure", () =>
    Effect.gen(function* () {
      const client = yield* connect({ structured: true })
      const read = yield* client.callTool({ name: "read_file", arguments: { path: "/a.txt", offset: 1 } })
      assert.isFalse(read.isError)
      assert.include(text(read), "two")
      assert.include(read.structuredContent, { path: "a.txt", content: "two", offset: 1, total_lines: 2 })
      const missing = yield* client.callTool({ name: "read_file", arguments: { path: "a.tx" } })
      assert.isTrue(missing.isError)
      assert.include(text(missing), "a.txt")
      assert.isUndefined(missing.structuredContent)
      const wrong = yield* client.callTool({ name: "read_file", arguments: { path: 5, bogus: true } })
      assert.isTrue(wrong.isError)
      assert.include(text(wrong), "path")
    }).pipe(Effect.provide(files))
  )

  it.effect("send an image as image content, and its bytes only once", () =>
    Effect.gen(function* () {
      const client = yield* connect({ structured: true })
      const read = yield* client.callTool({ name: "read_file", arguments: { path: "dot.png", encoding: "base64" } })
      const image = read.content.find(({ type }) => type === "image") as unknown as {
        readonly mimeType: string
        readonly data: Uint8Array
      }
      assert.strictEqual(image.mimeType, "image/png")
      assert.deepStrictEqual(Buffer.from(image.data), png)
      assert.notInclude(JSON.stringify(read.structuredContent), png.toString("base64"))
    }).pipe(Effect.provide(files))
  )

  it.effect("name the line that another client changed after the read, in the message of a conflict", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* connect({ structured: true }), yield* connect()]
      const change = { path: "a.txt", old_string: "one", new_string: "uno" }
      const { structuredContent } = yield* first.callTool({ name: "read_file", arguments: { path: "a.txt" } })
      const { version } = structuredContent as { readonly version: string }
      yield* second.callTool({ name: "edit_file", arguments: change })
      const stale = { ...change, old_string: "two", new_string: "dos", if_match: version }
      const conflict = yield* first.callTool({ name: "edit_file", arguments: stale })
      assert.isTrue(conflict.isError)
      assert.include(text(conflict), "line 1")
    }).pipe(Effect.provide(files))
  )

  it.effect("answer in every version of the protocol", () =>
    Effect.gen(function* () {
      const all = [
        McpProtocol.v2024_11_05,
        McpProtocol.v2025_03_26,
        McpProtocol.v2025_06_18,
        McpProtocol.v2025_11_25,
        McpProtocol.v2026_07_28
      ]
      for (const protocol of all) {
        const client = yield* connect({}, protocol)
        assert.include(text(yield* client.callTool({ name: "ls", arguments: {} })), "a.txt", protocol.protocolVersion)
      }
    }).pipe(Effect.provide(files))
  )
})

const parameters = Schema.Struct({})
const value = Schema.Struct({})

describe("long calls", () => {
  const slow = (handle: Effect.Effect<void>) =>
    define({
      name: "slow",
      description: "Takes its time.",
      parameters,
      value,
      does: "reads",
      idempotent: true,
      examples: [{}],
      touches: () => Effect.succeed([]),
      handle: () => Effect.as(handle, { message: "done", value: {} })
    })

  it.live("report increasing progress to a client that asked for it", () =>
    Effect.gen(function* () {
      const work = Effect.gen(function* () {
        const report = yield* ToolProgress
        assert.isDefined(report)
        for (const done of [1, 2, 2, 3]) {
          yield* report!({ done, total: 3, message: `${done} of 3` })
          yield* Effect.sleep(110)
        }
      })
      const client = yield* connect({ extra: [slow(work)] })
      yield* client.callTool({ name: "slow", arguments: {}, _meta: { progressToken: "t" } })
      const sent = (yield* Queue.takeAll(client.notifications))
        .filter(({ method }) => method === "notifications/progress")
        .map(({ payload }) => payload)
      assert.deepStrictEqual(
        sent,
        [1, 2, 3].map((progress) => ({ progressToken: "t", progress, total: 3, message: `${progress} of 3` }))
      )
    }).pipe(Effect.provide(files))
  )

  it.effect("report no progress to a client that did not ask for it, and have no ToolProgress", () =>
    Effect.gen(function* () {
      const seen = yield* Deferred.make<boolean>()
      const work = Effect.flatMap(ToolProgress, (report) => Deferred.succeed(seen, report === undefined))
      const client = yield* connect({ extra: [slow(Effect.asVoid(work))] })
      yield* client.callTool({ name: "slow", arguments: {} })
      assert.isTrue(yield* Deferred.await(seen))
    }).pipe(Effect.provide(files))
  )

  it.effect("are interrupted when the client cancels them", () =>
    Effect.gen(function* () {
      const [started, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const work = Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
      )
      const client = yield* connect({ extra: [slow(work)] })
      const call = yield* Effect.forkChild(client.callTool({ name: "slow", arguments: {} }))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(call)
      yield* Deferred.await(ended)
      assert.include(text(yield* client.callTool({ name: "ls", arguments: {} })), "a.txt")
    }).pipe(Effect.provide(files))
  )
})

describe("resources", () => {
  const read = (uri: string, options: McpServer.Options = {}) =>
    Effect.map(
      Effect.flatMap(connect(options), (client) => client.readResource({ uri })),
      ({ contents }) =>
        contents[0] as unknown as { readonly text?: string; readonly blob?: Uint8Array; readonly mimeType: string }
    )

  /** Returns the code of the error with which reading the resource fails. */
  const codeOf = (uri: string) => Effect.map(Effect.flip(read(uri)), (error) => ("code" in error ? error.code : error))

  it.effect("are the root and a template, and a directory names the URIs of its entries", () =>
    Effect.gen(function* () {
      const client = yield* connect()
      const { resources } = yield* client.listResources()
      assert.deepStrictEqual(
        resources.map(({ uri }) => uri),
        ["workspace:///"]
      )
      const { resourceTemplates } = yield* client.listResourceTemplates()
      assert.deepStrictEqual(
        resourceTemplates.map(({ uriTemplate }) => uriTemplate),
        ["workspace:///{+path}"]
      )
      const root = (yield* read("workspace:///")).text!
      const addresses = root.split("\n").map((line) => line.split("\t")[1])
      assert.includeMembers(addresses, ["workspace:///a.txt", "workspace:///src", "workspace:///empty"])
      const inside = (yield* read("workspace:///src")).text!
      assert.include(inside, "workspace:///src/b%20c%23%3F.ts")
      assert.strictEqual((yield* read("workspace:///src/b%20c%23%3F.ts")).text, "export const b = 1\n")
    }).pipe(Effect.provide(files))
  )

  it.effect("are sent as text or as bytes, with their media type", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* read("workspace:///a.txt")).mimeType, "text/plain")
      const image = yield* read("workspace:///dot.png")
      assert.strictEqual(image.mimeType, "image/png")
      assert.deepStrictEqual(Buffer.from(image.blob!), png)
    }).pipe(Effect.provide(files))
  )

  it.effect("are text even if the extension is the name of a member of Object.prototype", () =>
    Effect.gen(function* () {
      const file = yield* read("workspace:///a.constructor")
      assert.deepStrictEqual([file.mimeType, file.text], ["text/plain", "a\n"])
    }).pipe(Effect.provide(InMemory.layer({ tree: { "a.constructor": "a\n" } })))
  )

  it.effect("fail with the error code of the protocol if they are missing, and never lead out of the root", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* codeOf("workspace:///nope"), -32_002)
      for (const uri of ["workspace:///../../etc/passwd", "workspace:///%2e%2e/%2e%2e/etc/passwd", "file:///etc/passwd"]) {
        assert.include([-32_602, -32_002], yield* codeOf(uri), uri)
      }
    }).pipe(Effect.provide(files))
  )

  it.effect("are subject to the same policies as tools", () =>
    Effect.gen(function* () {
      assert.include([-32_602, -32_002], yield* codeOf("workspace:///secret.env"))
      assert.notInclude((yield* read("workspace:///")).text, "secret")
      const client = yield* connect()
      const ref = { type: "ref/resource", uri: "workspace:///{+path}" } as const
      const { completion } = yield* client.complete({ ref, argument: { name: "path", value: "s" } })
      assert.deepStrictEqual(completion.values, ["src/"])
    }).pipe(Effect.provide(access({ deny: { read: "*.env" } })), Effect.provide(files))
  )

  it.live("cause a notice when a file changes to which a client subscribed, unless a policy hides the file", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      const both = Layer.merge(McpServer.registrations(), changeNotices(Effect.void))
      const client = yield* McpTest.makeClient(both, { protocols: [McpProtocol.v2025_11_25] })
      for (const name of ["secret.env", "a.txt"]) yield* client.subscribe({ uri: `workspace:///${name}` })
      const told: Array<unknown> = []
      for (let i = 0; told.length === 0 && i < 1000; i++) {
        for (const name of ["secret.env", "b.txt", "a.txt"]) yield* fs.write(name, `${i}`)
        yield* client.ping
        const notices = yield* Queue.clear(client.notifications)
        told.push(...notices.filter(({ method }) => method === "notifications/resources/updated").map(({ payload }) => payload))
      }
      assert.deepStrictEqual(told[0], { uri: "workspace:///a.txt" })
      assert.isFalse(told.some((payload) => JSON.stringify(payload).includes("secret")))
    }).pipe(Effect.provide(access({ deny: { read: "*.env" } })), Effect.provide(files))
  )

  it.effect("offer at most a hundred names of a directory as completions of a path", () =>
    Effect.gen(function* () {
      const client = yield* connect()
      const complete = (value: string) =>
        Effect.map(
          client.complete({ ref: { type: "ref/resource", uri: "workspace:///{+path}" }, argument: { name: "path", value } }),
          ({ completion }) => completion
        )
      assert.deepStrictEqual((yield* complete("many/f1")).values.slice(0, 2), ["many/f1", "many/f10"])
      const all = yield* complete("many/")
      assert.deepStrictEqual([all.values.length, all.total, all.hasMore], [100, 150, true])
      assert.deepStrictEqual((yield* complete("nowhere/x")).values, [])
    }).pipe(
      Effect.provide(
        InMemory.layer({ tree: { many: Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`f${i}`, ""])) } })
      )
    )
  )
})

describe("the guide of an MCP server", () => {
  it.effect("is a prompt that describes the server", () =>
    Effect.gen(function* () {
      const client = yield* connect({ readOnly: true, workspace: "notes" })
      const { messages } = yield* client.getPrompt({ name: "workspace-guide" })
      const said = JSON.stringify(messages)
      for (const part of ["notes", "change nothing", "48,000", "grep"]) assert.include(said, part)
      assert.notInclude(said, "edit_file")
    }).pipe(Effect.provide(files))
  )

  it("knows the tools of each kit before they are loaded", () => {
    const names = (tools: ReadonlyArray<{ readonly name: string }>) => tools.map(({ name }) => name)
    assert.deepStrictEqual(kits.seven, names(tools.seven))
    assert.deepStrictEqual(kits.extras, names(tools.extras))
    assert.deepStrictEqual(kits.snapshotTools, names(tools.snapshotTools))
    assert.deepStrictEqual(kits.four, names(tools.four))
    const all = [...tools.seven, ...tools.extras, ...tools.four]
    for (const kit of ["all", "seven", "vfs", ...names(all).filter((name) => kits.earlyTools(name, true) !== undefined)]) {
      const { certainTool: certain } = kits.earlyTools(kit, false)!
      assert.strictEqual(all.find(({ name }) => name === certain)?.does, "reads", kit)
    }
  })

  it.effect("is sent as the instructions of the server", () =>
    Effect.gen(function* () {
      const { limits } = defaults
      const early = instructions({ names: kits.earlyTools("all", false)!.names, limits, readOnly: false })
      const { info } = yield* plan({}, makeFlow())
      assert.strictEqual(info.instructions, early)
      assert.include(early, "edit_file")
    }).pipe(Effect.provide(files))
  )
})

describe("messages over standard input", () => {
  const encoder = new TextEncoder()
  const answers = (lines: ReadonlyArray<Lines.Line>) =>
    lines.map((line) => (line._tag === "Bad" ? (JSON.parse(line.answer) as { error: { code: number } }).error.code : "ok"))
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

  it("end at line feeds, which may be anywhere in a chunk", () => {
    const lines = Lines.make()
    const bytes = encoder.encode(`${ping}\r\n\n  \n${ping.replace("ping", "pïng")}\n`)
    const found = [...bytes].flatMap((byte) => [...lines.push(Uint8Array.of(byte))])
    assert.deepStrictEqual(
      found.map((line) => (line._tag === "Message" ? line.method : line.answer)),
      ["ping", "pïng"]
    )
  })

  it("are answered with the error codes of JSON-RPC if they are invalid", () => {
    const cases: ReadonlyArray<readonly [line: string, code: number | "ok"]> = [
      ["garbage", -32_700],
      [ping.slice(0, 12), -32_700],
      ["5", -32_600],
      ["null", -32_600],
      ["[1]", -32_600],
      ['{"id":1,"method":"ping"}', -32_600],
      ['{"jsonrpc":"2.0","id":1,"method":5}', -32_600],
      ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32_600],
      ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32_600],
      ['{"jsonrpc":"2.0","id":1,"method":"ping","params":5}', -32_600],
      [`[${ping}]`, "ok"],
      ['{"jsonrpc":"2.0","id":1,"result":{}}', "ok"],
      [ping, "ok"]
    ]
    for (const [line, expected] of cases) {
      assert.deepStrictEqual(answers(Lines.make().push(encoder.encode(`${line}\n`))), [expected], line)
    }
  })

  it("that are too long are discarded while they arrive, and the next message is read", () => {
    const lines = Lines.make(1000)
    const part = encoder.encode("x".repeat(600))
    assert.deepStrictEqual([...lines.push(part), ...lines.push(part), ...lines.push(part)], [])
    assert.deepStrictEqual(answers(lines.push(encoder.encode(`y\n${ping}\n`))), [-32_600, "ok"])
  })

  /** Serves the given lines, hangs up, and returns the answers. */
  const served = Effect.fnUntraced(function* (lines: ReadonlyArray<string>) {
    const out: Array<string> = []
    const stdio = Stdio.make({
      args: Effect.succeed([]),
      stdin: Stream.make(encoder.encode(lines.map((line) => `${line}\n`).join(""))),
      stdout: () => Sink.forEach((text) => Effect.sync(() => void out.push(String(text)))),
      stderr: () => Sink.drain
    })
    yield* Effect.provideService(McpServer.runStdio(), Stdio.Stdio, stdio)
    return out.map((text) => JSON.parse(text) as { id: unknown; result?: { tools?: unknown }; error?: { code: number } })
  })

  const initialize = JSON.stringify({
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: { roots: {} }, clientInfo: { name: "t", version: "1" } }
  })

  it.live("are each answered once, even after invalid messages, and the server ends at the end of the input", () =>
    Effect.gen(function* () {
      const list = '{"jsonrpc":"2.0","id":"l","method":"tools/list"}'
      const out = yield* served([initialize, "garbage", '{"jsonrpc":"2.0","id":7,"method":"nope"}', list])
      const byId = new Map(out.map((message) => [message.id, message]))
      assert.strictEqual(out.length, 4)
      assert.strictEqual(byId.get(null)?.error?.code, -32_700)
      assert.strictEqual(byId.get(7)?.error?.code, -32_601)
      assert.isArray(byId.get("l")?.result?.tools)
    }).pipe(Effect.provide(files))
  )

  it.live("that announce changed roots cause no request to the client", () =>
    Effect.gen(function* () {
      const roots = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
      const out = yield* served([initialize, '{"jsonrpc":"2.0","method":"notifications/initialized"}', roots])
      assert.deepStrictEqual(
        out.map(({ id }) => id),
        [0]
      )
    }).pipe(Effect.provide(files))
  )

  /** Guards an input without a server. The clock of the test stands still, so the grace period at the end never passes. */
  const guarded = Effect.gen(function* () {
    const input = yield* Queue.unbounded<Uint8Array, Cause.Done>()
    const [received, written]: [Array<string>, Array<string>] = [[], []]
    const flow = Lines.makeFlow()
    const write = (text: string | Uint8Array) => Effect.sync(() => void written.push(String(text)))
    const { gone, stdio } = yield* Lines.guard(
      { input: Stream.fromQueue(input), write },
      { flow, takes: () => false, onMethod: () => Effect.void, ready: Effect.void }
    )
    const ended = yield* Effect.forkScoped(gone)
    yield* Effect.forkScoped(
      Stream.runForEach(stdio.stdin, (bytes) => Effect.sync(() => void received.push(Buffer.from(bytes).toString())))
    )
    const settle = Effect.repeat(Effect.yieldNow, { times: 100 })
    return {
      flow,
      received,
      written,
      settle,
      send: (line: string) => Effect.andThen(Queue.offer(input, encoder.encode(line)), settle),
      answer: (text: string) => Stream.run(Stream.succeed(text), stdio.stdout()),
      end: Effect.andThen(Queue.end(input), settle),
      hasEnded: () => ended.pollUnsafe() !== undefined
    }
  })
  const requested = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}\n`
  const answered = (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{}}`
  const cancelled = (id: number) => `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}\n`

  it.effect("that are cancelled while they wait release their ids, and do not keep the server from ending", () =>
    Effect.gen(function* () {
      const { answer, end, flow, hasEnded, received, send, settle, written } = yield* guarded
      const others = yield* Effect.forkScoped(
        Effect.all(
          Array.from({ length: 256 }, () => flow.whileCalling(Effect.never)),
          { concurrency: "unbounded" }
        )
      )
      yield* settle
      yield* send(requested(1))
      yield* send(cancelled(1))
      assert.deepStrictEqual(received, [])
      yield* Fiber.interrupt(others)
      yield* settle
      yield* send(requested(1))
      assert.deepStrictEqual([received, written], [[requested(1)], []])
      yield* answer(answered(1))
      yield* end
      assert.isTrue(hasEnded())
    })
  )

  it.effect("that are cancelled while they run do not keep the server from ending, but other running calls do", () =>
    Effect.gen(function* () {
      const { answer, end, hasEnded, send } = yield* guarded
      for (const id of [1, 2, 3]) yield* send(requested(id))
      for (const id of [1, 1, 2, 9]) yield* send(cancelled(id))
      yield* end
      // The server may answer a call that ended when its cancellation arrived.
      yield* answer(answered(2))
      assert.isFalse(hasEnded())
      yield* answer(answered(3))
      yield* Effect.yieldNow
      assert.isTrue(hasEnded())
    })
  )
})
