import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import * as Names from "../runtime/names.ts"
import { failing, replacing, systemError } from "./posixFailures.ts"
import {
  bytes,
  checked,
  directory,
  fastDirectory,
  faultOf,
  host,
  openDescriptors,
  p,
  readAll,
  tree,
  walks,
  write
} from "./posixHost.ts"
import { performed } from "../performed.ts"

const failure = (options: PosixHost.PosixHostOptions) => Effect.scoped(Effect.flip(PosixHost.make(options)))

describe("the root", () => {
  it.effect("fails with NotFound and the path as given if it is missing, and is not created", () =>
    Effect.gen(function* () {
      const root = join(yield* directory, "missing")
      const error = yield* failure({ root })
      assert.strictEqual(error._tag, "NotFound")
      assert.strictEqual(error.path, root)
      assert.isFalse(Fs.existsSync(root))
    })
  )

  it.effect("fails with NotADirectory if it is a file or below a file, also with createRoot", () =>
    Effect.gen(function* () {
      const root = join(yield* directory, "file")
      Fs.writeFileSync(root, "kept")
      assert.strictEqual((yield* failure({ root }))._tag, "NotADirectory")
      assert.strictEqual((yield* failure({ root, createRoot: true }))._tag, "NotADirectory")
      assert.strictEqual((yield* failure({ root: join(root, "below"), createRoot: true }))._tag, "NotADirectory")
      assert.strictEqual(Fs.readFileSync(root, "utf8"), "kept")
    })
  )

  it.effect("is created with its parents by createRoot", () =>
    Effect.gen(function* () {
      const root = join(yield* directory, "a", "b")
      const port = yield* PosixHost.make({ root, createRoot: true })
      yield* write(port, "f", bytes("x"), "create")
      assert.deepStrictEqual(tree(root), { f: "x" })
    })
  )

  it.effect("stays the target of the link through which it was opened, even after the link changes", () =>
    Effect.gen(function* () {
      const top = yield* directory
      Fs.mkdirSync(join(top, "real"))
      Fs.mkdirSync(join(top, "other"))
      Fs.symlinkSync("real", join(top, "link"))
      const port = yield* PosixHost.make({ root: join(top, "link") })
      yield* write(port, "a", bytes("1"), "create")
      Fs.unlinkSync(join(top, "link"))
      Fs.symlinkSync("other", join(top, "link"))
      yield* write(port, "b", bytes("2"), "create")
      assert.deepStrictEqual(tree(join(top, "real")), { a: "1", b: "2" })
      assert.deepStrictEqual(tree(join(top, "other")), {})
    })
  )

  it.effect("fails with NotFound if it is a dangling link, and with NotADirectory if it is a link to a file", () =>
    Effect.gen(function* () {
      const top = yield* directory
      Fs.symlinkSync("nowhere", join(top, "dangling"))
      Fs.writeFileSync(join(top, "file"), "")
      Fs.symlinkSync("file", join(top, "toFile"))
      assert.strictEqual((yield* failure({ root: join(top, "dangling") }))._tag, "NotFound")
      assert.strictEqual((yield* failure({ root: join(top, "dangling"), createRoot: true }))._tag, "NotFound")
      assert.strictEqual((yield* failure({ root: join(top, "dangling/below"), createRoot: true }))._tag, "NotFound")
      assert.strictEqual((yield* failure({ root: join(top, "toFile") }))._tag, "NotADirectory")
    })
  )

  it.effect("fails with InvalidPath if it is relative, is empty, is not a string or contains a NUL", () =>
    Effect.gen(function* () {
      for (const root of ["work", "./work", "", "/tmp/a\0b", 7 as never, undefined as never]) {
        assert.strictEqual((yield* failure({ root }))._tag, "InvalidPath", String(root))
      }
    })
  )

  it.effect("may be the root of the machine", () =>
    Effect.gen(function* () {
      const file = join(yield* directory, "f")
      Fs.writeFileSync(file, "there")
      const port = yield* PosixHost.make({ root: "/", readOnly: true })
      assert.strictEqual(yield* readAll(port, p(file.slice(1))), "there")
      assert.strictEqual((yield* port.stat(p(".")))?.kind, "directory")
    })
  )

  it.effect("may have a name that is not UTF-8", () =>
    Effect.gen(function* () {
      const top = yield* directory
      const real = Buffer.concat([Buffer.from(`${top}/`), Buffer.from([0x62, 0xff])])
      Fs.mkdirSync(real)
      Fs.symlinkSync(real, join(top, "link"))
      const port = yield* PosixHost.make({ root: join(top, "link") })
      yield* port.makeDirectory(p("d"))
      yield* write(port, "d/f", bytes("x"), "create")
      yield* write(port, "d/f", bytes("y"), "append")
      assert.strictEqual(yield* readAll(port, p("d/f")), "xy")
      assert.deepStrictEqual(yield* port.list(p("d")), [{ name: "f", kind: "file", addressable: true }])
    })
  )

  it.effect("is described by `info`: the path as given, the case sensitivity and the confinement", () =>
    Effect.gen(function* () {
      for (const [confinement, make] of walks) {
        const { port, root } = yield* host(undefined, make)
        assert.deepStrictEqual(port.info, { name: "PosixHost", root, caseSensitive: true, readOnly: false, confinement })
      }
    })
  )

  it.effect("is refused when the required confinement is stronger than the available one", () =>
    Effect.gen(function* () {
      const root = yield* directory
      for (const requireConfinement of ["virtual", "nonsense" as "virtual"] as const) {
        const error = yield* failure({ root, requireConfinement })
        assert.strictEqual(error._tag, "Unsupported")
        assert.include(error.message, requireConfinement)
      }
      for (const requireConfinement of ["best-effort", "race-free-open", "race-free"] as const) {
        yield* Effect.scoped(PosixHost.make({ root, requireConfinement }))
      }
      // Simulate a machine without /proc.
      yield* failing("statfsSync", () => systemError("ENOENT", -2, "statfs"))
      yield* Effect.scoped(PosixHost.make({ root, requireConfinement: "best-effort" }))
      for (const requireConfinement of ["race-free-open", "race-free"] as const) {
        const before = openDescriptors()
        const error = yield* failure({ root, requireConfinement })
        assert.strictEqual(error._tag, "Unsupported")
        assert.include(error.message, `${requireConfinement} confinement on this machine`)
        assert.strictEqual(
          (yield* failure({ root: join(root, "new/root"), createRoot: true, requireConfinement }))._tag,
          "Unsupported"
        )
        assert.strictEqual(openDescriptors(), before)
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      }
    })
  )

  const callsOn = (port: Backend) => ({
    stat: port.stat(p("f")),
    statOfNothing: port.stat(p("nothing")),
    list: port.list(p(".")),
    open: Effect.scoped(port.open(p("f"))),
    create: write(port, "g", bytes("x"), "create"),
    replace: write(port, "f", bytes("y"), "replace"),
    append: write(port, "f", bytes("y"), "append"),
    mkdir: port.makeDirectory(p("d")),
    remove: port.remove(p("f")),
    rename: port.rename(p("f"), p("g"), { replace: true }),
    readLink: port.links!.read(p("f")),
    makeLink: port.links!.make(p("l"), "f"),
    attributes: port.attributes!.set(p("f"), { mode: 0o600 }),
    read: performed(port, { _tag: "Read", path: p("f"), maxBytes: 100 }),
    removeTree: performed(port, { _tag: "RemoveTree", path: p("f") })
  })

  it.effect("fails every call with Unavailable if it is removed while in use", () =>
    Effect.gen(function* () {
      for (const [level, make] of walks) {
        const { port, root } = yield* host(undefined, make)
        yield* write(port, "f", bytes("x"), "create")
        Fs.rmSync(root, { recursive: true })
        for (const again of [false, true]) {
          for (const [name, call] of Object.entries(callsOn(port))) {
            assert.strictEqual((yield* faultOf(call as Effect.Effect<unknown, never>))._tag, "Unavailable", `${level} ${name}`)
          }
          if (!again) Fs.mkdirSync(root)
        }
        assert.deepStrictEqual(tree(root), {})
      }
    })
  )

  it.effect("is found again if it is renamed while in use, even if another directory takes its name", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "a/b"), { recursive: true })
      yield* write(port, "a/b/f", bytes("x"), "create")
      const moved = `${root}-moved`
      Fs.renameSync(root, moved)
      Fs.mkdirSync(root)
      yield* write(port, "a/b/f", bytes("y"), "replace")
      assert.deepStrictEqual(
        (yield* port.list(p("."))).map(({ name }) => name),
        ["a"]
      )
      yield* write(port, "g", bytes("z"), "create")
      assert.deepStrictEqual(tree(root), {})
      assert.deepStrictEqual(tree(moved), { a: "directory", "a/b": "directory", "a/b/f": "y", g: "z" })
    })
  )

  it.effect(
    "fails every call with Unavailable under best-effort confinement after it is renamed or replaced, until it is back",
    () =>
      Effect.gen(function* () {
        const { port, root } = yield* host(undefined, checked)
        yield* write(port, "f", bytes("x"), "create")
        const calls = callsOn(port)
        const moved = `${root}-moved`
        Fs.renameSync(root, moved)
        for (const [name, call] of Object.entries(calls)) {
          assert.strictEqual((yield* faultOf(call as Effect.Effect<unknown, never>))._tag, "Unavailable", name)
        }
        Fs.mkdirSync(root)
        Fs.writeFileSync(join(root, "f"), "another's")
        for (const [name, call] of Object.entries(calls)) {
          assert.strictEqual((yield* faultOf(call as Effect.Effect<unknown, never>))._tag, "Unavailable", name)
        }
        assert.deepStrictEqual(tree(root), { f: "another's" })
        assert.deepStrictEqual(tree(moved), { f: "x" })
        Fs.rmSync(root, { recursive: true })
        Fs.renameSync(moved, root)
        assert.strictEqual(yield* readAll(port, p("f")), "x")
      })
  )

  it.effect("cannot be removed, renamed, replaced or written to", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      yield* port.makeDirectory(p("d"))
      const denied = { _tag: "AccessDenied", why: "root" }
      assert.deepInclude(yield* faultOf(port.remove(p("."))), denied)
      assert.deepInclude(yield* faultOf(performed(port, { _tag: "RemoveTree", path: p(".") })), denied)
      assert.deepInclude(yield* faultOf(port.rename(p("."), p("d/x"), { replace: true })), denied)
      assert.deepInclude(yield* faultOf(port.rename(p("d"), p("."), { replace: true })), denied)
      assert.strictEqual((yield* faultOf(write(port, ".", bytes(""), "replace")))._tag, "NotAFile")
      assert.strictEqual((yield* faultOf(write(port, ".", bytes(""), "append")))._tag, "NotAFile")
      assert.strictEqual((yield* faultOf(write(port, ".", bytes(""), "create")))._tag, "AlreadyExists")
      assert.strictEqual((yield* faultOf(port.makeDirectory(p("."))))._tag, "AlreadyExists")
      assert.strictEqual((yield* faultOf(Effect.scoped(port.open(p(".")))))._tag, "NotAFile")
      assert.deepStrictEqual(tree(root), { d: "directory" })
    })
  )

  it.effect("fails every call with Unavailable after the scope closes, and leaves no descriptor open", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const before = openDescriptors()
      const scope = yield* Scope.make()
      const port = yield* Scope.provide(PosixHost.make({ root }), scope)
      const inner = yield* Scope.make()
      Fs.writeFileSync(join(root, "f"), "text")
      const handle = yield* Scope.provide(port.open(p("f")), inner)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* faultOf(port.stat(p("f"))))._tag, "Unavailable")
      assert.strictEqual((yield* faultOf(port.list(p("."))))._tag, "Unavailable")
      assert.deepStrictEqual(yield* handle.read(0, 10), bytes("text"))
      yield* Scope.close(inner, Exit.void)
      assert.strictEqual((yield* faultOf(handle.read(0, 1)))._tag, "IoError")
      assert.strictEqual(openDescriptors(), before)
    })
  )

  it.effect("is opened by the layer PosixHost.layer", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const context = yield* Layer.build(PosixHost.layer({ root }))
      assert.isDefined(yield* Effect.provideContext(Filesystem, context))
    })
  )
})

describe("the options of PosixHost", () => {
  it.effect("readOnly refuses changes before any access to the disk, allowDelete a removal, and allowWrite a write", () =>
    Effect.gen(function* () {
      const denied = { _tag: "AccessDenied", why: "readOnly" }
      const { port, root } = yield* host({ readOnly: true })
      Fs.rmSync(root, { recursive: true })
      assert.isTrue(port.info.readOnly)
      assert.deepInclude(yield* faultOf(write(port, "f", bytes(""), "create")), denied)
      assert.deepInclude(yield* faultOf(port.makeDirectory(p("d"))), denied)
      assert.deepInclude(yield* faultOf(port.remove(p("f"))), denied)
      assert.deepInclude(yield* faultOf(port.rename(p("f"), p("g"), { replace: true })), denied)
      assert.deepInclude(yield* faultOf(port.links!.make(p("l"), "f")), denied)
      assert.deepInclude(yield* faultOf(port.attributes!.set(p("f"), { mode: 0o600 })), denied)
      assert.deepInclude(yield* faultOf(performed(port, { _tag: "RemoveTree", path: p("f") })), denied)

      const keeping = yield* host({ allowDelete: false })
      yield* write(keeping.port, "f", bytes("1"), "create")
      yield* write(keeping.port, "f", bytes("2"), "replace")
      assert.deepInclude(yield* faultOf(keeping.port.remove(p("f"))), denied)
      assert.deepStrictEqual(tree(keeping.root), { f: "2" })

      const removing = yield* host({ allowWrite: false })
      Fs.writeFileSync(join(removing.root, "f"), "1")
      assert.deepInclude(yield* faultOf(write(removing.port, "f", bytes("2"), "replace")), denied)
      yield* removing.port.remove(p("f"))
      assert.deepStrictEqual(tree(removing.root), {})
    })
  )

  it.effect("symlinks, preservePermissions and policy become rules of the port", () =>
    Effect.gen(function* () {
      const { port } = yield* host({ symlinks: "report", preservePermissions: true, policy: "branch" })
      assert.deepInclude(port.rules, { symlinks: "report", preservePermissions: true, policy: "branch" })
    })
  )

  it.effect('with hardlinks "reject" never change a file that takes the name of the checked file during the call', () =>
    Effect.gen(function* () {
      for (const values of [{ mode: 0o777 }, { modifiedAt: DateTime.makeUnsafe(0) }]) {
        for (const moment of ["lstatSync", "openSync"] as const) {
          const { outside, port, root } = yield* host({ hardlinks: "reject" })
          const secret = join(outside, "secret")
          Fs.writeFileSync(secret, "secret", { mode: 0o600 })
          Fs.writeFileSync(join(root, "f"), "own")
          Fs.linkSync(secret, join(outside, "name"))
          const before = Fs.lstatSync(secret)
          let swaps = 0
          const result = yield* Effect.scoped(
            Effect.andThen(
              replacing(moment, (original) => (...args) => {
                const found = original(...args)
                if (String(args[0]).endsWith("/f") && swaps++ === 0) Fs.renameSync(join(outside, "name"), join(root, "f"))
                return found
              }),
              Effect.result(port.attributes!.set(p("f"), values))
            )
          )
          assert.strictEqual(swaps, 1)
          if (moment === "openSync") assert.strictEqual(result._tag, "Success")
          else assert.deepStrictEqual(result._tag === "Failure" && result.failure, { _tag: "AccessDenied", why: "link" })
          const { mode, mtimeMs } = Fs.lstatSync(secret)
          assert.deepStrictEqual({ mode, mtimeMs }, { mode: before.mode, mtimeMs: before.mtimeMs })
        }
      }
    })
  )

  it.effect(
    'with hardlinks "reject" refuse a read, an append and a change of a file with two names, but not its replacement',
    () =>
      Effect.gen(function* () {
        const { outside, port, root } = yield* host({ hardlinks: "reject" })
        const linked = { _tag: "AccessDenied", why: "link" }
        Fs.writeFileSync(join(outside, "secret"), "secret")
        Fs.linkSync(join(outside, "secret"), join(root, "f"))
        assert.deepInclude(yield* faultOf(Effect.scoped(port.open(p("f")))), linked)
        assert.deepInclude(yield* faultOf(performed(port, { _tag: "Read", path: p("f"), maxBytes: 100 })), linked)
        assert.deepInclude(yield* faultOf(write(port, "f", bytes("!"), "append")), linked)
        assert.deepInclude(yield* faultOf(write(port, "f", Stream.make(bytes("!")), "append")), linked)
        assert.deepInclude(yield* faultOf(port.attributes!.set(p("f"), { mode: 0o777 })), linked)
        yield* write(port, "f", bytes("mine"), "replace")
        assert.strictEqual(yield* readAll(port, p("f")), "mine")
        assert.deepStrictEqual(tree(outside), { secret: "secret" })
      })
  )

  for (const [durability, confirmed] of [
    ["none", ""],
    // One sync for each write; a stream that is appended to a file is staged first.
    ["file", "f f f f ff f"],
    // Also syncs the parent of each created, moved or removed entry, and both parents of a move.
    ["full", "d fd fd fd fd ffd dd d fd d d"]
  ] as const) {
    it.effect(`with durability ${durability} change no result and no file, only the syncs to disk`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({ durability })
        const synced: Array<string> = []
        yield* replacing("fsync", (fsync) => (descriptor, done) => {
          synced.push(Fs.fstatSync(descriptor).isDirectory() ? "d" : "f")
          return fsync(descriptor, done)
        })
        yield* port.makeDirectory(p("d"))
        assert.strictEqual((yield* write(port, "d/a", bytes("1"), "create")).sizeBytes, 1)
        assert.strictEqual((yield* write(port, "d/a", bytes("22"), "replace")).sizeBytes, 2)
        assert.strictEqual((yield* write(port, "d/a", bytes("3"), "append")).sizeBytes, 3)
        assert.strictEqual((yield* write(port, "d/b", Stream.make(bytes("4")), "append")).sizeBytes, 1)
        assert.strictEqual((yield* write(port, "d/b", Stream.make(bytes("5")), "append")).sizeBytes, 2)
        yield* port.rename(p("d/b"), p("b"), { replace: false })
        yield* port.links!.make(p("l"), "b")
        yield* write(port, "gone", bytes(""), "create")
        yield* port.remove(p("gone"))
        assert.deepStrictEqual(tree(root), { b: "45", d: "directory", "d/a": "223", l: "-> b" })
        assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: p("d") }), { deleted: 1, directories: 1 })
        assert.strictEqual(synced.join(""), confirmed.replaceAll(" ", ""))
      })
    )
  }
})

describe("metadata of an entry", () => {
  it.effect("contains the nearest valid date if a time is out of the range of dates", () =>
    Effect.gen(function* () {
      // A disk in memory stores times beyond the range of dates.
      const root = yield* fastDirectory
      Fs.writeFileSync(join(root, "f"), "")
      Fs.utimesSync(join(root, "f"), 99_999_999_999_999, 99_999_999_999_999)
      const kept = Fs.statSync(join(root, "f")).mtimeMs
      const port = yield* PosixHost.make({ root })
      assert.strictEqual((yield* port.stat(p("f")))?.modifiedAt?.epochMilliseconds, Math.min(kept, 8_640_000_000_000_000))
    })
  )

  it.effect("contains the kind, size, times and permission bits that the system reports", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "12345")
      Fs.chmodSync(join(root, "f"), 0o4640)
      Fs.symlinkSync("somewhere", join(root, "l"))
      execFileSync("touch", ["-d", "2001-02-03T04:05:06.789654321Z", join(root, "f")])
      const stat = (yield* port.stat(p("f")))!
      assert.deepInclude(stat, { path: p("f"), kind: "file", isFile: true, isDirectory: false, sizeBytes: 5, mode: 0o640 })
      assert.strictEqual(DateTime.formatIso(stat.modifiedAt!), "2001-02-03T04:05:06.789Z")
      assert.isAbove(stat.createdAt!.epochMilliseconds, stat.modifiedAt!.epochMilliseconds)
      const link = (yield* port.stat(p("l")))!
      assert.deepInclude(link, { kind: "symlink", isFile: false, isDirectory: false, sizeBytes: 9, isSymlink: true })
      assert.deepInclude((yield* port.stat(p(".")))!, { path: p("."), kind: "directory", sizeBytes: 0, isDirectory: true })
      assert.isUndefined(yield* port.stat(p("nothing")))
      assert.isUndefined(yield* port.stat(p("f/below")))
      assert.isUndefined(yield* port.stat(p("f/below/deeper")))
    })
  )

  it.effect("accepts modification times to the millisecond, also before 1970, and keeps the access time", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "")
      Fs.utimesSync(join(root, "f"), 1000, 2000)
      for (const millis of [
        0, 1, 999, 1_700_000_000_123, 1_700_000_000_999, 1_234_567_890_001, -1, -86_400_001, 274_460_463_192, 2_169_822_764_239,
        4_102_444_800_777
      ]) {
        yield* port.attributes!.set(p("f"), { modifiedAt: DateTime.makeUnsafe(millis) })
        assert.strictEqual((yield* port.stat(p("f")))?.modifiedAt?.epochMilliseconds, millis)
        assert.strictEqual(Math.round(Fs.statSync(join(root, "f")).atimeMs), 1_000_000)
      }
    })
  )

  it.effect("can be set for files, directories, the root and FIFOs; for a link only the time can be set", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      Fs.writeFileSync(join(outside, "f"), "")
      Fs.chmodSync(join(outside, "f"), 0o600)
      Fs.utimesSync(join(outside, "f"), 1000, 2000)
      Fs.writeFileSync(join(root, "f"), "")
      Fs.mkdirSync(join(root, "d"))
      Fs.chmodSync(join(root, "d"), 0o1777)
      Fs.symlinkSync(join(outside, "f"), join(root, "l"))
      execFileSync("mkfifo", [join(root, "p")])
      const modifiedAt = DateTime.makeUnsafe(5000)
      for (const path of ["f", "d", "p", "."]) {
        yield* port.attributes!.set(p(path), { mode: 0o710, modifiedAt })
        assert.deepInclude((yield* port.stat(p(path)))!, { mode: 0o710, modifiedAt }, path)
      }
      assert.strictEqual(Fs.statSync(join(root, "d")).mode & 0o7777, 0o1710)
      yield* port.attributes!.set(p("l"), { modifiedAt })
      assert.deepEqual((yield* port.stat(p("l")))!.modifiedAt, modifiedAt)
      assert.deepInclude(yield* faultOf(port.attributes!.set(p("l"), { mode: 0o777 })), {
        _tag: "InvalidArgument",
        argument: "mode"
      })
      assert.strictEqual((yield* faultOf(port.attributes!.set(p("nothing"), { mode: 0o777 })))._tag, "NotFound")
      assert.strictEqual((yield* faultOf(port.attributes!.set(p("f/x"), { mode: 0o777 })))._tag, "NotFound")
      const stats = Fs.statSync(join(outside, "f"))
      assert.strictEqual(stats.mode & 0o777, 0o600)
      assert.strictEqual(stats.mtimeMs, 2_000_000)
    })
  )

  it.effect("includes the text of a link, even of a dangling one; links.read refuses other entries", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      yield* port.links!.make(p("l"), "../no/where/ä")
      assert.strictEqual(yield* port.links!.read(p("l")), "../no/where/ä")
      assert.strictEqual((yield* faultOf(port.links!.make(p("l"), "x")))._tag, "AlreadyExists")
      assert.strictEqual((yield* faultOf(port.links!.make(p("no/l"), "x")))._tag, "NotFound")
      assert.strictEqual((yield* faultOf(port.links!.make(p("l/l"), "x")))._tag, "NotADirectory")
      Fs.writeFileSync(join(root, "f"), "")
      assert.strictEqual((yield* faultOf(port.links!.read(p("f"))))._tag, "InvalidArgument")
      assert.strictEqual((yield* faultOf(port.links!.read(p("."))))._tag, "InvalidArgument")
      assert.strictEqual((yield* faultOf(port.links!.read(p("none"))))._tag, "NotFound")
      assert.strictEqual((yield* faultOf(port.links!.read(p("f/x"))))._tag, "NotFound")
      Fs.symlinkSync(Buffer.from([0x61, 0xff]), join(root, "odd"))
      assert.strictEqual((yield* faultOf(port.links!.read(p("odd"))))._tag, "InvalidPath")
    })
  )
})

describe("names on a host", () => {
  const odd = [Buffer.from([0x62, 0x61, 0x64, 0xff]), Buffer.from([0x62, 0x61, 0x64, 0xfe]), Buffer.from("line\nbreak\\")]

  it.effect("that no path can express are listed as not addressable, and calls reach them by their keys", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      for (const name of odd) Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), name]), name.toString("hex"))
      Fs.writeFileSync(join(root, "replacement \ufffd"), "honest")
      Fs.writeFileSync(join(root, "ä"), "fine")
      const children = yield* port.list(p("."))
      const shown = children.map(({ addressable, name }) => `${name} ${addressable}`).sort()
      assert.deepStrictEqual(shown, [
        "bad\\xfe false",
        "bad\\xff false",
        "line\\x0abreak\\\\ false",
        "replacement \ufffd true",
        "ä true"
      ])
      const keys = children.flatMap(({ key }) => (key === undefined ? [] : [key]))
      assert.strictEqual(new Set(keys).size, 3)
      for (const key of keys) {
        assert.strictEqual(Buffer.from(yield* readAll(port, p(key)), "hex").length > 0, true)
        yield* write(port, key, bytes("more"), "append")
        yield* port.rename(p(key), p(`${key}`), { replace: true })
        yield* port.remove(p(key))
      }
      assert.deepStrictEqual(Object.keys(tree(root)).sort(), ["replacement \ufffd", "ä"])
    })
  )

  it.effect("in a directory that no path can express are reached through its key, and forged keys fail with InvalidPath", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      Fs.writeFileSync(join(outside, "f"), "secret")
      Fs.mkdirSync(Buffer.concat([Buffer.from(`${root}/`), odd[0]!]))
      const [child] = yield* port.list(p("."))
      const inner = p(`${child!.key}/inner`)
      yield* write(port, inner, bytes("deep"), "create")
      assert.strictEqual(yield* readAll(port, inner), "deep")
      assert.strictEqual((yield* port.list(p(child!.key!)))[0]?.name, "inner")
      Fs.writeFileSync(join(root, "plain"), "")
      const forged = ["..", "../outside", ".", "plain", "", "a/b", "\u0000"].map(
        (name) => `\u0000${Buffer.from(name).toString("hex")}`
      )
      for (const key of [...forged, "\u0000xx", "a\u0000b"]) {
        assert.strictEqual((yield* faultOf(port.stat(p(key))))._tag, "InvalidPath", JSON.stringify(key))
        assert.strictEqual((yield* faultOf(port.list(p(key))))._tag, "InvalidPath", JSON.stringify(key))
      }
    })
  )

  it.effect("of 255 bytes work in every write, and longer names fail with PathTooLong", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const long = "é".repeat(127) + "x"
      yield* write(port, long, bytes("1"), "create")
      yield* write(port, long, bytes("2"), "replace")
      yield* write(port, long, Stream.make(bytes("3")), "append")
      assert.deepStrictEqual(tree(root), { [long]: "23" })
      const longer = p(`${long}y`)
      assert.strictEqual((yield* faultOf(write(port, longer, bytes(""), "create")))._tag, "PathTooLong")
      assert.strictEqual((yield* faultOf(port.makeDirectory(longer)))._tag, "PathTooLong")
      assert.strictEqual((yield* faultOf(port.stat(longer)))._tag, "PathTooLong")
    })
  )

  it.effect("are neither trimmed, normalised nor unescaped", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const names = [" lead", "trail ", "\u00e9", "e\u0301", "a\\b", "%2e%2e", "..\u200b", "CON", "~", "-rf", "*", "日本"]
      for (const name of names) yield* write(port, name, bytes(name), "create")
      assert.deepStrictEqual(tree(root), Object.fromEntries(names.map((name) => [name, name])))
      assert.deepStrictEqual((yield* port.list(p("."))).map(({ name }) => name).sort(), [...names].sort())
    })
  )

  it.live("of leftovers disappear when a listing removes the leftovers; forged names stay, however old", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const dead = Names.dead()
      const own = TemporaryNames.make()
      const kept = [own, Names.forged(dead), Names.signed(Names.elsewhere), ".~fsa-0.tmp", "old.tmp"]
      const directory = Names.signed(dead)
      Fs.mkdirSync(join(root, directory))
      for (const name of [...kept, Names.signed(dead), Names.signed(dead, "kind")]) {
        Fs.writeFileSync(join(root, name), "")
        Fs.utimesSync(join(root, name), 1, 1)
      }
      const listed = (yield* port.list(p("."))).map(({ name }) => name)
      assert.sameMembers(listed, [directory, ...kept])
      assert.sameMembers(Fs.readdirSync(root), [directory, ...kept])
      TemporaryNames.forget(own)

      const keeping = yield* host({ allowDelete: false })
      const left = Names.signed(dead)
      Fs.writeFileSync(join(keeping.root, left), "")
      yield* keeping.port.list(p("."))
      assert.deepStrictEqual(Object.keys(tree(keeping.root)), [left])
    })
  )
})

describe("a listing", () => {
  it.effect(
    "returns kinds; fails with NotFound for a missing path or a path below a file, and with NotADirectory for a file",
    () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.mkdirSync(join(root, "d"))
        Fs.writeFileSync(join(root, "f"), "")
        Fs.symlinkSync("d", join(root, "l"))
        execFileSync("mkfifo", [join(root, "p")])
        const kinds = Object.fromEntries((yield* port.list(p("."))).map(({ kind, name }) => [name, kind]))
        assert.deepStrictEqual(kinds, { d: "directory", f: "file", l: "symlink", p: "other" })
        assert.strictEqual((yield* faultOf(port.list(p("none"))))._tag, "NotFound")
        assert.strictEqual((yield* faultOf(port.list(p("f"))))._tag, "NotADirectory")
        assert.strictEqual((yield* faultOf(port.list(p("f/x"))))._tag, "NotFound")
        assert.strictEqual((yield* faultOf(port.list(p("l"))))._tag, "NotADirectory")
        assert.strictEqual((yield* faultOf(port.list(p("l/x"))))._tag, "NotFound")
      })
  )

  it.effect("of a large directory is complete, with and without names that are not UTF-8", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const names = Array.from({ length: 5000 }, (_, i) => `some-longer-name-of-a-file-${i}`)
      for (const name of names) Fs.writeFileSync(join(root, name), "")
      assert.isAbove(Fs.lstatSync(root).size, 64 * 1024)
      assert.deepStrictEqual((yield* port.list(p("."))).map(({ name }) => name).sort(), [...names].sort())
      Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), "")
      const children = yield* port.list(p("."))
      assert.deepStrictEqual(children.map(({ name }) => name).sort(), [...names, "\\xff"].sort())
      assert.strictEqual(children.filter(({ addressable }) => !addressable).length, 1)
    })
  )
})

describe("a case-insensitive disk", () => {
  const caseless = (root: string) => {
    const lower = (path: unknown) =>
      typeof path === "string" && path.startsWith(`${root}/`)
        ? root + path.slice(root.length).toLowerCase()
        : typeof path === "string" && /^\/proc\/(?:self|\d+)\/fd\//.test(path)
          ? path.toLowerCase()
          : path
    return Effect.forEach(
      ["lstatSync", "openSync", "renameSync", "linkSync", "unlinkSync", "mkdirSync"] as const,
      (name) =>
        replacing(
          name,
          (call) =>
            (...args) =>
              call(...args.map(lower))
        ),
      { discard: true }
    )
  }

  it.effect("is recognised, has one file for all spellings of a name, and lets a rename change only the case", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "readme"), "text")
      yield* caseless(root)
      const port = yield* PosixHost.make({ root })
      assert.isFalse(port.info.caseSensitive)
      assert.strictEqual(yield* readAll(port, p("ReadMe")), "text")
      assert.strictEqual((yield* faultOf(write(port, "README", bytes("x"), "create")))._tag, "AlreadyExists")
      yield* port.rename(p("readme"), p("README"), { replace: false })
      yield* port.rename(p("README"), p("Readme"), { replace: true })
      assert.strictEqual(yield* readAll(port, p("readme")), "text")
      yield* port.makeDirectory(p("dir"))
      assert.strictEqual((yield* faultOf(port.rename(p("dir"), p("DIR/inner"), { replace: false })))._tag, "InvalidArgument")
      assert.deepStrictEqual(tree(root), { dir: "directory", readme: "text" })
    })
  )

  it.effect("is distinguished from a case-sensitive disk by the existing names, without writing", () =>
    Effect.gen(function* () {
      const root = yield* directory
      assert.isTrue((yield* PosixHost.make({ root, readOnly: true })).info.caseSensitive)
      Fs.writeFileSync(join(root, "a"), "")
      Fs.writeFileSync(join(root, "A"), "")
      assert.isTrue((yield* PosixHost.make({ root, readOnly: true })).info.caseSensitive)
      assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["A", "a"])
    })
  )
})

describe("renaming", () => {
  const fixture = Effect.map(host(), (made) => {
    const { root } = made
    Fs.writeFileSync(join(root, "f"), "f")
    Fs.writeFileSync(join(root, "g"), "g")
    Fs.mkdirSync(join(root, "empty"))
    Fs.mkdirSync(join(root, "full"))
    Fs.writeFileSync(join(root, "full", "x"), "x")
    Fs.symlinkSync("g", join(root, "l"))
    return made
  })
  const before = { empty: "directory", f: "f", full: "directory", "full/x": "x", g: "g", l: "-> g" }

  it.effect("without replace never replaces an existing entry", () =>
    Effect.gen(function* () {
      const { port, root } = yield* fixture
      for (const [from, to] of [
        ["f", "g"],
        ["f", "l"],
        ["f", "empty"],
        ["full", "empty"],
        ["l", "f"],
        ["f", "f"]
      ] as const) {
        assert.strictEqual(
          (yield* faultOf(port.rename(p(from), p(to), { replace: false })))._tag,
          "AlreadyExists",
          `${from} ${to}`
        )
      }
      assert.deepStrictEqual(tree(root), before)
    })
  )

  it.effect("with replace replaces only an entry of a compatible kind", () =>
    Effect.gen(function* () {
      const { port, root } = yield* fixture
      const tagOf = (from: string, to: string) =>
        Effect.map(faultOf(port.rename(p(from), p(to), { replace: true })), ({ _tag }) => _tag)
      assert.strictEqual(yield* tagOf("f", "empty"), "NotAFile")
      assert.strictEqual(yield* tagOf("empty", "f"), "NotADirectory")
      assert.strictEqual(yield* tagOf("empty", "l"), "NotADirectory")
      assert.strictEqual(yield* tagOf("empty", "full"), "DirectoryNotEmpty")
      assert.strictEqual(yield* tagOf("none", "f"), "NotFound")
      assert.strictEqual(yield* tagOf("f/x", "g"), "NotFound")
      assert.strictEqual(yield* tagOf("f", "none/x"), "NotFound")
      assert.strictEqual(yield* tagOf("f", "g/x"), "NotADirectory")
      assert.strictEqual(yield* tagOf("full", "full/inner"), "InvalidArgument")
      assert.deepStrictEqual(tree(root), before)
      yield* port.rename(p("f"), p("f"), { replace: true })
      yield* port.rename(p("full"), p("empty"), { replace: true })
      yield* port.rename(p("f"), p("l"), { replace: true })
      assert.deepStrictEqual(tree(root), { empty: "directory", "empty/x": "x", g: "g", l: "f" })
    })
  )

  it.effect("moves a link, not its target", () =>
    Effect.gen(function* () {
      const { port, root } = yield* fixture
      yield* port.rename(p("l"), p("empty/moved"), { replace: false })
      yield* port.remove(p("empty/moved"))
      assert.strictEqual(Fs.readFileSync(join(root, "g"), "utf8"), "g")
    })
  )

  it.effect("a file over another name of the same file leaves one name", () =>
    Effect.gen(function* () {
      const { port, root } = yield* fixture
      Fs.linkSync(join(root, "f"), join(root, "second"))
      yield* port.rename(p("f"), p("second"), { replace: true })
      assert.isFalse(Fs.existsSync(join(root, "f")))
      assert.strictEqual(Fs.readFileSync(join(root, "second"), "utf8"), "f")
    })
  )

  it.effect("replaces a directory that holds only leftovers of killed writers", () =>
    Effect.gen(function* () {
      const { port, root } = yield* fixture
      Fs.writeFileSync(join(root, "empty", Names.signed(Names.dead())), "")
      yield* port.rename(p("full"), p("empty"), { replace: true })
      assert.deepStrictEqual(tree(root), { empty: "directory", "empty/x": "x", f: "f", g: "g", l: "-> g" })
    })
  )
})

describe("reading", () => {
  it.effect("returns the content at the time of the open, even if the file is then replaced, removed or appended to", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      yield* write(port, "f", bytes("first"), "create")
      const handle = yield* port.open(p("f"))
      yield* write(port, "f", bytes("!"), "append")
      assert.deepStrictEqual(yield* handle.read(0, 100), bytes("first"))
      yield* write(port, "f", bytes("second"), "replace")
      assert.deepStrictEqual(yield* handle.read(1, 3), bytes("irs"))
      yield* port.remove(p("f"))
      assert.deepStrictEqual(yield* handle.read(0, 5), bytes("first"))
      assert.deepStrictEqual(yield* handle.read(5, 5), bytes(""))
      assert.deepStrictEqual(yield* handle.read(500, 5), bytes(""))
      assert.strictEqual(handle.stat.sizeBytes, 5)
      assert.deepStrictEqual(tree(root), {})
    })
  )

  it.effect("of a file that is truncated during the read ends early", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "x".repeat(200_000))
      const handle = yield* port.open(p("f"))
      Fs.truncateSync(join(root, "f"), 150_000)
      assert.strictEqual((yield* handle.read(0, 200_000)).length, 150_000)
      assert.strictEqual((yield* handle.read(160_000, 10)).length, 0)
    })
  )

  it.effect("returns arrays that the caller may change, for small and for large files", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      for (const size of [0, 1, 4096, 65_536, 65_537, 3_000_000]) {
        const content = Uint8Array.from({ length: size }, (_, i) => i % 251)
        Fs.writeFileSync(join(root, "f"), content)
        const handle = yield* port.open(p("f"))
        const first = yield* handle.read(0, size + 10)
        assert.strictEqual(Object.getPrototypeOf(first), Uint8Array.prototype)
        assert.isTrue(Buffer.from(content).equals(first))
        first.fill(7)
        assert.isTrue(Buffer.from(content).equals(yield* handle.read(0, size)))
        const whole = yield* performed(port, { _tag: "Read", path: p("f"), maxBytes: 10_000_000 })
        if (size <= 65_536) assert.isTrue(Buffer.from(content).equals(whole!.bytes))
        else assert.isUndefined(whole)
      }
      assert.isUndefined(yield* performed(port, { _tag: "Read", path: p("f"), maxBytes: 10 }))
    })
  )

  it.live("returns the right bytes and leaves no descriptor when the scope closes during reads", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "a".repeat(200_000))
      Fs.writeFileSync(join(root, "g"), "b".repeat(200_000))
      const before = openDescriptors()
      for (let round = 0; round < 20; round++) {
        const scope = yield* Scope.make()
        const handle = yield* Scope.provide(port.open(p("f")), scope)
        const reads = Effect.forEach([1, 2, 3, 4], () => handle.read(0, 200_000), { concurrency: 4 })
        const meanwhile = Effect.andThen(
          Scope.close(scope, Exit.void),
          // The open may get the number of the closed descriptor.
          Effect.scoped(Effect.flatMap(port.open(p("g")), (other) => other.read(0, 10)))
        )
        const [results] = yield* Effect.all([reads, meanwhile], { concurrency: 2 })
        for (const result of results) assert.isTrue(result.every((byte) => byte === 97))
      }
      assert.strictEqual(openDescriptors(), before)
    })
  )
})
