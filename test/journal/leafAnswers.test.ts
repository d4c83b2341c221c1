/** The answers of a leaf to each kind of entry, fault, setting and name. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Decorator from "../../src/filesystem/Decorator.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import { type Journal, record } from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import { around } from "../../src/port/Backend.ts"
import * as Daemon from "../../src/journal/Daemon.ts"
import { DaemonChanged } from "../../src/journal/entries/status.ts"
import { faulty } from "../../src/testing/Faults.ts"
import {
  type Asking,
  asked,
  bytes,
  chunk,
  dead,
  fork,
  freshDirectory,
  host,
  id,
  journaled,
  list,
  many,
  memory,
  quiet,
  read,
  remove,
  started,
  stat,
  write
} from "./leafBench.ts"
import * as Request from "../../src/port/Request.ts"

type Made = Effect.Effect<Filesystem.Algebra, unknown, Scope.Scope>

const serving = <A, E>(
  fs: Made,
  options: Leaf.LeafOptions,
  body: (asking: Asking, fs: Filesystem.Algebra) => Effect.Effect<A, E, Scope.Scope | Journal>
) =>
  journaled(
    Effect.gen(function* () {
      const self = yield* Effect.orDie(fs)
      yield* started(self, options)
      return yield* body(yield* asked, self)
    })
  )

const kindOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)
const messageOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.message : "")

const backends: ReadonlyArray<readonly [string, Made]> = [
  ["memory", memory()],
  ["a host directory", Effect.suspend(() => host())]
]

describe("each basic kind of entry", () => {
  const decode = Schema.decodeUnknownExit(Schema.toCodecJson(Entry.FileSystemEntry))
  const [path, content, isFinal] = ["/a.txt", "aGVsbG8=", true]
  const modified = "2026-01-25T00:00:00.000Z"

  // The documented fields in JSON: required, then optional.
  for (const [_tag, must, may] of [
    ["FileRead", { path }, { offset: 1, length: 2 }],
    ["FileWrite", { path, content, createMode: "create" }, {}],
    ["FileList", { path }, { pattern: "*.ts", recursive: true }],
    ["FileDelete", { path }, { recursive: true }],
    ["FileStat", { path }, {}],
    ["FileWriteChunk", { offset: 0, data: content, isFinal }, { path, createMode: "append" }],
    ["FileContent", { content, totalSize: 5, isPartial: false }, {}],
    ["FileContentChunk", { offset: 0, data: content, isFinal }, {}],
    ["FileWritten", { path, bytesWritten: 5 }, {}],
    ["FileListing", { entries: [] }, {}],
    ["FileDeleted", { path, deletedCount: 1 }, {}],
    [
      "FileMetadata",
      { size: 5, isDirectory: false },
      { modified, created: modified, permissions: 0o644, isSymlink: true, kind: "file" }
    ],
    ["FileFault", { faultKind: "NotFound", path, message: "not there" }, {}]
  ] as const) {
    it(`has the documented fields in JSON: ${_tag}`, () => {
      const least = { _tag, correlationId: "req-42", ...must }
      assert.isTrue(Exit.isSuccess(decode(least)))
      for (const field of Object.keys(least)) {
        const { [field as "_tag"]: _, ...rest } = least
        assert.isTrue(Exit.isFailure(decode(rest)), field)
      }
      const all = { ...least, ...may }
      const decoded = decode(all)
      if (Exit.isFailure(decoded)) return assert.fail(String(decoded.cause))
      assert.sameMembers(Object.keys(decoded.value), Object.keys(all))
      for (const field of Object.keys(may)) {
        assert.isTrue(Exit.isFailure(decode({ ...all, [field]: {} })), field)
      }
    })
  }
})

describe("the basic kinds of fault", () => {
  // The faults of a disk and their documented kinds.
  const reported: ReadonlyArray<readonly [Fault, Entry.FaultKind]> = [
    [{ _tag: "NotFound" }, "NotFound"],
    [{ _tag: "AlreadyExists" }, "AlreadyExists"],
    [{ _tag: "AccessDenied", why: "permission" }, "AccessDenied"],
    [{ _tag: "AccessDenied", why: "escape" }, "AccessDenied"],
    [{ _tag: "InvalidPath", detail: "no name" }, "InvalidPath"],
    [{ _tag: "NotADirectory" }, "NotADirectory"],
    [{ _tag: "NotAFile" }, "NotAFile"],
    [{ _tag: "DiskFull" }, "DiskFull"],
    [{ _tag: "IoError", code: "EIO", detail: "the disk is broken" }, "IoError"],
    [{ _tag: "PathTooLong", detail: "too long" }, "PathTooLong"],
    [{ _tag: "Timeout", detail: "too slow" }, "Timeout"],
    // Faults without a basic kind of their own.
    [{ _tag: "Unavailable", detail: "nobody there" }, "IoError"],
    [{ _tag: "LimitExceeded", limit: "maxFileSize", allowed: 1, actual: 2 }, "IoError"]
  ]

  for (const extended of [false, true]) {
    it.effect(
      `match the fault of the disk, and contain the complete error if the leaf is extended (extended: ${extended})`,
      () =>
        Effect.forEach(
          reported,
          ([fault, kind]) =>
            serving(Effect.map(memory(), faulty([{ operation: "Write", path: "f", fault }])), { extended }, ({ ask }) =>
              Effect.gen(function* () {
                for (const time of [1, 2]) {
                  const answer = yield* ask(write("/f", "x"))
                  assert.strictEqual(kindOf(answer), kind, `${fault._tag}, time ${time}`)
                  if (answer._tag !== "FileFault") return
                  assert.strictEqual(answer.path, "/f")
                  assert.strictEqual(answer.error?._tag, extended ? fault._tag : undefined)
                }
              })
            ),
          { discard: true }
        )
    )
  }

  for (const [name, fs] of backends) {
    it.effect(`over ${name} include DiskFull for a write over the quota, which keeps the old file`, () =>
      serving(Effect.flatMap(fs, Decorator.quota({ maxBytes: 10 })), {}, ({ ask }, self) =>
        Effect.gen(function* () {
          yield* ask(write("f", "12345"))
          for (const intent of [write("f", many(11)), write("f", "123456", "append"), write("g", "123456", "create")]) {
            assert.strictEqual(kindOf(yield* ask(intent)), "DiskFull")
          }
          assert.strictEqual(yield* self.readString("f"), "12345")
          assert.isFalse(yield* self.exists("g"))
        })
      )
    )
  }

  it.effect("include PathTooLong for a name of too many bytes, even if it has few characters", () =>
    serving(host(), {}, ({ ask }) =>
      Effect.gen(function* () {
        assert.strictEqual(kindOf(yield* ask(write("é".repeat(200), "x"))), "PathTooLong")
        assert.strictEqual(kindOf(yield* ask(stat("é".repeat(200)))), "PathTooLong")
      })
    )
  )
})

for (const [name, fs] of backends) {
  describe(`a leaf over ${name}`, () => {
    it.effect("checks path, arguments, limits, precondition and existence in this order", () =>
      serving(fs, { extended: true }, ({ ask }) =>
        Effect.gen(function* () {
          const none = "0".repeat(64)
          const long = "n".repeat(300)
          yield* ask(write("there", "x"))
          for (const [intent, kind, tag] of [
            [list("a//b", { pattern: " " }), "InvalidPath", "InvalidPath"],
            [list("missing", { pattern: " ", recursive: true }), "IoError", "InvalidArgument"],
            [write("there", "x", "create", { ifMatch: none }), "IoError", "InvalidArgument"],
            [write(long, "x", "overwrite", { ifMatch: none }), "PathTooLong", "PathTooLong"],
            [write("missing", "x", "replace", { ifMatch: none }), "IoError", "Conflict"],
            [remove("missing", { ifMatch: none }), "IoError", "Conflict"],
            [write("missing", "x", "replace"), "NotFound", "NotFound"]
          ] as const) {
            const answer = yield* ask(intent)
            assert.strictEqual(kindOf(answer), kind, `${intent._tag} ${intent.path}`)
            assert.strictEqual(answer._tag === "FileFault" ? answer.error?._tag : undefined, tag)
          }
          assert.strictEqual(kindOf(yield* ask(write("new", "x", "overwrite", { ifMatch: null }))), "FileWritten")
        })
      )
    )

    it.effect("accepts paths from the root with or without a slash, drops `.` and keeps names unchanged", () =>
      serving(fs, {}, ({ ask, content }) =>
        Effect.gen(function* () {
          // Names are not normalised, so the two forms of é differ.
          for (const path of ["src/main.cs", "\u00e9", "e\u0301", "A", "a", "with space ", "back\\slash", "..."]) {
            assert.strictEqual(kindOf(yield* ask(write(path, `in ${path}`, "create"))), "FileWritten", path)
          }
          for (const [path, of] of [
            ["/src/main.cs", "src/main.cs"],
            ["./src/./main.cs", "src/main.cs"],
            ["/\u00e9", "\u00e9"],
            ["e\u0301", "e\u0301"],
            ["A", "A"]
          ] as const) {
            const answer = yield* ask(read(path))
            if (answer._tag !== "FileContent") return assert.fail(`${path}: ${kindOf(answer)}`)
            assert.deepStrictEqual(yield* content(answer.content), bytes(`in ${of}`), path)
          }
          for (const root of ["", ".", "/"]) {
            const answer = yield* ask(list(root, { pattern: "[aA]" }))
            assert.deepStrictEqual(answer._tag === "FileListing" ? answer.entries.map((entry) => entry.path) : [], ["A", "a"])
          }
          for (const path of ["a/", "//a", "src//main.cs", "src/../a", "..", "a\u007f", "a\nb", "\udc00"]) {
            for (const intent of [read(path), write(path, "x"), list(path), remove(path), stat(path)]) {
              assert.strictEqual(kindOf(yield* ask(intent)), "InvalidPath", JSON.stringify(path))
            }
          }
        })
      )
    )

    it.effect("changes no byte of a content: line endings, byte order marks and binary content are kept", () =>
      serving(fs, {}, ({ ask, content }) =>
        Effect.gen(function* () {
          const odd = Uint8Array.from([0xef, 0xbb, 0xbf, 0x61, 0x0d, 0x0a, 0x62, 0x0a, 0x63, 0x0d, 0xff, 0x00, 0x1a])
          yield* ask(write("f", odd))
          yield* ask(write("f", odd, "append"))
          const answer = yield* ask(read("f"))
          assert.isTrue(answer._tag === "FileContent")
          if (answer._tag === "FileContent") {
            assert.deepStrictEqual(yield* content(answer.content), Uint8Array.from([...odd, ...odd]))
          }
        })
      )
    )

    it.effect("lists by the common rules for globs, with hidden names, in code point order", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          const names = ["d/.hidden", "d/B", "d/a", "d/\uffee", "d/\u{1f600}", "d/sub/a", "d/sub/.x/a", "d/sub2/b"]
          for (const path of names) yield* self.write(path, "")
          const found = (more: Parameters<typeof list>[1]) =>
            Effect.map(ask(list("d", more)), (answer) =>
              answer._tag === "FileListing" ? answer.entries.map((entry) => entry.path) : [kindOf(answer)]
            )
          const direct = [".hidden", "B", "a", "sub", "sub2", "\uffee", "\u{1f600}"]
          assert.deepStrictEqual(yield* found({}), direct)
          assert.deepStrictEqual(yield* found({ pattern: "*" }), direct)
          assert.deepStrictEqual(yield* found({ pattern: "a" }), ["a"])
          assert.deepStrictEqual(yield* found({ pattern: "a", recursive: true }), ["a", "sub/.x/a", "sub/a"])
          assert.deepStrictEqual(yield* found({ pattern: "/a", recursive: true }), ["a"])
          assert.deepStrictEqual(yield* found({ pattern: "sub/**", recursive: true }), ["sub/.x", "sub/.x/a", "sub/a"])
          assert.deepStrictEqual(yield* found({ pattern: "sub*/" }), ["sub", "sub2"])
          assert.deepStrictEqual(yield* found({ pattern: "*/", recursive: true }), ["sub", "sub/.x", "sub2"])
          assert.deepStrictEqual(yield* found({ pattern: "{a,B}" }), ["B", "a"])
          assert.deepStrictEqual(yield* found({ pattern: "none" }), [])
        })
      )
    )

    it.effect("deletes a link itself, reads and writes through a link, and enters no link when it lists", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          yield* self.write("d/f", "old")
          yield* self.symlink("file", "d/f")
          yield* self.symlink("dir", "d")
          yield* self.symlink("loop", "loop")
          assert.strictEqual(kindOf(yield* ask(write("file", "new"))), "FileWritten")
          assert.strictEqual(yield* self.readString("d/f"), "new")
          assert.strictEqual(kindOf(yield* ask(write("dir/g", "x"))), "FileWritten")
          assert.strictEqual(yield* self.readString("d/g"), "x")
          assert.strictEqual(kindOf(yield* ask(write("file", "x", "create"))), "AlreadyExists")
          assert.strictEqual(kindOf(yield* ask(read("loop"))), "InvalidPath")
          // Links are not entered, so each entry is listed once, under its own path.
          const all = yield* ask(list("/", { recursive: true }))
          assert.deepStrictEqual(all._tag === "FileListing" ? all.entries.map(({ kind, path }) => `${path} ${kind}`) : [], [
            "d directory",
            "d/f file",
            "d/g file",
            "dir symlink",
            "file symlink",
            "loop symlink"
          ])
          for (const link of ["file", "dir"]) {
            const gone = yield* ask(remove(link, { recursive: true }))
            assert.strictEqual(gone._tag === "FileDeleted" ? gone.deletedCount : kindOf(gone), 1)
          }
          assert.strictEqual(yield* self.readString("d/g"), "x")
        })
      )
    )

    it.effect("returns true times, permissions and sizes", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          yield* self.write("f", "12345")
          const modified = DateTime.makeUnsafe("2001-02-03T04:05:06.000Z")
          yield* self.setAttributes("f", { mode: 0o604, modifiedAt: modified })
          const told = yield* ask(stat("f"))
          if (told._tag !== "FileMetadata") return assert.fail(kindOf(told))
          assert.deepStrictEqual(
            [told.size, told.isDirectory, told.permissions, told.modified?.epochMilliseconds],
            [5, false, 0o604, modified.epochMilliseconds]
          )
          const { createdAt } = yield* self.stat("f")
          assert.isDefined(createdAt)
          assert.deepStrictEqual(told.created?.epochMilliseconds, createdAt?.epochMilliseconds)
          const directory = yield* ask(stat("/"))
          assert.deepStrictEqual(
            directory._tag === "FileMetadata" ? [directory.isDirectory, directory.size] : kindOf(directory),
            [true, 0]
          )
        })
      )
    )

    it.effect("answers with the id and the path of the request, which may contain any characters", () =>
      serving(fs, {}, ({ answers, append, all }) =>
        Effect.gen(function* () {
          const odd = ["", " ", "__proto__", "constructor", "a/b\u0000c", "\ud83d\ude00", "req-42", "x".repeat(10_000)]
          for (const correlationId of odd) {
            const path = `/d/./${odd.indexOf(correlationId)}`
            const written = yield* append(
              new Entry.FileWrite({ correlationId, path, content: bytes("x"), createMode: "create" })
            )
            const [answer, ...more] = yield* answers(correlationId, written)
            assert.deepStrictEqual(more, [])
            assert.deepStrictEqual(answer, new Entry.FileWritten({ correlationId, path, bytesWritten: 1 }))
          }
          assert.strictEqual((yield* all).filter(Entry.isTerminal).length, odd.length)
        })
      )
    )
  })
}

describe("links of a host directory", () => {
  const root = () => {
    const outside = freshDirectory()
    const directory = freshDirectory()
    Fs.writeFileSync(join(outside, "secret"), "outside")
    Fs.mkdirSync(join(directory, "d"))
    Fs.symlinkSync(outside, join(directory, "out"))
    Fs.symlinkSync("d", join(directory, "in"))
    return { directory, outside }
  }

  for (const followSymlinks of [true, false]) {
    it.effect(`never lead outside the root, to existing or missing files (followSymlinks: ${followSymlinks})`, () =>
      Effect.suspend(() => {
        const { directory, outside } = root()
        return serving(host(directory), { followSymlinks }, ({ ask }) =>
          Effect.gen(function* () {
            for (const intent of [
              read("out/secret"),
              write("out/secret", "x"),
              write("out/new", "x", "create"),
              remove("out/secret"),
              stat("out/secret"),
              list("out"),
              write("out/deep/new", "x")
            ]) {
              assert.strictEqual(kindOf(yield* ask(intent)), "AccessDenied", `${intent._tag} ${intent.path}`)
            }
            assert.deepStrictEqual(Fs.readdirSync(outside), ["secret"])
            assert.strictEqual(Fs.readFileSync(join(outside, "secret"), "utf8"), "outside")
            assert.strictEqual(kindOf(yield* ask(write("in/deep/new", "x"))), "FileWritten")
            assert.strictEqual(Fs.readFileSync(join(directory, "d/deep/new"), "utf8"), "x")
            const link = yield* ask(stat("out"))
            if (followSymlinks) assert.strictEqual(kindOf(link), "AccessDenied")
            else assert.deepStrictEqual(link._tag === "FileMetadata" ? [link.isSymlink, link.kind] : [], [true, "symlink"])
          })
        )
      })
    )
  }
})

describe("the settings of PosixFS", () => {
  const under = <A, E>(
    settings: Omit<Parameters<typeof Leaf.posixFS>[0], "rootPath">,
    body: (rootPath: string, asking: Asking) => Effect.Effect<A, E>
  ) =>
    journaled(
      Effect.suspend(() => {
        const rootPath = freshDirectory()
        return Effect.scoped(
          Effect.provide(
            Effect.flatMap(asked, (asking) => body(rootPath, asking)),
            Leaf.posixFS({ rootPath, ...settings })
          )
        )
      })
    )

  it.effect("forbid writes or deletions, and choose the size of chunks and the treatment of links", () =>
    Effect.gen(function* () {
      yield* under({ allowWrite: false }, (rootPath, { ask }) =>
        Effect.gen(function* () {
          Fs.writeFileSync(join(rootPath, "f"), "x")
          assert.strictEqual(kindOf(yield* ask(write("f", "y"))), "AccessDenied")
          assert.strictEqual(kindOf(yield* ask(remove("f"))), "FileDeleted")
        })
      )
      yield* under({ allowDelete: false }, (rootPath, { ask }) =>
        Effect.gen(function* () {
          Fs.writeFileSync(join(rootPath, "f"), "x")
          assert.strictEqual(kindOf(yield* ask(remove("f"))), "AccessDenied")
          assert.strictEqual(kindOf(yield* ask(write("f", "y"))), "FileWritten")
          assert.strictEqual(Fs.readFileSync(join(rootPath, "f"), "utf8"), "y")
        })
      )
      yield* under({ chunkSize: 3, streamingThreshold: 4 }, (rootPath, { askAll }) =>
        Effect.gen(function* () {
          const shape = Effect.suspend(() =>
            Effect.map(askAll(read("f")), (all) =>
              all.map((entry) => (entry._tag === "FileContentChunk" ? entry.offset : entry._tag))
            )
          )
          Fs.writeFileSync(join(rootPath, "f"), "1234")
          assert.deepStrictEqual(yield* shape, ["FileContent"])
          Fs.writeFileSync(join(rootPath, "f"), "12345")
          assert.deepStrictEqual(yield* shape, [0, 3])
        })
      )
      yield* under({ followSymlinks: false }, (rootPath, { ask }) =>
        Effect.gen(function* () {
          Fs.writeFileSync(join(rootPath, "f"), "x")
          Fs.symlinkSync("f", join(rootPath, "l"))
          const told = yield* ask(stat("l"))
          assert.deepStrictEqual(told._tag === "FileMetadata" ? [told.kind, told.isSymlink] : [], ["symlink", true])
          assert.strictEqual(kindOf(yield* ask(read("l"))), "FileContent")
        })
      )
    })
  )

  it.effect("send content of up to 1 MiB in one entry, and larger content in chunks of 64 KiB, by default", () =>
    under({}, (rootPath, { askAll }) =>
      Effect.gen(function* () {
        const shape = (size: number) =>
          Effect.suspend(() => {
            Fs.writeFileSync(join(rootPath, String(size)), many(size))
            return Effect.map(askAll(read(String(size))), (all) =>
              all.map((entry) =>
                entry._tag !== "FileContentChunk"
                  ? entry._tag
                  : `${entry.offset}+${entry.data instanceof Uint8Array ? entry.data.length : entry.data.size}`
              )
            )
          })
        assert.deepStrictEqual(yield* shape(1_048_576), ["FileContent"])
        const chunks = Array.from({ length: 16 }, (_, i) => `${i * 65_536}+65536`)
        assert.deepStrictEqual(yield* shape(1_048_577), [...chunks, "1048576+1"])
      })
    )
  )
})

describe("a file that another program has open", () => {
  it.effect("is opened again five times, after about 50 ms and then after pauses that double, with jitter", () =>
    journaled(
      Effect.gen(function* () {
        const tries: Array<number> = []
        const inner = yield* memory({ tree: { f: "x" } })
        const fs = Filesystem.make(
          around(inner.port, (operation, next) =>
            operation._tag !== "Open"
              ? next
              : Effect.flatMap(Clock.currentTimeMillis, (now) => {
                  tries.push(now)
                  return Effect.fail<Fault>({ _tag: "AccessDenied", why: "busy" })
                })
          )
        )
        yield* started(fs)
        const { append, answer } = yield* asked
        const intent = read("f")
        yield* append(intent)
        yield* quiet
        for (let i = 0; i < 2_000; i++) {
          yield* TestClock.adjust("1 millis")
          yield* Effect.yieldNow
        }
        const told = yield* answer(intent.correlationId)
        assert.strictEqual(kindOf(told), "AccessDenied")
        const pauses = tries.slice(1).map((at, i) => at - tries[i]!)
        assert.strictEqual(pauses.length, 5)
        for (const [i, pause] of pauses.entries()) {
          assert.isAtLeast(pause, Math.floor(0.8 * 50 * 2 ** i), String(pauses))
          assert.isAtMost(pause, Math.ceil(1.2 * 50 * 2 ** i) + 1, String(pauses))
        }
        assert.notDeepEqual(pauses, [50, 100, 200, 400, 800])
      })
    )
  )
})

describe("every kind of read and write", () => {
  const busy = Effect.fail<Fault>({ _tag: "AccessDenied", why: "busy" })
  const large = many(2_000_000)
  const edit = () => new Entry.FileEdit({ correlationId: id(), path: "f", edits: [{ oldText: "x", newText: "y" }] })

  for (const [what, intent, extended, expected] of [
    ["a small file is read at once", () => read("f"), false, "FileContent"],
    ["a range is read", () => read("f", { offset: 1 }), false, "FileContent"],
    ["a large content is written", () => write("f", large), false, "FileWritten"],
    ["a text is edited", edit, true, "FileEdited"]
  ] as const) {
    it.effect(`is retried if another program has the file open: ${what}`, () =>
      journaled(
        Effect.gen(function* () {
          const asking = intent()
          const reads = asking._tag === "FileRead"
          let count = 0
          const held = Effect.suspend(() => (count++ < 2 ? busy : Effect.void))
          const { port } = yield* memory({ tree: { f: "x" } })
          const fs = Filesystem.make({
            ...port,
            perform: reads ? Request.handlers({ Read: (request) => Effect.andThen(held, port.perform!(request)) }) : undefined,
            open: (path) => (reads ? Effect.andThen(held, port.open(path)) : port.open(path)),
            write: (...of) => (reads ? port.write(...of) : Effect.andThen(held, port.write(...of)))
          })
          yield* started(fs, { extended })
          const { all, append } = yield* asked
          yield* append(asking)
          for (let i = 0; i < 40; i++) {
            yield* quiet
            yield* TestClock.adjust("10 millis")
          }
          yield* quiet
          assert.deepStrictEqual((yield* all).filter(Entry.isTerminal).map(kindOf), [expected])
          assert.strictEqual(count, 3)
        })
      )
    )
  }
})

describe("a part of a file that another program has locked", () => {
  it.effect("is read again, even between two chunks, and fails with AccessDenied after the last retry", () =>
    journaled(
      Effect.gen(function* () {
        const held: Fault = { _tag: "AccessDenied", why: "busy" }
        const inner = yield* memory({ tree: { once: "0123456789", twice: "0123456789", ever: "x" } })
        const fs = faulty([
          { operation: "Read", path: "once", nth: 1, fault: held },
          { operation: "Read", path: "twice", nth: 2, fault: held },
          { operation: "Read", path: "ever", fault: held }
        ])(inner)
        yield* started(fs, { streamingThreshold: 4, chunkSize: 4 })
        const { all, append } = yield* asked
        const intents = [read("once", { length: 4 }), read("twice"), read("ever")]
        for (const intent of intents) yield* append(intent)
        for (let i = 0; i < 200; i++) {
          yield* Effect.yieldNow
          yield* TestClock.adjust("10 millis")
        }
        yield* quiet
        const told = yield* all
        assert.deepStrictEqual(
          intents.map(({ correlationId }) => told.filter(Entry.answers(correlationId)).map(kindOf)),
          [["FileContent"], ["FileContentChunk", "FileContentChunk", "FileContentChunk"], ["AccessDenied"]]
        )
        assert.strictEqual(fs.happened.filter(({ operation, path }) => operation === "Read" && path === "ever").length, 6)
      })
    )
  )
})

describe("a name that no path can express", () => {
  it.effect("is listed as not addressable, and matches no pattern", () =>
    Effect.suspend(() => {
      const directory = freshDirectory()
      Fs.writeFileSync(join(directory, "a\u0007b"), "")
      Fs.writeFileSync(join(directory, "ab"), "")
      return serving(host(directory), {}, ({ ask }) =>
        Effect.gen(function* () {
          const found = (more: Parameters<typeof list>[1]) =>
            Effect.map(ask(list("/", more)), (answer) =>
              answer._tag === "FileListing" ? answer.entries.map(({ addressable }) => addressable) : [kindOf(answer)]
            )
          assert.sameMembers([...(yield* found({}))], [true, false])
          assert.deepStrictEqual(yield* found({ pattern: "a*" }), [true])
          assert.deepStrictEqual(yield* found({ pattern: "a*", recursive: true }), [true])
        })
      )
    })
  )
})

describe("Journal.record over a case-insensitive disk", () => {
  it.effect("records a change of case as a move that replaces no file", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory({ caseInsensitive: true, tree: { f: "x" } })
        const fs = yield* record()(inner)
        // The port must detect that both names are the same file; only a call of the service compares names.
        yield* fs.port.rename("f" as FsPath, "F" as FsPath, { replace: true })
        const { all } = yield* asked
        const moved = (yield* all).flatMap((entry) => (entry._tag === "FileMoved" ? [entry.replaced] : []))
        assert.deepStrictEqual(moved, [undefined])
      })
    )
  )
})

describe("the correlation id of a refused request", () => {
  it.effect("is not accepted for another request in the same append", () =>
    serving(memory(), {}, ({ all, ask, journal }, self) =>
      Effect.gen(function* () {
        const correlationId = id()
        const entry = (path: string) => new Entry.FileWrite({ correlationId, path, content: bytes("x"), createMode: "create" })
        yield* journal.appendAll([entry("a//b"), entry("ab")])
        yield* ask(stat("/"))
        assert.deepStrictEqual((yield* all).filter(Entry.answers(correlationId)).map(kindOf), ["InvalidPath"])
        assert.isFalse(yield* self.exists("ab"))
      })
    )
  )
})

describe("a write in several parts", () => {
  it.effect("of exactly the maximum size is written", () =>
    serving(memory(), { limits: { ...Limits.standard, maxFileSize: 4 } }, ({ answer, append }, self) =>
      Effect.gen(function* () {
        const one = id()
        yield* append(chunk(one, 0, "ab", { path: "f" }))
        yield* append(chunk(one, 2, "cd", { isFinal: true }))
        assert.strictEqual(kindOf(yield* answer(one)), "FileWritten")
        assert.strictEqual(yield* self.readString("f"), "abcd")
      })
    )
  )

  it.effect("may have empty parts and no mode", () =>
    serving(memory({ tree: { f: "old" } }), {}, ({ answer, append }, self) =>
      Effect.gen(function* () {
        const one = id()
        yield* append(chunk(one, 0, "", { path: "f" }))
        yield* append(chunk(one, 0, "ab"))
        yield* append(chunk(one, 2, ""))
        yield* append(chunk(one, 2, "c", { isFinal: true }))
        const told = yield* answer(one)
        assert.deepStrictEqual(told, new Entry.FileWritten({ correlationId: one, path: "f", bytesWritten: 3 }))
        assert.strictEqual(yield* self.readString("f"), "abc")
      })
    )
  )

  it.effect("fails with IoError and the offset if its first part has an offset above 0", () =>
    serving(memory(), {}, ({ answer, append }) =>
      Effect.gen(function* () {
        const one = id()
        yield* append(chunk(one, 7, "x", { path: "f" }))
        const told = yield* answer(one)
        assert.strictEqual(kindOf(told), "IoError")
        assert.include(messageOf(told), "offset 7")
      })
    )
  )
})

describe("a leaf over a case-insensitive disk", () => {
  it.effect("times out a request behind a hanging request on the same path in another case", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory({ caseInsensitive: true, tree: { f: "x" } })
        const fs = Filesystem.make(
          around(inner.port, (operation, next) => (operation._tag === "Open" ? Effect.uninterruptible(Effect.never) : next))
        )
        yield* started(fs, { timeout: "10 seconds" })
        const { all, append } = yield* asked
        const [stuck, behind] = [read("f"), write("F", "y")]
        for (const intent of [stuck, behind]) yield* append(intent)
        for (let i = 0; i < 2; i++) {
          yield* quiet
          yield* TestClock.adjust("10 seconds")
        }
        yield* quiet
        assert.deepStrictEqual((yield* all).filter(Entry.isTerminal).map(kindOf), ["Timeout", "Timeout"])
      })
    )
  )

  it.effect("reports a move to another case by a killed leaf as a change of unknown outcome", () =>
    journaled(
      Effect.gen(function* () {
        const { append, answer } = yield* asked
        const intent = new Entry.FileMove({ correlationId: id(), path: "f", to: "F" })
        const instance = dead()
        yield* append(new DaemonChanged({ daemon: "memory", instance, status: "Running", prefix: ".", extended: true }))
        yield* append(intent)
        yield* append(new Entry.FileStarted({ correlationId: intent.correlationId, instance, size: 1 }))
        const fs = yield* memory({ caseInsensitive: true, tree: { F: "x" } })
        yield* started(fs, { extended: true })
        assert.include(messageOf(yield* answer(intent.correlationId)), "neither the old state nor the new state")
      })
    )
  )
})

describe("chunks of an extended leaf", () => {
  it.effect("have the metadata of the file only in the first chunk", () =>
    serving(memory(), { extended: true, streamingThreshold: 4, chunkSize: 4 }, ({ askAll }, self) =>
      Effect.gen(function* () {
        yield* self.write("f", "0123456789")
        const told = yield* askAll(read("f", { offset: 1 }))
        assert.deepStrictEqual(
          told.map((entry) => (entry._tag === "FileContentChunk" ? [entry.offset, entry.stat?.sizeBytes] : kindOf(entry))),
          [
            [1, 10],
            [5, undefined],
            [9, undefined]
          ]
        )
      })
    )
  )
})

describe("a write in several parts, to one of several leaves", () => {
  it.effect("is answered by the leaf of its path alone", () =>
    journaled(
      Effect.gen(function* () {
        const [all, some] = [yield* memory(), yield* memory()]
        yield* started(all)
        yield* started(some, { prefix: "a" })
        const { append, ask, all: entries } = yield* asked
        const one = id()
        yield* append(chunk(one, 0, "ab", { path: "a/f" }))
        yield* append(chunk(one, 2, "cd"))
        yield* append(chunk(one, 4, "ef", { isFinal: true }))
        for (const path of ["/", "a"]) yield* ask(stat(path))
        yield* quiet
        assert.deepStrictEqual((yield* entries).filter(Entry.answers(one)).map(kindOf), ["FileWritten"])
        assert.strictEqual(yield* some.readString("a/f"), "abcdef")
        assert.isFalse(yield* all.exists("a"))
      })
    )
  )
})

describe("daemons", () => {
  it.effect("fail the callers that wait for Running if the start fails", () =>
    journaled(
      Effect.gen(function* () {
        const daemon = yield* Daemon.make({ name: "d", start: Effect.fail("no port"), run: () => Effect.never })
        const waiting = yield* fork(Effect.flip(daemon.awaitStatus("Running")))
        yield* Effect.flip(daemon.start)
        yield* quiet
        assert.isDefined(waiting.pollUnsafe())
        const error = yield* Fiber.join(waiting)
        assert.deepStrictEqual([error.reason, error.detail], ["completed", "no port"])
      })
    )
  )

  it.effect("are all stopped when their start is interrupted", () =>
    journaled(
      Effect.gen(function* () {
        const all = Daemon.all([
          yield* Daemon.make({ name: "a", run: () => Effect.never }),
          yield* Daemon.make({ name: "b", start: Effect.never, run: () => Effect.never })
        ])
        const starting = yield* fork(all.start)
        yield* all.daemons[0]!.awaitStatus("Running")
        yield* quiet
        yield* Fiber.interrupt(starting)
        assert.deepStrictEqual(yield* Effect.forEach(all.daemons, ({ status }) => status), ["Completed", "Stopped"])
      })
    )
  )

  it.effect("are all stopped in reverse order even if one fails, and the first failure is reported", () =>
    journaled(
      Effect.gen(function* () {
        const log: Array<string> = []
        const all = Daemon.all(
          yield* Effect.forEach(["a", "b", "c"], (name) =>
            Daemon.make({
              name,
              run: () => Effect.never,
              stop: Effect.andThen(
                Effect.sync(() => void log.push(name)),
                name === "a" ? Effect.void : Effect.fail(`${name} is broken`)
              )
            })
          )
        )
        yield* all.start
        const error = yield* Effect.flip(all.shutdown)
        assert.deepStrictEqual([error.daemon, error.detail], ["c", "c is broken"])
        assert.deepStrictEqual(log, ["c", "b", "a"])
        assert.deepStrictEqual(yield* Effect.forEach(all.daemons, ({ status }) => status), [
          "Completed",
          "Completed",
          "Completed"
        ])
      })
    )
  )
})
