/** MCP servers over standard input, some as processes: floods of messages, interruptions, kills, and the paths in answers. */
import { assert, describe, it } from "@effect/vitest"
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
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as McpServer from "../../src/agent/McpServer.ts"
import { define } from "../../src/agent/definition.ts"
import * as Lines from "../../src/agent/mcp/stdio.ts"
import * as Policy from "../../src/agent/Policy.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { directory, memory } from "./changing.ts"
import { after, before } from "./changesKilled.ts"
import { session, snapshotsOf } from "./policing.ts"
import { commandLine } from "../bundled.ts"

const encoder = new TextEncoder()
const json = (message: object): string => JSON.stringify({ jsonrpc: "2.0", ...message })
const initialize = json({
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
})
const ready = json({ method: "notifications/initialized" })
const calling = (id: number, name: string, args: object = {}): string =>
  json({ id, method: "tools/call", params: { name, arguments: args } })

/** Starts a server whose client can go on sending, and collects the answers as they are written. */
const serving = Effect.fnUntraced(function* (options: McpServer.Options = {}) {
  const input = yield* Queue.unbounded<Uint8Array>()
  const output = yield* Queue.unbounded<{ readonly id?: unknown; readonly result?: unknown; readonly error?: unknown }>()
  const stdio = Stdio.make({
    args: Effect.succeed([]),
    stdin: Stream.fromQueue(input) as Stdio.Stdio["stdin"],
    stdout: () => Sink.forEach((text) => Queue.offer(output, JSON.parse(String(text)) as never)),
    stderr: () => Sink.drain
  })
  const send = (line: string) => Queue.offer(input, encoder.encode(`${line}\n`))
  const answerOf = (id: unknown) =>
    Queue.take(output).pipe(Effect.repeat({ until: (message) => message.id === id }), Effect.timeoutOption("5 seconds"))
  const run = Effect.provideService(McpServer.runStdio(options), Stdio.Stdio, stdio)
  return { send, answerOf, run }
})

const waiting = (name: string, handle: Effect.Effect<unknown>) =>
  define({
    name,
    description: "For a test.",
    parameters: Schema.Struct({}),
    value: Schema.Struct({}),
    does: "changes",
    idempotent: true,
    examples: [{}],
    touches: () => Effect.succeed([]),
    handle: () => Effect.as(handle, { message: "done", value: {} })
  })

describe("an MCP server", () => {
  it.live("that is interrupted lets running tools restore the files before the filesystem closes", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const started = yield* Deferred.make<void>()
      const rollback = Effect.sync(() => void order.push("the tool has put back what it changed"))
      const slow = waiting(
        "slow",
        Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Effect.andThen(Effect.yieldNow, rollback))
        )
      )
      const close = Effect.sync(() => void order.push("the files are closed"))
      const files = Layer.merge(
        InMemory.layer({ tree: {} }),
        Layer.effectDiscard(Effect.acquireRelease(Effect.void, () => close))
      )
      const { run, send } = yield* serving({ extra: [slow] })
      // The server runs in the fiber that owns the files, as in the command.
      const server = yield* Effect.forkChild(Effect.provide(run, files))
      for (const line of [initialize, ready, calling(1, "slow")]) yield* send(line)
      yield* Deferred.await(started)
      yield* Fiber.interrupt(server)
      assert.deepStrictEqual(order, ["the tool has put back what it changed", "the files are closed"])
    })
  )

  it.live("completes or undoes the unfinished changes of a killed process before it lists the files", () =>
    Effect.gen(function* () {
      const root = yield* directory
      for (const [path, text] of Object.entries(before)) {
        Fs.mkdirSync(dirname(join(root, path)), { recursive: true })
        Fs.writeFileSync(join(root, path), text)
      }
      const script = fileURLToPath(new URL("changesKilled.ts", import.meta.url))
      const { signal } = spawnSync(process.execPath, [script, root, "19"], { stdio: "ignore" })
      assert.strictEqual(signal, "SIGKILL")
      const whole = (files: Readonly<Record<string, string>>): ReadonlyArray<string> => Object.keys(files).sort()
      const { answerOf, run, send } = yield* serving()
      yield* Effect.forkChild(Effect.provide(run, PosixHost.layer({ root })))
      for (const line of [initialize, ready, calling(1, "glob", { pattern: "**" })]) yield* send(line)
      const answer = yield* answerOf(1)
      assert.isTrue(answer._tag === "Some")
      if (answer._tag === "None") return
      const { content } = answer.value.result as { content: ReadonlyArray<{ text: string }> }
      const found = [...content[0]!.text.matchAll(/^(.+) \(.*\)$/gm)].map((match) => match[1]!)
      assert.include(
        [whole(before), whole(after)].map((names) => names.join()),
        found.sort().join()
      )
    })
  )
})

describe("a session in which every call takes a checkpoint", () => {
  it.live("restores the latest snapshot, not the checkpoint of the restore itself", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ "a.txt": "one\n" })
      const agent = yield* session(fs, Policy.checkpoint, yield* snapshotsOf(fs))
      yield* agent.call("edit_file", { path: "a.txt", old_string: "one", new_string: "two" })
      const latest = (yield* agent.call("snapshots", {})).message.slice(0, 8)
      const { message } = yield* agent.call("restore", { snapshot_id: "latest" })
      assert.include(message, latest)
      assert.strictEqual(yield* fs.readString("a.txt"), "one\n")
    })
  )
})

describe("a server over standard input", () => {
  const survives = (claim: string, lines: ReadonlyArray<string>) =>
    it.live(`answers the next request after ${claim}`, () =>
      Effect.gen(function* () {
        const { answerOf, run, send } = yield* serving({ extra: [waiting("slow", Effect.never)] })
        yield* Effect.forkChild(run)
        for (const line of [initialize, ready, ...lines, json({ id: "p", method: "ping" })]) yield* send(line)
        assert.strictEqual((yield* answerOf("p"))._tag, "Some")
      }).pipe(Effect.provide(InMemory.layer({ tree: { "a.txt": "a\n" } })))
    )

  survives("two requests of one id at once", [calling(7, "slow"), calling(7, "stat", { path: "a.txt" })])
  survives("arguments of 20,000 levels", [
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ls","arguments":{"path":${"[".repeat(20_000)}${"]".repeat(20_000)}}}}`
  ])

  it("refuses a message that is not UTF-8", () => {
    const line = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"content":"'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}}\n')
    ])
    assert.deepStrictEqual(
      Lines.make()
        .push(line)
        .map(({ _tag }) => _tag),
      ["Bad"]
    )
  })

  it.live("cancels a running call while hundreds of other calls run or wait", () =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      const work = Effect.never.pipe(Effect.onInterrupt(() => Deferred.succeed(ended, undefined)))
      const { run, send } = yield* serving({ extra: [waiting("slow", work)] })
      yield* Effect.forkChild(run)
      for (const line of [initialize, ready]) yield* send(line)
      for (let id = 1; id <= 300; id++) yield* send(calling(id, "slow"))
      yield* send(json({ method: "notifications/cancelled", params: { requestId: 1 } }))
      assert.strictEqual((yield* Effect.timeoutOption(Deferred.await(ended), "3 seconds"))._tag, "Some")
    }).pipe(Effect.provide(InMemory.layer({ tree: {} })))
  )

  it.effect("lists no changing tools if it is read-only, not even extra tools", () =>
    Effect.gen(function* () {
      const client = yield* McpTest.makeClient(
        McpServer.registrations({ readOnly: true, extra: [waiting("changer", Effect.void)] }),
        { protocols: [McpProtocol.v2025_11_25] }
      )
      const { tools } = yield* client.listTools()
      assert.notInclude(
        tools.map(({ name }) => name),
        "changer"
      )
    }).pipe(Effect.provide(InMemory.layer({ tree: {} })))
  )
})

describe("an absolute path on the machine", () => {
  it.live("below the root, or below the target of a linked root, is accepted but never sent", () =>
    Effect.gen(function* () {
      const [real, state] = [Fs.realpathSync(yield* directory), yield* directory]
      const link = join(state, "link")
      Fs.symlinkSync(real, link)
      const program = commandLine()
      const writes = [real, link].map((root, i) =>
        calling(i + 1, "write_file", { path: join(root, `file${i}.txt`), content: "x" })
      )
      const { stdout } = spawnSync(process.execPath, [program, "mcp", "--root", link], {
        input: [initialize, ready, ...writes, ""].join("\n"),
        encoding: "utf8",
        env: { ...process.env, XDG_STATE_HOME: state }
      })
      assert.notInclude(stdout, real)
      assert.deepStrictEqual(Fs.readdirSync(real).sort(), ["file0.txt", "file1.txt"])
    })
  )

  it("is never derived from a blank root, because mcp refuses a blank root", () => {
    const program = commandLine()
    const { status, stderr } = spawnSync(process.execPath, [program, "mcp", "--root", ""], { input: "", encoding: "utf8" })
    assert.strictEqual(status, 2)
    assert.include(stderr, "blank")
  })

  it.live("is not in the error message for an unusable snapshot store", () =>
    Effect.gen(function* () {
      const [root, state] = [yield* directory, yield* directory]
      const program = commandLine()
      const input = [initialize, ready, calling(1, "snapshot"), ""].join("\n")
      const serve = () =>
        spawnSync(process.execPath, [program, "mcp", "--root", root], {
          input,
          encoding: "utf8",
          env: { ...process.env, XDG_STATE_HOME: state }
        }).stdout
      assert.include(serve(), "Took snapshot")
      const config = Fs.readdirSync(state, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith("/config"))!
      Fs.appendFileSync(join(state, config), "[core]\n\tfsmonitor = x\n")
      const said = serve()
      assert.include(said, "isError")
      assert.notInclude(said, state)
    })
  )
})
