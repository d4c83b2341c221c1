import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, type PlatformError, Random, type Scope, Stream } from "effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import * as Limits from "../../src/model/Limits.ts"
import { tree } from "./platformCases.ts"
import { onDisk, overHost, overMemory, planted, served } from "./platformDisk.ts"

type Call = Effect.Effect<unknown, PlatformError.PlatformError, Scope.Scope>

const failure = (call: Call) => Effect.flip(call)

describe("an error of Platform.toFileSystem", () => {
  const calls = (fs: FileSystem.FileSystem): ReadonlyArray<Call> => [
    fs.readFile("zz"),
    fs.readFile("d"),
    fs.readDirectory("a.txt"),
    fs.rename("zz", "n"),
    fs.copy("d", "a.txt"),
    fs.open("a.txt/x", { flag: "w" }),
    fs.makeDirectory("a.txt"),
    fs.remove("d"),
    fs.readLink("a.txt"),
    fs.readFile("x".repeat(300)),
    fs.readFile("../up"),
    fs.chown("a.txt", 0, 0),
    fs.makeTempDirectory({ directory: "zz" })
  ]

  it.effect("has our error as its cause, and contains no path on the machine", () =>
    Effect.gen(function* () {
      const root = yield* planted
      const fs = yield* overHost(root)
      for (const call of calls(fs)) {
        const error = yield* failure(call)
        const cause = error.reason.cause as FsError
        assert.instanceOf(cause, Error)
        assert.isString(cause.operation)
        for (const shown of [error.message, String(error), JSON.stringify(error), cause.message, JSON.stringify(cause)]) {
          assert.notInclude(shown, root)
        }
      }
    })
  )

  it.effect("names the first path of the call, as the caller wrote it", () =>
    Effect.gen(function* () {
      const fs = yield* overMemory(tree)
      const paths = yield* Effect.forEach(
        [fs.readFile("/zz"), fs.rename("zz//y", "n"), fs.rename("a.txt", "zz/n"), fs.copyFile("a.txt", "d")],
        (call: Call) =>
          Effect.map(failure(call), ({ reason }) => (reason._tag === "BadArgument" ? "" : reason.pathOrDescriptor))
      )
      assert.deepStrictEqual(paths, ["/zz", "zz//y", "a.txt", "a.txt"])
    })
  )

  it.effect("has the tag PermissionDenied for every change of a read-only filesystem, and nothing changes", () =>
    Effect.gen(function* () {
      const root = yield* planted
      const context = yield* Layer.build(served(PosixHost.layer({ root, readOnly: true })))
      const fs = Context.get(context, FileSystem.FileSystem)
      const before = onDisk(root)
      const calls: ReadonlyArray<Call> = [
        fs.writeFileString("a.txt", "x"),
        fs.writeFileString("a.txt", "x", { flag: "r+" }),
        fs.writeFileString("n", "x", { mode: 0o600 }),
        fs.open("a.txt", { flag: "w" }),
        fs.open("a.txt", { flag: "r+" }),
        fs.open("a.txt", { flag: "a" }),
        fs.open("n", { flag: "wx" }),
        Stream.run(Stream.make(new Uint8Array(1)), fs.sink("n")),
        fs.truncate("a.txt"),
        fs.makeDirectory("n"),
        fs.makeDirectory("n", { recursive: true, mode: 0o700 }),
        fs.makeTempDirectory(),
        fs.makeTempFile(),
        fs.remove("a.txt"),
        fs.remove("d", { recursive: true }),
        fs.rename("a.txt", "n"),
        fs.copy("a.txt", "n"),
        fs.copyFile("a.txt", "n"),
        fs.symlink("a.txt", "n"),
        fs.chmod("a.txt", 0o600),
        fs.utimes("a.txt", 1, 1),
        fs.access("a.txt", { writable: true })
      ]
      for (const [index, call] of calls.entries()) {
        assert.strictEqual((yield* failure(call)).reason._tag, "PermissionDenied", `call ${index}`)
      }
      yield* fs.access("a.txt", { readable: true })
      assert.deepStrictEqual(onDisk(root), before)
    })
  )

  it.effect("has the tag PermissionDenied for every path that leads out of the root", () =>
    Effect.gen(function* () {
      const root = yield* planted
      Fs.symlinkSync("../outside", join(root, "out"))
      Fs.symlinkSync("/etc/hostname", join(root, "absolute"))
      const fs = yield* overHost(root)
      for (const path of ["out", "out/x", "absolute"]) {
        const calls: ReadonlyArray<Call> = [
          fs.readFile(path),
          fs.stat(path),
          fs.exists(path),
          fs.realPath(path),
          fs.writeFileString(path, "x"),
          fs.open(path, { flag: "w" }),
          fs.copyFile("a.txt", path)
        ]
        for (const call of calls) assert.strictEqual((yield* failure(call)).reason._tag, "PermissionDenied", path)
      }
      assert.strictEqual((yield* fs.lstat("out")).type, "SymbolicLink")
      yield* fs.remove("out")
    })
  )

  it.effect("has the tag Busy if the backend is busy", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const busy = make({ ...port, stat: () => Effect.fail({ _tag: "AccessDenied", why: "busy" }) })
      const context = yield* Layer.build(served(Layer.succeed(Filesystem, busy)))
      const error = yield* failure(Context.get(context, FileSystem.FileSystem).stat("a"))
      assert.strictEqual(error.reason._tag, "Busy")
    })
  )

  it.effect("has the exceeded limit as its cause", () =>
    Effect.gen(function* () {
      const fs = yield* overMemory({ a: "1234", b: "", c: "" })
      const tight = { ...Limits.standard, maxFileSize: 3, maxReadBytes: 3, maxListEntries: 2 }
      const calls: ReadonlyArray<Call> = [
        fs.readFile("a"),
        fs.writeFileString("n", "1234"),
        fs.readDirectory("."),
        fs.readDirectoryEntries(".")
      ]
      for (const call of calls) {
        const error = yield* Effect.provideService(failure(call), Limits.Limits, tight)
        assert.strictEqual((error.reason.cause as FsError)._tag, "LimitExceeded")
      }
    })
  )
})

describe("Platform.toFileSystem", () => {
  it.effect("denies access by the permission bits", () =>
    Effect.gen(function* () {
      const fs = yield* overMemory({ a: "x", d: {} })
      yield* fs.chmod("a", 0o444)
      yield* fs.access("a", { readable: true })
      assert.strictEqual((yield* failure(fs.access("a", { writable: true }))).reason._tag, "PermissionDenied")
      yield* fs.chmod("d", 0o333)
      assert.strictEqual((yield* failure(fs.access("d", { readable: true }))).reason._tag, "PermissionDenied")
      yield* fs.access("d", { writable: true })
    })
  )

  it.effect("makes temporary files in the root by default, for the owner only, until their scope ends", () =>
    Effect.gen(function* () {
      const fs = yield* overMemory()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const directory = yield* fs.makeTempDirectoryScoped({ prefix: "t-" })
          const file = yield* fs.makeTempFileScoped()
          assert.match(directory, /^\/t-[0-9a-z]{6}$/)
          assert.match(file, /^\/[0-9a-z]{6}\/[0-9a-z]{10}$/)
          assert.strictEqual((yield* fs.stat(directory)).mode, 0o40700)
          assert.strictEqual((yield* fs.readDirectory("/")).length, 2)
        })
      )
      assert.deepStrictEqual(yield* fs.readDirectory("/"), [])
    })
  )

  it.effect("never returns a temporary name twice, even for equal random numbers", () =>
    Effect.gen(function* () {
      const fs = yield* overMemory()
      const seeded = Random.withSeed(fs.makeTempDirectory(), "the same")
      assert.notStrictEqual(yield* seeded, yield* seeded)
    })
  )

  it.effect("leaves no part of a copy that fails half way", () =>
    Effect.gen(function* () {
      const root = yield* planted
      execFileSync("mkfifo", [join(root, "d", "pipe")])
      const fs = yield* overHost(root)
      const before = onDisk(root)
      assert.strictEqual((yield* failure(fs.copy("d", "n/m"))).reason._tag, "Unknown")
      assert.deepStrictEqual(onDisk(root), before)
    })
  )

  it.effect("reports a FIFO as Unknown, and neither reads nor writes it", () =>
    Effect.gen(function* () {
      const root = yield* planted
      execFileSync("mkfifo", [join(root, "pipe")])
      const fs = yield* overHost(root)
      assert.strictEqual((yield* fs.stat("pipe")).type, "Unknown")
      const calls: ReadonlyArray<Call> = [
        fs.readFile("pipe"),
        fs.open("pipe"),
        fs.open("pipe", { flag: "w" }),
        fs.writeFileString("pipe", "x"),
        fs.copyFile("pipe", "n")
      ]
      for (const call of calls) assert.strictEqual((yield* failure(call)).reason._tag, "BadResource")
      yield* fs.remove("pipe")
    })
  )
})
