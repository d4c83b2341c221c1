import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { ListRootsRequestSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js"
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { bin, call, ground, scripts } from "../agent/mcpSessions.ts"

const { env, remove, root } = ground()
afterAll(remove)

const args = (...more: ReadonlyArray<string>) => [bin, "mcp", "--root", root, ...more]

describe("a client of the official SDK over standard input and output", () => {
  const client = new Client({ name: "test", version: "1" }, { capabilities: { roots: { listChanged: true } } })
  const transport = new StdioClientTransport({ command: process.execPath, args: args(), env, stderr: "pipe" })
  const noticed: Array<string> = []
  let asked = 0

  beforeAll(async () => {
    // The client offers the widest possible root.
    client.setRequestHandler(ListRootsRequestSchema, () => {
      asked++
      return { roots: [{ uri: "file:///", name: "everything" }] }
    })
    client.fallbackNotificationHandler = async ({ method }) => void noticed.push(method)
    await client.connect(transport)
  })
  afterAll(() => client.close())

  it("lists the tools with their hints", async () => {
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    assert.includeMembers(names, ["ls", "read_file", "edit_file", "grep", "rm", "move", "snapshot", "restore"])
    const grep = tools.find(({ name }) => name === "grep")
    assert.include(grep?.annotations, { readOnlyHint: true, destructiveHint: false, openWorldHint: false })
  })

  for (const [claim, script] of Object.entries(scripts)) it(claim, () => script(client, root))

  it("gets notified only of changes to files to which it has subscribed", async () => {
    const uri = "workspace:///crlf.txt"
    const told: Array<string> = []
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void told.push(params.uri))
    await client.subscribeResource({ uri })
    // The watch begins some time after the subscription, so the file is changed repeatedly.
    for (let i = 0; told.length === 0 && i < 1000; i++) {
      Fs.writeFileSync(join(root, "unrelated.txt"), `${i}`)
      Fs.writeFileSync(join(root, "crlf.txt"), `a\r\n${i}\r\n`)
      await call(client, "stat", { path: "crlf.txt" })
    }
    assert.deepStrictEqual([...new Set(told)], [uri])
  })

  it("is not notified of changed lists after initialization", () => assert.deepStrictEqual(noticed, []))

  it("is not asked for roots if the server has a --root", () => assert.strictEqual(asked, 0))
})

it.each([
  ["[", '"[": "[" is not closed; write "\\[" for the character itself'],
  ["./", "it is blank"],
  ["src/**.env", '"src/**.env": "**" next to other characters stays in one directory; write "**/*" for any depth']
])("mcp refuses the invalid glob %s before it answers", async (glob, detail) => {
  const server = spawn(process.execPath, args("--deny", glob), { env })
  const said = { out: "", err: "" }
  server.stdout.on("data", (text) => void (said.out += text))
  server.stderr.on("data", (text) => void (said.err += text))
  // The server may have ended, so a failed write is ignored.
  server.stdin.on("error", () => {})
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
  server.stdin.end(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })}\n`)
  const code = await new Promise((resolve) => server.on("close", resolve))
  assert.deepStrictEqual([code, said.out], [2, ""])
  const hint = "Each --allow and --deny takes one glob, as the glob command does; quote it for the shell."
  assert.strictEqual(said.err, `error: access: deny.read: ${detail}\nhint:  ${hint}\n`)
})

interface Message {
  readonly id?: string | number | null
  readonly method?: string
  readonly result?: any
  readonly error?: { readonly code: number }
}

/** A raw connection, for messages that a correct client never sends. */
class Wire {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
  readonly out: Array<string> = []
  private readonly waiting = new Map<unknown, (message: Message) => void>()

  constructor(...more: ReadonlyArray<string>) {
    this.child = spawn(process.execPath, args(...more), { env })
    this.child.stdin.on("error", () => {})
    this.child.stderr.resume()
    this.ended = new Promise((resolve) => this.child.on("close", (code, signal) => resolve({ code, signal })))
    createInterface(this.child.stdout).on("line", (line) => {
      this.out.push(line)
      const message = JSON.parse(line) as Message
      this.waiting.get(message.id)?.(message)
    })
  }

  send(text: string): void {
    this.child.stdin.write(text)
  }

  answer(id: unknown): Promise<Message> {
    return new Promise((resolve) => this.waiting.set(id, resolve))
  }

  ask(id: unknown, method: string, params: unknown = {}): Promise<Message> {
    const answered = this.answer(id)
    this.send(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    return Promise.race([answered, this.ended.then(({ code }): Message => ({ error: { code: code ?? -1 } }))])
  }

  call(id: unknown, name: string, input: unknown): Promise<Message> {
    return this.ask(id, "tools/call", { name, arguments: input })
  }

  async begin(): Promise<this> {
    const clientInfo = { name: "wire", version: "1" }
    await this.ask("init", "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo })
    this.send('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    return this
  }
}

/** A search that never ends without a time limit for patterns. */
const slow = { pattern: "(a+)+$", path: "slow.txt" }
const patient = ["--limits", "unlimited"]

const children = (pid: number): ReadonlyArray<string> => {
  try {
    return Fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean)
  } catch {
    return []
  }
}

const isAlive = (pid: string): boolean =>
  Fs.existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(Fs.readFileSync(`/proc/${pid}/stat`, "utf8"))

describe("a server with a misbehaving client", () => {
  let wire: Wire

  beforeAll(async () => {
    Fs.writeFileSync(join(root, "slow.txt"), `${"a".repeat(100)}!\n`)
    wire = await new Wire(...patient).begin()
  })

  it("survives invalid and oversized messages, and answers the valid messages", async () => {
    const parseError = wire.answer(null)
    wire.send("garbage\n")
    assert.strictEqual((await parseError).error?.code, -32_700)
    wire.send('{"jsonrpc":"2.0","id":"half","meth')
    wire.send('od":"ping"}\n[]\n[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n"text"\n\u0000\u0001\n')
    const tooLong = wire.answer(null)
    const block = "x".repeat(1024 * 1024)
    for (let i = 0; i < 50; i++) wire.send(block)
    wire.send("\n")
    await tooLong
    assert.strictEqual((await wire.ask("unknown", "no/such/method")).error?.code, -32_601)
    assert.strictEqual((await wire.ask("wrong", "tools/call", { name: 5 })).error?.code, -32_602)
    assert.isUndefined((await wire.ask("alive", "ping")).error)
  })

  it("answers all of 10,000 concurrent requests", async () => {
    const ids = Array.from({ length: 10_000 }, (_, i) => i)
    const answers = ids.map((id) => wire.answer(id))
    const params = { name: "read_file", arguments: { path: "crlf.txt" } }
    const requests = ids.map((id) => (id % 50 === 0 ? { id, method: "tools/call", params } : { id, method: "ping" }))
    wire.send(requests.map((request) => `${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`).join(""))
    const all = await Promise.all(answers)
    assert.isTrue(all.every(({ error, result }) => error === undefined && result.isError !== true))
  })

  it("stops a cancelled search without an answer, and answers the next call", async () => {
    void wire.call("long", "grep", slow)
    wire.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long"}}\n')
    assert.isFalse((await wire.call("next", "ls", {})).result.isError)
    assert.isFalse(wire.out.some((line) => line.includes('"long"')))
  })

  it("exits with code 0 if the client hangs up during a search, and leaves no temporary files", async () => {
    void wire.call("again", "grep", slow)
    await wire.ask("after", "ping")
    wire.child.stdin.end()
    assert.deepStrictEqual(await wire.ended, { code: 0, signal: null })
    assert.isFalse(wire.out.some((line) => line.includes('"again","result"')))
    assert.deepStrictEqual(
      Fs.readdirSync(root).filter((name) => name.startsWith(".~fsa")),
      []
    )
  })
})

describe("a server process", () => {
  it("ends on SIGTERM during a search, and leaves no process behind", async () => {
    const wire = await new Wire(...patient).begin()
    await wire.call("first", "grep", { pattern: "needle", path: "logs" })
    void wire.call("long", "grep", slow)
    await wire.ask("after", "ping")
    const below = children(wire.child.pid!)
    wire.child.kill("SIGTERM")
    assert.deepStrictEqual(await wire.ended, { code: 143, signal: null })
    assert.deepStrictEqual(below.filter(isAlive), [])
  })

  it("with --backend memory changes nothing on disk, prints only messages, and ends when its output is closed", async () => {
    const wire = await new Wire("--backend", "memory").begin()
    assert.isFalse((await wire.call(1, "rm", { path: "logs" })).result.isError)
    assert.isTrue((await wire.call(2, "read_file", { path: "no/such" })).result.isError)
    for (const line of wire.out) assert.strictEqual((JSON.parse(line) as { jsonrpc: string }).jsonrpc, "2.0")
    wire.child.stdout.destroy()
    wire.send('{"jsonrpc":"2.0","id":3,"method":"tools/list"}\n')
    assert.strictEqual((await wire.ended).code, 0)
    assert.isTrue(Fs.existsSync(join(root, "logs")))
  })
})
