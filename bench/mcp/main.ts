/**
 * `npm run bench -- mcp [CALLS]` measures the MCP server of the built program: its cost per call over standard input
 * beyond the tool's operation, the time from start to first answer, and the size of the tool list.
 *
 * Calls take turns with the operation in this process and with a server that only echoes lines. The start is compared
 * with a process that does nothing.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { cpus, loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { check, median } from "../harness.ts"

const bin = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url))

interface Server {
  readonly ask: (method: string, params: unknown) => Promise<any>
  readonly close: () => Promise<void>
}

const over = (child: ChildProcess): Server => {
  const waiting = new Map<number, (result: unknown) => void>()
  let id = 0
  createInterface(child.stdout!).on("line", (line) => {
    const message = JSON.parse(line) as { readonly id: number; readonly result: unknown }
    waiting.get(message.id)?.(message.result)
    waiting.delete(message.id)
  })
  return {
    ask: (method, params) =>
      new Promise((resolve) => {
        waiting.set(++id, resolve)
        child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
      }),
    close: () =>
      new Promise((resolve) => {
        child.on("close", () => resolve())
        child.stdin!.end()
      })
  }
}

const clientInfo = { name: "bench", version: "1" }
const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo }

const started = async (root: string): Promise<Server> => {
  const server = over(spawn(process.execPath, [bin, "mcp", "--root", root], { stdio: ["pipe", "pipe", "inherit"] }))
  await server.ask("initialize", hello)
  return server
}

/** Measures a line there and back, the cost of any server in node. */
const echo = `require("node:readline").createInterface(process.stdin).on("line", (line) => {
  const { id, params } = JSON.parse(line)
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: params }) + "\\n")
})`

interface Case {
  readonly name: string
  readonly tool: string
  readonly args: unknown
  readonly plain: (fs: Algebra) => Effect.Effect<unknown, unknown>
  /** Compares the text of the answer with the result of the plain operation. */
  readonly same: (text: string, plain: any) => boolean
}

const cases: ReadonlyArray<Case> = [
  {
    name: "read_file, 100 lines",
    tool: "read_file",
    args: { path: "small.txt" },
    plain: (fs) => fs.read("small.txt", { version: true }),
    same: (text, plain) => text.includes(`| line 99 of a small file\nlines 1-${plain.totalLines} of ${plain.totalLines}`)
  },
  {
    name: "ls, 50 entries",
    tool: "ls",
    args: { path: "many" },
    plain: (fs) => fs.list("many"),
    same: (text, plain) => text.endsWith(`0 directories, ${plain.length} files`)
  },
  {
    name: "grep, 50 files",
    tool: "grep",
    args: { pattern: "needle", path: "many" },
    plain: (fs) => fs.grep("needle", { path: "many" }),
    same: (text, plain) => text.includes(`${plain.matches.length} matches in`)
  },
  {
    name: "stat",
    tool: "stat",
    args: { path: "small.txt" },
    plain: (fs) => fs.stat("small.txt"),
    same: (text, plain) => text.includes(`(${plain.sizeBytes} bytes)`)
  }
]

const plant = (): string => {
  const root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "fs-algebra-bench-"))
  mkdirSync(join(root, "many"))
  writeFileSync(join(root, "small.txt"), Array.from({ length: 100 }, (_, i) => `line ${i} of a small file\n`).join(""))
  for (let i = 0; i < 50; i++) writeFileSync(join(root, "many", `${i}.txt`), i % 10 === 0 ? "a needle\n" : "hay\n")
  return root
}

const timed = async (run: () => Promise<unknown>): Promise<number> => {
  const start = performance.now()
  await run()
  return performance.now() - start
}

const promised = 0.8

/** Measures in milliseconds. The three take turns, so a disturbance of the machine affects all of them. */
const compare = async (self: Case, server: Server, echoing: Server, fs: Algebra, calls: number): Promise<boolean> => {
  const params = { name: self.tool, arguments: self.args }
  const through = () => server.ask("tools/call", params)
  const plain = () => Effect.runPromise(self.plain(fs))
  const answer = await through()
  check(answer.isError === false && self.same(answer.content[0].text, await plain()))
  const bare = () => echoing.ask("echo", answer)
  const times: [Array<number>, Array<number>, Array<number>] = [[], [], []]
  for (let i = 0; i < calls; i++) {
    for (const [index, run] of [through, plain, bare].entries()) {
      const time = await timed(run)
      // The first calls include the work of the optimising compiler.
      if (i >= calls / 4) times[index]!.push(time)
    }
  }
  const [ours, theirs, floor] = times.map(median) as [number, number, number]
  const held = ours - theirs <= promised
  const figures = [ours, theirs, floor, ours - theirs].map((time) => time.toFixed(3)).join(" | ")
  console.log(`| ${self.name} | ${figures} | ≤ ${promised} | ${held ? "held" : "MISSED"} |`)
  return held
}

const firstAnswer = (root: string) => async () => {
  const child = spawn(process.execPath, [bin, "mcp", "--root", root], { stdio: ["pipe", "pipe", "inherit"] })
  const server = over(child)
  const time = await timed(() => server.ask("initialize", hello))
  await server.close()
  return time
}

const nothing = () =>
  timed(() => new Promise((resolve) => spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }).on("close", resolve)))

/** Measures a command of the command line to its end. */
const command = (root: string) => () =>
  timed(
    () =>
      new Promise((resolve, reject) =>
        spawn(process.execPath, [bin, "ls", "--root", root], { stdio: ["ignore", "ignore", "inherit"] }).on("close", (code) =>
          code === 0 ? resolve(code) : reject(new Error(`ls ended with ${code}`))
        )
      )
  )

const promisedStart = 220

const start = async (root: string, rounds: number): Promise<boolean> => {
  const [ours, listing, bare]: [Array<number>, Array<number>, Array<number>] = [[], [], []]
  await firstAnswer(root)()
  await command(root)()
  for (let i = 0; i < rounds; i++) {
    ours.push(await firstAnswer(root)())
    listing.push(await command(root)())
    bare.push(await nothing())
  }
  const time = median(ours)
  const held = time <= promisedStart
  console.log(`\nStart to first answer: median ${time.toFixed(0)} ms of ${rounds} (least ${Math.min(...ours).toFixed(0)});`)
  console.log(`fs-algebra ls to its end: ${median(listing).toFixed(0)} ms;`)
  console.log(
    `a node that does nothing: ${median(bare).toFixed(0)} ms. Promised: ${promisedStart} ms, ${held ? "held" : "MISSED"}.`
  )
  return held
}

const promisedList = 12_000

/** Counts the characters of the tools as a client receives them and puts them before every conversation. */
const toolList = async (server: Server): Promise<boolean> => {
  const { tools } = await server.ask("tools/list", {})
  const size = JSON.stringify(tools).length
  const held = size <= promisedList
  console.log(`\nTool list: ${tools.length} tools, ${size} characters. Promised: ${promisedList}, ${held ? "held" : "MISSED"}.`)
  return held
}

export const mcp = async (args: ReadonlyArray<string>): Promise<number> => {
  if (!existsSync(bin)) {
    console.log("There is no build to measure: npm run build")
    return 1
  }
  const calls = Number(args[0] ?? 400)
  const root = plant()
  const scope = Effect.runSync(Scope.make())
  const context = await Effect.runPromise(Layer.buildWithScope(PosixHost.layer({ root }), scope))
  const server = await started(root)
  const echoing = over(spawn(process.execPath, ["-e", echo], { stdio: ["pipe", "pipe", "inherit"] }))
  console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "?"}, load ${loadavg()[0]!.toFixed(1)}\n`)
  console.log("| call | through stdio ms | in process ms | echo of the answer ms | beyond the operation ms | promised | |")
  console.log("|---|--:|--:|--:|--:|---|---|")
  const held: Array<boolean> = []
  try {
    for (const each of cases) held.push(await compare(each, server, echoing, Context.get(context, Filesystem), calls))
    held.push(await start(root, 15))
    held.push(await toolList(server))
  } finally {
    await Promise.all([server.close(), echoing.close(), Effect.runPromise(Scope.close(scope, Exit.void))])
    rmSync(root, { recursive: true, force: true })
  }
  return held.every(Boolean) ? 0 : 1
}
