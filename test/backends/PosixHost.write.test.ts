import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Fault } from "../../src/model/FsError.ts"
import type { Commit } from "../../src/port/Backend.ts"
import { failing, first, replacing, systemError } from "./posixFailures.ts"
import { bytes, faultOf, host, type Host, openDescriptors, p, readAll, tree, write } from "./posixHost.ts"

const { writeSync } = Fs
const modes = ["create", "replace", "append"] as const
const contents = {
  bytes: bytes("new"),
  "a stream": Stream.make(bytes("n"), bytes("e"), bytes("w")),
  "no bytes": bytes(""),
  "an empty stream": Stream.empty,
  "many bytes": new Uint8Array(1_000_000).fill(120),
  "a stream of many bytes": Stream.make(new Uint8Array(500_000).fill(120), new Uint8Array(500_000).fill(120))
} as const
const textOf: Record<keyof typeof contents, string> = {
  bytes: "new",
  "a stream": "new",
  "no bytes": "",
  "an empty stream": "",
  "many bytes": "x".repeat(1_000_000),
  "a stream of many bytes": "x".repeat(1_000_000)
}

describe("writing", () => {
  for (const mode of modes) {
    for (const [what, content] of Object.entries(contents) as Array<[keyof typeof contents, (typeof contents)["bytes"]]>) {
      it.effect(`${mode} of ${what} stores exactly that content and returns its stat`, () =>
        Effect.gen(function* () {
          const { port, root } = yield* host()
          const before = openDescriptors()
          const text = textOf[what]
          const made = yield* write(port, "f", content, mode)
          assert.deepStrictEqual(tree(root), { f: text })
          assert.deepStrictEqual(made, yield* port.stat(p("f")))
          Fs.writeFileSync(join(root, "g"), "old")
          if (mode === "create") {
            assert.deepStrictEqual(yield* faultOf(write(port, "g", content, mode)), { _tag: "AlreadyExists" })
            assert.deepStrictEqual(tree(root), { f: text, g: "old" })
          } else {
            const stat = yield* write(port, "g", content, mode)
            assert.deepStrictEqual(tree(root), { f: text, g: mode === "append" ? `old${text}` : text })
            assert.deepStrictEqual(stat, yield* port.stat(p("g")))
          }
          assert.strictEqual(openDescriptors(), before)
        })
      )
    }
  }

  it.effect("creates files with 0o666 and directories with 0o777, less the umask, in every mode", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const mask = process.umask(0o027)
      try {
        yield* write(port, "created", bytes(""), "create")
        yield* write(port, "replaced", bytes(""), "replace")
        yield* write(port, "appended", bytes(""), "append")
        yield* write(port, "streamed", Stream.make(bytes("")), "append")
        yield* port.makeDirectory(p("d"))
      } finally {
        process.umask(mask)
      }
      for (const name of ["created", "replaced", "appended", "streamed"]) {
        assert.strictEqual(Fs.statSync(join(root, name)).mode & 0o7777, 0o640, name)
      }
      assert.strictEqual(Fs.statSync(join(root, "d")).mode & 0o7777, 0o750)
    })
  )

  it.effect("keeps the permission bits on replacement, but drops set-user-ID", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      for (const mode of [0o755, 0o600, 0o000, 0o444, 0o777, 0o4755]) {
        Fs.writeFileSync(join(root, "f"), "old")
        Fs.chmodSync(join(root, "f"), mode)
        assert.strictEqual((yield* write(port, "f", bytes("new"), "replace")).mode, mode & 0o777)
        assert.strictEqual(Fs.statSync(join(root, "f")).mode & 0o7777, mode & 0o777)
        Fs.unlinkSync(join(root, "f"))
      }
    })
  )

  it.effect("opens the temporary file only to its owner, in the directory of the file that it replaces", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "d", "f"), "old")
      Fs.chmodSync(join(root, "d", "f"), 0o640)
      let seen: ReadonlyArray<readonly [string, number]> = []
      const looking = Stream.fromEffect(
        Effect.sync(() => {
          seen = Fs.readdirSync(join(root, "d")).map((name) => [name, Fs.statSync(join(root, "d", name)).mode & 0o777] as const)
          return bytes("new")
        })
      )
      yield* write(port, "d/f", looking, "replace")
      const temporary = seen.filter(([name]) => name !== "f")
      assert.strictEqual(temporary.length, 1)
      assert.match(temporary[0]![0], /^\.~fsa-[^/]+\.tmp$/)
      assert.strictEqual(temporary[0]![1], 0o600)
      assert.strictEqual(Fs.statSync(join(root, "d", "f")).mode & 0o777, 0o640)
    })
  )

  for (const mode of ["replace", "append"] as const) {
    it.effect(`keeps the permission bits of a file that another process removes during the ${mode} of a stream`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.writeFileSync(join(root, "f"), "old")
        Fs.chmodSync(join(root, "f"), 0o664)
        const removing = Stream.fromEffect(
          Effect.sync(() => {
            Fs.unlinkSync(join(root, "f"))
            return bytes("new")
          })
        )
        const stat = yield* write(port, "f", removing, mode)
        assert.deepStrictEqual(tree(root), { f: "new" })
        assert.strictEqual(Fs.statSync(join(root, "f")).mode & 0o7777, 0o664)
        assert.strictEqual(stat.mode, 0o664)
      })
    )
  }

  it.live("keeps the temporary file of a slow write, however old the file looks", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const slow = Stream.fromEffect(
        Effect.gen(function* () {
          for (const name of Fs.readdirSync(root)) Fs.utimesSync(join(root, name), 1, 1)
          yield* port.list(p("."))
          return bytes("new")
        })
      )
      yield* write(port, "f", slow, "create")
      assert.deepStrictEqual(tree(root), { f: "new" })
    })
  )

  it.effect.skipIf(process.getuid?.() !== 0)(
    "keeps the owner of a replaced file if the system permits it, and otherwise replaces the file all the same",
    () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.writeFileSync(join(root, "f"), "old")
        Fs.chmodSync(join(root, "f"), 0o640)
        Fs.chownSync(join(root, "f"), 12345, 54321)
        yield* write(port, "f", bytes("new"), "replace")
        const { gid, mode, uid } = Fs.statSync(join(root, "f"))
        assert.deepStrictEqual([uid, gid, mode & 0o777], [12345, 54321, 0o640])
        yield* failing("fchownSync", () => systemError("EPERM", -1, "fchown"))
        yield* write(port, "f", bytes("newer"), "replace")
        const after = Fs.statSync(join(root, "f"))
        assert.deepStrictEqual([after.uid, after.gid, after.mode & 0o777], [process.getuid!(), process.getgid!(), 0o640])
        assert.strictEqual(Fs.readFileSync(join(root, "f"), "utf8"), "newer")
      })
  )

  it.effect("refuses a target that is not a file and a parent that is not a directory, and changes nothing", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "f"), "f")
      Fs.symlinkSync("f", join(root, "l"))
      const before = tree(root)
      for (const content of [bytes("x"), Stream.make(bytes("x"))]) {
        const tagOf = (path: string, mode: (typeof modes)[number]) =>
          Effect.map(faultOf(write(port, path, content, mode)), ({ _tag }) => _tag)
        for (const path of ["d", "f", "l"]) assert.strictEqual(yield* tagOf(path, "create"), "AlreadyExists")
        for (const mode of ["replace", "append"] as const) {
          for (const path of ["d", "l"]) assert.strictEqual(yield* tagOf(path, mode), "NotAFile", `${mode} ${path}`)
        }
        for (const mode of modes) {
          assert.strictEqual(yield* tagOf("none/x", mode), "NotFound")
          assert.strictEqual(yield* tagOf("none/deeper/x", mode), "NotFound")
          assert.strictEqual(yield* tagOf("f/x", mode), "NotADirectory")
          assert.strictEqual(yield* tagOf("f/deeper/x", mode), "NotADirectory")
        }
      }
      assert.deepStrictEqual(tree(root), before)
    })
  )
})

describe("publishing", () => {
  const denied: Fault = { _tag: "Conflict", expected: "a", actual: "b" }

  for (const mode of modes) {
    for (const [what, content] of [
      ["bytes", bytes("new")],
      ["a stream", Stream.make(bytes("new"))]
    ] as const) {
      it.effect(`${mode} of ${what} happens inside commit, and does not happen if commit fails`, () =>
        Effect.gen(function* () {
          const { port, root } = yield* host()
          if (mode !== "create") Fs.writeFileSync(join(root, "f"), "old")
          const old = mode === "create" ? undefined : "old"
          const visible = () => Object.entries(tree(root)).filter(([name]) => !name.startsWith(".~fsa-"))
          const order: Array<string> = []
          const commit: Commit = (publish) =>
            Effect.gen(function* () {
              order.push(JSON.stringify(visible()))
              const result = yield* publish
              order.push(JSON.stringify(visible()))
              return result
            })
          const refusing: Commit = () => Effect.fail(denied)
          assert.deepStrictEqual(yield* faultOf(write(port, "f", content, mode, { commit: refusing })), denied)
          assert.deepStrictEqual(tree(root), old === undefined ? {} : { f: old })
          yield* write(port, "f", content, mode, { commit })
          const text = mode === "append" ? "oldnew" : "new"
          assert.deepStrictEqual(order, [JSON.stringify(old === undefined ? [] : [["f", old]]), JSON.stringify([["f", text]])])
          assert.deepStrictEqual(tree(root), { f: text })
        })
      )
    }
  }

  it.effect("checks the target again: create overwrites no entry that has appeared, and replace only a file", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const meanwhile =
        (change: () => void): Commit =>
        (publish) =>
          Effect.andThen(Effect.sync(change), publish)
      const file = meanwhile(() => Fs.writeFileSync(join(root, "a"), "theirs"))
      assert.strictEqual((yield* faultOf(write(port, "a", bytes("x"), "create", { commit: file })))._tag, "AlreadyExists")
      const directory = meanwhile(() => Fs.mkdirSync(join(root, "b")))
      assert.strictEqual((yield* faultOf(write(port, "b", bytes("x"), "replace", { commit: directory })))._tag, "NotAFile")
      const link = meanwhile(() => Fs.symlinkSync("a", join(root, "c")))
      assert.strictEqual((yield* faultOf(write(port, "c", bytes("x"), "replace", { commit: link })))._tag, "NotAFile")
      const open = meanwhile(() => {
        Fs.writeFileSync(join(root, "d"), "theirs")
        Fs.chmodSync(join(root, "d"), 0o600)
      })
      assert.strictEqual((yield* write(port, "d", bytes("ours"), "replace", { commit: open })).mode, 0o600)
      Fs.mkdirSync(join(root, "e"))
      const gone = meanwhile(() => Fs.rmSync(join(root, "e"), { recursive: true }))
      assert.strictEqual((yield* faultOf(write(port, "e/f", bytes("x"), "replace", { commit: gone })))._tag, "NotFound")
      assert.deepStrictEqual(tree(root), { a: "theirs", b: "directory", c: "-> a", d: "ours" })
    })
  )

  it.effect("never overwrites with create on a disk without hard links", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      yield* failing("linkSync", () => systemError("EPERM", -1, "link"))
      yield* write(port, "a", bytes("1"), "create")
      assert.strictEqual((yield* faultOf(write(port, "a", bytes("2"), "create")))._tag, "AlreadyExists")
      const appears: Commit = (publish) =>
        Effect.andThen(
          Effect.sync(() => Fs.writeFileSync(join(root, "b"), "theirs")),
          publish
        )
      assert.strictEqual((yield* faultOf(write(port, "b", bytes("2"), "create", { commit: appears })))._tag, "AlreadyExists")
      yield* failing("renameSync", () => systemError("EIO", -5, "rename"))
      assert.strictEqual((yield* faultOf(write(port, "c", bytes("3"), "create")))._tag, "IoError")
      assert.deepStrictEqual(tree(root), { a: "1", b: "theirs" })
    })
  )
})

describe("a failed write keeps the old content and leaves nothing behind", () => {
  const interrupted = (mode: (typeof modes)[number], before: string | undefined) =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      if (before !== undefined) Fs.writeFileSync(join(root, "f"), before)
      const reached = yield* Deferred.make<void>()
      const stuck = Stream.concat(
        Stream.make(bytes("some")),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
      )
      const descriptors = openDescriptors()
      const fiber = yield* Effect.forkChild(write(port, "f", stuck, mode))
      yield* Deferred.await(reached)
      assert.strictEqual(Fs.readdirSync(root).filter((name) => name.startsWith(".~fsa-")).length, 1)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(tree(root), before === undefined ? {} : { f: before })
      assert.strictEqual(openDescriptors(), descriptors)
    })

  for (const mode of modes) {
    it.effect(`when it is interrupted (${mode}, new)`, () => interrupted(mode, undefined))
    if (mode !== "create") it.effect(`when it is interrupted (${mode}, over an old file)`, () => interrupted(mode, "old"))

    it.effect(`when its stream fails or dies (${mode})`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        if (mode !== "create") Fs.writeFileSync(join(root, "f"), "old")
        const before = tree(root)
        const failed = yield* Effect.exit(
          write(port, "f", Stream.concat(Stream.make(bytes("x")), Stream.fail("mine" as const)), mode)
        )
        assert.deepStrictEqual(failed, Exit.fail("mine" as const))
        const died = yield* Effect.exit(
          write(port, "f", Stream.concat(Stream.make(bytes("x")), Stream.die(new Error("oops"))), mode)
        )
        assert.isTrue(Exit.isFailure(died))
        const defect = yield* Effect.exit(write(port, "f", bytes("x"), mode, { commit: () => Effect.die("defect") }))
        assert.isTrue(Exit.isFailure(defect))
        assert.deepStrictEqual(tree(root), before)
      })
    )
  }

  it.live("when a large write is interrupted in the thread pool, or the write is completed", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const descriptors = openDescriptors()
      const size = 30_000_000
      const large = new Uint8Array(size).fill(120)
      let kept = 0
      for (const mode of ["replace", "append"] as const) {
        for (const turns of [0, 1, 2, 3, 5, 8]) {
          Fs.writeFileSync(join(root, "f"), "old")
          const fiber = yield* Effect.forkChild(write(port, "f", large, mode), { startImmediately: true })
          for (let i = 0; i < turns; i++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
          const length = Fs.statSync(join(root, "f")).size
          assert.include([3, mode === "append" ? size + 3 : size], length, `${mode} after ${turns}`)
          if (length === 3) kept++
        }
      }
      assert.isAbove(kept, 0)
      assert.strictEqual(openDescriptors(), descriptors)
    })
  )

  for (const [code, errno, tag] of [
    ["EIO", -5, "IoError"],
    ["ENOSPC", -28, "DiskFull"],
    ["Unknown system error -122", -122, "DiskFull"]
  ] as const) {
    it.effect(`when writing fails with ${code}`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.writeFileSync(join(root, "f"), "old")
        yield* failing("writeSync", () => systemError(code, errno, "write"))
        yield* failing("write", () => systemError(code, errno, "write"))
        const large = new Uint8Array(1_000_000)
        for (const mode of ["replace", "append"] as const) {
          for (const content of [bytes("x"), large, Stream.make(bytes("x")), Stream.make(large)]) {
            assert.strictEqual((yield* faultOf(write(port, "f", content, mode)))._tag, tag)
            assert.strictEqual((yield* faultOf(write(port, "new", content, mode)))._tag, tag)
          }
        }
        assert.deepStrictEqual(tree(root), { f: "old" })
      })
    )
  }

  for (const size of [10, 1_000_000]) {
    it.effect(`when an append of ${size} bytes fails partway, unless another program has appended after it`, () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.writeFileSync(join(root, "f"), "old")
        let behind = ""
        const short = (call: (...args: ReadonlyArray<any>) => any) => {
          let isFirst = true
          return (...args: ReadonlyArray<any>) => {
            const [descriptor, content, offset, length] = args
            const full = systemError("ENOSPC", -28, "write")
            if (length < size && !isFirst) {
              isFirst = true
              if (typeof args.at(-1) === "function") return setImmediate(args.at(-1), full)
              throw full
            }
            isFirst = false
            const taken = call(descriptor, content, offset, Math.min(length, 4), null)
            Fs.appendFileSync(join(root, "f"), behind)
            return typeof args.at(-1) === "function" ? setImmediate(args.at(-1), null, taken) : taken
          }
        }
        yield* replacing("writeSync", short)
        yield* replacing("write", () => short(writeSync))
        for (const content of [new Uint8Array(size).fill(120), Stream.make(new Uint8Array(size).fill(120))]) {
          assert.strictEqual((yield* faultOf(write(port, "f", content, "append")))._tag, "DiskFull")
          assert.strictEqual((yield* faultOf(write(port, "new", content, "append")))._tag, "DiskFull")
          assert.deepStrictEqual(tree(root), { f: "old" })
        }
        behind = "theirs"
        assert.strictEqual((yield* faultOf(write(port, "f", new Uint8Array(size), "append")))._tag, "DiskFull")
        assert.match(Fs.readFileSync(join(root, "f"), "latin1"), /^old[\0]{4}theirs/)
      })
    )
  }

  it.effect("when the disk does not confirm the bytes (durability file), and syncs only once", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host({ durability: "file" })
      Fs.writeFileSync(join(root, "f"), "old")
      const sync = yield* failing("fsync", () => systemError("EIO", -5, "fsync"))
      for (const [count, mode] of [
        [1, "replace"],
        [2, "append"]
      ] as const) {
        assert.deepInclude(yield* faultOf(write(port, "f", bytes("new"), mode)), { _tag: "IoError", code: "EIO" })
        assert.strictEqual(sync.calls(), count)
      }
      assert.strictEqual((yield* faultOf(write(port, "g", bytes("new"), "create")))._tag, "IoError")
      assert.strictEqual((yield* faultOf(write(port, "g", bytes("new"), "append")))._tag, "IoError")
      assert.deepStrictEqual(tree(root), { f: "old" })
    })
  )

  it.effect(
    "except when only the sync of the directory fails (durability full): the new content stays, and the fault says so",
    () =>
      Effect.gen(function* () {
        const { port, root } = yield* host({ durability: "full" })
        Fs.writeFileSync(join(root, "f"), "old")
        yield* failing("fsync", (descriptor: number) =>
          Fs.fstatSync(descriptor).isDirectory() ? systemError("EIO", -5, "fsync") : undefined
        )
        const fault = yield* faultOf(write(port, "f", bytes("new"), "replace"))
        assert.deepInclude(fault, { _tag: "IoError", code: "EIO" })
        assert.include(fault["detail"], "was made")
        assert.deepStrictEqual(tree(root), { f: "new" })
      })
  )

  it.effect("when the disk reports only at close that it could not keep the bytes, as network disks do", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "old")
      yield* replacing("closeSync", (close) => (descriptor) => {
        close(descriptor)
        throw systemError("EDQUOT", -122, "close")
      })
      assert.strictEqual((yield* faultOf(write(port, "f", bytes("new"), "replace")))._tag, "DiskFull")
      assert.strictEqual((yield* faultOf(write(port, "g", bytes("new"), "create")))._tag, "DiskFull")
      assert.deepStrictEqual(tree(root), { f: "old" })
    })
  )

  it.effect("when the final rename or link fails", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "old")
      yield* failing("renameSync", () => systemError("EIO", -5, "rename"))
      yield* failing("linkSync", () => systemError("EIO", -5, "link"))
      assert.strictEqual((yield* faultOf(write(port, "f", bytes("new"), "replace")))._tag, "IoError")
      assert.strictEqual((yield* faultOf(write(port, "g", bytes("new"), "create")))._tag, "IoError")
      assert.deepStrictEqual(tree(root), { f: "old" })
    })
  )
})

describe("a write to a busy disk", () => {
  it.live("is retried, and succeeds", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      Fs.writeFileSync(join(root, "f"), "old")
      const rename = yield* failing("renameSync", first(3, systemError("EBUSY", -16, "rename")))
      const open = yield* failing("openSync", first(3, systemError("EMFILE", -24, "open")))
      yield* write(port, "f", bytes("new"), "replace")
      assert.deepStrictEqual([rename.calls(), open.calls()], [3, 3])
      assert.deepStrictEqual(tree(root), { f: "new" })
    })
  )

  it.live("sends the remaining bytes in further calls if the disk accepts only a part of the bytes", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      let calls = 0
      yield* replacing("writeSync", () => (descriptor, content, at, length, position) => {
        if (++calls === 2) throw systemError("EAGAIN", -11, "write")
        return writeSync(descriptor, content, at, calls === 1 ? 3 : length, position)
      })
      yield* write(port, "f", bytes("abcdef"), "create")
      assert.deepStrictEqual(tree(root), { f: "abcdef" })
    })
  )

  it.live(
    "fails after some retries and changes nothing: with AccessDenied busy, or with IoError if no descriptor is free",
    () =>
      Effect.gen(function* () {
        const { port, root } = yield* host()
        Fs.writeFileSync(join(root, "f"), "old")
        const rename = yield* failing("renameSync", () => systemError("EBUSY", -16, "rename"))
        assert.deepInclude(yield* faultOf(write(port, "f", bytes("new"), "replace")), { _tag: "AccessDenied", why: "busy" })
        assert.isAbove(rename.calls(), 3)
        const open = yield* failing("openSync", () => systemError("EMFILE", -24, "open"))
        assert.deepInclude(yield* faultOf(write(port, "f", bytes("new"), "replace")), { _tag: "IoError", code: "EMFILE" })
        assert.deepInclude(yield* faultOf(Effect.scoped(port.open(p("f")))), { _tag: "IoError", code: "EMFILE" })
        assert.isAbove(open.calls(), 6)
        assert.deepStrictEqual(tree(root), { f: "old" })
      })
  )
})

describe("concurrent writes", () => {
  it.live("show each reader one whole version, never a mixture", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const version = (n: number) => new Uint8Array(200_000).fill(97 + n)
      yield* write(port, "f", version(0), "create")
      const writing = { isDone: false }
      const writers = Effect.forEach(
        [0, 1, 2],
        (n) => Effect.forEach(Array.from({ length: 30 }), () => write(port, "f", version(n), "replace"), { discard: true }),
        { concurrency: 3, discard: true }
      )
      const readers = Effect.forEach(
        [0, 1],
        () =>
          Effect.gen(function* () {
            let reads = 0
            while (!writing.isDone) {
              const text = yield* readAll(port, p("f"))
              assert.strictEqual(text.length, 200_000)
              assert.strictEqual(text, text[0]!.repeat(200_000))
              reads++
              yield* Effect.yieldNow
            }
            return reads
          }),
        { concurrency: 2 }
      )
      const [, counts] = yield* Effect.all(
        [
          Effect.tap(writers, () =>
            Effect.sync(() => {
              writing.isDone = true
            })
          ),
          readers
        ],
        { concurrency: 2 }
      )
      for (const count of counts) assert.isAbove(count, 0)
      assert.deepStrictEqual(Fs.readdirSync(root), ["f"])
    })
  )

  it.live("append whole records that never interleave", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const record = (n: number) => bytes(`${String.fromCharCode(97 + n).repeat(n % 2 === 0 ? 100 : 1_000_000)}\n`)
      yield* Effect.forEach(
        [0, 1, 2, 3],
        (n) => Effect.forEach(Array.from({ length: 5 }), () => write(port, "log", record(n), "append"), { discard: true }),
        { concurrency: 4, discard: true }
      )
      const lines = Fs.readFileSync(join(root, "log"), "utf8").split("\n").slice(0, -1)
      assert.strictEqual(lines.length, 20)
      for (const line of lines) {
        assert.include([100, 1_000_000], line.length)
        assert.strictEqual(line, line[0]!.repeat(line.length))
      }
    })
  )

  it.live("let exactly one of many creates of one file succeed", () =>
    Effect.gen(function* () {
      const { port, root } = yield* host()
      const results = yield* Effect.forEach(
        Array.from({ length: 50 }, (_, i) => i),
        (i) => Effect.result(write(port, "f", i % 2 === 0 ? bytes(`${i}`) : Stream.make(bytes(`${i}`)), "create")),
        { concurrency: 50 }
      )
      const winners = results.flatMap((result, i) => (result._tag === "Success" ? [`${i}`] : []))
      assert.strictEqual(winners.length, 1)
      assert.deepStrictEqual(tree(root), { f: winners[0] })
    })
  )
})

describe("a killed process", () => {
  const writer = fileURLToPath(new URL("./posixWriter.ts", import.meta.url))

  const kill = ({ port, root }: Host, delay: number) =>
    Effect.gen(function* () {
      const child = spawn(process.execPath, [writer, root], { stdio: ["ignore", "pipe", "inherit"] })
      yield* Effect.promise(() => new Promise((resolve) => child.stdout.once("data", resolve)))
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, delay)))
      child.kill("SIGKILL")
      yield* Effect.promise(() => new Promise((resolve) => child.once("exit", resolve)))
      for (const name of ["replaced", "streamed"]) {
        const content = Fs.readFileSync(join(root, name))
        assert.strictEqual(content.length, 2_000_000, name)
        assert.isTrue(content.equals(Buffer.alloc(2_000_000, content[0])), name)
      }
      for (const name of Fs.readdirSync(root).filter((name) => name.startsWith("created"))) {
        assert.strictEqual(Fs.statSync(join(root, name)).size, 300_000, name)
        Fs.unlinkSync(join(root, name))
      }
      const left = Fs.readdirSync(root).filter((name) => name.startsWith(".~fsa-"))
      yield* port.list(p("."))
      assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["replaced", "streamed"])
      return left.length
    })

  it.live("leaves complete files, and the next listing removes its leftovers", () =>
    Effect.gen(function* () {
      const made = yield* host()
      let left = 0
      // Continue until at least one writer was killed in the middle of a write.
      for (let round = 0; round < 8 || (left === 0 && round < 40); round++) left += yield* kill(made, (round * 5) % 40)
      assert.isAbove(left, 0)
    })
  )
})
