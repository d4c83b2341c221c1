import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { picture } from "../faults/ground.ts"
import { place } from "./kept.ts"
import { commandLine } from "../bundled.ts"

const bin = commandLine()

interface Started {
  readonly child: ChildProcess
  /** Waits until the text has been printed. */
  readonly printed: (text: string) => Promise<void>
  readonly ended: Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>
}

const start = (cwd: string, args: ReadonlyArray<string>): Started => {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env: { PATH: process.env["PATH"], HOME: cwd } })
  let out = ""
  let err = ""
  let waiting: Array<() => void> = []
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text
    for (const look of waiting) look()
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
  const ended = new Promise<{ code: number | null; out: string; err: string }>((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, out, err }))
  })
  const printed = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (!out.includes(text)) return
        waiting = waiting.filter((other) => other !== look)
        resolve()
      }
      waiting.push(look)
      look()
      void ended.then(() => reject(new Error(`the command ended before it printed ${text}: ${out}${err}`)))
    })
  return { child, printed, ended }
}

const run = (cwd: string, ...args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const { child, ended } = start(cwd, args)
    child.stdin?.end()
    const { code, err, out } = await ended
    assert.strictEqual(code, 0, err)
    return { out, err }
  })

const recorded = ["--root", "root", "--journal", "work"]

describe("journals of several processes", () => {
  it.live("can be replayed and undone to a position between two commands", () =>
    Effect.gen(function* () {
      const here = yield* place({ "a.txt": "one\n", "kept.txt": "kept\n" })
      const before = picture(here.root)
      yield* run(here.top, "edit", "a.txt", "--old", "one", "--new", "two", ...recorded)
      const { out } = yield* run(here.top, "journal", "show", "work", "--reverse", "-n", "1", "--json")
      const { position } = JSON.parse(out) as { readonly position: number }
      yield* run(here.top, "rm", "a.txt", ...recorded)
      const after = picture(here.root)

      yield* run(here.top, "journal", "replay", "work", "--to", `${position}`, "--into", "then/there")
      assert.deepStrictEqual(Fs.readdirSync(join(here.top, "then/there")), ["a.txt"])
      assert.strictEqual(Fs.readFileSync(join(here.top, "then/there/a.txt"), "utf8"), "two\n")

      const undone = yield* run(here.top, "journal", "undo", "work", "--to", "0", "--root", "root")
      assert.deepStrictEqual(picture(here.root), before)
      const back = /undo this with fs-algebra (.*)\n$/.exec(undone.err)![1]!
      yield* run(here.top, ...back.split(" "))
      assert.deepStrictEqual(picture(here.root), after)
    })
  )

  it.live("are printed by tail while another process writes, until tail is interrupted", () =>
    Effect.gen(function* () {
      const here = yield* place({})
      yield* run(here.top, "write", "first.txt", "--text", "1", ...recorded)
      const tail = yield* Effect.acquireRelease(
        Effect.sync(() => start(here.top, ["journal", "tail", "work"])),
        ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
      )
      yield* Effect.promise(() => tail.printed("first.txt"))
      yield* run(here.top, "write", "second.txt", "--text", "2", ...recorded)
      yield* Effect.promise(() => tail.printed("FileWritten        second.txt"))
      tail.child.kill("SIGINT")
      const { code, err, out } = yield* Effect.promise(() => tail.ended)
      assert.deepStrictEqual([code, err], [130, ""])
      const positions = out
        .trimEnd()
        .split("\n")
        .map((line) => Number(line.trim().split(" ")[0]))
      assert.deepStrictEqual(
        positions,
        positions.map((_, index) => index + 1)
      )
    })
  )

  it.live("are printed by tail with a filter, from the last matching entries on", () =>
    Effect.gen(function* () {
      const here = yield* place({ "src/a.txt": "a" })
      yield* run(here.top, "write", "src/first.txt", "--text", "1", ...recorded)
      yield* run(here.top, "rm", "src/a.txt", ...recorded)
      yield* run(here.top, "write", "other.txt", "--text", "1", ...recorded)
      const tail = yield* Effect.acquireRelease(
        Effect.sync(() => start(here.top, ["journal", "tail", "work", "--path", "src", "-n", "3"])),
        ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
      )
      yield* Effect.promise(() => tail.printed("FileDeleted        src/a.txt"))
      yield* run(here.top, "mv", "src/first.txt", "last.txt", ...recorded)
      yield* Effect.promise(() => tail.printed("FileMoved"))
      tail.child.kill("SIGINT")
      const { out } = yield* Effect.promise(() => tail.ended)
      assert.deepStrictEqual(
        out
          .trimEnd()
          .split("\n")
          .map((line) => line.trim().split(/ +/)[3]),
        ["FileWritten", "FileDelete", "FileDeleted", "FileMove", "FileMoved"]
      )
    })
  )

  it.live("record an agent's changes over mcp, so that undo can revert them after the agent exits", () =>
    Effect.gen(function* () {
      const here = yield* place({ "a.txt": "one\n" })
      const before = picture(here.root)
      const mcp = yield* Effect.acquireRelease(
        Effect.sync(() => start(here.top, ["mcp", ...recorded])),
        ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
      )
      const say = (message: object) => mcp.child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
      const clientInfo = { name: "test", version: "1" }
      say({
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }
      })
      yield* Effect.promise(() => mcp.printed('"id":1'))
      say({ method: "notifications/initialized" })
      say({
        id: 2,
        method: "tools/call",
        params: { name: "edit_file", arguments: { path: "a.txt", old_string: "one", new_string: "two" } }
      })
      yield* Effect.promise(() => mcp.printed('"id":2'))
      assert.strictEqual(Fs.readFileSync(join(here.root, "a.txt"), "utf8"), "two\n")
      mcp.child.stdin!.end()
      const { code, err } = yield* Effect.promise(() => mcp.ended)
      assert.strictEqual(code, 0, err)
      const { out } = yield* run(here.top, "journal", "show", "work", "--changes")
      assert.match(out, /write {3}a\.txt/)
      yield* run(here.top, "journal", "undo", "work", "--to", "0", "--root", "root")
      assert.deepStrictEqual(picture(here.root), before)
    })
  )
})
