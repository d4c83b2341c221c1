import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Port from "../../../src/backends/container/shell/port.ts"
import { makeSession } from "../../../src/backends/container/shell/session.ts"
import type { Fault } from "../../../src/model/FsError.ts"
import { type Backend, type Handle, keyOf } from "../../../src/port/Backend.ts"
import * as TemporaryNames from "../../../src/runtime/temporaryNames.ts"
import * as Names from "../../runtime/names.ts"
import { bytes, p } from "../posixHost.ts"
import { directory, missing, shared, shells, start } from "./shells.ts"
import { performed } from "../../performed.ts"

const isRoot = process.getuid?.() === 0
if (!isRoot && process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error("some of these tests need root; run them as root")

const put = (port: Backend, path: string, content: Uint8Array, mode: "create" | "replace" | "append" = "replace") =>
  port.write<never, never>(p(path), content, mode)

const faultOf = <A, R>(call: Effect.Effect<A, Fault, R>): Effect.Effect<Record<string, unknown>, A, R> =>
  Effect.map(Effect.flip(call), ({ cause: _, ...fault }) => fault)

const whole = (handle: Handle) =>
  Effect.gen(function* () {
    const parts: Array<Uint8Array> = []
    for (let at = 0; at < handle.stat.sizeBytes;) {
      const part = yield* handle.read(at, handle.stat.sizeBytes)
      parts.push(part)
      at += part.length
    }
    return Buffer.concat(parts)
  })

/** Counts the processes that hold files of the directory open for us. Other tests hold files open at the same time. */
const holders = (root: string): number =>
  Fs.readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        Fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("sleep\x002147483647") &&
        Fs.readlinkSync(`/proc/${pid}/fd/4`).startsWith(`${root}/`)
      )
    } catch {
      return false
    }
  }).length

const disk = (options: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.flatMap(directory, (at) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", at])
        return at
      }),
      () => Effect.sync(() => execFileSync("umount", ["-l", at]))
    )
  )

for (const kind of shells) {
  const lacks = missing(kind)
  if (lacks !== undefined) {
    describe.skip(lacks)
    continue
  }
  describe(`the port by ${kind.name}`, () => {
    const session = shared(kind)
    const portAt = (root: string) => Port.make({ session, root, name: "Container" })
    const live = (
      name: string,
      body: (port: Backend, root: string) => Effect.fn.Return<void, unknown, Scope.Scope>,
      where = directory
    ) =>
      it.live(name, () =>
        Effect.gen(function* () {
          const root = yield* where
          yield* Effect.gen(body.bind(undefined, yield* portAt(root), root))
        })
      )

    live("fails without an existing directory as root", function* (_, root) {
      Fs.writeFileSync(join(root, "f"), "")
      assert.deepStrictEqual(yield* faultOf(portAt(join(root, "none"))), { _tag: "NotFound" })
      assert.deepStrictEqual(yield* faultOf(portAt(join(root, "f"))), { _tag: "NotADirectory" })
    })

    live("fails with Unavailable while its root is missing or replaced by another directory", function* (port, root) {
      yield* put(port, "f", bytes("mine"))
      Fs.renameSync(root, `${root}.away`)
      assert.strictEqual((yield* faultOf(port.stat(p("f"))))["_tag"], "Unavailable")
      Fs.mkdirSync(root)
      Fs.writeFileSync(join(root, "f"), "another's")
      assert.strictEqual((yield* faultOf(port.stat(p("f"))))["_tag"], "Unavailable")
      assert.strictEqual((yield* faultOf(put(port, "f", bytes("x"))))["_tag"], "Unavailable")
      assert.strictEqual((yield* faultOf(port.remove(p("f"))))["_tag"], "Unavailable")
      assert.strictEqual(Fs.readFileSync(join(root, "f"), "utf8"), "another's")
      Fs.rmSync(root, { recursive: true })
      Fs.renameSync(`${root}.away`, root)
      assert.strictEqual((yield* port.stat(p("f")))?.sizeBytes, 4)
    })

    live("continues in the same root with another shell after its shell was killed", function* (_, root) {
      const own = yield* makeSession(start(kind, { functions: "die() { kill -9 $$; }" }))
      const port = yield* Port.make({ session: own, root, name: "Container" })
      yield* put(port, "f", bytes("mine"))
      yield* Effect.flip(own.request({ call: "die", arguments: [], repeats: false }))
      assert.strictEqual((yield* port.stat(p("f")))?.sizeBytes, 4)
    })

    live("lists, reads, moves and removes names with characters that are special to shells", function* (port, root) {
      const names = [
        "-rf",
        "--help",
        "a b",
        " ",
        "'",
        '"',
        "$(touch x)",
        "`x`",
        "*",
        "?",
        "[a]",
        "\\",
        "\\n",
        "é",
        "😀",
        "~",
        "#",
        "a;b",
        "-",
        "a=b",
        "%s",
        "&"
      ]
      for (const name of names) {
        yield* put(port, name, bytes(name))
        yield* port.makeDirectory(p(`${name}.d`))
        yield* put(port, `${name}.d/${name}`, bytes("x"))
        yield* port.rename(p(`${name}.d/${name}`), p(`${name}.d/${name}2`), { replace: false })
        assert.deepStrictEqual(
          (yield* port.list(p(`${name}.d`))).map((child) => child.name),
          [`${name}2`]
        )
        assert.strictEqual(Fs.readFileSync(join(root, name), "utf8"), name)
        const { bytes: read } = (yield* performed(port, { _tag: "Read", path: p(name), maxBytes: 100 }))!
        assert.strictEqual(Buffer.from(read).toString(), name)
      }
      assert.sameMembers(
        Fs.readdirSync(root),
        names.flatMap((name) => [name, `${name}.d`])
      )
      for (const name of names) {
        yield* port.remove(p(name))
        assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: p(`${name}.d`) }), {
          deleted: 1,
          directories: 1
        })
      }
      assert.deepStrictEqual(Fs.readdirSync(root), [])
    })

    live("distinguishes names with control characters and bytes that are not UTF-8", function* (port, root) {
      const odd = ["a\nb", "\n", "x//\n81a4 1 1 .", "81a4 4 5 .\u0001", "\r", "\t", "a\x7f"].map((name) =>
        Buffer.from(name.replaceAll("/", "\u0002"))
      )
      odd.push(Buffer.from([0xff]), Buffer.from([0x61, 0xc3]), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from([0x81, 0x88]))
      for (const name of odd) Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), name]), name)
      Fs.writeFileSync(join(root, "plain"), "plain")
      const children = yield* port.list(p("."))
      assert.strictEqual(children.length, odd.length + 1)
      assert.sameMembers(
        children.filter(({ addressable }) => !addressable).map((child) => keyOf(child)),
        odd.map((name) => `\u0000${name.toString("hex")}`)
      )
      for (const child of children) {
        const read = yield* performed(port, { _tag: "Read", path: p(keyOf(child)), maxBytes: 100 })
        const expected = child.addressable ? "plain" : Buffer.from(keyOf(child).slice(1), "hex").toString("latin1")
        assert.strictEqual(Buffer.from(read!.bytes).toString("latin1"), expected)
        yield* port.remove(p(keyOf(child)))
      }
      assert.deepStrictEqual(Fs.readdirSync(root), [])
    })

    live("fails with PathTooLong for long names and paths, and with InvalidPath for a NUL", function* (port) {
      assert.strictEqual((yield* put(port, "é".repeat(127), bytes("x"))).sizeBytes, 1)
      assert.strictEqual((yield* faultOf(port.stat(p("é".repeat(128)))))["_tag"], "PathTooLong")
      assert.strictEqual((yield* faultOf(port.makeDirectory(p("x".repeat(256)))))["_tag"], "PathTooLong")
      assert.strictEqual((yield* faultOf(port.stat(p("d/".repeat(2100) + "f"))))["_tag"], "PathTooLong")
      assert.strictEqual((yield* faultOf(port.stat(p("a\u0000b"))))["_tag"], "InvalidPath")
    })

    live("keeps a large file as it was opened until the scope ends", function* (port, root) {
      const content = randomBytes(2_500_000)
      Fs.writeFileSync(join(root, "f"), content)
      const before = holders(root)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* port.open(p("f"))
          assert.strictEqual(handle.stat.sizeBytes, content.length)
          assert.isTrue(Buffer.from(yield* handle.read(1_048_575, 10)).equals(content.subarray(1_048_575, 1_048_585)))
          yield* put(port, "f", bytes("another"))
          Fs.rmSync(join(root, "f"))
          assert.isTrue((yield* whole(handle)).equals(content))
          assert.strictEqual((yield* handle.read(content.length, 10)).length, 0)
          assert.strictEqual(holders(root), before + 1)
        })
      )
      assert.strictEqual(holders(root), before)
    })

    live("reads a growing file only up to its size at the open", function* (port, root) {
      for (const size of [10, 1_500_000]) {
        const content = randomBytes(size)
        Fs.writeFileSync(join(root, "f"), content)
        const handle = yield* port.open(p("f"))
        Fs.appendFileSync(join(root, "f"), "more")
        assert.isTrue((yield* whole(handle)).equals(content))
      }
    })

    live("declines to read a file that is larger than the given limit", function* (port, root) {
      Fs.writeFileSync(join(root, "f"), "12345")
      assert.isUndefined(yield* performed(port, { _tag: "Read", path: p("f"), maxBytes: 4 }))
      assert.strictEqual((yield* performed(port, { _tag: "Read", path: p("f"), maxBytes: 5 }))?.bytes.length, 5)
      Fs.writeFileSync(join(root, "f"), randomBytes(1024 * 1024 + 1))
      assert.isUndefined(yield* performed(port, { _tag: "Read", path: p("f"), maxBytes: 10_000_000 }))
    })

    live("writes megabytes, from bytes and from a stream, in each mode", function* (port, root) {
      const content = randomBytes(3_000_001)
      const pieces = Stream.make(content.subarray(0, 10), content.subarray(10, 2_000_000), content.subarray(2_000_000))
      for (const bytes of [content, pieces]) {
        for (const mode of ["create", "replace", "append"] as const) {
          const stat = yield* port.write(p(mode), bytes, mode)
          assert.strictEqual(stat.sizeBytes, content.length)
          assert.isTrue(Fs.readFileSync(join(root, mode)).equals(content), mode)
        }
        assert.deepStrictEqual(yield* faultOf(port.write(p("create"), bytes, "create")), { _tag: "AlreadyExists" })
        assert.strictEqual((yield* port.write(p("append"), bytes, "append")).sizeBytes, 2 * content.length)
        assert.isTrue(Fs.readFileSync(join(root, "append")).equals(Buffer.concat([content, content])))
        assert.sameMembers(Fs.readdirSync(root), ["create", "replace", "append"])
        for (const name of Fs.readdirSync(root)) Fs.rmSync(join(root, name))
      }
    })

    live("gives new files the mode 0644 and keeps the permission bits of replaced files", function* (port, root) {
      const modeOf = (name: string) => (Fs.statSync(join(root, name)).mode & 0o7777).toString(8)
      assert.strictEqual((yield* put(port, "new", bytes("x"))).mode, 0o644)
      assert.strictEqual(modeOf("new"), "644")
      for (const mode of [0o755, 0o600, 0o444, 0o640, 0o777, 0o400]) {
        Fs.chmodSync(join(root, "new"), mode)
        assert.strictEqual((yield* put(port, "new", bytes("y"))).mode, mode)
        assert.strictEqual(modeOf("new"), mode.toString(8))
        yield* port.write(p("new"), Stream.make(bytes("z")), "replace")
        assert.strictEqual(modeOf("new"), mode.toString(8))
      }
    })

    it.live.skipIf(!isRoot)("keeps the owner of replaced files (skipped without root)", () =>
      Effect.gen(function* () {
        const root = yield* directory
        const port = yield* portAt(root)
        Fs.writeFileSync(join(root, "f"), "x")
        Fs.chownSync(join(root, "f"), 65534, 65533)
        Fs.chmodSync(join(root, "f"), 0o750)
        assert.strictEqual((yield* put(port, "f", bytes("y"))).mode, 0o750)
        const { gid, mode, uid } = Fs.statSync(join(root, "f"))
        assert.deepStrictEqual([uid, gid, mode & 0o777], [65534, 65533, 0o750])
      })
    )

    it.live.skipIf(!isRoot)(
      "fails with DiskFull, keeps the old file and truncates an incomplete append (skipped without root)",
      () =>
        Effect.gen(function* () {
          const root = yield* disk("size=1m")
          const port = yield* portAt(root)
          const old = randomBytes(600_000)
          yield* put(port, "f", old, "create")
          const more = randomBytes(600_000)
          const free = Fs.statfsSync(root).bfree
          for (const content of [more, Stream.make(more.subarray(0, 300_000), more.subarray(300_000))]) {
            for (const [path, mode] of [
              ["f", "replace"],
              ["g", "create"],
              ["f", "append"],
              ["g", "append"]
            ] as const) {
              assert.deepStrictEqual(
                yield* faultOf(port.write(p(path), content, mode)),
                { _tag: "DiskFull" },
                `${path} ${mode}`
              )
              assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
              assert.isTrue(Fs.readFileSync(join(root, "f")).equals(old))
            }
          }
          assert.strictEqual(Fs.statfsSync(root).bfree, free)
        })
    )

    it.live.skipIf(!isRoot)("fails with EXDEV for a rename between two disks (skipped without root)", () =>
      Effect.gen(function* () {
        const root = yield* directory
        const at = join(root, "disk")
        Fs.mkdirSync(at)
        yield* Effect.acquireRelease(
          Effect.sync(() => execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", at])),
          () => Effect.sync(() => execFileSync("umount", ["-l", at]))
        )
        const port = yield* portAt(root)
        yield* put(port, "f", bytes("x"))
        yield* put(port, "disk/g", bytes("y"))
        for (const [from, to, replace] of [
          ["f", "disk/f", false],
          ["f", "disk/g", true],
          ["disk/g", "g", false]
        ] as const) {
          const fault = yield* faultOf(port.rename(p(from), p(to), { replace }))
          assert.deepStrictEqual([fault["_tag"], fault["code"]], ["IoError", "EXDEV"])
        }
        assert.strictEqual(Fs.readFileSync(join(at, "g"), "utf8"), "y")
        assert.strictEqual((yield* faultOf(port.remove(p("disk"))))["_tag"], "AccessDenied")
      })
    )

    live("renames between two names of one file, and to the same name", function* (port, root) {
      yield* put(port, "a", bytes("x"))
      Fs.linkSync(join(root, "a"), join(root, "b"))
      yield* port.rename(p("a"), p("b"), { replace: true })
      assert.deepStrictEqual(Fs.readdirSync(root), ["b"])
      yield* port.rename(p("b"), p("b"), { replace: true })
      assert.deepStrictEqual(yield* faultOf(port.rename(p("b"), p("b"), { replace: false })), { _tag: "AlreadyExists" })
      assert.strictEqual(Fs.readFileSync(join(root, "b"), "utf8"), "x")
    })

    live("replaces links of every kind, and directories that hold only leftovers of killed writers", function* (port, root) {
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "d/x"), "x")
      for (const [name, target] of [
        ["todir", "d"],
        ["tofile", "d/x"],
        ["nowhere", "none"]
      ] as const) {
        Fs.symlinkSync(target, join(root, name))
        yield* put(port, "f", bytes(name))
        yield* port.rename(p("f"), p(name), { replace: true })
        assert.strictEqual(Fs.readFileSync(join(root, name), "utf8"), name)
        assert.isTrue(Fs.lstatSync(join(root, name)).isFile())
      }
      Fs.mkdirSync(join(root, "e"))
      const left = join(root, "e", Names.signed(Names.dead()))
      Fs.writeFileSync(left, "left")
      yield* port.rename(p("d"), p("e"), { replace: true })
      assert.deepStrictEqual(Fs.readdirSync(join(root, "e")), ["x"])
    })

    live("removes leftovers of killed writers on a listing, but no file that may be in use", function* (port, root) {
      const dead = Names.dead()
      const own = TemporaryNames.make()
      const kept = [own, Names.forged(dead), Names.signed(Names.elsewhere), ".~fsa-0.tmp"]
      for (const name of [...kept, Names.signed(dead), Names.signed(dead, "kind")]) {
        Fs.writeFileSync(join(root, name), "left")
        Fs.utimesSync(join(root, name), 1, 1)
      }
      yield* put(port, "f", bytes("x"))
      yield* port.list(p("."))
      assert.sameMembers(Fs.readdirSync(root), ["f", ...kept])
      TemporaryNames.forget(own)
    })

    live("leaves no temporary file when a stream fails after its shell was killed", function* (_, root) {
      const own = yield* makeSession(start(kind, { functions: "die() { kill -9 $$; }" }))
      const port = yield* Port.make({ session: own, root, name: "Container" })
      const deadly = Stream.concat(
        Stream.make(randomBytes(1_500_000)),
        Stream.drain(Stream.fromEffect(Effect.ignore(own.request({ call: "die", arguments: [], repeats: false }))))
      )
      // The staged content outlives the shell, so the write continues with another one.
      assert.strictEqual((yield* port.write(p("f"), deadly, "create")).sizeBytes, 1_500_000)
      const broken = Stream.concat(deadly, Stream.fail({ _tag: "Cable" } as const))
      yield* Effect.flip(port.write(p("g"), broken, "create"))
      assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
    })

    live("refuses to publish staged content that another program changed", function* (port, root) {
      const meddling = Stream.concat(
        Stream.make(randomBytes(1_500_000)),
        Stream.drain(
          Stream.fromEffect(
            Effect.sync(() => {
              for (const name of Fs.readdirSync(root)) Fs.appendFileSync(join(root, name), "x")
            })
          )
        )
      )
      assert.strictEqual((yield* faultOf(port.write(p("f"), meddling, "create")))["_tag"], "IoError")
      assert.deepStrictEqual(Fs.readdirSync(root), [])
    })

    live("sets times before and after 1970, also of links, to the millisecond or not at all", function* (port, root) {
      yield* put(port, "f", bytes("x"))
      Fs.symlinkSync("f", join(root, "l"))
      const set = (path: string, millis: number) => port.attributes!.set(p(path), { modifiedAt: DateTime.makeUnsafe(millis) })
      const told = (path: string) =>
        Effect.map(port.stat(p(path)), (stat) => stat?.modifiedAt && DateTime.toEpochMillis(stat.modifiedAt))
      yield* set("l", 5000)
      for (const millis of [0, 1_600_000_000_000, -5000, 4_102_444_800_000]) {
        yield* set("f", millis)
        assert.strictEqual(yield* told("f"), millis)
        assert.strictEqual(Fs.statSync(join(root, "f")).mtimeMs, millis)
      }
      assert.strictEqual(yield* told("l"), 5000)
      if (kind.name === "busybox") {
        assert.strictEqual((yield* faultOf(set("f", 1500)))["_tag"], "Unsupported")
        assert.strictEqual(yield* told("f"), 4_102_444_800_000)
        return
      }
      for (const millis of [1, 999, 1_600_000_000_123, -1, -1500, -999]) {
        yield* set("f", millis)
        assert.strictEqual(yield* told("f"), millis)
      }
    })

    live("keeps the special bits of a directory, and refuses a mode for a link", function* (port, root) {
      Fs.mkdirSync(join(root, "d"))
      Fs.chmodSync(join(root, "d"), 0o3777)
      yield* port.attributes!.set(p("d"), { mode: 0o750 })
      assert.strictEqual((Fs.statSync(join(root, "d")).mode & 0o7777).toString(8), "3750")
      yield* port.attributes!.set(p("."), { mode: 0o711 })
      assert.strictEqual(Fs.statSync(root).mode & 0o777, 0o711)
      Fs.symlinkSync("d", join(root, "l"))
      const fault = yield* faultOf(port.attributes!.set(p("l"), { mode: 0o700 }))
      assert.deepStrictEqual([fault["_tag"], fault["argument"]], ["InvalidArgument", "mode"])
    })

    live("reads the text of links exactly", function* (port, root) {
      for (const target of ["a b", "-x", "../..//up", "é\n", "'"]) {
        yield* port.links!.make(p("l"), target)
        assert.strictEqual(Fs.readlinkSync(join(root, "l")), target)
        assert.strictEqual(yield* port.links!.read(p("l")), target)
        yield* port.remove(p("l"))
      }
      Fs.symlinkSync(Buffer.from([0xff]), join(root, "l"))
      assert.strictEqual((yield* faultOf(port.links!.read(p("l"))))["_tag"], "InvalidPath")
    })

    live("counts the entries of a removed tree, and follows no link out of it", function* (port, root) {
      Fs.mkdirSync(join(root, "t/a/b"), { recursive: true })
      Fs.mkdirSync(join(root, "out"))
      Fs.writeFileSync(join(root, "out/kept"), "x")
      for (const file of ["t/1", "t/a/2\n", "t/a/b/-3", "t/a/.~fsa-x.tmp"]) Fs.writeFileSync(join(root, file), "x")
      Fs.symlinkSync("../out", join(root, "t/l"))
      assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: p("t") }), { deleted: 5, directories: 3 })
      assert.deepStrictEqual(Fs.readdirSync(root), ["out"])
      assert.deepStrictEqual(Fs.readdirSync(join(root, "out")), ["kept"])
    })
  })

  describe.skipIf(!isRoot)(`the port by ${kind.name} for an unprivileged user (skipped without root)`, () => {
    const user = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    const live = (name: string, body: (port: Backend, root: string) => Effect.fn.Return<void, unknown, Scope.Scope>) =>
      it.live(name, () =>
        Effect.gen(function* () {
          const root = yield* directory
          Fs.chownSync(root, 65534, 65534)
          const scope = yield* Scope.make()
          const session = yield* Scope.provide(makeSession(start(kind, { prefix: user })), scope)
          yield* Effect.ensuring(
            Effect.gen(body.bind(undefined, yield* Port.make({ session, root, name: "Container" }), root)),
            Scope.close(scope, Exit.void)
          )
        })
      )
    const permission = { _tag: "AccessDenied", why: "permission" }

    live("fails with AccessDenied for an unreadable file, which can still be replaced", function* (port, root) {
      yield* put(port, "f", bytes("x"))
      Fs.chmodSync(join(root, "f"), 0o000)
      assert.deepStrictEqual(yield* faultOf(performed(port, { _tag: "Read", path: p("f"), maxBytes: 10 })), permission)
      assert.deepStrictEqual(yield* faultOf(port.open(p("f"))), permission)
      assert.deepStrictEqual(yield* faultOf(put(port, "f", bytes("y"), "append")), permission)
      assert.strictEqual((yield* put(port, "f", bytes("new"))).mode, 0)
      assert.strictEqual(Fs.readFileSync(join(root, "f"), "utf8"), "new")
    })

    live("fails with AccessDenied for a directory that is not searchable, readable or writable", function* (port, root) {
      yield* port.makeDirectory(p("d"))
      yield* put(port, "d/f", bytes("x"))
      Fs.chmodSync(join(root, "d"), 0o600)
      assert.deepStrictEqual(yield* faultOf(port.stat(p("d/f"))), permission)
      assert.deepStrictEqual(yield* faultOf(port.stat(p("d/none/x"))), permission)
      assert.deepStrictEqual(yield* faultOf(port.list(p("d"))), permission)
      Fs.chmodSync(join(root, "d"), 0o300)
      assert.deepStrictEqual(yield* faultOf(port.list(p("d"))), permission)
      assert.strictEqual((yield* port.stat(p("d/f")))?.sizeBytes, 1)
      Fs.chmodSync(join(root, "d"), 0o500)
      for (const call of [
        put(port, "d/new", bytes("x"), "create"),
        put(port, "d/new", bytes("x"), "append"),
        put(port, "d/f", bytes("x")),
        port.makeDirectory(p("d/e")),
        port.remove(p("d/f")),
        port.rename(p("d/f"), p("f"), { replace: false }),
        port.links!.make(p("d/l"), "x")
      ]) {
        assert.deepStrictEqual(yield* faultOf(call as Effect.Effect<unknown, Fault>), permission)
      }
      const fault = yield* faultOf(performed(port, { _tag: "RemoveTree", path: p("d") }))
      assert.deepStrictEqual(fault, { ...permission, path: "d/f" })
      assert.strictEqual(Fs.readFileSync(join(root, "d/f"), "utf8"), "x")
    })

    live("fails with AccessDenied for attributes of another user's file", function* (port, root) {
      Fs.writeFileSync(join(root, "f"), "x")
      assert.deepStrictEqual(yield* faultOf(port.attributes!.set(p("f"), { mode: 0o777 })), permission)
      const modifiedAt = DateTime.makeUnsafe(5000)
      assert.deepStrictEqual(yield* faultOf(port.attributes!.set(p("f"), { modifiedAt })), permission)
    })
  })
}
