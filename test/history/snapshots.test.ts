import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { dirname, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly, subdirectory } from "../../src/filesystem/Decorator.ts"
import { decorate, Filesystem, layer as layerOf } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Limits from "../../src/model/Limits.ts"
import { capture } from "../../src/testing/Files.ts"
import { storeFault } from "../../src/history/errors.ts"
import { make as makeService } from "../../src/history/snapshots/service.ts"
import type { StoredSnapshot, Strategy } from "../../src/history/snapshots/strategy.ts"
import { fastDirectory as directory } from "../backends/posixHost.ts"
import { byKind, host, shown, type SnapshotLayer } from "./support.ts"

const { Snapshots: Service } = Snapshots

const kinds: Record<string, SnapshotLayer> = {
  memory: Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer())),
  "memory that ignores case": Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer({ caseInsensitive: true }))),
  "a host, by git": Snapshots.layer.pipe(Layer.provideMerge(host)),
  "a host, by archives": Snapshots.layerArchive.pipe(Layer.provideMerge(host)),
  "a combinator": Snapshots.layer.pipe(
    Layer.provideMerge(InMemory.layer({ tree: { sub: {} } }).pipe(decorate(subdirectory("sub"))))
  )
}

const tree = Effect.flatMap(Filesystem, (fs) => capture(fs.port))

for (const [name, layer] of Object.entries(kinds)) {
  describe(`snapshots of ${name}`, () => {
    it.live("list the differences, restore changed and removed entries, and remove new entries", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Service
        yield* fs.write("a/b.txt", "one\n")
        yield* fs.mkdir("empty/dir")
        yield* fs.symlink("link", "a/b.txt")
        const before = yield* tree
        const first = yield* snapshots.snapshot({ tag: "first" })
        assert.strictEqual(first.tag, "first")
        yield* fs.write("a/b.txt", "two\n")
        yield* fs.write("new.txt", "new\n")
        yield* fs.delete("empty", { recursive: true })
        const second = yield* snapshots.snapshot()
        const after = yield* tree
        const there = ["Added new.txt", "Modified a/b.txt", "Removed empty", "Removed empty/dir"]
        assert.deepStrictEqual(shown(yield* snapshots.diff(first, second)).sort(), there)
        assert.deepStrictEqual(shown(yield* snapshots.diff(first)).sort(), there)
        assert.deepStrictEqual(yield* snapshots.diff(second), [])
        const { changes } = yield* snapshots.restore(first)
        assert.deepStrictEqual(shown(changes).sort(), ["Added empty", "Added empty/dir", "Modified a/b.txt", "Removed new.txt"])
        assert.deepStrictEqual(yield* tree, before)
        yield* snapshots.restore(second)
        assert.deepStrictEqual(yield* tree, after)
        assert.deepStrictEqual(
          (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
          [first.snapshotId, second.snapshotId]
        )
      }).pipe(Effect.provide(layer))
    )

    it.live("can be viewed and searched, but not written", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Service
        yield* fs.write("a/b.txt", "needle\n")
        const taken = yield* snapshots.snapshot()
        yield* fs.write("a/b.txt", "other\n")
        yield* fs.write("c.txt", "needle\n")
        const past = yield* snapshots.view(taken)
        assert.deepStrictEqual(
          (yield* past.grep("needle")).matches.map(({ path }) => path),
          ["a/b.txt"]
        )
        assert.deepStrictEqual(
          (yield* past.glob("**/*")).matches.map(({ path }) => path),
          ["a/b.txt"]
        )
        assert.strictEqual((yield* Effect.flip(past.write("x", "y")))._tag, "AccessDenied")
        assert.strictEqual((yield* Effect.flip(past.delete("a", { recursive: true })))._tag, "AccessDenied")
        assert.strictEqual(yield* fs.readString("a/b.txt"), "other\n")
      }).pipe(Effect.provide(layer))
    )

    it.live("can be restored for some paths only", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Service
        yield* fs.write("a/1", "1")
        yield* fs.write("b/1", "1")
        const taken = yield* snapshots.snapshot()
        yield* fs.write("a/1", "changed")
        yield* fs.write("b/1", "changed")
        yield* fs.write("b/2", "new")
        const { changes } = yield* snapshots.restore(taken, { paths: ["b", "never/there"] })
        assert.deepStrictEqual(shown(changes), ["Modified b/1", "Removed b/2"])
        assert.strictEqual(yield* fs.readString("a/1"), "changed")
        const error = yield* Effect.flip(snapshots.restore(taken, { paths: ["../x"] }))
        assert.strictEqual(error._tag, "SnapshotRestoreError")
      }).pipe(Effect.provide(layer))
    )

    it.live("are refused if the value is foreign or forged, and nothing changes", () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Service
        yield* fs.write("a", "1")
        const taken = yield* snapshots.snapshot()
        yield* fs.write("a", "2")
        const values = { ...taken }
        const refs = ["mem-1", "mem-99", "0".repeat(40), "HEAD", `zip:${"0".repeat(64)}`, "--help", "", "a".repeat(41)]
        const hostile: ReadonlyArray<unknown> = [
          undefined,
          null,
          "snapshot",
          {},
          { ...taken },
          new Snapshots.FilesystemSnapshot({ ...values, snapshotId: "6f2f2b1e-0000-4000-8000-000000000000" }),
          new Snapshots.FilesystemSnapshot({ ...values, snapshotId: "../../x" }),
          new Snapshots.FilesystemSnapshot({ ...values, rootPath: "/somewhere/else" }),
          new Snapshots.FilesystemSnapshot({ ...values, gitDir: "/tmp/another" }),
          ...refs
            .filter((ref) => ref !== taken.commitRef)
            .map((commitRef) => new Snapshots.FilesystemSnapshot({ ...values, commitRef }))
        ]
        for (const value of hostile) {
          const snapshot = value as Snapshots.FilesystemSnapshot
          const error = yield* Effect.flip(snapshots.restore(snapshot))
          assert.include(["unknown", "incompatible"], error.reason, JSON.stringify(value))
          assert.strictEqual((yield* Effect.flip(snapshots.diff(snapshot)))._tag, "SnapshotError")
          assert.strictEqual((yield* Effect.flip(snapshots.view(snapshot)))._tag, "SnapshotError")
          assert.strictEqual((yield* Effect.flip(snapshots.forget(snapshot)))._tag, "SnapshotError")
        }
        assert.strictEqual(yield* fs.readString("a"), "2")
        yield* snapshots.restore(taken)
        assert.strictEqual(yield* fs.readString("a"), "1")
      }).pipe(Effect.provide(layer))
    )

    it.live("are unknown after they are forgotten", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "1")
        const first = yield* snapshots.snapshot()
        const second = yield* snapshots.snapshot()
        yield* snapshots.forget(first)
        yield* snapshots.collect
        assert.strictEqual((yield* Effect.flip(snapshots.restore(first))).reason, "unknown")
        assert.strictEqual((yield* Effect.flip(snapshots.forget(first))).reason, "unknown")
        yield* fs.write("a", "2")
        yield* snapshots.restore(second)
        assert.strictEqual(yield* fs.readString("a"), "1")
        assert.strictEqual((yield* snapshots.stats).snapshots, 1)
      }).pipe(Effect.provide(layer))
    )

    it.live("are complete when they are taken after other snapshots were forgotten and collected", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a/b/c", "content\n".repeat(100))
        yield* snapshots.forget(yield* snapshots.snapshot())
        yield* snapshots.collect
        const taken = yield* snapshots.snapshot()
        yield* fs.delete("a", { recursive: true })
        yield* snapshots.restore(taken)
        assert.strictEqual(yield* fs.readString("a/b/c"), "content\n".repeat(100))
      }).pipe(Effect.provide(layer))
    )

    it.live("have labels of one line of text", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        for (const tag of ["two\nlines", "\u0000", "\ud800", "x".repeat(1001)]) {
          assert.strictEqual((yield* Effect.flip(snapshots.snapshot({ tag }))).reason, "refused")
        }
        const taken = yield* snapshots.snapshot({ tag: "é — “tag”", tool: "write_file", callId: "call-1" })
        assert.strictEqual((yield* snapshots.list)[0]?.tag, "é — “tag”")
        const { callId, tool } = yield* snapshots.details(taken)
        assert.deepStrictEqual([tool, callId], ["write_file", "call-1"])
      }).pipe(Effect.provide(layer))
    )

    it.live("have details with the files and lines changed since the previous snapshot", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a.txt", "1\n2\n3\n")
        yield* fs.write("b.txt", "1\n")
        yield* snapshots.snapshot()
        yield* fs.write("a.txt", "1\nII\nIII\n3\n")
        yield* fs.delete("b.txt")
        yield* fs.write("d/c.bin", "\0\n\n\n")
        const { bytes, files, filesChanged, linesAdded, linesRemoved } = yield* snapshots.details(yield* snapshots.snapshot())
        assert.deepStrictEqual(
          { bytes, files, filesChanged, linesAdded, linesRemoved },
          { bytes: 15, files: 2, filesChanged: 3, linesAdded: 2, linesRemoved: 2 }
        )
      }).pipe(Effect.provide(layer))
    )

    it.live("roll back a transaction that fails, dies or is interrupted", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "before")
        const work = Effect.andThen(fs.write("a", "after"), fs.write("b/c", "new"))
        const failed = yield* Effect.exit(snapshots.transaction(Effect.andThen(work, Effect.fail("no"))))
        assert.deepStrictEqual(Exit.isFailure(failed) && Cause.squash(failed.cause), "no")
        const died = yield* Effect.exit(snapshots.transaction(Effect.andThen(work, Effect.die("defect"))))
        assert.deepStrictEqual(Exit.isFailure(died) && Cause.squash(died.cause), "defect")
        const reached = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          snapshots.transaction(Effect.andThen(work, Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)))
        )
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* fs.readString("a"), "before")
        assert.isFalse(yield* fs.exists("b"))
        assert.strictEqual(yield* snapshots.transaction(Effect.as(work, 7)), 7)
        assert.strictEqual(yield* fs.readString("a"), "after")
        assert.deepStrictEqual(yield* snapshots.list, [])
      }).pipe(Effect.provide(layer))
    )

    it.live("roll back nested transactions with the outer transaction", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "0")
        const inner = snapshots.transaction(fs.write("a", "1"))
        const failing = snapshots.transaction(Effect.andThen(fs.write("b", "2"), Effect.fail("inner")))
        yield* snapshots.transaction(
          Effect.gen(function* () {
            yield* inner
            yield* Effect.flip(failing)
            assert.strictEqual(yield* fs.readString("a"), "1")
            assert.isFalse(yield* fs.exists("b"))
          })
        )
        assert.strictEqual(yield* fs.readString("a"), "1")
        yield* fs.write("a", "0")
        yield* Effect.flip(snapshots.transaction(Effect.andThen(inner, Effect.fail("outer"))))
        assert.strictEqual(yield* fs.readString("a"), "0")
      }).pipe(Effect.provide(layer))
    )

    it.live("make other writers wait for a transaction", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "0")
        const reached = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const transaction = yield* Effect.forkChild(
          snapshots.transaction(
            Effect.gen(function* () {
              yield* fs.write("a", "1")
              yield* Deferred.succeed(reached, undefined)
              yield* Deferred.await(gate)
              return yield* Effect.fail("no")
            })
          )
        )
        yield* Deferred.await(reached)
        const other = yield* Effect.forkChild(fs.write("other", "x"), { startImmediately: true })
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.await(transaction)
        yield* Fiber.join(other)
        assert.strictEqual(yield* fs.readString("a"), "0")
        assert.strictEqual(yield* fs.readString("other"), "x")
      }).pipe(Effect.provide(layer))
    )

    it.live("save entries that a restore removes in a safety snapshot", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        const taken = yield* snapshots.snapshot()
        yield* fs.write("precious", "work")
        yield* snapshots.restore(taken, { safety: true, verify: true })
        assert.isFalse(yield* fs.exists("precious"))
        const safety = (yield* snapshots.list).at(-1)!
        yield* snapshots.restore(safety)
        assert.strictEqual(yield* fs.readString("precious"), "work")
      }).pipe(Effect.provide(layer))
    )

    it.live("are named by their ids in the tags of safety snapshots if they are safety snapshots", () =>
      Effect.gen(function* () {
        const [fs, snapshots] = [yield* Filesystem, yield* Service]
        for (const tag of ["before restoring mine", "before importing files.zip"]) {
          const taken = yield* snapshots.snapshot({ tag })
          yield* fs.write("changed", tag)
          const { safety } = yield* snapshots.restore(taken, { safety: true })
          assert.strictEqual(safety!.tag, `before restoring ${taken.snapshotId}`)
        }
      }).pipe(Effect.provide(layer))
    )

    it.live("are values that survive JSON", () =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "1")
        const taken = yield* snapshots.snapshot({ tag: "t" })
        const codec = Schema.toCodecJson(Snapshots.FilesystemSnapshot)
        const text = JSON.stringify(yield* Schema.encodeEffect(codec)(taken))
        const value = yield* Schema.decodeUnknownEffect(codec)(JSON.parse(text))
        yield* fs.write("a", "2")
        yield* snapshots.restore(value)
        assert.strictEqual(yield* fs.readString("a"), "1")
      }).pipe(Effect.provide(layer))
    )
  })
}

describe("snapshots refuse", () => {
  it.live("a restore without permission to write and delete", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const gitDir = join(yield* directory, "store")
      const over = (options: Partial<PosixHost.PosixHostOptions>) =>
        Snapshots.layerGit({ gitDir }).pipe(Layer.provideMerge(PosixHost.layer({ root, ...options })))
      Fs.writeFileSync(join(root, "a"), "1")
      const taken = yield* Effect.provide(
        Service.use((snapshots) => snapshots.snapshot()),
        over({ readOnly: true })
      )
      Fs.writeFileSync(join(root, "a"), "2")
      for (const options of [{ readOnly: true }, { allowWrite: false }, { allowDelete: false }]) {
        const error = yield* Effect.flip(
          Effect.provide(
            Service.use((snapshots) => snapshots.restore(taken)),
            over(options)
          )
        )
        assert.strictEqual(error._tag === "SnapshotRestoreError" && error.reason, "readOnly")
      }
      assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "2")
    })
  )

  it.live("a restore through a read-only view", () =>
    Effect.gen(function* () {
      const snapshots = yield* Service
      const taken = yield* snapshots.snapshot()
      assert.strictEqual((yield* Effect.flip(snapshots.restore(taken))).reason, "readOnly")
    }).pipe(
      Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer({ tree: { a: "1" } }).pipe(decorate(readOnly)))))
    )
  )

  it.live("more files or bytes than the budget, before anything is stored", () =>
    Effect.gen(function* () {
      for (const options of [{ maxFiles: 3 }, { maxBytes: 10 }]) {
        const { git } = byKind(options)
        yield* Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Service
          for (let i = 0; i < 3; i++) yield* fs.write(`${i}`, "123")
          yield* snapshots.snapshot()
          const { objects } = yield* snapshots.stats
          yield* fs.write("one more", "123")
          assert.strictEqual((yield* Effect.flip(snapshots.snapshot())).reason, "budget")
          assert.strictEqual((yield* snapshots.stats).objects, objects)
        }).pipe(Effect.provide(git))
      }
    })
  )

  it.live("more files or bytes than the budget of one call", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const layers = [Snapshots.layerGit({ gitDir: join(yield* directory, "store") }), Snapshots.layerArchive]
      for (const layer of layers) {
        yield* Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Service
          yield* fs.write("one", "1")
          yield* fs.write("two", "12")
          for (const bounds of [{ maxFiles: 1 }, { maxBytes: 2 }]) {
            assert.strictEqual((yield* Effect.flip(snapshots.snapshot(bounds))).reason, "budget")
          }
          assert.deepStrictEqual(yield* snapshots.list, [])
          yield* snapshots.snapshot({ maxFiles: 2, maxBytes: 3 })
        }).pipe(Effect.provide(layer.pipe(Layer.provideMerge(PosixHost.layer({ root })))))
      }
    })
  )

  it.live("the whole machine, a home directory and its parents, with advice to set anyRoot", () =>
    Effect.gen(function* () {
      const gitDir = join(yield* directory, "store")
      const above = yield* directory
      const { HOME: home = "" } = process.env
      yield* Effect.acquireRelease(
        Effect.sync(() => void (process.env["HOME"] = above)),
        () => Effect.sync(() => void (process.env["HOME"] = home))
      )
      // The home directory of the password database counts too, not only that of the environment.
      for (const root of ["/", userInfo().homedir, above, dirname(above)]) {
        const layer = (options: Snapshots.LayerOptions) =>
          Snapshots.layerGit({ gitDir, ...options }).pipe(Layer.provide(PosixHost.layer({ root, readOnly: true })))
        const error = yield* Effect.flip(Effect.provide(Effect.void, layer({})))
        assert.strictEqual(error._tag === "SnapshotError" && error.reason, "refused")
        assert.match(error.message, /the root is (?:the whole machine|a .*home directory); set anyRoot to capture it anyway/)
      }
    })
  )

  it.live("a store inside an open root", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const layer = Snapshots.layerGit({ gitDir: join(root, ".git") }).pipe(Layer.provideMerge(PosixHost.layer({ root })))
      const error = yield* Effect.flip(Effect.provide(Effect.void, layer))
      assert.strictEqual(error._tag === "SnapshotError" && error.reason, "refused")
      assert.deepStrictEqual(Fs.readdirSync(root), [])
    })
  )

  it.live("another root's snapshot in the same store", () =>
    Effect.gen(function* () {
      const gitDir = join(yield* directory, "store")
      const [one, other] = [yield* directory, yield* directory]
      const over = (root: string) => Snapshots.layerGit({ gitDir }).pipe(Layer.provideMerge(PosixHost.layer({ root })))
      const taken = yield* Effect.provide(
        Service.use((snapshots) => snapshots.snapshot()),
        over(one)
      )
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        assert.deepStrictEqual(yield* snapshots.list, [])
        assert.strictEqual((yield* Effect.flip(snapshots.restore(taken))).reason, "incompatible")
        const renamed = new Snapshots.FilesystemSnapshot({ ...taken, rootPath: other })
        assert.strictEqual((yield* Effect.flip(snapshots.restore(renamed))).reason, "unknown")
      }).pipe(Effect.provide(over(other)))
    })
  )
})

describe("a snapshot with larger limits than the layer", () => {
  const small = { maxFiles: 1, maxBytes: 1 }

  for (const [kind, layer] of Object.entries(byKind(small))) {
    it.live(`can be viewed, compared and restored, by ${kind}`, () =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Service
        yield* fs.write("one", "1")
        yield* fs.write("two", "12")
        const before = yield* tree
        const taken = yield* snapshots.snapshot({ maxFiles: 2, maxBytes: 3 })
        yield* fs.write("two", "changed", { mode: "overwrite" })
        assert.deepStrictEqual(shown(yield* snapshots.diff(taken)), ["Modified two"])
        assert.strictEqual(yield* (yield* snapshots.view(taken)).readString("two"), "12")
        yield* snapshots.restore(taken)
        assert.deepStrictEqual(yield* tree, before)
      }).pipe(Effect.provide(layer))
    )
  }

  it.live("can be restored if the limits of archives are now smaller than at its capture", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      const snapshots = yield* Service
      yield* fs.write("a/b", "123")
      const taken = yield* snapshots.snapshot()
      yield* fs.write("a/b", "changed", { mode: "overwrite" })
      const smaller = { ...Limits.standard, maxArchiveEntries: 1, maxArchiveBytes: 1 }
      yield* Effect.provideService(snapshots.restore(taken), Limits.Limits, smaller)
      assert.strictEqual(yield* fs.readString("a/b"), "123")
    }).pipe(Effect.provide(byKind({})["archive"]))
  )
})

describe("a file that becomes shorter while a snapshot reads it, on a filesystem without stamps,", () => {
  /** Provides a filesystem in memory whose first opened files are one byte shorter than their stat says. */
  const shrinking = (gitDir: string, times: number) => {
    let left = times
    const memory = Effect.map(InMemory.make(), (port) => ({
      ...port,
      history: undefined,
      perform: undefined,
      open: (path: FsPath) =>
        Effect.map(port.open(path), (handle) =>
          left-- > 0 ? { ...handle, stat: { ...handle.stat, sizeBytes: handle.stat.sizeBytes + 1 } } : handle
        )
    }))
    return Snapshots.layerGit({ gitDir }).pipe(Layer.provideMerge(layerOf(memory)))
  }

  for (const size of [3, 2_000_000]) {
    it.live(`is captured in its new state (${size} bytes)`, () =>
      Effect.gen(function* () {
        const gitDir = join(yield* directory, "store")
        yield* Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Service
          yield* fs.write("file", "x".repeat(size))
          const past = yield* snapshots.view(yield* snapshots.snapshot())
          assert.strictEqual((yield* past.stat("file")).sizeBytes, size)
        }).pipe(Effect.provide(shrinking(gitDir, 1)))
      })
    )
  }

  it.live("fails the snapshot if it becomes shorter on every attempt", () =>
    Effect.gen(function* () {
      const gitDir = join(yield* directory, "store")
      yield* Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Service
        yield* fs.write("file", "123")
        const { detail, reason } = yield* Effect.flip(snapshots.snapshot())
        assert.strictEqual(reason, "io")
        assert.include(detail, "changes each time")
      }).pipe(Effect.provide(shrinking(gitDir, Infinity)))
    })
  )
})

describe("retention", () => {
  it.live("keeps the newest snapshots up to the maximum", () =>
    Effect.gen(function* () {
      for (const layer of Object.values(byKind({ retention: { maxSnapshots: 2 } }))) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const fs = yield* Filesystem
          const all: Array<string> = []
          for (let i = 0; i < 5; i++) {
            yield* fs.write("a", `${i}`)
            all.push((yield* snapshots.snapshot()).snapshotId)
          }
          assert.deepStrictEqual(
            (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
            all.slice(-2)
          )
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("drops snapshots that are too old, except the newest", () =>
    Effect.gen(function* () {
      for (const layer of Object.values(byKind({ retention: { maxAge: -1 } }))) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          yield* snapshots.snapshot()
          const last = yield* snapshots.snapshot()
          assert.deepStrictEqual(
            (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
            [last.snapshotId]
          )
          assert.isTrue(DateTime.isDateTime(last.createdAt))
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("spares the snapshot that is being restored when a safety snapshot is taken", () =>
    Effect.gen(function* () {
      for (const layer of Object.values(byKind({ retention: { maxSnapshots: 1 } }))) {
        yield* Effect.gen(function* () {
          const snapshots = yield* Service
          const fs = yield* Filesystem
          yield* fs.write("a", "1")
          const taken = yield* snapshots.snapshot({ tag: "x".repeat(1000) })
          yield* fs.write("a", "2")
          const { safety } = yield* snapshots.restore(taken, { safety: true })
          assert.strictEqual(yield* fs.readString("a"), "1")
          yield* snapshots.restore(safety!)
          assert.strictEqual(yield* fs.readString("a"), "2")
          assert.isUndefined((yield* snapshots.restore(safety!, { safety: true })).safety)
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.live("keeps the store within its maximum size, and always keeps the newest snapshot", () =>
    Effect.gen(function* () {
      const maxBytes = 400_000
      const { git } = byKind({ retention: { maxBytes } })
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        const random = (seed: number) => Buffer.from(Array.from({ length: 60_000 }, (_, i) => (i * seed * 2654435761) >>> 24))
        const all: Array<string> = []
        for (let i = 1; i <= 12; i++) {
          yield* fs.writeBytes("noise", random(i * 7919))
          all.push((yield* snapshots.snapshot()).snapshotId)
        }
        const kept = (yield* snapshots.list).map(({ snapshotId }) => snapshotId)
        assert.deepStrictEqual(kept, all.slice(-kept.length))
        assert.isAtLeast(kept.length, 1)
        assert.isAtMost((yield* snapshots.stats).bytes, maxBytes)
      }).pipe(Effect.provide(git))
    })
  )
})

/** Returns the path of the archive of a snapshot. */
const archiveOf = ({ snapshotId }: Snapshots.FilesystemSnapshot): string => {
  const path = Fs.readdirSync(tmpdir())
    .filter((name) => name.startsWith("fs-algebra-archives-"))
    .map((name) => join(tmpdir(), name, `${snapshotId}.zip`))
    .find((path) => Fs.existsSync(path))
  assert.isDefined(path)
  return path!
}

const target = (descriptor: string): string => {
  try {
    return Fs.readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ""
  }
}

/** Counts the descriptors of this process that are open on the file, even if it has been removed. */
const opensOf = (path: string): number =>
  Fs.readdirSync("/proc/self/fd").filter((descriptor) => target(descriptor).startsWith(path)).length

describe("snapshots:", () => {
  it.live.each(Object.entries(byKind({ retention: { maxSnapshots: 1 } })))(
    "a transaction does not count for retention, and rolls back when snapshots expire in it, in %s",
    ([, layer]) =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "before")
        const mine = yield* snapshots.snapshot()
        yield* snapshots.transaction(fs.write("b", "x"))
        assert.deepStrictEqual(
          (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
          [mine.snapshotId]
        )
        yield* Effect.flip(
          snapshots.transaction(
            Effect.gen(function* () {
              yield* fs.write("a", "after")
              yield* snapshots.snapshot()
              return yield* Effect.fail("no")
            })
          )
        )
        assert.strictEqual(yield* fs.readString("a"), "before")
      }).pipe(Effect.provide(layer))
  )

  it.live.each(Object.entries(byKind({})).slice(0, 2))(
    "details are right after a transaction and after the newest snapshot is forgotten, in %s",
    ([, layer]) =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "1\n")
        yield* snapshots.snapshot()
        yield* snapshots.transaction(fs.write("a", "2\n"))
        yield* snapshots.forget(yield* snapshots.snapshot())
        yield* fs.write("b", "3\n")
        const { filesChanged } = yield* snapshots.details(yield* snapshots.snapshot())
        assert.strictEqual(filesChanged, 2)
      }).pipe(Effect.provide(layer))
  )

  it.effect.each(Object.entries(byKind({ retention: { maxSnapshots: 3 } })).slice(0, 2))(
    "snapshots keep their order when the clock stands still or goes back, in %s",
    ([, layer]) =>
      Effect.gen(function* () {
        const snapshots = yield* Service
        const taken: Array<string> = []
        for (const time of [5000, 5000, 5000, 1000, 0, -1000, -1000]) {
          yield* TestClock.setTime(time)
          taken.push((yield* snapshots.snapshot()).snapshotId)
        }
        assert.deepStrictEqual(
          (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
          taken.slice(-3)
        )
      }).pipe(Effect.provide(layer))
  )

  it.live.each(Object.entries(byKind({})))("a path through a link is refused, in %s", ([, layer]) =>
    Effect.gen(function* () {
      const snapshots = yield* Service
      const fs = yield* Filesystem
      yield* fs.write("d/f", "1")
      yield* fs.symlink("link", "d")
      const taken = yield* snapshots.snapshot()
      const error = yield* Effect.flip(snapshots.restore(taken, { paths: ["link/f"] }))
      assert.include(error.detail, '"link" is a symlink')
      yield* snapshots.restore(taken, { paths: ["link"] })
    }).pipe(Effect.provide(layer))
  )

  it.live.each(Object.entries(byKind({ git: "exclude" })))("an excluded .git is left alone, in %s", ([, layer]) =>
    Effect.gen(function* () {
      const snapshots = yield* Service
      const fs = yield* Filesystem
      yield* fs.write(".git/HEAD", "first\n")
      yield* fs.write("a", "1")
      const taken = yield* snapshots.snapshot()
      yield* fs.write(".git/HEAD", "second\n")
      yield* fs.write("a", "2")
      assert.deepStrictEqual(shown(yield* snapshots.diff(taken)), ["Modified a"])
      assert.deepStrictEqual(shown((yield* snapshots.restore(taken)).changes), ["Modified a"])
      assert.strictEqual(yield* fs.readString(".git/HEAD"), "second\n")
      assert.strictEqual(yield* fs.readString("a"), "1")
    }).pipe(Effect.provide(layer))
  )

  it.live("a dry run and a restore report the parents that must be created for a path in another case", () =>
    Effect.gen(function* () {
      const snapshots = yield* Service
      const fs = yield* Filesystem
      yield* fs.write("Src/deep/a", "1")
      const taken = yield* snapshots.snapshot()
      yield* fs.delete("Src", { recursive: true })
      const expected = ["Added Src", "Added Src/deep", "Added Src/deep/a"]
      const options = { paths: ["SRC/deep/A"] }
      assert.deepStrictEqual(shown((yield* snapshots.restore(taken, { ...options, dryRun: true })).changes), expected)
      assert.isFalse(yield* fs.exists("Src"))
      assert.deepStrictEqual(shown((yield* snapshots.restore(taken, options)).changes), expected)
      assert.strictEqual(yield* fs.readString("src/deep/a"), "1")
    }).pipe(Effect.provide(Snapshots.layer.pipe(Layer.provideMerge(InMemory.layer({ caseInsensitive: true })))))
  )

  it.live("a snapshot that a restore needs is kept in addition to the retained snapshots", () =>
    Effect.gen(function* () {
      const snapshots = yield* Service
      const fs = yield* Filesystem
      const taken: Array<Snapshots.FilesystemSnapshot> = []
      for (let i = 0; i < 3; i++) {
        yield* fs.write("a", `${i}`)
        taken.push(yield* snapshots.snapshot())
      }
      yield* fs.write("a", "now")
      const { safety } = yield* snapshots.restore(taken[0]!, { safety: true })
      // The newest three are the second, the third and the safety snapshot; the first was being restored.
      assert.deepStrictEqual(
        (yield* snapshots.list).map(({ snapshotId }) => snapshotId),
        [...taken, safety!].map(({ snapshotId }) => snapshotId)
      )
    }).pipe(Effect.provide(Snapshots.layerWith({ retention: { maxSnapshots: 3 } }).pipe(Layer.provideMerge(InMemory.layer()))))
  )

  it.effect("the safety snapshot stays when the restore fails, because the tree may have changed", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const forgotten: Array<string> = []
      const kept = (snapshotId: string): StoredSnapshot => ({
        snapshot: new Snapshots.FilesystemSnapshot({
          snapshotId,
          createdAt: DateTime.makeUnsafe(0),
          commitRef: "mem-1",
          rootPath: port.info.root
        }),
        label: {},
        counts: Effect.succeed({ files: 0, bytes: 0 })
      })
      const wanted = kept("6f2f2b1e-0000-4000-8000-000000000001")
      const strategy: Partial<Strategy> = {
        name: "memory",
        commitRef: /^mem-1$/,
        rootPath: port.info.root,
        take: () => Effect.succeed(kept("6f2f2b1e-0000-4000-8000-000000000002")),
        find: () => Effect.succeed(wanted),
        restore: () => Effect.fail(storeFault("io", "it is not as it was captured")),
        forget: ({ snapshot }) => Effect.sync(() => void forgotten.push(snapshot.snapshotId))
      }
      const snapshots = makeService(strategy as Strategy, port)
      yield* Effect.flip(snapshots.restore(wanted.snapshot, { safety: true, verify: true }))
      assert.deepStrictEqual(forgotten, [])
    })
  )

  it.live("the snapshot of a transaction is forgotten if the transaction is interrupted after it was stored", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const stored = new Map<string, StoredSnapshot>()
      const hasStored = yield* Deferred.make<void>()
      const strategy: Partial<Strategy> = {
        take: (label, { snapshotId = "" } = {}) => {
          const snapshot = new Snapshots.FilesystemSnapshot({
            snapshotId,
            createdAt: DateTime.makeUnsafe(0),
            commitRef: "mem-1",
            rootPath: port.info.root
          })
          stored.set(snapshotId, { snapshot, label, counts: Effect.succeed({ files: 0, bytes: 0 }) })
          return Effect.andThen(Deferred.succeed(hasStored, undefined), Effect.never)
        },
        find: (snapshotId) => Effect.sync(() => stored.get(snapshotId)),
        forget: ({ snapshot }) => Effect.sync(() => void stored.delete(snapshot.snapshotId))
      }
      const running = yield* Effect.forkChild(makeService(strategy as Strategy, port).transaction(Effect.void))
      yield* Deferred.await(hasStored)
      assert.strictEqual(stored.size, 1)
      yield* Fiber.interrupt(running)
      assert.strictEqual(stored.size, 0)
    })
  )

  it.live.skipIf(!Fs.existsSync("/proc/self/fd"))("a changed archive is refused each time and not kept open", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const layer = Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root })))
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "1")
        const taken = yield* snapshots.snapshot()
        const path = archiveOf(taken)
        const bytes = Fs.readFileSync(path)
        Fs.writeFileSync(path, "changed")
        for (let i = 0; i < 3; i++) {
          assert.deepInclude(yield* Effect.flip(snapshots.restore(taken)), { reason: "corrupt" })
          assert.strictEqual(opensOf(path), 0)
        }
        Fs.writeFileSync(path, bytes)
        for (let i = 0; i < 3; i++) {
          yield* fs.write("a", "2")
          yield* snapshots.restore(taken)
          assert.strictEqual(yield* fs.readString("a"), "1")
          assert.strictEqual(opensOf(path), 1)
        }
        yield* snapshots.forget(taken)
        assert.strictEqual(opensOf(path), 0)
      }).pipe(Effect.provide(layer))
    })
  )

  it.live("a snapshot can be restored if its archive is readable again after a failure", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const layer = Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root })))
      yield* Effect.gen(function* () {
        const snapshots = yield* Service
        const fs = yield* Filesystem
        yield* fs.write("a", "1")
        const taken = yield* snapshots.snapshot()
        const place = archiveOf(taken)
        Fs.renameSync(place, `${place}.away`)
        assert.strictEqual((yield* Effect.flip(snapshots.restore(taken)))._tag, "SnapshotRestoreError")
        Fs.renameSync(`${place}.away`, place)
        yield* fs.write("a", "2")
        yield* snapshots.restore(taken)
        assert.strictEqual(yield* fs.readString("a"), "1")
      }).pipe(Effect.provide(layer))
    })
  )
})
