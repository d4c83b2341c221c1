import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type ChildProcess, execFile, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { request } from "node:http"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as InMemory from "../../src/backends/InMemory.ts"
import { serve } from "../../src/cli/mcpHttp.ts"
import { Screen, type ScreenShape } from "../../src/cli/screen.ts"
import { definitions, registrations } from "../agent/mcpFixtures.ts"
import { bin, call, versionOf, ground, scripts } from "../agent/mcpSessions.ts"
import { isInstalled, programs } from "../runtimes/installed.ts"

const { env, remove, root } = ground()
afterAll(remove)

let server: ChildProcess
let url: string

beforeAll(async () => {
  server = spawn(process.execPath, [bin, "mcp", "--root", root, "--http", "0"], { env, stdio: ["ignore", "pipe", "pipe"] })
  url = await new Promise((resolve, reject) => {
    let said = ""
    createInterface(server.stderr!).on("line", (line) => {
      said += `${line}\n`
      const found = /http:\S+/.exec(line)?.[0]
      if (found !== undefined) resolve(found)
    })
    server.on("close", () => reject(new Error(said)))
  })
})

afterAll(async () => {
  const ended = new Promise<number | null>((resolve) => server.on("close", (code) => resolve(code)))
  server.kill("SIGTERM")
  assert.strictEqual(await ended, 143)
})

const connected = async () => {
  const client = new Client({ name: "test", version: "1" })
  const transport = new StreamableHTTPClientTransport(new URL(url))
  await client.connect(transport as Parameters<Client["connect"]>[0])
  return { client, transport }
}

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

const post = (headers: Record<string, string>, method = "POST") =>
  new Promise<number | undefined>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const common = { "content-type": "application/json", accept: "application/json, text/event-stream" }
    const asked = request({ host: hostname, port, path: "/mcp", method, headers: { ...common, ...headers } }, (answer) => {
      answer.resume()
      answer.on("end", () => resolve(answer.statusCode))
    })
    asked.on("error", reject)
    asked.end(method === "POST" ? ping : undefined)
  })

describe("a client of the official SDK over HTTP", () => {
  it("connects to a server on the loopback address", () => assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/))

  for (const [claim, script] of Object.entries(scripts)) {
    it(claim, async () => {
      const { client } = await connected()
      await script(client, root)
      await client.close()
    })
  }

  it("gets a conflict instead of overwriting the edit of another client", async () => {
    const [{ client: first }, { client: second }] = [await connected(), await connected()]
    Fs.writeFileSync(join(root, "both.txt"), "one\ntwo\n")
    const versions = [await versionOf(first, "both.txt"), await versionOf(second, "both.txt")]
    const edits = await Promise.all(
      [first, second].map((client, i) =>
        call(client, "edit_file", { path: "both.txt", old_string: "one", new_string: `by ${i}`, if_match: versions[i] })
      )
    )
    assert.strictEqual(edits.filter(({ isError }) => isError).length, 1)
    assert.match(Fs.readFileSync(join(root, "both.txt"), "utf8"), /^by [01]\ntwo\n$/)
    await Promise.all([first.close(), second.close()])
  })

  it("gets a parse error for invalid UTF-8, and the server writes no file", async () => {
    const { client, transport } = await connected()
    const args = '{"path":"odd.txt","content":"'
    const body = Buffer.concat([
      Buffer.from(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"write_file","arguments":${args}`),
      Buffer.from([0xff]),
      Buffer.from('"}}}')
    ])
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-session-id": transport.sessionId!
    }
    const answer = await fetch(url, { method: "POST", headers, body })
    assert.strictEqual(((await answer.json()) as { error: { code: number } }).error.code, -32_700)
    assert.isFalse(Fs.existsSync(join(root, "odd.txt")))
    await client.close()
  })

  it("can end its session, whose id is unknown afterwards", async () => {
    const { client, transport } = await connected()
    const session = transport.sessionId!
    await transport.terminateSession()
    assert.strictEqual(await post({ "mcp-session-id": session }), 404)
    await client.close()
  })
})

describe("the HTTP server", () => {
  it("refuses requests with a foreign Origin or Host", async () => {
    const { host, port } = new URL(url)
    assert.strictEqual(await post({ origin: "http://example.com" }), 403)
    assert.strictEqual(await post({ origin: "null" }), 403)
    assert.strictEqual(await post({ host: "example.com" }), 403)
    assert.strictEqual(await post({ host: `example.com:${port}` }), 403)
    assert.strictEqual(await post({ host: "127.0.0.1:1" }), 403)
    assert.strictEqual(await post({ origin: `http://localhost:${port}1` }), 403)
    assert.strictEqual(await post({ host: "example.com" }, "GET"), 403)
    // The check accepts these requests; the protocol refuses them because there is no session.
    for (const headers of [{}, { host: `localhost:${port}` }, { origin: `http://${host}` }]) {
      assert.strictEqual(await post(headers), 400)
    }
  })
})

const run = (command: string, args: ReadonlyArray<string>) =>
  new Promise<string>((resolve) => {
    execFile(command, args, { cwd: root, env, maxBuffer: 64 * 1024 * 1024 }, (_error, out, err) => resolve(out + err))
  })

describe("an HTTP or stdio server", () => {
  it.runIf(isInstalled("@modelcontextprotocol/inspector", "an MCP server and the inspector"))(
    "lists its tools in the MCP inspector",
    async () => {
      const inspector = join(programs, "@modelcontextprotocol/inspector/cli/build/cli.js")
      const out = await run(process.execPath, [inspector, "--cli", process.execPath, bin, "mcp", "--method", "tools/list"])
      const { tools } = JSON.parse(out) as { readonly tools: ReadonlyArray<{ readonly name: string }> }
      assert.includeMembers(
        tools.map(({ name }) => name),
        ["ls", "read_file", "grep"]
      )
    }
  )

  /**
   * Scenarios that a file server does not support. The server never asks a model or a person, and reports changes only over
   * standard output.
   */
  const without: ReadonlyArray<string> = [
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-subscribe",
    "resources-unsubscribe",
    "tools-call-elicitation",
    "tools-call-sampling",
    "tools-call-with-logging"
  ]

  it.live.runIf(isInstalled("@modelcontextprotocol/conformance", "an MCP server and the conformance suite"))(
    "passes the conformance suite, except for the unsupported scenarios",
    () =>
      Effect.gen(function* () {
        const listening = yield* Deferred.make<string>()
        const warn = (line: string) => Effect.asVoid(Deferred.succeed(listening, /http:\S+/.exec(line)![0]))
        const screen = { warn, input: Stream.empty } as unknown as ScreenShape
        const options = { extra: definitions, registrations }
        yield* serve({ host: "127.0.0.1", port: 0 }, options).pipe(Effect.provideService(Screen, screen), Effect.forkScoped)
        const suite = join(programs, "@modelcontextprotocol/conformance/dist/index.js")
        const at = yield* Deferred.await(listening)
        const out = yield* Effect.promise(() => run(process.execPath, [suite, "server", "--url", at]))
        const results = [...out.matchAll(/^([✓✗]) ([\w-]+): /gm)]
        assert.isAtLeast(results.length, 30, out)
        const failed = results.filter(([, mark]) => mark === "✗").map(([, , name]) => name!)
        assert.deepStrictEqual(failed.sort(), without)
      }).pipe(Effect.scoped, Effect.provide(InMemory.layer({ tree: { "a.txt": "a\n" } })))
  )
})
