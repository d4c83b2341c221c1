import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { directory, dump } from "../debug/support.ts"
import { shell } from "./terminal.ts"

const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url))

const top = directory()
afterAll(() => Fs.rmSync(top, { recursive: true, force: true }))

const env = { PATH: process.env["PATH"] ?? "", HOME: top, XDG_STATE_HOME: join(top, "state") }

/** Lists every entry with its modification time and size. */
const entriesIn = (path: string): ReadonlyArray<string> =>
  Fs.readdirSync(path, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const { mtimeMs, size } = Fs.lstatSync(join(path, name))
      return `${name} ${mtimeMs} ${size}`
    })

interface Running {
  readonly url: string
  readonly said: () => string
  /** Sends SIGINT, as Ctrl-C does, and returns the exit code. */
  readonly end: () => Promise<number | null>
}

/** Starts the command as a process, and waits until it prints its URL. */
const running = (args: ReadonlyArray<string>, isJson = false): Promise<Running> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bin, "debug", ...args], { cwd: top, env, stdio: ["ignore", "pipe", "pipe"] })
    let said = ""
    const ended = new Promise<number | null>((done) => child.on("close", done))
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on("line", (line) => {
        said += `${line}\n`
        const url = stream === (isJson ? child.stdout : child.stderr) ? /http:[^\s"]+/.exec(line)?.[0] : undefined
        if (url !== undefined) {
          resolve({
            url,
            said: () => said,
            end: () => {
              child.kill("SIGINT")
              return ended
            }
          })
        }
      })
    }
    void ended.then(() => reject(new Error(said)))
  })

const run = (args: ReadonlyArray<string>): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [bin, ...args], { cwd: top, env, stdio: ["pipe", "ignore", "pipe"] })
    let said = ""
    child.stderr.on("data", (part: Buffer) => (said += part.toString()))
    child.stdin.end("new\n")
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(said))))
  })

const get = async (url: string, path: string): Promise<any> => (await fetch(new URL(path, url))).json()

describe("fs-algebra debug", () => {
  it("shows a dump in the browser until Ctrl-C, and leaves the dump unchanged", async () => {
    const runs = join(top, "runs")
    Fs.mkdirSync(runs)
    await Effect.runPromise(dump(runs, { name: "mine", files: { "a.txt": "hello" } }))
    const before = entriesIn(runs)
    const { end, said, url } = await running(["runs"])
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/)
    assert.strictEqual(said(), `The debug view is at ${url} (Ctrl-C ends it)\n`)
    assert.include(await (await fetch(url)).text(), "<!doctype html>")
    assert.strictEqual((await get(url, "api/meta")).title, "mine")
    assert.strictEqual((await get(url, "api/filesystem/file?path=a.txt")).content, "hello")
    assert.strictEqual(await end(), 130)
    assert.deepStrictEqual(entriesIn(runs), before)
  })

  it("shows the snapshots and the journal of a directory, and updates them while it runs", async () => {
    const root = join(top, "root")
    Fs.mkdirSync(root)
    Fs.writeFileSync(join(root, "a.txt"), "old\n")
    const common = ["--root", "root", "--journal", "work.journal"]
    await run(["write", "b.txt", ...common])
    const state = join(top, "state")
    const before = [entriesIn(root), entriesIn(state)]
    const { end, url } = await running([...common, "--json"], true)
    const meta = await get(url, "api/meta")
    assert.deepInclude(meta, { kind: "workspace", title: "root", snapshots: 0, has_journal: true, problems: [] })
    assert.strictEqual((await get(url, "api/filesystem/history?path=b.txt"))[0].what, "write")
    // Looking at the directory creates no store.
    assert.deepStrictEqual([entriesIn(root), entriesIn(state)], before)
    await run(["snapshot", "--tag", "now", "--root", "root"])
    const [snapshot] = await get(url, "api/snapshots")
    assert.strictEqual(snapshot.tag, "now")
    await run(["write", "a.txt", ...common])
    const diff = await get(url, `api/filesystem/diff?with=${snapshot.id}`)
    assert.deepStrictEqual(diff.changes, [{ change: "modified", path: "a.txt", kind: "file", size_before: 4, size_after: 4 }])
    assert.strictEqual((await get(url, `api/filesystem/file?path=a.txt&at=${snapshot.id}`)).content, "old\n")
    const [last] = (await get(url, "api/journal?limit=1")).items
    assert.deepInclude(last, { kind: "FileWritten", path: "a.txt" })
    assert.strictEqual(await end(), 130)
  })

  const complaints: ReadonlyArray<readonly [args: ReadonlyArray<string>, code: number, message: RegExp, hint: RegExp]> = [
    [["none.jsonl"], 3, /none\.jsonl/, /Name a \.jsonl/],
    [["empty"], 3, /there is no dump in ".*empty"/, /directory of dumps/],
    [["/dev/null"], 7, /neither a file nor a directory/, /Name a \.jsonl/],
    [
      ["runs", "--backend", "memory"],
      2,
      /--backend memory does not apply to a dump/,
      /Leave out --backend memory, or the path/
    ],
    [["runs", "--store", "x"], 2, /--store does not apply to a dump/, /Leave out --store/],
    [[" "], 2, /the name of the dump is blank/, /Name a \.jsonl/],
    [["--journal", "none.journal"], 3, /"none\.journal" does not exist/, /Name a file on the machine/],
    [["--port", "70000"], 2, /70000 is not a port number/, /debug --help/],
    [["--host", "0.0.0.0"], 2, /0\.0\.0\.0/, /debug --help/]
  ]
  it.live.each(complaints)("reports the error of %j and a remedy", ([args, code, message, hint]) =>
    Effect.gen(function* () {
      Fs.mkdirSync(join(top, "empty"), { recursive: true })
      Fs.mkdirSync(join(top, "runs"), { recursive: true })
      const ran = yield* (yield* shell({})).run(["debug", ...args], { directory: top, endsAt: /debug view is at/ })
      assert.strictEqual(ran.code, code, ran.err)
      assert.match(ran.err, message)
      assert.match(ran.err, hint)
      assert.strictEqual(ran.out, "")
    })
  )

  it.live("reports a port that is in use", () =>
    Effect.gen(function* () {
      const { end, url } = yield* Effect.promise(() => running([]))
      const ran = yield* (yield* shell({})).run(["debug", "--port", new URL(url).port], { directory: top })
      assert.strictEqual(ran.code, 9)
      assert.match(ran.err, /cannot listen on port \d+ of 127\.0\.0\.1 \(EADDRINUSE\)\nhint: {2}Give another port with --port/)
      yield* Effect.promise(end)
    })
  )

  it.live("starts with --backend memory", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell({ "a.txt": "x" })).run(["debug", "--backend", "memory"], {
        endsAt: /^The debug view is at /
      })
      assert.strictEqual(ran.code, 130, ran.err)
    })
  )
})
