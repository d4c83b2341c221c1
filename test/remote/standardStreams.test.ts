import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { Worker } from "node:worker_threads"
import * as Remote from "../../src/remote/Remote.ts"
import { sshCommand } from "../../src/remote/standardStreams.ts"
import { bundled, commandLine } from "../bundled.ts"
import { directory, run } from "../cli/served.ts"
import { open } from "./transports.ts"

const served = (root: string): readonly [string, ...ReadonlyArray<string>] => [
  process.execPath,
  commandLine(),
  "serve",
  "--listen",
  "stdio",
  "--root",
  root
]

/** Returns the processes whose command line has this text. */
const processesWith = (text: string): ReadonlyArray<string> =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text)
    } catch {
      return false
    }
  })

const until = (isTrue: () => boolean) =>
  Effect.promise(async () => {
    while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 10))
  })

describe("a filesystem over the standard streams of a program", () => {
  it.live("supports reads, writes and streams, and its program ends with the layer", () =>
    Effect.gen(function* () {
      const root = yield* directory({ "a.txt": "one\n" })
      const scope = yield* Scope.make()
      const fs = yield* Scope.provide(open(Remote.layerCommand(served(root))), scope)
      assert.strictEqual(yield* fs.readString("a.txt"), "one\n")
      yield* fs.write("b/c.txt", "two")
      assert.strictEqual(readFileSync(join(root, "b/c.txt"), "utf8"), "two")
      const block = new Uint8Array(100_000).fill(7)
      yield* Stream.run(Stream.make(...Array.from({ length: 30 }, () => block)), fs.sink("big.bin"))
      assert.strictEqual((yield* fs.stat("big.bin")).sizeBytes, 3_000_000)
      assert.strictEqual(processesWith(root).length, 1)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(processesWith(root), [])
    }).pipe(Effect.scoped)
  )

  it.live("is closed if the client disappears, and a file that was being written keeps its old content", () =>
    Effect.gen(function* () {
      const root = yield* directory({ "a.txt": "old" })
      const program = `
        const { spawn } = require("node:child_process")
        const [command, ...args] = JSON.parse(process.argv[1])
        const child = spawn(command, args, { stdio: ["pipe", "inherit", "inherit"] })
        const send = (message) => child.stdin.write(JSON.stringify(message) + "\\n")
        const request = (id, tag, payload) => send({ _tag: "Request", id, tag, payload, headers: [] })
        request("1", "port.begin", { upload: "u", path: "a.txt", mode: "replace" })
        request("2", "port.chunk", { upload: "u", index: 0, bytes: Buffer.alloc(100_000).toString("base64") })
      `
      const client = Effect.acquireRelease(
        Effect.promise(async () =>
          (await import("node:child_process")).spawn(process.execPath, ["-e", program, JSON.stringify(served(root))])
        ),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      const child = yield* client
      yield* until(() => readdirSync(root).length === 2)
      child.kill("SIGKILL")
      yield* until(() => processesWith(root).length === 0)
      assert.deepStrictEqual(readdirSync(root), ["a.txt"])
      assert.strictEqual(readFileSync(join(root, "a.txt"), "utf8"), "old")
    }).pipe(Effect.scoped)
  )

  it.live("fails with Unavailable and the messages of the program if the program cannot serve", () =>
    Effect.gen(function* () {
      const cases = [
        [["/no/such/program"], "ENOENT"],
        [["sh", "-c", "echo Permission denied >&2; exit 255"], "code 255: Permission denied"],
        [["sh", "-c", "echo this is not the protocol"], "does not speak the protocol of fs-algebra"],
        [served("/no/such/directory"), "code 3"]
      ] as const
      for (const [command, said] of cases) {
        const error = yield* Effect.flip(open(Remote.layerCommand(command)))
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, said)
      }
    }).pipe(Effect.scoped)
  )

  it("is opened by an ssh address, which cannot inject an option of ssh or a shell command", () => {
    const remoteOf = (address: string) => sshCommand(address)?.at(-1)
    assert.deepStrictEqual(sshCommand("ssh://me@host.example:2222/srv/a b'c"), [
      "ssh",
      "-T",
      "-p",
      "2222",
      "--",
      "me@host.example",
      String.raw`exec fs-algebra serve --listen stdio --root '/srv/a b'\''c'`
    ])
    assert.strictEqual(remoteOf("ssh://host/~/notes"), "exec fs-algebra serve --listen stdio --root ~/'notes'")
    assert.strictEqual(remoteOf("ssh://host/$(reboot)"), "exec fs-algebra serve --listen stdio --root '/$(reboot)'")
    assert.strictEqual(sshCommand("ssh://[::1]/a")?.at(-2), "::1")
    for (const address of [
      "ssh://-oProxyCommand=reboot/a",
      "ssh://-l@host/a",
      "ssh://user:password@host/a",
      "ssh://host name/a",
      "ssh://host",
      "ssh:///a",
      "ssh://host/a%00b",
      "ssh://host/%zz"
    ]) {
      assert.isUndefined(sshCommand(address), address)
    }
  })

  it.live("is the root of a command with --root ssh://HOST/PATH", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({ "home/notes of mine/a.txt": "one\n" })
      mkdirSync(join(cwd, "bin"))
      // Runs the command as sshd does: with the shell of the user, in the home directory.
      const ssh = `#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\necho "$2" >>${cwd}/hosts\nexport HOME=${cwd}/home\ncd\nexec sh -c "$3"\n`
      writeFileSync(join(cwd, "bin/ssh"), ssh)
      writeFileSync(join(cwd, "bin/fs-algebra"), `#!/bin/sh\nexec '${process.execPath}' '${commandLine()}' "$@"\n`)
      for (const name of readdirSync(join(cwd, "bin"))) chmodSync(join(cwd, "bin", name), 0o755)
      const env = { PATH: `${join(cwd, "bin")}${delimiter}${process.env["PATH"]}` }
      const root = "ssh://me@host/~/notes of mine"
      const ran = yield* run(["ls", "--root", root], { cwd, env })
      assert.strictEqual(ran.out, "a.txt\n", ran.err)
      assert.strictEqual((yield* run(["write", "b.txt", "--text", "two", "--root", root], { cwd, env })).code, 0)
      assert.strictEqual(readFileSync(join(cwd, "home/notes of mine/b.txt"), "utf8"), "two")
      const absolute = yield* run(["cat", "a.txt", "--root", `ssh://host${cwd}/home/notes of mine`], { cwd, env })
      assert.strictEqual(absolute.out, "one\n", absolute.err)
      const missing = yield* run(["ls", "--root", "ssh://host/nowhere"], { cwd, env })
      assert.strictEqual(missing.code, 9)
      assert.include(missing.err, "nowhere")
      const wrong = yield* run(["ls", "--root", "ssh://-oProxyCommand=touch x/a"], { cwd, env })
      assert.strictEqual(wrong.code, 2)
      assert.strictEqual(readFileSync(join(cwd, "hosts"), "utf8"), "me@host\nme@host\nhost\nhost\n")
      const token = yield* run(["serve", "--listen", "stdio", "--token-file", "x"], { cwd })
      assert.strictEqual(token.code, 2)
    }).pipe(Effect.scoped)
  )
})

describe("a filesystem of a worker thread", () => {
  const program = () => bundled(new URL("./workerServer.ts", import.meta.url))

  it.live("supports reads, writes, searches and streams, and its worker ends with the layer", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      let exited = false
      const start = () => {
        const worker = new Worker(program())
        worker.once("exit", () => (exited = true))
        return worker
      }
      const fs = yield* Scope.provide(open(Remote.layerWorker(start)), scope)
      yield* fs.write("a.txt", "one\ntwo\n")
      assert.strictEqual((yield* fs.grep("two")).matches.length, 1)
      const block = new Uint8Array(100_000).fill(7)
      yield* Stream.run(Stream.make(...Array.from({ length: 30 }, () => block)), fs.sink("big.bin"))
      const chunks = yield* Stream.runCollect(fs.stream("big.bin"))
      assert.strictEqual(
        chunks.reduce((sum, { length }) => sum + length, 0),
        3_000_000
      )
      const missing = yield* Effect.flip(fs.readString("b.txt"))
      assert.strictEqual(missing._tag, "NotFound")
      yield* Scope.close(scope, Exit.void)
      yield* until(() => exited)
    }).pipe(Effect.scoped)
  )

  it.live("sends only the viewed bytes of a buffer, not the whole buffer", () =>
    Effect.gen(function* () {
      const buffers: Array<readonly [sent: number, viewed: number]> = []
      const note = (value: unknown): void => {
        if (value instanceof Uint8Array) buffers.push([value.buffer.byteLength, value.byteLength])
        else if (typeof value === "object" && value !== null) for (const each of Object.values(value)) note(each)
      }
      const start = () => {
        const worker = new Worker(program())
        const post = worker.postMessage.bind(worker)
        worker.postMessage = (message, transfer) => {
          note(message)
          post(message, transfer as never)
        }
        return worker.on("message", note)
      }
      const fs = yield* open(Remote.layerWorker(start))
      const large = new Uint8Array(1_000_000).fill(7)
      yield* fs.writeBytes("a.bin", large.subarray(5, 15))
      yield* Stream.run(Stream.make(large), fs.sink("b.bin"))
      // The buffer of a file that grows is longer than the file.
      for (let index = 0; index < 5; index++) yield* fs.writeBytes("a.bin", large.subarray(0, 3000), { mode: "append" })
      assert.deepStrictEqual((yield* fs.readBytes("a.bin")).content, large.subarray(0, 15_010))
      assert.isAbove(buffers.length, 7)
      for (const [sent, viewed] of buffers) assert.strictEqual(sent, viewed)
    }).pipe(Effect.scoped)
  )

  it.live("fails with Unavailable if the worker ends or cannot start", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        open(Remote.layerWorker(() => new Worker("process.exit(1)", { eval: true }), { timeout: "2 seconds" }))
      )
      assert.strictEqual(error._tag, "Unavailable")
      const workers: Array<Worker> = []
      const start = () => {
        const worker = new Worker(program())
        workers.push(worker)
        return worker
      }
      const fs = yield* open(Remote.layerWorker(start, { timeout: "2 seconds" }))
      yield* fs.write("a.txt", "one")
      const writing = yield* Effect.forkChild(
        Effect.flip(Stream.run(Stream.forever(Stream.succeed(new Uint8Array(100_000))), fs.sink("a.txt")))
      )
      yield* Effect.sleep("50 millis")
      yield* Effect.promise(() => workers[0]!.terminate())
      assert.strictEqual((yield* Fiber.join(writing))._tag, "Unavailable")
      yield* fs.write("b.txt", "two")
      assert.strictEqual(yield* fs.readString("b.txt"), "two")
      assert.isAbove(workers.length, 1)
    }).pipe(Effect.scoped)
  )
})
