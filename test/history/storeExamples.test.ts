/**
 * The usual steps of a program with snapshots and archives: write, snapshot, change, restore. Each step runs on every kind of
 * snapshot store or on every backend that supports it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as FileStore from "../../src/history/FileStore.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import { capture, picture } from "../../src/testing/Files.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { has, needs } from "../faults/ground.ts"

const hasGit = needs("snapshots of a host by git", () => has("git"), "apt-get install git")

const host = Layer.unwrap(Effect.map(fastDirectory, (root) => PosixHost.layer({ root })))
const another = Effect.map(InMemory.make(), make)

const inSubdirectory = decorate((self: Algebra) =>
  Effect.andThen(
    self.mkdir("work"),
    Effect.suspend(() => subdirectory("work")(self))
  )
)
const overMemory = decorate((lower: Algebra) => Effect.map(another, (upper) => overlay(upper)(lower)))

type Kept = Layer.Layer<Filesystem | Snapshots.Snapshots, unknown>

interface Way {
  readonly name: string
  readonly layer: Kept
  readonly isRun: boolean
}

const way = (name: string, layer: Kept, isRun = true): Way => ({ name, layer, isRun })

const ways: ReadonlyArray<Way> = [
  way("in memory", Layer.provideMerge(Snapshots.layer, InMemory.layer())),
  way("in memory that ignores case", Layer.provideMerge(Snapshots.layer, InMemory.layer({ caseInsensitive: true }))),
  way("on a host, by git", Layer.provideMerge(Snapshots.layer, host), hasGit),
  way("on a host, by archives", Layer.provideMerge(Snapshots.layerArchive, host)),
  way("in a subdirectory of a host", Layer.provideMerge(Snapshots.layer, inSubdirectory(host))),
  way("in an overlay over a host", Layer.provideMerge(Snapshots.layer, overMemory(host)))
]

const backends: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Filesystem, unknown>]> = [
  ["memory", InMemory.layer()],
  ["host", host]
]

describe("a rollback to the first of two snapshots removes a new file, and a rollback to the second restores it", () => {
  for (const { isRun, layer, name } of ways) {
    it.live.runIf(isRun)(name, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Snapshots.Snapshots
          yield* fs.write("config.py", "DEBUG = True")
          const v1 = yield* snapshots.snapshot({ tag: "initial" })
          yield* fs.write("config.py", "DEBUG = False")
          yield* fs.write("tests.py", "import pytest")
          const v2 = yield* snapshots.snapshot({ tag: "with-tests" })

          yield* snapshots.restore(v1)
          assert.strictEqual((yield* fs.read("config.py")).content, "DEBUG = True")
          assert.isFalse(yield* fs.exists("tests.py"))

          yield* snapshots.restore(v2)
          assert.strictEqual((yield* fs.read("config.py")).content, "DEBUG = False")
          assert.isTrue(yield* fs.exists("tests.py"))
          assert.deepStrictEqual(
            (yield* snapshots.list).map(({ tag }) => tag),
            ["initial", "with-tests"]
          )
        }),
        layer
      )
    )
  }
})

describe("snapshots as values in a session", () => {
  for (const { isRun, layer, name } of ways) {
    it.live.runIf(isRun)(`are appended to a slice and read, and the last one is restored: ${name}`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Snapshots.Snapshots
          const codec = Schema.toCodecJson(Snapshots.FilesystemSnapshot)
          const slice: Array<string> = []
          for (const content of ["1", "2"]) {
            yield* fs.write("f", content)
            slice.push(JSON.stringify(yield* Schema.encodeEffect(codec)(yield* snapshots.snapshot({ tag: content }))))
          }
          yield* fs.write("f", "3")
          const all = yield* Effect.forEach(slice, (text) => Schema.decodeUnknownEffect(codec)(JSON.parse(text)))
          yield* snapshots.restore(all.at(-1)!)
          assert.strictEqual(yield* fs.readString("f"), "2")
          yield* snapshots.restore(all[0]!)
          assert.strictEqual(yield* fs.readString("f"), "1")
        }),
        layer
      )
    )

    it.live.runIf(isRun)(`fail with SnapshotRestoreError if they are unknown or incompatible, without changes: ${name}`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Snapshots.Snapshots
          yield* fs.write("f", "1")
          const snapshot = yield* snapshots.snapshot()
          yield* fs.write("f", "2")
          const { FilesystemSnapshot } = Snapshots
          const elsewhere = new FilesystemSnapshot({ ...snapshot, rootPath: "/elsewhere" })
          const never = new FilesystemSnapshot({ ...snapshot, snapshotId: "00000000-0000-4000-8000-000000000000" })
          const failed = { _tag: "SnapshotRestoreError" } as const
          assert.deepInclude(yield* Effect.flip(snapshots.restore(elsewhere)), { ...failed, reason: "incompatible" })
          assert.deepInclude(yield* Effect.flip(snapshots.restore(never)), { ...failed, reason: "unknown" })
          yield* snapshots.forget(snapshot)
          assert.deepInclude(yield* Effect.flip(snapshots.restore(snapshot)), { ...failed, reason: "unknown" })
          assert.strictEqual(yield* fs.readString("f"), "2")
        }),
        layer
      )
    )
  }

  it.live.runIf(hasGit)("are restored by another layer on the same git directory, as after a restart", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const root = join(top, "workspace")
      Fs.mkdirSync(root)
      const session = Layer.provideMerge(Snapshots.layerGit({ gitDir: join(top, "store") }), PosixHost.layer({ root }))
      const v1 = yield* Effect.provide(
        Effect.gen(function* () {
          yield* (yield* Filesystem).write("f", "1")
          return yield* (yield* Snapshots.Snapshots).snapshot()
        }),
        session
      )
      Fs.rmSync(root, { recursive: true })
      Fs.mkdirSync(root)
      yield* Effect.provide(
        Effect.flatMap(Snapshots.Snapshots, ({ restore }) => restore(v1)),
        session
      )
      assert.strictEqual(Fs.readFileSync(join(root, "f"), "utf8"), "1")
    })
  )
})

describe("the strategies of snapshots", () => {
  it.effect("number snapshots in memory as mem-1 and mem-2", () =>
    Effect.provide(
      Effect.gen(function* () {
        const { snapshot } = yield* Snapshots.Snapshots
        assert.deepStrictEqual([(yield* snapshot()).commitRef, (yield* snapshot()).commitRef], ["mem-1", "mem-2"])
      }),
      Layer.provideMerge(Snapshots.layer, InMemory.layer())
    )
  )

  it.live.runIf(hasGit)(
    "use a temporary git repository outside the root, which is removed with the layer and stores equal files once",
    () =>
      Effect.gen(function* () {
        const root = yield* fastDirectory
        const gitDir = yield* Effect.provide(
          Effect.gen(function* () {
            const fs = yield* Filesystem
            const snapshots = yield* Snapshots.Snapshots
            yield* fs.write("app.py", "print('app')")
            const first = yield* snapshots.snapshot()
            yield* fs.write("copy of app.py", "print('app')")
            yield* fs.write("utils.py", "new")
            const second = yield* snapshots.snapshot()
            const directory = first.gitDir!
            assert.strictEqual(dirname(directory), Fs.realpathSync(tmpdir()))
            assert.match(basename(directory), /^fs-algebra-git-[0-9a-f]+$/)
            assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["app.py", "copy of app.py", "utils.py"])
            const git = (...args: ReadonlyArray<string>) =>
              execFileSync("git", [`--git-dir=${directory}`, ...args], { encoding: "utf8" }).trim()
            const blob = (ref: string, path: string) => git("rev-parse", `${ref}:${path}`)
            const same = [
              blob(first.commitRef, "app.py"),
              blob(second.commitRef, "app.py"),
              blob(second.commitRef, "copy of app.py")
            ]
            assert.strictEqual(new Set(same).size, 1)
            assert.notStrictEqual(blob(second.commitRef, "utils.py"), same[0])
            assert.strictEqual(git("cat-file", "blob", same[0]!), "print('app')")
            return directory
          }),
          Layer.provideMerge(Snapshots.layer, PosixHost.layer({ root }))
        )
        assert.isFalse(Fs.existsSync(gitDir))
      })
  )

  for (const { isRun, layer, name } of ways) {
    it.live.runIf(isRun)(`restore files that git would ignore: ${name}`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Snapshots.Snapshots
          yield* fs.write(".gitignore", "*.log\nbuild/\n")
          yield* fs.write("kept.log", "captured though ignored")
          yield* fs.write("deleted.txt", "back again")
          const before = yield* capture(fs.port)
          const snapshot = yield* snapshots.snapshot()
          yield* fs.delete("kept.log")
          yield* fs.delete("deleted.txt")
          yield* fs.write("build/out", "made since")
          yield* fs.write("new.log", "made since")
          yield* snapshots.restore(snapshot)
          assert.deepStrictEqual(yield* capture(fs.port), before)
        }),
        layer
      )
    )
  }
})

describe("a snapshot of files", () => {
  for (const [name, layer] of backends) {
    it.live(`restores the original content of a modified file (${name})`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* FileStore.FileStore
          yield* fs.write("file.txt", "original")
          const snap = yield* fs.snapshot
          yield* fs.write("file.txt", "modified")
          yield* fs.restore(snap)
          assert.strictEqual((yield* fs.read("file.txt")).content, "original")
        }),
        Layer.provideMerge(FileStore.layer, layer)
      )
    )

    it.live(`that the program takes before a risky operation can be restored (${name})`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const backend = yield* FileStore.FileStore
          yield* backend.write("config.json", "old")
          const snapshot = yield* backend.snapshot
          const risky = Effect.andThen(backend.write("config.json", "new"), Effect.fail("tests fail"))
          yield* Effect.catch(risky, () => backend.restore(snapshot))
          assert.strictEqual((yield* backend.read("config.json")).content, "old")
        }),
        Layer.provideMerge(FileStore.layer, layer)
      )
    )
  }

  for (const { isRun, layer, name } of ways) {
    it.live.runIf(isRun)(`is restored by a transaction whose effect fails: ${name}`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* Filesystem
          const { list, transaction } = yield* Snapshots.Snapshots
          yield* fs.write("config.json", "old")
          const failing = transaction(
            Effect.andThen(
              Effect.all([fs.write("config.json", "new"), fs.write("more", "x")]),
              Effect.fail("tests fail" as const)
            )
          )
          assert.strictEqual(yield* Effect.flip(failing), "tests fail")
          assert.deepStrictEqual(yield* capture(fs.port), picture({ "config.json": "old" }))
          const succeeding = transaction(Effect.as(fs.write("config.json", "new"), "tests pass"))
          assert.strictEqual(yield* succeeding, "tests pass")
          assert.deepStrictEqual(yield* capture(fs.port), picture({ "config.json": "new" }))
          assert.deepStrictEqual(yield* list, [])
        }),
        layer
      )
    )
  }
})

/** Creates a SnapshotStore for the filesystem in a new directory. */
const storeOf = (fs: Algebra): Effect.Effect<SnapshotStore.Operations, SnapshotStore.SnapshotError, Scope.Scope> =>
  Effect.flatMap(fastDirectory, (top) =>
    Effect.provideService(SnapshotStore.make({ directory: join(top, "snapshots") }), Filesystem, fs)
  )

describe("a filesystem in memory or on a host", () => {
  for (const [name, layer] of backends) {
    it.live(`reads a written file (${name})`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* FileStore.FileStore
          assert.strictEqual(yield* fs.write("test.txt", "hello"), 5)
          assert.strictEqual((yield* fs.read("test.txt")).content, "hello")
        }),
        Layer.provideMerge(FileStore.layer, layer)
      )
    )

    it.live(`exports one file, and an import restores its original content (${name})`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* FileStore.FileStore
          const archive = join(yield* fastDirectory, "sub/snapshot.zip")
          yield* fs.write("file.txt", "original")
          assert.strictEqual(yield* Archive.exportArchive(archive), 1)
          yield* fs.write("file.txt", "modified")
          assert.strictEqual(yield* Archive.importArchive(archive), 1)
          assert.strictEqual((yield* fs.read("file.txt")).content, "original")
        }),
        Layer.provideMerge(FileStore.layer, layer)
      )
    )

    it.live(`restores a changed file and a deleted directory by a rollback (${name})`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* FileStore.FileStore
          const snapshots = yield* storeOf(yield* Filesystem)
          yield* fs.write("src/main.py", "print('hello')")
          yield* snapshots.snapshot("before-refactor")
          yield* fs.write("src/main.py", "print('broken')")
          assert.strictEqual(yield* fs.delete("tests/"), 0)
          assert.strictEqual(yield* snapshots.rollback("before-refactor"), 1)
          assert.strictEqual((yield* fs.read("src/main.py")).content, "print('hello')")
        }),
        Layer.provideMerge(FileStore.layer, layer)
      )
    )

    it.live(`rolls back to each of two snapshots (${name})`, () =>
      Effect.provide(
        Effect.gen(function* () {
          const fs = yield* FileStore.FileStore
          const snapshots = yield* storeOf(yield* Filesystem)
          yield* fs.write("file.txt", "v1")
          yield* snapshots.snapshot("s1")
          yield* fs.write("file.txt", "v2")
          yield* snapshots.snapshot("s2")
          yield* fs.write("file.txt", "v3")
          for (const [id, content] of [
            ["s1", "v1"],
            ["s2", "v2"]
          ] as const) {
            yield* snapshots.rollback(id)
            assert.strictEqual((yield* fs.read("file.txt")).content, content)
          }
          assert.deepStrictEqual(
            (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
            ["s1", "s2"]
          )
        }),
        Layer.provideMerge(FileStore.layer, layer)
      )
    )
  }

  it.live("restores an archive from memory on a host, and an archive from a host in memory", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const memory = yield* another
      yield* memory.write("src/main.py", "print('hello')")
      yield* memory.write("README.md", "# Project")
      const archive = join(top, "snapshot.zip")
      yield* Archive.exportArchiveOf(memory, archive)

      const root = join(top, "workspace")
      Fs.mkdirSync(root)
      const workspace = make(yield* PosixHost.make({ root }))
      yield* workspace.write("in the way", "x")
      assert.strictEqual(yield* Archive.importArchiveOf(workspace, archive), 2)
      assert.strictEqual(Fs.readFileSync(join(root, "src/main.py"), "utf8"), "print('hello')")
      assert.strictEqual(Fs.readFileSync(join(root, "README.md"), "utf8"), "# Project")
      assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["README.md", "src"])

      const back = yield* another
      yield* Archive.exportArchiveOf(workspace, archive)
      yield* Archive.importArchiveOf(back, archive)
      assert.deepStrictEqual(yield* capture(back.port), yield* capture(memory.port))
    })
  )

  it.live("resumes from the archive beside a session's file, with a new store on a different backend", () =>
    Effect.gen(function* () {
      const target = yield* fastDirectory
      const before = yield* another
      yield* before.write("code.py", "v1")
      yield* Archive.exportArchiveOf(before, join(target, "abc123.fs.zip"))
      const root = join(target, "workspace")
      Fs.mkdirSync(root)
      const after = make(yield* PosixHost.make({ root }))
      assert.strictEqual(yield* (yield* storeOf(after)).restore(join(target, "abc123.fs.zip")), 1)
      assert.strictEqual(Fs.readFileSync(join(root, "code.py"), "utf8"), "v1")
    })
  )
})
