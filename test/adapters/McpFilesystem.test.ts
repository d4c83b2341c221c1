/** Tests McpFilesystem over the official server: files, symlinks, roots, limits, and a server that is killed. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as McpFilesystem from "../../src/adapters/McpFilesystem.ts"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { installedVersion, newDirectory, official, overStdio, sharedServer } from "./mcpServers.ts"

const { close, layer, root } = sharedServer()
afterAll(close)

const on = (path: string): string => join(root, path)

/** Runs a program on the empty directory of the shared server. */
const run = <A>(
  program: (fs: Algebra) => Effect.fn.Return<A, unknown>,
  options?: McpFilesystem.McpFilesystemOptions
): Promise<A> =>
  Effect.runPromise(
    Effect.provide(
      Effect.flatMap(Filesystem, (fs) => Effect.gen(() => program(fs))),
      layer(options)
    )
  )

const path = (text: string): FsPath => text as FsPath

const tagOf = <A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E, never>): Effect.Effect<string> =>
  Effect.match(call, { onFailure: ({ _tag }) => _tag, onSuccess: () => "success" })

describe("McpFilesystem", () => {
  it("states the version of the server with which the tests run", () => {
    assert.strictEqual(McpFilesystem.support.version, installedVersion)
  })

  it("writes files that another program can read, and reads files that another program has written", () =>
    run(function* (fs) {
      yield* fs.write("d/é.txt", "\ufefföne\r\n\u0000two", { createParents: true })
      assert.strictEqual(Fs.readFileSync(on("d/é.txt"), "utf8"), "\ufefföne\r\n\u0000two")
      assert.deepStrictEqual(Fs.readdirSync(on("d")), ["é.txt"])
      const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i % 251)
      for (const name of ["a.png", "a.mp3", "a.txt", "a.json", "noExtension"]) {
        Fs.writeFileSync(on(name), bytes)
        assert.deepStrictEqual((yield* fs.readBytes(name)).content, bytes, name)
      }
      Fs.writeFileSync(on("empty"), "")
      assert.strictEqual(yield* fs.readString("empty"), "")
      assert.deepStrictEqual(
        (yield* fs.grep("two")).matches.map(({ path }) => path),
        []
      )
      assert.deepStrictEqual(
        (yield* fs.glob("**/*.txt")).matches.map(({ path }) => `${path}`),
        ["a.txt", "d/é.txt"]
      )
    }))

  it("reports the size, the mode and, in whole seconds, the modification time of a file, and keeps the mode on a write", () =>
    run(function* (fs) {
      Fs.writeFileSync(on("a"), "12345", { mode: 0o640 })
      Fs.utimesSync(on("a"), 1_600_000_000, 1_600_000_000.5)
      const { mode, modifiedAt, sizeBytes } = yield* fs.stat("a")
      assert.deepStrictEqual([mode, modifiedAt?.epochMilliseconds, sizeBytes], [0o640, 1_600_000_000_000, 5])
      yield* fs.write("a", "new")
      assert.strictEqual(Fs.statSync(on("a")).mode & 0o777, 0o640)
    }))

  it("fails with Unsupported, and changes nothing, if the server has no tool for a call", () =>
    run(function* ({ port, ...fs }) {
      yield* fs.write("a", "old a")
      yield* fs.write("b", "old b")
      yield* fs.mkdir("empty")
      const before = Fs.readdirSync(root)
      const replace = { replace: true }
      const calls: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
        port.remove(path("a")),
        port.remove(path("empty")),
        port.rename(path("a"), path("b"), replace),
        port.write<never, never>(path("a"), Uint8Array.of(0xff), "replace"),
        port.write<never, never>(path("c"), Uint8Array.of(0xc3), "create"),
        port.write<never, never>(path("b"), Uint8Array.of(0x80), "append"),
        fs.symlink("link", "a"),
        fs.setAttributes("a", { mode: 0o600 }),
        Stream.runDrain(fs.watch("."))
      ]
      for (const call of calls) assert.strictEqual(yield* tagOf(call), "Unsupported")
      assert.deepStrictEqual(Fs.readdirSync(root), before)
      assert.deepStrictEqual([Fs.readFileSync(on("a"), "utf8"), Fs.readFileSync(on("b"), "utf8")], ["old a", "old b"])
      const error = yield* Effect.flip(fs.delete("a"))
      assert.include(error.message, "no tool on the MCP server that deletes")
      assert.notInclude(error.message, root)
    }))

  it("appends text that is not ASCII", () =>
    run(function* ({ port, ...fs }) {
      yield* fs.write("a", "x")
      yield* port.write<never, never>(path("a"), new TextEncoder().encode("é"), "append")
      assert.strictEqual(Fs.readFileSync(on("a"), "utf8"), "xé")
    }))

  it("lists symlinks, but does not follow, replace or move them", () =>
    run(function* ({ port, ...fs }) {
      const outside = newDirectory()
      Fs.writeFileSync(join(outside, "secret"), "secret")
      Fs.mkdirSync(on("dir"))
      Fs.writeFileSync(on("dir/file"), "text")
      const targets = { toFile: "dir/file", toDir: "dir", nowhere: "none", out: join(outside, "secret"), loop: "loop" }
      for (const [name, target] of Object.entries(targets)) Fs.symlinkSync(target, on(name))
      const kinds = (yield* fs.list()).map(({ kind, name }) => `${name} ${kind}`)
      assert.deepStrictEqual(kinds, [
        "dir directory",
        ...Object.keys(targets)
          .sort()
          .map((name) => `${name} symlink`)
      ])
      for (const name of Object.keys(targets)) {
        assert.strictEqual((yield* port.stat(path(name)))?.kind, "symlink", name)
        assert.strictEqual(yield* tagOf(Effect.scoped(port.open(path(name)))), "NotAFile", name)
        for (const mode of ["create", "replace", "append"] as const) {
          const written = yield* tagOf(port.write<never, never>(path(name), Uint8Array.of(0x78), mode))
          assert.strictEqual(written, mode === "create" ? "AlreadyExists" : "NotAFile", name)
        }
        assert.strictEqual(yield* tagOf(port.makeDirectory(path(name))), "AlreadyExists", name)
        assert.strictEqual(yield* tagOf(port.rename(path(name), path("moved"), { replace: false })), "Unsupported", name)
        assert.strictEqual(yield* tagOf(port.rename(path("dir/file"), path(name), { replace: true })), "Unsupported", name)
      }
      assert.strictEqual(yield* port.stat(path("toDir/file")), undefined)
      assert.strictEqual(yield* tagOf(port.list(path("toDir"))), "NotADirectory")
      assert.strictEqual(
        yield* tagOf(port.write<never, never>(path("toDir/new"), Uint8Array.of(0x78), "create")),
        "NotADirectory"
      )
      assert.strictEqual(yield* tagOf(port.rename(path("toDir/file"), path("moved"), { replace: false })), "NotFound")
      assert.deepStrictEqual((yield* fs.grep("secret")).matches, [])
      for (const [name, target] of Object.entries(targets)) assert.strictEqual(Fs.readlinkSync(on(name)), target)
      assert.deepStrictEqual(Fs.readdirSync(on("dir")), ["file"])
      assert.strictEqual(Fs.readFileSync(join(outside, "secret"), "utf8"), "secret")
    }))

  it("never confuses a name with a name in another Unicode form", () =>
    run(function* (fs) {
      const [composed, decomposed] = ["\u00e9", "e\u0301"]
      Fs.writeFileSync(on(decomposed!), "old")
      assert.strictEqual(yield* fs.exists(composed!), false)
      assert.strictEqual(yield* tagOf(fs.readString(composed!)), "NotFound")
      assert.strictEqual(yield* tagOf(fs.write(composed!, "new")), "InvalidPath")
      assert.strictEqual(yield* tagOf(fs.mkdir(composed!)), "InvalidPath")
      assert.strictEqual(Fs.readFileSync(on(decomposed!), "utf8"), "old")
      Fs.mkdirSync(on("d"))
      for (const name of ["\u1e69", "s\u0323\u0307"]) Fs.writeFileSync(on(`d/${name}`), name)
      assert.strictEqual(yield* fs.exists("d/s\u0307\u0323"), false)
      assert.strictEqual((yield* fs.list("d")).length, 2)
    }))

  it("lists names with line feeds or with the marks of the server, unless a name looks like two names", () =>
    run(function* ({ port }) {
      for (const name of ["a\nb", "[DIR] c", "x\n[FILE] y", "e'\"\u2028f"]) Fs.writeFileSync(on(name), name)
      const children = yield* port.list(path("."))
      assert.deepStrictEqual(children.map(({ key, kind, name }) => `${key ?? name} ${kind}`).sort(), [
        "[DIR] c file",
        "a\nb file",
        "e'\"\u2028f file"
      ])
    }))

  it("refuses to read or write a file that is larger than maxFileBytes", () =>
    run(
      function* (fs) {
        Fs.writeFileSync(on("large"), "x".repeat(1001))
        Fs.writeFileSync(on("most"), "x".repeat(1000))
        assert.strictEqual(yield* tagOf(fs.readString("large")), "LimitExceeded")
        assert.strictEqual(yield* tagOf(fs.write("new", "x".repeat(1001))), "LimitExceeded")
        assert.strictEqual(yield* tagOf(fs.write("most", "x", { mode: "append" })), "LimitExceeded")
        const endless = Stream.forever(Stream.make(new Uint8Array(100)))
        assert.strictEqual(yield* tagOf(Stream.run(endless, fs.sink("new"))), "LimitExceeded")
        assert.strictEqual((yield* fs.readString("most")).length, 1000)
        assert.strictEqual(Fs.existsSync(on("new")), false)
      },
      { maxFileBytes: 1000 }
    ))

  it("an interrupted write leaves the old file, the complete new file or, for a new name, no file", { timeout: 60_000 }, () =>
    run(function* (fs) {
      const [old, text] = ["o".repeat(300_000), "n".repeat(300_000)]
      for (let i = 0; i < 20; i++) {
        const name = i % 2 === 0 ? "replaced" : `new${i}`
        if (i % 2 === 0) Fs.writeFileSync(on(name), old)
        const fiber = yield* Effect.forkChild(fs.write(name, text), { startImmediately: true })
        yield* Effect.sleep(i)
        yield* Fiber.interrupt(fiber)
        const found = Fs.existsSync(on(name)) ? Fs.readFileSync(on(name), "utf8") : "absent"
        assert.isTrue(found === text || found === (i % 2 === 0 ? old : "absent"), `${name} after ${i} ms`)
      }
      assert.isTrue((yield* fs.list()).every(({ name }) => /^(replaced|new\d+)$/.test(name)))
    })
  )

  const opened = (options: McpFilesystem.McpFilesystemOptions, ...directories: ReadonlyArray<string>) =>
    Effect.runPromise(
      Effect.match(
        Effect.provide(
          Filesystem.use((fs) => Effect.as(fs.write("here", "x"), fs.port.info.root)),
          overStdio(official(...directories), options)
        ),
        { onFailure: (error) => `${error._tag}`, onSuccess: (root) => root }
      )
    )

  it("accepts only an allowed directory of the server as its root", { timeout: 60_000 }, async () => {
    const [one, two] = [newDirectory(), newDirectory()]
    assert.strictEqual(await opened({}, one), one)
    assert.strictEqual(await opened({}, one, two), "InvalidArgument")
    assert.strictEqual(await opened({ root: two }, one, two), two)
    assert.isTrue(Fs.existsSync(join(two, "here")))
    assert.strictEqual(await opened({ root: `${one}/sub` }, one), "InvalidArgument")
    Fs.symlinkSync(two, join(one, "link"))
    assert.strictEqual(await opened({ root: join(one, "link") }, join(one, "link")), two)
    assert.strictEqual(await opened({}, join(one, "none")), "Unavailable")
  })

  it("fails with Unavailable if the program of the server cannot be started", { timeout: 30_000 }, async () => {
    const missing = overStdio(ChildProcess.make("no-such-program-7f3a", []))
    const error = await Effect.runPromise(Effect.flip(Effect.provide(Filesystem, missing)))
    assert.strictEqual(error._tag, "Unavailable")
  })

  it("fails with Unavailable after the server has been killed", { timeout: 30_000 }, async () => {
    const directory = newDirectory()
    const pids: Array<number> = []
    const spawner = Layer.effect(
      ChildProcessSpawner.ChildProcessSpawner,
      Effect.map(ChildProcessSpawner.ChildProcessSpawner, (spawner) => ({
        ...spawner,
        spawn: (command: ChildProcess.Command) =>
          Effect.tap(spawner.spawn(command), ({ pid }) => Effect.sync(() => void pids.push(pid)))
      }))
    )
    const files = McpFilesystem.layerStdio({ command: official(directory) })
    await Effect.runPromise(
      Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("a", "x")
        process.kill(pids[0]!, "SIGKILL")
        assert.strictEqual(yield* tagOf(fs.readString("a")), "Unavailable")
        assert.strictEqual(yield* tagOf(fs.write("a", "y")), "Unavailable")
      }).pipe(Effect.provide(Layer.provide(files, Layer.provide(spawner, NodeServices.layer))))
    )
    assert.strictEqual(Fs.readFileSync(join(directory, "a"), "utf8"), "x")
  })
})
