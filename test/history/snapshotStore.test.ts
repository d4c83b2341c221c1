import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import type { FsError } from "../../src/model/FsError.ts"
import { agent, Limits } from "../../src/model/Limits.ts"
import { around } from "../../src/port/Backend.ts"
import type { CommonOptions } from "../../src/port/Rules.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { capture, directory as emptyDirectory, type Files, link, picture, plant } from "../../src/testing/Files.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import * as Names from "../runtime/names.ts"
import { canMount, disk, has, isRoot, needs, openBelow } from "../faults/ground.ts"

const project: Files = {
  "src/main.py": "print('hello')\n",
  "src/a-b.txt": "x",
  "src/a/b.txt": new Uint8Array([0xff, 0x00]),
  "a file": "",
  hollow: emptyDirectory,
  "to main": link("src/main.py")
}
const [projectFiles, projectBytes] = [5, 15 + 1 + 2 + 0 + 11]

/** Returns a filesystem with files, and the path of a store that does not exist yet. */
const ground = Effect.gen(function* () {
  const top = yield* fastDirectory
  const fs = make(yield* InMemory.make())
  yield* plant(fs.port, project)
  return { top, directory: join(top, "store"), fs }
})

const storeOf = (fs: Algebra, options: SnapshotStore.Options) =>
  Effect.provideService(SnapshotStore.make(options), Filesystem, fs)

const ready = Effect.gen(function* () {
  const made = yield* ground
  return { ...made, store: yield* storeOf(made.fs, { directory: made.directory }) }
})

const ids = (all: ReadonlyArray<SnapshotStore.SnapshotInfo>) => all.map(({ snapshotId }) => snapshotId)

const fails = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.flip(effect)

const hasPython = needs("archives of the store beside Python's zipfile", () => has("python3"), "apt-get install python3")

const python = (script: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("python3", ["-c", script, ...args], { encoding: "utf8" })

describe("a snapshot", () => {
  it.effect("is an archive {id}.fs.zip, and its info describes the archive", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* ready
      yield* TestClock.adjust("3 hours")
      const info = yield* store.snapshot("before-refactor")
      const path = join(directory, "before-refactor.fs.zip")
      assert.deepStrictEqual(info, {
        snapshotId: "before-refactor",
        archivePath: path,
        fileCount: projectFiles,
        totalBytes: projectBytes,
        archiveBytes: Fs.statSync(path).size,
        createdAt: DateTime.makeUnsafe(3 * 3600 * 1000)
      })
      assert.deepStrictEqual(yield* store.get("before-refactor"), info)
      assert.deepStrictEqual(Fs.readdirSync(directory), ["before-refactor.fs.zip"])
      assert.strictEqual(Fs.statSync(directory).mode & 0o777, 0o700)
      assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o600)
      const codec = Schema.toCodecJson(SnapshotStore.SnapshotInfo)
      const json = JSON.parse(JSON.stringify(yield* Schema.encodeEffect(codec)(info)))
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(codec)(json), info)
    })
  )

  it.effect.runIf(hasPython)("can be read by Python: the manifest and the files", () =>
    Effect.gen(function* () {
      const { store } = yield* ready
      const { archivePath } = yield* store.snapshot("s")
      const script = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    assert z.testzip() is None
    m = json.loads(z.read("manifest.json"))
    print(json.dumps([m, {n: z.read(n).hex() for n in z.namelist() if n.startswith("files/") and not n.endswith("/")}]))`
      const hex = (text: string | Uint8Array) => Buffer.from(text).toString("hex")
      assert.deepStrictEqual(JSON.parse(python(script, archivePath)), [
        { version: "1", created_at: "1970-01-01T00:00:00.000+00:00", file_count: projectFiles, total_bytes: projectBytes },
        {
          "files/a file": "",
          "files/src/a-b.txt": hex("x"),
          "files/src/a/b.txt": "ff00",
          "files/src/main.py": hex("print('hello')\n"),
          "files/to main": hex("src/main.py")
        }
      ])
    })
  )

  it.effect("replaces an earlier snapshot with the same id", () =>
    Effect.gen(function* () {
      const { directory, fs, store } = yield* ready
      yield* store.snapshot("s")
      yield* fs.write("new", "more")
      const second = yield* store.snapshot("s")
      assert.strictEqual(second.fileCount, projectFiles + 1)
      assert.deepStrictEqual(yield* store.list, [second])
      assert.deepStrictEqual(Fs.readdirSync(directory), ["s.fs.zip"])
      yield* fs.delete("new")
      yield* store.rollback("s")
      assert.strictEqual(yield* fs.readString("new"), "more")
    })
  )

  it.effect("with onDuplicate error is not replaced, even by concurrent calls", () =>
    Effect.gen(function* () {
      const { directory, fs } = yield* ground
      const store = yield* storeOf(fs, { directory, onDuplicate: "error" })
      const tries = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.exit(store.snapshot("s"))),
        {
          concurrency: "unbounded"
        }
      )
      assert.strictEqual(tries.filter(({ _tag }) => _tag === "Success").length, 1)
      const bytes = Fs.readFileSync(join(directory, "s.fs.zip"))
      yield* fs.write("new", "more")
      assert.deepInclude(yield* fails(store.snapshot("s")), { _tag: "SnapshotError", operation: "snapshot", reason: "refused" })
      assert.isTrue(bytes.equals(Fs.readFileSync(join(directory, "s.fs.zip"))))
      assert.deepStrictEqual(Fs.readdirSync(directory), ["s.fs.zip"])
      assert.strictEqual((yield* store.snapshot("other")).fileCount, projectFiles + 1)
    })
  )

  const refusedIds: ReadonlyArray<readonly [what: string, id: unknown]> = [
    ["that is empty", ""],
    ["that is a dot", "."],
    ["that is two dots", ".."],
    ["that is five dots", "....."],
    ["that is a path above the directory", "../outside"],
    ["that is an absolute path", "/tmp/outside"],
    ["with a slash", "a/b"],
    ["with a backslash", "a\\b"],
    ["with a NUL", "a\0b"],
    ["with a line end", "a\nb"],
    ["with a DEL", "a\u007fb"],
    ["with a C1 control character", "a\u0085b"],
    ["with a lone surrogate", "a\ud800"],
    ["of 249 bytes", "n".repeat(249)],
    ["of 83 characters of three bytes", "\u20ac".repeat(83)],
    ["that is undefined", undefined],
    ["that is a number", 1],
    ["that is an object", { toString: () => "s" }]
  ]
  for (const [what, id] of refusedIds) {
    it.effect(`is refused for an id ${what}, and no snapshot with that id is found`, () =>
      Effect.gen(function* () {
        const { fs, store, top } = yield* ready
        yield* store.snapshot("there")
        const before = Fs.readdirSync(top, { recursive: true }).sort()
        const bad = id as string
        assert.deepInclude(yield* fails(store.snapshot(bad)), { _tag: "SnapshotError", reason: "refused" })
        assert.deepInclude(yield* fails(store.delete(bad)), { _tag: "SnapshotError", reason: "refused" })
        assert.deepInclude(yield* fails(store.rollback(bad)), { _tag: "SnapshotRestoreError", reason: "unknown" })
        assert.isUndefined(yield* store.get(bad))
        assert.isUndefined(yield* store.manifest(bad))
        assert.deepStrictEqual(yield* store.tree(bad), [])
        assert.isUndefined(yield* store.file(bad, "src/main.py"))
        assert.deepInclude(yield* fails(Effect.scoped(store.view(bad))), { _tag: "SnapshotError", reason: "unknown" })
        assert.deepStrictEqual(Fs.readdirSync(top, { recursive: true }).sort(), before)
        assert.deepStrictEqual(yield* capture(fs.port), picture(project))
      })
    )
  }

  for (const id of [
    "turn-5",
    "...a",
    "pre:write_file:call 7",
    " ",
    "x.fs.zip",
    "n".repeat(248),
    "\u20ac".repeat(82),
    "\u{1f600}",
    "-rf",
    "con",
    ".hidden"
  ]) {
    it.effect(`may have the id ${JSON.stringify(id.slice(0, 20))}`, () =>
      Effect.gen(function* () {
        const { fs, store } = yield* ready
        assert.strictEqual(basename((yield* store.snapshot(id)).archivePath), `${id}.fs.zip`)
        yield* fs.delete("src", { recursive: true })
        assert.strictEqual(yield* store.rollback(id), projectFiles)
        assert.deepStrictEqual(ids(yield* store.list), [id])
        assert.isTrue(yield* store.delete(id))
      })
    )
  }

  it.effect("that fails leaves the earlier snapshot and no other file", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* ready
      yield* store.snapshot("s")
      const bytes = Fs.readFileSync(join(directory, "s.fs.zip"))
      const few = Effect.provideService(store.snapshot("s"), Limits, { ...agent, maxArchiveEntries: 3 })
      assert.deepInclude(yield* fails(few), { _tag: "ArchiveError", reason: "tooLarge" })
      assert.isTrue(bytes.equals(Fs.readFileSync(join(directory, "s.fs.zip"))))
      assert.deepStrictEqual(Fs.readdirSync(directory), ["s.fs.zip"])
    })
  )

  it.effect("that is interrupted leaves the earlier snapshot and no other file", () =>
    Effect.gen(function* () {
      const { directory, fs } = yield* ground
      yield* (yield* storeOf(fs, { directory })).snapshot("s")
      const bytes = Fs.readFileSync(join(directory, "s.fs.zip"))
      const reached = yield* Deferred.make<void>()
      const stuck = make(
        around(fs.port, (operation, next) =>
          operation._tag === "Open" && operation.path === "src/main.py"
            ? Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
            : next
        )
      )
      const fiber = yield* Effect.forkChild((yield* storeOf(stuck, { directory })).snapshot("s"))
      yield* Deferred.await(reached)
      assert.strictEqual(Fs.readdirSync(directory).length, 2)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(bytes.equals(Fs.readFileSync(join(directory, "s.fs.zip"))))
      assert.deepStrictEqual(Fs.readdirSync(directory), ["s.fs.zip"])
      assert.deepStrictEqual(openBelow(directory), [])
    })
  )

  it.effect.runIf(needs("a disk that is full", canMount, "it needs root and permission to mount"))(
    "that does not fit on the disk leaves the earlier snapshot and no other file",
    () =>
      Effect.gen(function* () {
        const { fs } = yield* ground
        const mounted = yield* disk("size=128k,mode=0700")
        const store = yield* storeOf(fs, { directory: mounted })
        yield* store.snapshot("s")
        const bytes = Fs.readFileSync(join(mounted, "s.fs.zip"))
        let state = 1
        const noise = Uint8Array.from({ length: 300_000 }, () => (state = (state * 48271) % 2147483647) >>> 8)
        yield* fs.writeBytes("noise", noise)
        const error = yield* fails(store.snapshot("s"))
        assert.deepInclude(error, { _tag: "SnapshotError", reason: "io" })
        assert.deepStrictEqual(Fs.readdirSync(mounted), ["s.fs.zip"])
        assert.isTrue(bytes.equals(Fs.readFileSync(join(mounted, "s.fs.zip"))))
      })
  )
})

describe("the directory of a store", () => {
  it.effect("is by default in the system's temporary directory", () =>
    Effect.gen(function* () {
      const { fs } = yield* ground
      assert.strictEqual((yield* storeOf(fs, {})).directory, join(tmpdir(), "fs-algebra-snapshots"))
    })
  )

  it.effect("is created with mode 0700 by the first snapshot, and queries find nothing before", () =>
    Effect.gen(function* () {
      const { fs, top } = yield* ground
      const directory = join(top, "some/where/deep")
      const store = yield* storeOf(fs, { directory })
      assert.deepStrictEqual(yield* store.list, [])
      assert.isUndefined(yield* store.get("s"))
      assert.isFalse(yield* store.delete("s"))
      assert.isFalse(Fs.existsSync(join(top, "some")))
      const before = process.umask(0)
      yield* Effect.ensuring(
        store.snapshot("s"),
        Effect.sync(() => process.umask(before))
      )
      assert.strictEqual(Fs.statSync(directory).mode & 0o777, 0o700)
    })
  )

  const refused: ReadonlyArray<readonly [what: string, prepare: (top: string) => string, isOfRoot?: boolean]> = [
    ["a link", (top) => (Fs.mkdirSync(join(top, "real")), Fs.symlinkSync("real", join(top, "l")), join(top, "l"))],
    [
      "a link with a trailing slash",
      (top) => (Fs.mkdirSync(join(top, "real")), Fs.symlinkSync("real", join(top, "l")), `${top}/l/`)
    ],
    ["a path with a .. segment", (top) => `${top}/a/../b`],
    ["a dangling link", (top) => (Fs.symlinkSync("nowhere", join(top, "l")), join(top, "l"))],
    ["a file", (top) => (Fs.writeFileSync(join(top, "f"), ""), join(top, "f"))],
    ["below a file", (top) => (Fs.writeFileSync(join(top, "f"), ""), join(top, "f/store"))],
    ["writable for everybody", (top) => (Fs.mkdirSync(join(top, "d")), Fs.chmodSync(join(top, "d"), 0o1777), join(top, "d"))],
    [
      "owned by another user",
      (top) => (Fs.mkdirSync(join(top, "d")), Fs.chownSync(join(top, "d"), 65534, 65534), join(top, "d")),
      true
    ],
    ["relative", () => "store"],
    ["a number", () => 1 as never],
    ["a path with a NUL", (top) => `${top}/a\0b`]
  ]
  for (const [what, prepare, isOfRoot] of refused) {
    it.effect.skipIf(isOfRoot === true && !isRoot)(`is refused if it is ${what}`, () =>
      Effect.gen(function* () {
        const { fs, top } = yield* ground
        const directory = prepare(top)
        const before = Fs.readdirSync(top, { recursive: true }).sort()
        const error = yield* fails(storeOf(fs, { directory }))
        assert.deepInclude(error, { _tag: "SnapshotError", reason: "refused" })
        assert.deepStrictEqual(Fs.readdirSync(top, { recursive: true }).sort(), before)
      })
    )
  }

  it.effect("is refused when it becomes a link later, and nothing is read through the link", () =>
    Effect.gen(function* () {
      const { directory, store, top } = yield* ready
      yield* store.snapshot("s")
      Fs.renameSync(directory, join(top, "elsewhere"))
      Fs.symlinkSync("elsewhere", directory)
      assert.deepInclude(yield* fails(store.snapshot("t")), { _tag: "SnapshotError", reason: "refused" })
      assert.deepInclude(yield* fails(store.rollback("s")), { _tag: "SnapshotRestoreError", reason: "unavailable" })
      assert.deepInclude(yield* fails(store.delete("s")), { _tag: "SnapshotError", reason: "refused" })
      assert.deepInclude(yield* fails(store.manifest("s")), { _tag: "SnapshotError", reason: "refused" })
      assert.isUndefined(yield* store.get("s"))
      assert.deepStrictEqual(yield* store.list, [])
      assert.deepStrictEqual(Fs.readdirSync(join(top, "elsewhere")), ["s.fs.zip"])
    })
  )

  it.effect("may not lie in the root of an open filesystem, and no root can be opened in it", () =>
    Effect.gen(function* () {
      const { directory, fs, top } = yield* ground
      const root = join(top, "workspace")
      Fs.mkdirSync(root)
      Fs.symlinkSync("workspace", join(top, "way"))
      const host = make(yield* PosixHost.make({ root }))
      for (const inside of [root, join(root, "store"), join(top, "way/store")]) {
        for (const of of [host, fs]) {
          assert.deepInclude(yield* fails(storeOf(of, { directory: inside })), { _tag: "SnapshotError", reason: "refused" })
        }
      }
      assert.deepStrictEqual(Fs.readdirSync(root), [])
      const store = yield* storeOf(fs, { directory })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* PosixHost.make({ root: top })
          assert.deepInclude(yield* fails(store.snapshot("s")), { _tag: "SnapshotError", reason: "refused" })
        })
      )
      yield* store.snapshot("s")
      assert.strictEqual((yield* fails(PosixHost.make({ root: directory })))._tag, "AccessDenied")
    })
  )
})

describe("a rollback", () => {
  it.effect("restores the tree and returns its number of files", () =>
    Effect.gen(function* () {
      const { fs, store } = yield* ready
      yield* store.snapshot("s")
      yield* fs.delete("src", { recursive: true })
      yield* fs.delete("hollow")
      yield* fs.delete("a file")
      yield* fs.write("a file/in the place of a file", "x")
      assert.strictEqual(yield* store.rollback("s"), projectFiles)
      assert.deepStrictEqual(yield* capture(fs.port), picture(project))
    })
  )

  it.effect("of an unknown id or a missing file changes nothing", () =>
    Effect.gen(function* () {
      const { fs, store } = yield* ready
      const { archivePath } = yield* store.snapshot("s")
      const restoring = { _tag: "SnapshotRestoreError", reason: "unknown" } as const
      assert.deepInclude(yield* fails(store.rollback("t")), { ...restoring, snapshotId: "t" })
      Fs.unlinkSync(archivePath)
      assert.deepInclude(yield* fails(store.rollback("s")), { ...restoring, snapshotId: "s" })
      assert.isUndefined(yield* store.get("s"))
      assert.deepStrictEqual(yield* capture(fs.port), picture(project))
    })
  )

  it.effect("of an archive with a changed byte changes nothing, or restores the files of the snapshot", () =>
    Effect.gen(function* () {
      const { fs, store } = yield* ready
      const { archivePath } = yield* store.snapshot("s")
      yield* fs.write("since", "then")
      const now = yield* capture(fs.port)
      const good = Fs.readFileSync(archivePath)
      for (let at = 0; at < good.length; at += 7) {
        const bad = Buffer.from(good)
        bad[at] = bad[at]! ^ 0xff
        Fs.writeFileSync(archivePath, bad)
        const end = yield* Effect.exit(store.rollback("s"))
        // Bytes of a time or of the creator may change without effect.
        if (end._tag === "Success") yield* fs.write("since", "then")
        assert.deepStrictEqual(yield* capture(fs.port), now, `at ${at}`)
        if (end._tag === "Failure") assert.include(String(end.cause), "ArchiveError")
      }
      Fs.writeFileSync(archivePath, good.subarray(0, -1))
      assert.deepInclude(yield* fails(store.rollback("s")), { _tag: "ArchiveError", reason: "corrupt" })
      assert.deepStrictEqual(yield* capture(fs.port), now)
    })
  )

  const forbidden: ReadonlyArray<readonly [what: string, options: CommonOptions]> = [
    ["any change", { readOnly: true }],
    ["writing", { allowWrite: false }],
    ["deleting", { allowDelete: false }]
  ]
  for (const [what, options] of forbidden) {
    it.effect(`is refused before any other check if ${what} is not permitted`, () =>
      Effect.gen(function* () {
        const { directory, store: writer, top } = yield* ready
        const { archivePath } = yield* writer.snapshot("s")
        const root = join(top, "root")
        Fs.mkdirSync(root)
        const fs = make(yield* PosixHost.make({ root, ...options }))
        const store = yield* storeOf(fs, { directory })
        const refused = { _tag: "SnapshotRestoreError", reason: "readOnly" } as const
        for (const id of ["s", "unknown", "../x"]) assert.deepInclude(yield* fails(store.rollback(id)), refused)
        for (const path of [archivePath, "/nowhere"]) assert.deepInclude(yield* fails(store.restore(path)), refused)
        assert.strictEqual((yield* store.snapshot("empty")).fileCount, 0)
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )
  }

  it.effect("is refused through a read-only view", () =>
    Effect.gen(function* () {
      const { directory, fs } = yield* ground
      const store = yield* storeOf(readOnly(fs), { directory })
      yield* store.snapshot("s")
      assert.deepInclude(yield* fails(store.rollback("s")), { _tag: "SnapshotRestoreError", reason: "readOnly" })
    })
  )
})

describe("restore from a file", () => {
  const v1 = `
import json, sys, zipfile
files = {"src/main.py": b"print(1)", "deep/er/f": b"", "u\\u00e9": b"x" * 1000}
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as z:
    for name, data in sorted(files.items()):
        z.writestr("files/" + name, data)
    z.writestr("manifest.json", json.dumps({"version": "1", "created_at": "2024-01-15T10:30:00+00:00", "file_count": 3, "total_bytes": 1008}, indent=2))`

  it.effect.runIf(hasPython)("accepts a version 1 archive that another program wrote", () =>
    Effect.gen(function* () {
      const { fs, store, top } = yield* ready
      const path = join(top, "from elsewhere.zip")
      python(v1, path)
      assert.strictEqual(yield* store.restore(path), 3)
      assert.deepStrictEqual(
        yield* capture(fs.port),
        picture({ "src/main.py": "print(1)", "deep/er/f": "", "u\u00e9": "x".repeat(1000) })
      )
    })
  )

  it.effect.runIf(hasPython)(
    "is not needed for an archive in the directory of the store, because the archive is a snapshot",
    () =>
      Effect.gen(function* () {
        const { directory, store } = yield* ready
        yield* TestClock.setTime(Date.parse("2024-01-15T10:29:59Z"))
        yield* store.snapshot("before")
        yield* TestClock.setTime(Date.parse("2024-01-15T10:30:01Z"))
        yield* store.snapshot("after")
        const path = join(directory, "other.fs.zip")
        python(v1, path)
        assert.deepStrictEqual(ids(yield* store.list), ["before", "other", "after"])
        assert.deepStrictEqual(yield* store.get("other"), {
          snapshotId: "other",
          archivePath: path,
          fileCount: 3,
          totalBytes: 1008,
          archiveBytes: Fs.statSync(path).size,
          createdAt: DateTime.makeUnsafe("2024-01-15T10:30:00Z")
        })
        assert.strictEqual(yield* store.rollback("other"), 3)
      })
  )

  it.effect("follows links, and changes nothing for a path that is missing, not a file or not an archive", () =>
    Effect.gen(function* () {
      const { fs, store, top } = yield* ready
      const { archivePath } = yield* store.snapshot("s")
      Fs.symlinkSync(archivePath, join(top, "link"))
      yield* fs.write("since", "then")
      assert.strictEqual(yield* store.restore(join(top, "link")), projectFiles)
      Fs.writeFileSync(join(top, "text"), "no archive")
      execFileSync("mkfifo", [join(top, "fifo")])
      const cases: ReadonlyArray<readonly [path: unknown, reason: SnapshotStore.SnapshotRestoreError["reason"]]> = [
        [join(top, "missing"), "unknown"],
        [join(top, "text/below"), "unknown"],
        [top, "incompatible"],
        [join(top, "fifo"), "incompatible"],
        [undefined, "incompatible"]
      ]
      for (const [path, reason] of cases) {
        assert.deepInclude(yield* fails(store.restore(path as string)), { _tag: "SnapshotRestoreError", reason }, String(path))
      }
      assert.deepInclude(yield* fails(store.restore(join(top, "text"))), { _tag: "ArchiveError", reason: "corrupt" })
      assert.strictEqual((yield* fails(store.restore("a\0b")))._tag, "SnapshotRestoreError")
      assert.deepStrictEqual(yield* capture(fs.port), picture(project))
    })
  )
})

describe("the list of snapshots", () => {
  it.effect("has the order of creation, even for snapshots of the same moment, and after a restart", () =>
    Effect.gen(function* () {
      const { directory, fs, store } = yield* ready
      for (const id of ["z", "m", "a", "b"]) yield* store.snapshot(id)
      yield* TestClock.adjust("1 second")
      yield* store.snapshot("0")
      assert.deepStrictEqual(ids(yield* store.list), ["z", "m", "a", "b", "0"])
      yield* store.snapshot("m")
      const expected = ["z", "a", "b", "0", "m"]
      assert.deepStrictEqual(ids(yield* store.list), expected)
      const other = make(yield* InMemory.make())
      const again = yield* storeOf(other, { directory })
      assert.deepStrictEqual(yield* again.list, yield* store.list)
      assert.strictEqual(yield* again.rollback("a"), projectFiles)
      assert.deepStrictEqual(yield* capture(other.port), yield* capture(fs.port))
    })
  )

  it.effect("has the order of creation even if file times are wrong or coarse", () =>
    Effect.gen(function* () {
      const { store } = yield* ready
      const { archivePath } = yield* store.snapshot("z")
      Fs.utimesSync(archivePath, 4e9, 4e9)
      const after = Array.from({ length: 20 }, (_, i) => `${99 - i}`)
      for (const id of after) yield* store.snapshot(id)
      assert.deepStrictEqual(ids(yield* store.list), ["z", ...after])
    })
  )

  it.effect("ignores other files and broken archives, however large", () =>
    Effect.gen(function* () {
      const { directory, store, top } = yield* ready
      const { archivePath } = yield* store.snapshot("good")
      const good = Fs.readFileSync(archivePath)
      const put = (name: string, bytes: string | Uint8Array) => Fs.writeFileSync(join(directory, name), bytes)
      put("text.fs.zip", "no archive")
      put("empty.fs.zip", "")
      put("short.fs.zip", good.subarray(0, good.length / 2))
      put("tail.fs.zip", good.subarray(good.length / 2))
      const damaged = Buffer.from(good)
      const manifest = good.indexOf("manifest.json") + "manifest.json".length
      damaged[manifest + 5] = damaged[manifest + 5]! ^ 1
      put("manifest.fs.zip", damaged)
      const otherwise = Buffer.from(good)
      const [local, central] = [good.indexOf("manifest.json") - 30 + 14, good.lastIndexOf("manifest.json") - 46 + 16]
      for (const at of [local, central]) otherwise[at] = otherwise[at]! ^ 1
      put("checksum.fs.zip", otherwise)
      put("good.zip", good)
      put(".fs.zip", good)
      put("...fs.zip", good)
      put("notes.txt", "kept")
      Fs.mkdirSync(join(directory, "directory.fs.zip"))
      Fs.writeFileSync(join(top, "elsewhere.zip"), good)
      Fs.symlinkSync(join(top, "elsewhere.zip"), join(directory, "link.fs.zip"))
      execFileSync("mkfifo", [join(directory, "fifo.fs.zip")])
      put("huge.fs.zip", "")
      Fs.truncateSync(join(directory, "huge.fs.zip"), 2 ** 40)
      Fs.writeFileSync(Buffer.concat([Buffer.from(`${directory}/bytes`), Buffer.from([0xff]), Buffer.from(".fs.zip")]), good)
      assert.deepStrictEqual(ids(yield* store.list), ["good"])
      for (const id of ["text", "empty", "short", "tail", "directory", "link", "fifo", "huge"]) {
        assert.isUndefined(yield* store.get(id), id)
      }
      for (const id of ["directory", "link", "fifo"]) {
        assert.deepInclude(yield* fails(store.rollback(id)), { _tag: "SnapshotRestoreError", reason: "unknown" }, id)
        assert.isFalse(yield* store.delete(id))
      }
      assert.isTrue(yield* store.delete("huge"))
      assert.strictEqual(Fs.readFileSync(join(directory, "notes.txt"), "utf8"), "kept")
    })
  )

  it.effect("shows at once that another store made, replaced or deleted a snapshot", () =>
    Effect.gen(function* () {
      const { directory, fs, store } = yield* ready
      const other = yield* storeOf(fs, { directory })
      yield* store.snapshot("a")
      yield* store.list
      yield* fs.write("more", "x")
      const replaced = yield* other.snapshot("a")
      yield* other.snapshot("b")
      assert.deepStrictEqual(yield* store.get("a"), replaced)
      assert.deepStrictEqual(ids(yield* store.list), ["a", "b"])
      yield* other.delete("a")
      assert.deepStrictEqual(ids(yield* store.list), ["b"])
    })
  )
})

describe("the deletion of a snapshot", () => {
  it.effect("returns true for an existing snapshot, and false once it is deleted", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* ready
      yield* store.snapshot("a")
      yield* store.snapshot("b")
      assert.isTrue(yield* store.delete("a"))
      assert.isFalse(yield* store.delete("a"))
      assert.deepStrictEqual(Fs.readdirSync(directory), ["b.fs.zip"])
      assert.deepStrictEqual(ids(yield* store.list), ["b"])
    })
  )
})

describe("the content of a snapshot", () => {
  it.effect("is readable without a restore: the manifest, the files with their sizes, and their texts", () =>
    Effect.gen(function* () {
      const { fs, store } = yield* ready
      yield* store.snapshot("s")
      yield* fs.delete("src", { recursive: true })
      assert.deepStrictEqual(yield* store.manifest("s"), {
        createdAt: DateTime.makeUnsafe(0),
        fileCount: projectFiles,
        totalBytes: projectBytes
      })
      assert.deepStrictEqual(
        (yield* store.tree("s")).map(({ path, sizeBytes }) => [String(path), sizeBytes]),
        [
          ["a file", 0],
          ["src/a-b.txt", 1],
          ["src/a/b.txt", 2],
          ["src/main.py", 15],
          ["to main", 11]
        ]
      )
      assert.strictEqual(yield* store.file("s", "src/main.py"), "print('hello')\n")
      assert.strictEqual(yield* store.file("s", "/src//main.py"), "print('hello')\n")
      assert.strictEqual(yield* store.file("s", "a file"), "")
      for (const path of ["none", "src", "a file/below", "hollow"]) assert.isUndefined(yield* store.file("s", path), path)
      assert.deepInclude(yield* fails(store.file("s", "src/a/b.txt")), { _tag: "NotText", offset: 0 })
      assert.strictEqual((yield* fails(store.file("s", "../manifest.json")))._tag, "InvalidPath")
      assert.isUndefined(yield* store.manifest("t"))
      assert.deepStrictEqual(yield* store.tree("t"), [])
      assert.isUndefined(yield* store.file("t", "src/main.py"))
    })
  )

  it.effect("can be searched as a read-only filesystem, even after the snapshot is deleted", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* ready
      yield* store.snapshot("s")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const view = yield* store.view("s")
          yield* store.delete("s")
          assert.deepStrictEqual(yield* capture(view.port), picture(project))
          assert.deepStrictEqual(
            (yield* view.grep("hello")).matches.map(({ path }) => String(path)),
            ["src/main.py"]
          )
          assert.strictEqual((yield* fails(view.write("x", "")))._tag, "AccessDenied")
        })
      )
      assert.deepStrictEqual(openBelow(directory), [])
    })
  )

  it.effect("is reported as damaged, not as absent, if the archive is damaged", () =>
    Effect.gen(function* () {
      const { store } = yield* ready
      const { archivePath } = yield* store.snapshot("s")
      Fs.truncateSync(archivePath, 100)
      const asked: ReadonlyArray<Effect.Effect<unknown, SnapshotStore.SnapshotError | SnapshotStore.ArchiveError | FsError>> = [
        store.manifest("s"),
        store.tree("s"),
        store.file("s", "src/main.py"),
        Effect.scoped(store.view("s"))
      ]
      for (const one of asked) assert.deepInclude(yield* fails(one), { _tag: "ArchiveError", reason: "corrupt" })
    })
  )
})

const worker = fileURLToPath(new URL("snapshotStoreWorker.ts", import.meta.url))

/** Runs a worker and returns its identity when it has ended well. */
const working = (directory: string, name: string, times: number): Effect.Effect<string, Error, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [worker, directory, name, String(times)], { stdio: ["ignore", "pipe", "inherit"] })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child) =>
      Effect.callback<string, Error>((resume) => {
        let said = ""
        child.stdout.on("data", (bytes: Buffer) => (said += bytes.toString()))
        child.on("close", (code) => resume(code === 0 ? Effect.succeed(said) : Effect.fail(new Error(`ended with ${code}`))))
      })
  )

describe("two processes that share a store of snapshots", () => {
  it.live("keep every snapshot of both, and one whole snapshot for a shared name", () =>
    Effect.gen(function* () {
      const { directory, fs, store } = yield* ready
      yield* Effect.all([working(directory, "left", 8), working(directory, "right", 8)], { concurrency: 2 })
      const all = ids(yield* store.list)
      assert.strictEqual(all.length, 17)
      for (const name of ["left", "right"]) {
        assert.deepStrictEqual(
          all.filter((id) => id.startsWith(name)),
          Array.from({ length: 8 }, (_, i) => `${name}-${i}`)
        )
      }
      assert.strictEqual(yield* store.rollback("shared"), 2)
      const who = yield* fs.readString("who")
      assert.include([`${who}7`.repeat(50_000)], yield* fs.readString("large"))
      assert.strictEqual(Fs.readdirSync(directory).length, 17)
    }).pipe(Effect.scoped)
  )

  it.live("remove only leftovers of dead processes, not files in use or of unknown processes", () =>
    Effect.gen(function* () {
      const { directory, store } = yield* ready
      const ended = yield* working(directory, "ended", 1)
      const kept = [
        ...[ended, Identity.self(), Names.elsewhere].map((who) => Names.forged(who, "snapshot")),
        Names.signed(Names.elsewhere, "snapshot"),
        `.~fsa-archive-${"1".repeat(18)}.tmp`,
        `.~fsa-${ended}-${"0".repeat(18)}.tmp`
      ]
      const mine = TemporaryNames.make("snapshot")
      for (const name of [...kept, mine, Names.signed(ended, "snapshot")]) {
        Fs.writeFileSync(join(directory, name), "part")
        Fs.utimesSync(join(directory, name), 1, 1)
      }
      yield* store.snapshot("s")
      assert.deepStrictEqual(
        Fs.readdirSync(directory)
          .filter((name) => name.endsWith(".tmp"))
          .sort(),
        [...kept, mine].sort()
      )
      TemporaryNames.forget(mine)
      assert.deepStrictEqual(ids(yield* store.list).sort(), ["ended-0", "s", "shared"])
    }).pipe(Effect.scoped)
  )
})

describe("the layer of a snapshot store", () => {
  it.effect("uses the filesystem in the context", () =>
    Effect.gen(function* () {
      const directory = join(yield* fastDirectory, "store")
      const layer = Layer.provideMerge(SnapshotStore.layer({ directory }), InMemory.layer({ tree: { f: "v1" } }))
      yield* Effect.provide(
        Effect.gen(function* () {
          const store = yield* SnapshotStore.SnapshotStore
          const fs = yield* Filesystem
          assert.strictEqual(store.filesystem, fs)
          yield* store.snapshot("s")
          yield* fs.write("f", "v2")
          yield* store.rollback("s")
          assert.strictEqual(yield* fs.readString("f"), "v1")
        }),
        layer
      )
    })
  )
})
