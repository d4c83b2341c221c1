import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { make } from "../../../src/filesystem/Filesystem.ts"
import * as WindowsHost from "../../../src/backends/WindowsHost.ts"
import type { Fault } from "../../../src/model/FsError.ts"
import type { Backend as Port } from "../../../src/port/Backend.ts"
import { bytes, faultOf, p, readAll, write } from "../posixHost.ts"
import { type Share, type SimulatedDisk, windowsError } from "./simulatedDisk.ts"
import { host, portOn, root } from "./windowsHost.ts"
import { performed } from "../../performed.ts"

const busy = { _tag: "AccessDenied", why: "busy" }
const permission = { _tag: "AccessDenied", why: "permission" }

const asked = ({ calls }: SimulatedDisk, name: string): number => calls.filter((call) => call.name === name).length

const whyOf = (error: object): unknown => ("why" in error ? error.why : error)

const outside = "C:\\work\\outside"

/** The retries wait 50, 100, 200, 400 and 800 ms, each up to 20 % more or less. */
const longest = 1.2 * (50 + 100 + 200 + 400 + 800)
const shortest = 0.8 * (50 + 100 + 200 + 400 + 800)

describe("a file that another program has open", () => {
  const calls = [
    ["reading", "none", "open", (port) => Effect.scoped(port.open(p("f")))],
    ["reading it in one call", "none", "open", (port) => performed(port, { _tag: "Read", path: p("f"), maxBytes: 100 })],
    ["appending", "read", "open", (port) => write(port, "f", bytes("+"), "append")],
    ["replacing", "readWrite", "rename", (port) => write(port, "f", bytes("new"), "replace")],
    ["moving", "readWrite", "rename", (port) => port.rename(p("f"), p("g"), { replace: false })],
    ["moving another file onto it", "readWrite", "rename", (port) => port.rename(p("other"), p("f"), { replace: true })]
  ] as ReadonlyArray<readonly [string, Share, string, (port: Port) => Effect.Effect<unknown, Fault>]>

  for (const [what, share, call, run] of calls) {
    it.effect(`makes ${what} fail as busy after six tries`, () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.put(`${root}\\f`, "old")
        disk.put(`${root}\\other`, "other")
        disk.hold(`${root}\\f`, { share })
        const before = asked(disk, call)
        const fiber = yield* Effect.forkChild(faultOf(run(port)), { startImmediately: true })
        yield* TestClock.adjust(`${shortest - 1} millis`)
        assert.isUndefined(fiber.pollUnsafe(), "it waits")
        yield* TestClock.adjust(`${longest - shortest + 1} millis`)
        assert.deepInclude(yield* Fiber.join(fiber), busy)
        assert.strictEqual(asked(disk, call) - before, 6)
        assert.strictEqual(disk.text(`${root}\\f`), "old")
        assert.deepStrictEqual(disk.names(root), ["f", "other"])
      })
    )

    it.effect(`lets ${what} succeed once it is closed`, () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.put(`${root}\\f`, "old")
        disk.put(`${root}\\other`, "other")
        const close = disk.hold(`${root}\\f`, { share })
        const fiber = yield* Effect.forkChild(run(port), { startImmediately: true })
        yield* TestClock.adjust("10 millis")
        close()
        yield* TestClock.adjust("60 millis")
        yield* Fiber.join(fiber)
      })
    )
  }

  it.effect("lets a waiting caller be interrupted", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, "old")
      disk.hold(`${root}\\f`, { share: "none" })
      for (const call of [
        Effect.scoped(port.open(p("f"))),
        write(port, "f", bytes("+"), "append"),
        write(port, "f", bytes("new"), "replace")
      ] as ReadonlyArray<Effect.Effect<unknown, Fault>>) {
        const fiber = yield* Effect.forkChild(call, { startImmediately: true })
        // The test clock never moves.
        yield* Fiber.interrupt(fiber)
      }
      assert.deepStrictEqual(disk.names(root), ["f"])
      assert.strictEqual(disk.openDescriptors, 0)
    })
  )

  it.effect("makes a removal fail as busy, without a retry", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, "old")
      disk.hold(`${root}\\f`, { share: "readWrite" })
      // The test clock never moves.
      assert.deepInclude(yield* faultOf(port.remove(p("f"))), busy)
      assert.strictEqual(asked(disk, "unlink"), 1)
    })
  )

  it.effect("makes a call fail with AccessDenied (busy) and the path as the caller wrote it", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\d\\f`, "old")
      disk.hold(`${root}\\d\\f`, { share: "readWrite" })
      const error = yield* Effect.flip(make(port).delete("d/f"))
      assert.deepEqual([error._tag, error.path, whyOf(error)], ["AccessDenied", "d/f", "busy"])
      assert.notInclude(JSON.stringify(error), "work")
    })
  )
})

describe("a read-only file", () => {
  const changes = [
    ["replaced", (port) => write(port, "f", bytes("new"), "replace")],
    ["appended to", (port) => write(port, "f", bytes("new"), "append")],
    ["replaced by a move", (port) => port.rename(p("other"), p("f"), { replace: true })]
  ] as ReadonlyArray<readonly [string, (port: Port) => Effect.Effect<unknown, Fault>]>
  for (const [what, change] of changes) {
    it.effect(`is not ${what}; the attempt fails without a retry`, () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.put(`${root}\\f`, "old")
        disk.put(`${root}\\other`, "other")
        disk.setReadOnly(`${root}\\f`, true)
        assert.deepInclude(yield* faultOf(change(port)), permission)
        assert.strictEqual(disk.text(`${root}\\f`), "old")
        assert.deepStrictEqual(disk.names(root), ["f", "other"])
      })
    )
  }
})

const reserved: ReadonlyArray<string> = [
  "CON",
  "con.txt",
  "nul",
  "d/AUX.tar.gz",
  "COM1",
  "com¹.log",
  "LPT9",
  "CONIN$",
  "a:b",
  "a::$DATA",
  "C:x",
  "a<b",
  "a>b",
  'a"b',
  "a|b",
  "a?b",
  "a*b",
  "a\\b",
  "..\\outside\\secret",
  "dot.",
  "space ",
  "d./f",
  "GIT~1",
  "PROGRA~1.TXT"
]

describe("a path that Windows would read as another path", () => {
  const primitives: ReadonlyArray<(port: Port, path: string) => Effect.Effect<unknown, Fault>> = [
    (port, path) => port.stat(p(path)),
    (port, path) => port.list(p(path)),
    (port, path) => Effect.scoped(port.open(p(path))),
    (port, path) => performed(port, { _tag: "Read", path: p(path), maxBytes: 100 }),
    (port, path) => write(port, path, bytes("x"), "create"),
    (port, path) => write(port, path, bytes("x"), "replace"),
    (port, path) => write(port, path, bytes("x"), "append"),
    (port, path) => port.makeDirectory(p(path)),
    (port, path) => port.remove(p(path)),
    (port, path) => port.rename(p(path), p("g"), { replace: true }),
    (port, path) => port.links!.read(p(path)),
    (port, path) => port.links!.make(p(path), "d")
  ]
  for (const path of reserved) {
    it.effect(`${path} fails with InvalidPath in every call, and the disk is not touched`, () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.put(`${root}\\d\\f`, "x")
        const before = disk.touched
        for (const call of primitives) {
          const fault = yield* faultOf(call(port, path))
          assert.strictEqual(fault._tag, "InvalidPath")
        }
        assert.strictEqual(disk.touched, before)
        assert.strictEqual((yield* faultOf(port.rename(p("d/f"), p(path), { replace: true })))._tag, "InvalidPath")
        assert.deepStrictEqual(disk.names(`${root}\\d`), ["f"])
        assert.deepStrictEqual(disk.misread, [])
        assert.strictEqual(yield* make(port).exists(path), false)
      })
    )
  }

  it.effect("is refused as the target of a link", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      for (const target of ["C:x", "..\\..\\x", "a/NUL", "b:stream", "d. /f"]) {
        assert.strictEqual((yield* faultOf(port.links!.make(p("l"), target)))._tag, "InvalidPath")
      }
      assert.deepStrictEqual(disk.names(root), [])
    })
  )
})

describe("a name that only other programs can create", () => {
  const strange = ["CON.txt", "dot.", "space ", "GIT~1", "del\u007f"]
  for (const name of strange) {
    it.effect(`${JSON.stringify(name)} is listed as not addressable, and moved and removed by its key`, () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.put(`${root}\\d\\${name}`, "x")
        disk.put(`${root}\\plain`, "y")
        const [child] = yield* port.list(p("d"))
        assert.deepInclude(child, { kind: "file", addressable: false })
        assert.notMatch(child!.name, /[\u0000-\u001f\u007f]/)
        assert.strictEqual((yield* port.stat(p(`d/${child!.key}`)))?.sizeBytes, 1)
        yield* port.rename(p(`d/${child!.key}`), p(child!.key!), { replace: false })
        assert.deepStrictEqual([...disk.names(root)].sort(), [name, "d", "plain"].sort())
        yield* port.remove(p(child!.key!))
        assert.deepStrictEqual(disk.names(root), ["d", "plain"])
        assert.deepStrictEqual(disk.misread, [])
      })
    )
  }

  it.effect("has no key that leads to another entry", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${outside}\\secret`, "x")
      disk.put(`${root}\\plain`, "x")
      const key = (name: string): string => `\0${Buffer.from(name, "utf16le").toString("hex")}`
      const before = disk.touched
      for (const name of ["..", ".", "", "..\\outside\\secret", "a/b", "plain", "con\0"]) {
        assert.strictEqual((yield* faultOf(port.stat(p(key(name)))))._tag, "InvalidPath", name)
      }
      for (const text of ["\u0000", "\u0000zz", "\u0000430", "\u00004f00.txt", key("CON").toUpperCase(), `${key("CON")}0`]) {
        assert.strictEqual((yield* faultOf(port.stat(p(text))))._tag, "InvalidPath", text)
      }
      assert.strictEqual(disk.touched, before)
    })
  )

  it.effect("is removed by a recursive delete", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      for (const name of strange) disk.put(`${root}\\d\\${name}`, "x")
      assert.deepStrictEqual(yield* make(port).delete("d", { recursive: true }), { deleted: strange.length, directories: 1 })
      assert.deepStrictEqual(disk.names(root), [])
    })
  )
})

describe("links and junctions", () => {
  it.effect("that lead outside the root are escapes, and their targets are never touched", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${outside}\\secret`, "x")
      disk.putLink(`${root}\\out`, outside, "junction")
      const fs = make(port)
      const before = disk.touched
      assert.strictEqual(whyOf(yield* Effect.flip(fs.readString("out/secret"))), "escape")
      assert.strictEqual(whyOf(yield* Effect.flip(fs.list("out"))), "escape")
      assert.strictEqual(whyOf(yield* Effect.flip(fs.write("out/new", "x"))), "escape")
      assert.strictEqual(whyOf(yield* Effect.flip(fs.delete("out/secret"))), "escape")
      assert.deepStrictEqual(
        (yield* fs.glob("**")).matches.map(({ path }) => `${path}`),
        []
      )
      assert.isTrue(
        disk.calls.slice(before).every(({ path, to }) => ![path, to].some((at) => /\\out\\|outside/.test(at ?? ""))),
        "no path of a call goes through it"
      )
      assert.deepStrictEqual(yield* fs.delete("out", { recursive: true }), { deleted: 1, directories: 0 })
      assert.deepStrictEqual(disk.names(outside), ["secret"])
    })
  )

  it.effect("that lead to a directory of the root are followed", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\a\\b\\f`, "x")
      disk.putLink(`${root}\\c\\in`, `${root}\\A\\b`, "junction")
      const fs = make(port)
      assert.strictEqual(yield* fs.readString("c/in/f"), "x")
      assert.strictEqual(yield* fs.readLink("c/in"), "../A/b")
      yield* fs.write("c/in/g", "y")
      assert.strictEqual(disk.text(`${root}\\a\\b\\g`), "y")
    })
  )

  it.effect("fail with AccessDenied (permission) if the user may not create links", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host({}, { allowSymlinks: false })
      assert.deepInclude(yield* faultOf(port.links!.make(p("l"), "d")), permission)
      assert.deepStrictEqual(disk.names(root), [])
    })
  )

  it.effect("that replace a directory after its check do not lead a read out of the root", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\d\\f`, "inside")
      disk.put(`${outside}\\f`, "secret")
      // Swap the directory just before the open, and do not restore it.
      disk.before = ({ name, path }) => {
        if (name !== "open" || !path!.endsWith("d\\f")) return
        disk.before = undefined
        disk.drop(`${root}\\d`)
        disk.putLink(`${root}\\d`, outside, "junction")
      }
      assert.notStrictEqual(yield* Effect.orElseSucceed(readAll(port, p("d/f")), () => "refused"), "secret")
      assert.strictEqual(disk.openDescriptors, 0)
    })
  )

  it.effect("that replace a directory only during an open do not lead a read out of the root", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\d\\f`, "inside")
      disk.put(`${outside}\\f`, "secret")
      const aside = "\\\\?\\C:\\work\\aside"
      const there = `\\\\?\\${root}\\d`
      let isOut = false
      disk.before = ({ name, path }) => {
        const before = disk.before
        disk.before = undefined
        if (!isOut && name === "open") {
          disk.renameSync(there, aside)
          disk.putLink(`${root}\\d`, outside, "junction")
          isOut = true
        } else if (isOut && name === "lstat" && path === there) {
          disk.drop(`${root}\\d`)
          disk.renameSync(aside, there)
          // Restore the directory only once.
          return undefined
        }
        disk.before = before
        return undefined
      }
      assert.strictEqual(yield* readAll(port, p("d/f")), "inside")
    })
  )

  it.effect(
    "that replace a directory before a readlink make it fail with NotFound, so that it returns no other link's text",
    () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.putLink(`${root}\\d\\l`, "f", "file")
        disk.putLink(`${outside}\\l`, "secret", "file")
        disk.before = ({ name }) => {
          if (name !== "readlink") return
          disk.before = undefined
          disk.drop(`${root}\\d`)
          disk.putLink(`${root}\\d`, outside, "junction")
        }
        assert.strictEqual((yield* faultOf(port.links!.read(p("d/l"))))._tag, "NotFound")
      })
  )

  it.effect("are escapes if their final path name lies outside the root", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\d\\f`, "x")
      const told = disk.realpathSync.native
      Object.assign(disk.realpathSync, { native: (path: string) => told(path).replace(`${root}\\d`, "D:\\volume") })
      assert.deepInclude(yield* faultOf(readAll(port, p("d/f"))), { _tag: "AccessDenied", why: "escape" })
      assert.deepInclude(yield* faultOf(write(port, "d/new", bytes("x"), "create")), { _tag: "AccessDenied", why: "escape" })
      assert.deepStrictEqual(disk.names(`${root}\\d`), ["f"])
    })
  )
})

describe("a system that cannot return final path names", () => {
  for (const code of ["UNKNOWN", "EISDIR"]) {
    for (const when of ["at all", "for a long path"]) {
      it.effect(`is supported when the call for the final path name fails ${when} (${code})`, () =>
        Effect.gen(function* () {
          const { disk } = yield* host()
          const told = disk.realpathSync.native
          Object.assign(disk.realpathSync, {
            native: (path: string) => {
              if (when === "at all" || path.length > 280) throw windowsError(code, "realpath", path)
              return told(path)
            }
          })
          const port = yield* portOn(disk)
          const path = Array.from({ length: 4 }, () => "n".repeat(80)).join("/")
          yield* make(port).write(`${path}/F`, "x")
          yield* write(port, `${path}/f`, bytes("new"), "replace")
          assert.strictEqual(yield* readAll(port, p(`${path}/f`)), "new")
          assert.deepStrictEqual(disk.names(`${root}\\${path.replaceAll("/", "\\")}`), ["F"])
        })
      )
    }
  }
})

describe("lengths of paths", () => {
  const segment = "n".repeat(100)
  /** Returns a path whose native form, without prefix, has `length` UTF-16 units. */
  const ofLength = (length: number): string => {
    let path = ""
    while (root.length + 1 + path.length + segment.length + 1 < length - 10) path += `${segment}/`
    return path + "x".repeat(length - root.length - 1 - path.length)
  }
  const rows = [
    [{ useLongPaths: false }, 259, undefined],
    [{ useLongPaths: false }, 260, "PathTooLong"],
    [{}, 260, undefined],
    [{}, 4000, undefined],
    // The prefix `\\?\` counts too.
    [{}, 32_762, undefined],
    [{}, 32_763, "PathTooLong"]
  ] as const
  for (const [options, length, tag] of rows) {
    it.effect(
      `of ${length} units ${tag === undefined ? "are accepted" : "fail with " + tag} with ${JSON.stringify(options)}`,
      () =>
        Effect.gen(function* () {
          const { disk, port } = yield* host(options)
          const path = ofLength(length)
          assert.strictEqual(`${root}\\${path}`.length, length)
          disk.putDirectory(`${root}\\${path.slice(0, path.lastIndexOf("/")).replaceAll("/", "\\")}`)
          const before = disk.touched
          if (tag === undefined) {
            yield* write(port, path, bytes("far"), "create")
            assert.strictEqual(yield* readAll(port, p(path)), "far")
            return
          }
          assert.strictEqual((yield* faultOf(write(port, path, bytes("far"), "create")))._tag, tag)
          assert.strictEqual((yield* faultOf(port.stat(p(path))))._tag, tag)
          assert.strictEqual(disk.touched, before)
        })
    )
  }

  it.effect("of new directories without long paths leave room for a short (8.3) name", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host({ useLongPaths: false })
      const above = ofLength(248).split("/").slice(0, -1).join("/")
      disk.putDirectory(`${root}\\${above.replaceAll("/", "\\")}`)
      yield* port.makeDirectory(p(ofLength(247)))
      assert.strictEqual((yield* faultOf(port.makeDirectory(p(ofLength(248)))))._tag, "PathTooLong")
    })
  )
})

describe("readers in this process", () => {
  const large = 9 * 1024 * 1024

  for (const size of [10, 100_000, large]) {
    for (const [what, change, after] of [
      ["replaced", (port) => write(port, "d/f", bytes("new"), "replace"), ["f"]],
      ["replaced by a move", (port) => port.rename(p("other"), p("d/f"), { replace: true }), ["f"]],
      ["removed", (port) => port.remove(p("d/f")), []]
    ] as ReadonlyArray<readonly [string, (port: Port) => Effect.Effect<unknown, Fault>, ReadonlyArray<string>]>) {
      it.effect(`keep the old content when a file of ${size} bytes is ${what} during the read`, () =>
        Effect.gen(function* () {
          const { disk, port } = yield* host({}, { deletes: "pending" })
          const old = Uint8Array.from({ length: size }, (_, at) => at % 251)
          disk.put(`${root}\\d\\f`, old)
          disk.put(`${root}\\other`, "other")
          const scope = yield* Scope.make()
          const handle = yield* Scope.provide(port.open(p("d/f")), scope)
          const first = yield* handle.read(0, 5)
          // The test clock does not move, so the change does not wait for its own reader.
          yield* change(port)
          assert.deepStrictEqual(disk.names(`${root}\\d`), after)
          const parts = [first]
          for (let at = 5; at < size;) {
            const part = yield* handle.read(at, 1_000_000)
            parts.push(part)
            at += part.length
          }
          assert.isTrue(Buffer.concat(parts).equals(old))
          assert.strictEqual((yield* handle.read(size, 10)).length, 0)
          yield* Scope.close(scope, Exit.void)
          assert.strictEqual(disk.openDescriptors, 0)
          assert.deepStrictEqual(
            disk.names(root).filter((name) => name.startsWith(".~")),
            []
          )
        })
      )
    }
  }

  it.effect("survive two moves of the directory of their file", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\d\\e\\f`, "old")
      const handle = yield* port.open(p("D/e/f"))
      yield* port.rename(p("d"), p("moved"), { replace: false })
      const again = yield* port.open(p("moved/e/f"))
      yield* port.rename(p("moved/e"), p("e2"), { replace: false })
      yield* port.rename(p("e2"), p("e3"), { replace: false })
      assert.strictEqual(disk.text(`${root}\\e3\\f`), "old")
      for (const each of [handle, again]) assert.strictEqual(new TextDecoder().decode(yield* each.read(0, 10)), "old")
    })
  )

  it.effect("of a moved file block no change at its new or old path", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      for (const name of ["f", "x\\g", "d\\h"]) disk.put(`${root}\\${name}`, name)
      const handles = [yield* port.open(p("f")), yield* port.open(p("x/g"))]
      yield* port.rename(p("f"), p("d/f"), { replace: false })
      yield* port.rename(p("d"), p("e"), { replace: false })
      yield* port.rename(p("x"), p("y"), { replace: false })
      assert.deepStrictEqual(disk.names(root), ["e", "y"])
      assert.strictEqual(new TextDecoder().decode(yield* handles[0]!.read(0, 10)), "f")
      assert.strictEqual(new TextDecoder().decode(yield* handles[1]!.read(0, 10)), "x\\g")
    })
  )

  it.effect("do not see data appended after the open", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, "old")
      const handle = yield* port.open(p("f"))
      yield* write(port, "f", bytes("+new"), "append")
      assert.strictEqual(disk.text(`${root}\\f`), "old+new")
      assert.strictEqual(new TextDecoder().decode(yield* handle.read(1, 10)), "ld")
    })
  )

  it.effect("survive the removal of the directory of their file", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host({}, { deletes: "pending" })
      disk.put(`${root}\\d\\f`, "old")
      const handle = yield* port.open(p("d/f"))
      assert.deepStrictEqual(yield* make(port).delete("d", { recursive: true }), { deleted: 1, directories: 1 })
      assert.strictEqual(new TextDecoder().decode(yield* handle.read(0, 10)), "old")
    })
  )

  it.effect("can feed a stream that is written over their own file", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, "abc".repeat(100_000))
      const fs = make(port)
      yield* Stream.run(fs.stream("f"), fs.sink("f"))
      assert.strictEqual(disk.text(`${root}\\f`), "abc".repeat(100_000))
    })
  )

  it.effect("keep their file open if there is no room for a copy, and the rename fails with DiskFull", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, new Uint8Array(large))
      const handle = yield* port.open(p("f"))
      disk.put(`${root}\\other`, "other")
      disk.free = 1000
      assert.strictEqual((yield* faultOf(port.rename(p("other"), p("f"), { replace: true })))._tag, "DiskFull")
      assert.strictEqual((yield* handle.read(large - 10, 100)).length, 10)
      assert.deepStrictEqual(disk.names(root), ["f", "other"])
      assert.strictEqual(disk.openDescriptors, 1)
    })
  )
})

describe("a change that fails", () => {
  it.effect("in the middle of a write keeps the old file and leaves nothing else", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, "old")
      disk.free = 2
      for (const mode of ["replace", "append"] as const) {
        assert.strictEqual((yield* faultOf(write(port, "f", bytes("longer"), mode)))._tag, "DiskFull")
        assert.strictEqual(disk.text(`${root}\\f`), "old", mode)
        disk.free = 2
        assert.strictEqual((yield* faultOf(write(port, "g", bytes("longer"), mode)))._tag, "DiskFull")
        disk.free = 2
      }
      assert.deepStrictEqual(disk.names(root), ["f"])
      assert.strictEqual(disk.openDescriptors, 0)
    })
  )

  it.effect("over an empty directory or a link keeps the directory or the link", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\from\\f`, "x")
      disk.put(`${root}\\file`, "y")
      disk.putDirectory(`${root}\\empty`)
      disk.putLink(`${root}\\link`, "from", "dir")
      const failing = (to: string) => {
        disk.before = ({ name, path, to: target }) =>
          name === "rename" && target!.endsWith(to) && !path!.includes(".~") ? "EIO" : undefined
      }
      failing("\\empty")
      assert.strictEqual((yield* faultOf(port.rename(p("from"), p("empty"), { replace: true })))._tag, "IoError")
      failing("\\link")
      assert.strictEqual((yield* faultOf(port.rename(p("file"), p("link"), { replace: true })))._tag, "IoError")
      disk.before = undefined
      assert.deepStrictEqual(disk.names(root), ["empty", "file", "from", "link"])
      assert.strictEqual(yield* port.links!.read(p("link")), "from")
    })
  )

  for (const mode of ["create", "replace", "append"] as const) {
    for (const call of ["lstat", "fstat", "realpath"]) {
      it.effect(`to ${mode} because ${call} fails on the created file leaves no file and no handle`, () =>
        Effect.gen(function* () {
          const { disk, port } = yield* host()
          let isMade = false
          disk.before = ({ name }) => {
            if (isMade && name === call) return "EIO"
            isMade ||= name === "open"
            return undefined
          }
          assert.strictEqual((yield* faultOf(write(port, "f", bytes("x"), mode)))._tag, "IoError")
          assert.deepStrictEqual(disk.names(root), [])
          assert.strictEqual(disk.openDescriptors, 0)
        })
      )
    }
  }

  it.effect("only in its cleanup is reported as a success", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\file`, "x")
      disk.putLink(`${root}\\link`, "nowhere", "dir")
      disk.before = ({ name }) => (name === "unlink" ? "EBUSY" : undefined)
      yield* port.rename(p("file"), p("link"), { replace: true })
      assert.strictEqual(disk.text(`${root}\\link`), "x")
    })
  )

  it.effect("over an empty directory reports its own error, not that of restoring the directory", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\from\\f`, "x")
      disk.putDirectory(`${root}\\empty`)
      disk.before = ({ name }) => (name === "rename" ? "EIO" : name === "mkdir" ? "EPERM" : undefined)
      assert.strictEqual((yield* faultOf(port.rename(p("from"), p("empty"), { replace: true })))._tag, "IoError")
    })
  )

  it.effect("because a rename is not permitted is reported without a retry, as permission and not as busy", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\f`, "x")
      disk.before = ({ name }) => (name === "rename" ? "EPERM" : undefined)
      // The test clock never moves.
      assert.deepInclude(yield* faultOf(port.rename(p("f"), p("g"), { replace: false })), permission)
      assert.deepStrictEqual(disk.names(root), ["f"])
    })
  )

  it.effect("because a directory has appeared at the name keeps the directory", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      const commit = <A, E, R>(publish: Effect.Effect<A, E, R>) =>
        Effect.andThen(
          Effect.sync(() => disk.putDirectory(`${root}\\f`)),
          publish
        )
      assert.strictEqual((yield* faultOf(write(port, "f", bytes("x"), "replace", { commit })))._tag, "NotAFile")
      assert.deepStrictEqual(disk.names(root), ["f"])
    })
  )
})

describe("names of files", () => {
  it.effect(
    "can be renamed to a different case, if they do not have it yet, and keep their case when the file is replaced",
    () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host()
        disk.put(`${root}\\ReadMe.TXT`, "x")
        disk.put(`${root}\\other`, "y")
        yield* write(port, "README.txt", bytes("new"), "replace")
        assert.deepStrictEqual(disk.names(root), ["ReadMe.TXT", "other"])
        yield* port.rename(p("other"), p("readme.txt"), { replace: true })
        assert.deepStrictEqual(disk.names(root), ["ReadMe.TXT"])
        yield* port.rename(p("README.TXT"), p("readme.txt"), { replace: false })
        assert.deepStrictEqual(disk.names(root), ["readme.txt"])
        assert.strictEqual(
          (yield* faultOf(port.rename(p("README.TXT"), p("readme.txt"), { replace: false })))._tag,
          "AlreadyExists"
        )
      })
  )

  it.effect("can be renamed to a different case, even on a system that ignores such a rename", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\a`, "x")
      disk.put(`${root}\\D\\f`, "y")
      const rename = disk.renameSync
      Object.assign(disk, {
        renameSync: (from: string, to: string) => (from.toUpperCase() === to.toUpperCase() ? undefined : rename(from, to))
      })
      yield* port.rename(p("a"), p("A"), { replace: false })
      yield* port.rename(p("D"), p("d"), { replace: false })
      assert.deepStrictEqual(disk.names(root), ["A", "d"])
    })
  )

  it.effect("can be hard links to one file, and one of them can replace the other", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\a`, "x")
      disk.linkSync(`\\\\?\\${root}\\a`, `\\\\?\\${root}\\b`)
      yield* port.rename(p("a"), p("b"), { replace: true })
      assert.deepStrictEqual(disk.names(root), ["b"])
      assert.strictEqual(disk.text(`${root}\\b`), "x")
    })
  )

  it.effect("can be hard links to one file, also on a system that ignores a rename of one over the other", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.put(`${root}\\a`, "x")
      disk.linkSync(`\\\\?\\${root}\\a`, `\\\\?\\${root}\\b`)
      Object.assign(disk, { renameSync: () => undefined })
      yield* port.rename(p("a"), p("b"), { replace: true })
      assert.deepStrictEqual(disk.names(root), ["b"])
    })
  )
})

describe("content that is written", () => {
  it.effect("keeps its line endings", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      const fs = make(port)
      const text = "a\r\nb\nc\r\r\n"
      yield* fs.write("f", text)
      assert.strictEqual(disk.text(`${root}\\f`), text)
      yield* fs.write("f", "d\r\n", { mode: "append" })
      assert.strictEqual(disk.text(`${root}\\f`), `${text}d\r\n`)
      assert.strictEqual(yield* fs.readString("f"), `${text}d\r\n`)
    })
  )

  for (const durability of ["none", "file", "full"] as const) {
    it.effect(`is synced to the disk as durability ${durability} requires`, () =>
      Effect.gen(function* () {
        const { disk, port } = yield* host({ durability })
        yield* write(port, "f", bytes("x"), "replace")
        yield* write(port, "f", bytes("y"), "append")
        yield* write(port, "g", Stream.make(bytes("z")), "append")
        assert.strictEqual(asked(disk, "fsync"), durability === "none" ? 0 : 3)
      })
    )
  }

  it.effect("that comes from an interrupted stream leaves no file and no handle", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      const begun = yield* Deferred.make<void>()
      const slow = Stream.concat(
        Stream.make(bytes("new")),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      )
      const fiber = yield* Effect.forkChild(write(port, "f", slow, "replace"))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(disk.names(root), [])
      assert.strictEqual(disk.openDescriptors, 0)
    })
  )
})

describe("the root", () => {
  it.effect("makes every call fail with Unavailable after it was moved, even if another directory takes its place", () =>
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      disk.renameSync(`\\\\?\\${root}`, "\\\\?\\C:\\work\\away")
      assert.strictEqual((yield* faultOf(port.stat(p("."))))._tag, "Unavailable")
      disk.put(`${root}\\f`, "another")
      assert.strictEqual((yield* faultOf(port.list(p("."))))._tag, "Unavailable")
      assert.strictEqual((yield* faultOf(readAll(port, p("f"))))._tag, "Unavailable")
    })
  )

  it.effect("is created with its parents by createRoot", () =>
    Effect.gen(function* () {
      const { disk } = yield* host()
      const port = yield* portOn(disk, { root: "c:/new/deep/root", createRoot: true })
      yield* write(port, "f", bytes("x"), "create")
      assert.strictEqual(disk.text("C:\\new\\deep\\root\\f"), "x")
    })
  )

  it.effect("may be a junction, which is resolved when it is opened", () =>
    Effect.gen(function* () {
      const { disk } = yield* host()
      disk.putLink("C:\\work\\alias", root, "junction")
      disk.put(`${root}\\d\\f`, "x")
      disk.putLink(`${root}\\l`, `${root}\\d`, "junction")
      const port = yield* portOn(disk, { root: "C:\\work\\alias" })
      assert.strictEqual(yield* make(port).readString("l/f"), "x")
      disk.drop("C:\\work\\alias")
      assert.strictEqual(yield* readAll(port, p("d/f")), "x")
    })
  )

  it.effect("may be on a network share", () =>
    Effect.gen(function* () {
      const { disk } = yield* host({}, { volumes: ["C:", "\\\\server\\share"] })
      const port = yield* portOn(disk, { root: "\\\\server\\share\\work", createRoot: true })
      yield* write(port, "f", bytes("x"), "create")
      assert.strictEqual(disk.text("\\\\server\\share\\work\\f"), "x")
    })
  )

  for (const top of ["C:\\", "\\\\?\\C:\\", "\\\\server\\share", "\\\\?\\UNC\\server\\share\\"]) {
    it.effect(`may be the root of a volume, ${top}`, () =>
      Effect.gen(function* () {
        const { disk } = yield* host({}, { volumes: ["C:", "\\\\server\\share"] })
        const fs = make(yield* portOn(disk, { root: top }))
        yield* fs.write("new/f", "x")
        yield* fs.move("new", "New")
        assert.strictEqual(disk.text(`${top.includes("C:") ? "C:" : "\\\\server\\share"}\\New\\f`), "x")
        assert.deepStrictEqual(yield* fs.delete("new", { recursive: true }), { deleted: 1, directories: 1 })
      })
    )
  }

  for (const options of [{}, { requireConfinement: "race-free" as const }, { createRoot: true }]) {
    it.effect(`fails with Unsupported on this system: ${JSON.stringify(options)}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(WindowsHost.layer({ root: "C:\\work", ...options }))))
        assert.deepInclude(error, { _tag: "Unsupported", feature: `WindowsHost on ${process.platform}` })
      })
    )
  }
})
