import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { bytes, directory, faultOf, host, openDescriptors, p, readAll, tree, write } from "./posixHost.ts"
import { performed } from "../performed.ts"

const canMount = (() => {
  const at = Fs.mkdtempSync("/tmp/fs-algebra-mount-")
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", at], { stdio: "ignore" })
    execFileSync("umount", [at])
    return true
  } catch {
    return false
  } finally {
    Fs.rmdirSync(at)
  }
})()

const disk = (options: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.flatMap(directory, (at) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", at])
        return at
      }),
      () => Effect.sync(() => execFileSync("umount", [at]))
    )
  )

describe.skipIf(!canMount)("a disk of one megabyte (skipped where mounting is not allowed)", () => {
  const size = 600_000
  const text = (letter: string) => letter.repeat(size)

  for (const [what, content] of [
    ["bytes", bytes(text("b"))],
    ["a stream", Stream.make(bytes(text("b").slice(0, size / 2)), bytes(text("b").slice(size / 2)))]
  ] as const) {
    it.effect(`makes a replacement by ${what} fail with DiskFull when it is full, and keeps the old file`, () =>
      Effect.gen(function* () {
        const root = yield* disk("size=1m")
        const port = yield* PosixHost.make({ root })
        yield* write(port, "f", bytes(text("a")), "create")
        const free = Fs.statfsSync(root).bfree
        assert.deepStrictEqual(yield* faultOf(write(port, "f", content, "replace")), { _tag: "DiskFull" })
        assert.deepStrictEqual(yield* faultOf(write(port, "g", content, "create")), { _tag: "DiskFull" })
        assert.deepStrictEqual(tree(root), { f: text("a") })
        assert.strictEqual(Fs.statfsSync(root).bfree, free)
      })
    )

    it.effect(`makes an append of ${what} fail with DiskFull when it is full, and the file gets its old size again`, () =>
      Effect.gen(function* () {
        const root = yield* disk("size=1m")
        const port = yield* PosixHost.make({ root })
        yield* write(port, "f", bytes(text("a")), "append")
        assert.deepStrictEqual(yield* faultOf(write(port, "f", content, "append")), { _tag: "DiskFull" })
        assert.deepStrictEqual(yield* faultOf(write(port, "new", content, "append")), { _tag: "DiskFull" })
        assert.deepStrictEqual(tree(root), { f: text("a") })
      })
    )
  }

  it.effect("without free inodes refuses new entries and replacements until an entry is removed", () =>
    Effect.gen(function* () {
      const root = yield* disk("size=1m,nr_inodes=4")
      const port = yield* PosixHost.make({ root })
      yield* write(port, "a", bytes("1"), "create")
      yield* port.makeDirectory(p("d"))
      yield* write(port, "b", bytes("2"), "append")
      assert.strictEqual((yield* faultOf(write(port, "c", bytes("3"), "create")))._tag, "DiskFull")
      assert.strictEqual((yield* faultOf(write(port, "a", bytes("3"), "replace")))._tag, "DiskFull")
      assert.strictEqual((yield* faultOf(port.makeDirectory(p("e"))))._tag, "DiskFull")
      assert.strictEqual((yield* faultOf(port.links!.make(p("l"), "a")))._tag, "DiskFull")
      assert.deepStrictEqual(tree(root), { a: "1", b: "2", d: "directory" })
      yield* port.remove(p("d"))
      yield* write(port, "a", bytes("3"), "replace")
      assert.strictEqual(yield* readAll(port, p("a")), "3")
    })
  )

  it.effect("that is mounted read-only can be read, and makes every change fail with AccessDenied (readOnly)", () =>
    Effect.gen(function* () {
      const root = yield* disk("size=1m")
      const port = yield* PosixHost.make({ root })
      yield* write(port, "f", bytes("1"), "create")
      yield* port.makeDirectory(p("d"))
      execFileSync("mount", ["-o", "remount,ro", root])
      const denied = { _tag: "AccessDenied", why: "readOnly" }
      for (const content of [bytes("2"), Stream.make(bytes("2"))]) {
        for (const mode of ["replace", "append"] as const) {
          assert.deepStrictEqual(yield* faultOf(write(port, "f", content, mode)), denied)
          assert.deepStrictEqual(yield* faultOf(write(port, "new", content, mode)), denied)
        }
        assert.deepStrictEqual(yield* faultOf(write(port, "new", content, "create")), denied)
      }
      assert.deepStrictEqual(yield* faultOf(port.makeDirectory(p("e"))), denied)
      assert.deepStrictEqual(yield* faultOf(port.makeDirectory(p("d"))), { _tag: "AlreadyExists" })
      assert.deepStrictEqual(yield* faultOf(port.remove(p("f"))), denied)
      assert.deepStrictEqual(yield* faultOf(port.remove(p("d"))), denied)
      assert.deepStrictEqual(yield* faultOf(port.rename(p("f"), p("g"), { replace: true })), denied)
      assert.deepStrictEqual(yield* faultOf(port.links!.make(p("l"), "f")), denied)
      assert.deepStrictEqual(yield* faultOf(port.attributes!.set(p("f"), { mode: 0o600 })), denied)
      assert.deepInclude(yield* faultOf(performed(port, { _tag: "RemoveTree", path: p("d") })), denied)
      assert.strictEqual(yield* readAll(port, p("f")), "1")
      assert.deepStrictEqual(tree(root), { d: "directory", f: "1" })
    })
  )

  it.effect("that is mounted inside the root is part of the tree, and a rename onto it fails with EXDEV", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "m"))
      Fs.writeFileSync(join(root, "f"), "1")
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", join(root, "m")])
      // The backend keeps the directories of the disk open for up to a second after their last use.
      yield* Effect.addFinalizer(() => Effect.sync(() => execFileSync("umount", ["--lazy", join(root, "m")])))
      yield* write(port, "m/g", bytes("2"), "create")
      assert.strictEqual(yield* readAll(port, p("m/g")), "2")
      for (const replace of [true, false]) {
        assert.deepInclude(yield* faultOf(port.rename(p("f"), p("m/f"), { replace })), { _tag: "IoError", code: "EXDEV" })
      }
      assert.deepStrictEqual(tree(root), { f: "1", m: "directory", "m/g": "2" })
    })
  )
})

describe.skipIf(!canMount)("a mount point in the root (skipped where mounting is not allowed)", () => {
  it.live("is kept by a removal and a replacement, which fail with AccessDenied (busy)", () =>
    Effect.gen(function* () {
      const { outside, port, root } = yield* host()
      Fs.writeFileSync(join(outside, "bound"), "bound")
      Fs.writeFileSync(join(root, "f"), "f")
      execFileSync("mount", ["--bind", join(outside, "bound"), join(root, "f")])
      yield* Effect.addFinalizer(() => Effect.sync(() => execFileSync("umount", [join(root, "f")])))
      const busy = { _tag: "AccessDenied", why: "busy" }
      assert.deepStrictEqual(yield* faultOf(write(port, "f", bytes("x"), "replace")), busy)
      assert.deepStrictEqual(yield* faultOf(port.remove(p("f"))), busy)
      assert.deepStrictEqual(tree(root), { f: "bound" })
      yield* write(port, "f", bytes("!"), "append")
      assert.strictEqual(Fs.readFileSync(join(outside, "bound"), "utf8"), "bound!")
    })
  )
})

describe("an entry that is not a file, directory or link", () => {
  const isRoot = process.getuid?.() === 0
  const others = Effect.flatMap(host(), (made) =>
    Effect.gen(function* () {
      const { root } = made
      execFileSync("mkfifo", [join(root, "fifo")])
      const server = createServer()
      yield* Effect.promise(() => new Promise<void>((resolve) => server.listen(join(root, "socket"), () => resolve())))
      yield* Effect.addFinalizer(() => Effect.promise(() => new Promise<void>((resolve) => server.close(() => resolve()))))
      const names = ["fifo", "socket"]
      if (isRoot) {
        // The numbers of /dev/zero, which a reader could read without end.
        execFileSync("mknod", [join(root, "device"), "c", "1", "5"])
        names.push("device")
      }
      return { ...made, names }
    })
  )

  it.live("is refused immediately by reads and writes, which neither open it nor wait for it", () =>
    Effect.gen(function* () {
      const { names, port, root } = yield* others
      const before = openDescriptors()
      for (const name of names) {
        const refused = { _tag: "NotAFile" }
        assert.deepInclude((yield* port.stat(p(name)))!, { kind: "other", isFile: false, isDirectory: false, sizeBytes: 0 })
        assert.deepStrictEqual(yield* faultOf(Effect.scoped(port.open(p(name)))), refused)
        assert.deepStrictEqual(yield* faultOf(performed(port, { _tag: "Read", path: p(name), maxBytes: 1000 })), refused)
        for (const content of [bytes("x"), Stream.make(bytes("x"))]) {
          assert.deepStrictEqual(yield* faultOf(write(port, name, content, "replace")), refused)
          assert.deepStrictEqual(yield* faultOf(write(port, name, content, "append")), refused)
          assert.deepStrictEqual(yield* faultOf(write(port, name, content, "create")), { _tag: "AlreadyExists" })
        }
        assert.deepStrictEqual(yield* faultOf(port.list(p(name))), { _tag: "NotADirectory" })
        assert.deepStrictEqual(yield* faultOf(port.list(p(`${name}/x`))), { _tag: "NotFound" })
      }
      assert.deepStrictEqual(Fs.readdirSync(root).sort(), [...names].sort())
      assert.strictEqual(openDescriptors(), before)
    })
  )

  it.live("is listed, moved, replaced by a move, and removed", () =>
    Effect.gen(function* () {
      const { names, port, root } = yield* others
      assert.deepStrictEqual(
        (yield* port.list(p("."))).map(({ kind, name }) => `${name} ${kind}`).sort(),
        names.map((name) => `${name} other`).sort()
      )
      yield* port.makeDirectory(p("d"))
      for (const name of names) yield* port.rename(p(name), p(`d/${name}`), { replace: false })
      yield* write(port, "f", bytes("f"), "create")
      yield* port.rename(p("f"), p("d/fifo"), { replace: true })
      assert.strictEqual(yield* readAll(port, p("d/fifo")), "f")
      assert.deepStrictEqual(yield* performed(port, { _tag: "RemoveTree", path: p("d") }), {
        deleted: names.length,
        directories: 1
      })
      assert.deepStrictEqual(tree(root), {})
    })
  )

  it.live("that replaces a file makes an append fail, and an open reader continues to read the file", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "old")
      const handle = yield* port.open(p("f"))
      Fs.unlinkSync(join(root, "f"))
      execFileSync("mkfifo", [join(root, "f")])
      assert.deepStrictEqual(yield* handle.read(0, 3), bytes("old"))
      assert.strictEqual((yield* faultOf(write(port, "f", bytes("x"), "append")))._tag, "NotAFile")
    })
  )
})

describe.skipIf(process.getuid?.() !== 0)("a user without permission (needs root to become another user)", () => {
  const asNobody = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        process.setegid!(65534)
        process.seteuid!(65534)
      }),
      () => effect,
      () =>
        Effect.sync(() => {
          process.seteuid!(0)
          process.setegid!(0)
        })
    )

  // The thread pool may not follow a change of user, so the test makes only synchronous calls.
  it.effect("gets AccessDenied (permission) from reads and changes of another user's entries, and changes nothing", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.chmodSync(join(root, ".."), 0o755)
      Fs.writeFileSync(join(root, "f"), "secret")
      Fs.chmodSync(join(root, "f"), 0o600)
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "d", "g"), "hidden")
      Fs.chmodSync(join(root, "d"), 0o700)
      const before = tree(root)
      const denied = { _tag: "AccessDenied", why: "permission" }
      yield* asNobody(
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* faultOf(Effect.scoped(port.open(p("f")))), denied)
          assert.deepStrictEqual(yield* faultOf(write(port, "f", bytes("x"), "replace")), denied)
          assert.deepStrictEqual(yield* faultOf(write(port, "f", bytes("x"), "append")), denied)
          assert.deepStrictEqual(yield* faultOf(write(port, "new", bytes("x"), "create")), denied)
          assert.deepStrictEqual(yield* faultOf(write(port, "new", bytes("x"), "append")), denied)
          assert.deepStrictEqual(yield* faultOf(port.stat(p("d/g"))), denied)
          assert.deepStrictEqual(yield* faultOf(port.remove(p("f"))), denied)
          assert.deepStrictEqual(yield* faultOf(port.makeDirectory(p("e"))), denied)
          assert.deepStrictEqual(yield* faultOf(port.rename(p("f"), p("g"), { replace: true })), denied)
          assert.deepStrictEqual(yield* faultOf(port.attributes!.set(p("f"), { mode: 0o777 })), denied)
        })
      )
      assert.deepStrictEqual(tree(root), before)
    })
  )
})

describe("a process without free descriptors", () => {
  const child = fileURLToPath(new URL("./posixDescriptors.ts", import.meta.url))

  it("gets EMFILE from calls that need a descriptor, leaves no new files behind and loses no old files", () => {
    const at = Fs.mkdtempSync("/tmp/fs-algebra-test-")
    try {
      const { status, stderr, stdout } = spawnSync(
        "bash",
        ["-c", `ulimit -n 64 && exec "${process.execPath}" "${child}" "${at}"`],
        {
          encoding: "utf8"
        }
      )
      assert.strictEqual(status, 0, stderr)
      assert.deepStrictEqual(JSON.parse(stdout), {
        create: { _tag: "IoError", code: "EMFILE" },
        replace: { _tag: "IoError", code: "EMFILE" },
        append: { _tag: "IoError", code: "EMFILE" },
        open: { _tag: "IoError", code: "EMFILE" },
        list: { _tag: "IoError", code: "EMFILE" },
        // The calls below need no descriptor.
        stat: "done",
        rename: "done",
        remove: "done",
        recovered: "done",
        left: ["f", "g"]
      })
    } finally {
      Fs.rmSync(at, { recursive: true })
    }
  })
})
