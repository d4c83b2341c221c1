import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fastDirectory, host, openDescriptors, tree } from "../backends/posixHost.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Limits from "../../src/model/Limits.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { awkwardFiles, noise, plantAwkward, shapeOf } from "./archiveTrees.ts"
import { build, manifest } from "./zipBuilder.ts"

const memory = (options: InMemory.InMemoryOptions = {}) => Effect.map(InMemory.make(options), Filesystem.make)

const awkward = Effect.tap(memory(), plantAwkward)

const limited = (changes: Partial<Limits.LimitsShape>) =>
  Effect.provideService(Limits.Limits, { ...Limits.standard, ...changes })

/** Returns the reason of an ArchiveError, or the tag of any other error. */
const reasonOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  Effect.map(Effect.result(effect), (result) =>
    result._tag === "Success"
      ? "done"
      : result.failure._tag === "ArchiveError"
        ? (result.failure as unknown as Archive.ArchiveError).reason
        : result.failure._tag
  )

/** Returns a filesystem on a modified port. */
const changed = (fs: Filesystem.Algebra, changes: (port: Backend) => Partial<Backend>): Filesystem.Algebra =>
  Filesystem.make({ ...fs.port, perform: undefined, explore: undefined, ...changes(fs.port) })

describe("a ZIP archive", () => {
  it.effect("of one file restores the file after a change, and the export and the import report one file", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const path = join(yield* fastDirectory, "a.fs.zip")
      yield* fs.write("src/main.py", "original")
      assert.strictEqual(yield* Archive.exportArchive(path), 1)
      yield* fs.write("src/main.py", "modified")
      yield* fs.write("new.py", "new")
      assert.strictEqual(yield* Archive.importArchive(path), 1)
      assert.strictEqual(yield* fs.readString("src/main.py"), "original")
      assert.isFalse(yield* fs.exists("new.py"))
    }).pipe(Effect.scoped, Effect.provide(InMemory.layer()))
  )

  it.live("transfers a tree from memory to a host, and back", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const first = yield* awkward
        const { port } = yield* host()
        const second = Filesystem.make(port)
        const third = yield* memory()
        yield* second.write("was/here/before", "x")
        assert.strictEqual(yield* Archive.importZipOf(second, Archive.exportZipOf(first)), awkwardFiles)
        assert.deepStrictEqual(yield* shapeOf(second), yield* shapeOf(first))
        assert.strictEqual(yield* Archive.importZipOf(third, Archive.exportZipOf(second)), awkwardFiles)
        assert.deepStrictEqual(yield* shapeOf(third), yield* shapeOf(first))
      })
    )
  )

  it.effect("has the same bytes for the same tree at the same time, on every backend and after any order of writes", () =>
    Effect.scoped(
      Effect.gen(function* () {
        yield* TestClock.setTime(Date.UTC(2024, 4, 6, 7, 8, 9))
        const first = yield* awkward
        const { port } = yield* host()
        const second = Filesystem.make(port)
        yield* second.write("gone", "x")
        yield* plantAwkward(second)
        yield* second.delete("gone")
        const bytes = yield* Archive.exportBytesOf(first)
        assert.deepStrictEqual(yield* Archive.exportBytesOf(first), bytes)
        assert.deepStrictEqual(yield* Archive.exportBytesOf(second), bytes)
        yield* TestClock.adjust("2 seconds")
        assert.notDeepEqual(yield* Archive.exportBytesOf(first), bytes)
      })
    )
  )

  it.effect("of an empty tree makes the tree empty", () =>
    Effect.gen(function* () {
      const fs = yield* memory()
      yield* fs.write("gone", "x")
      assert.strictEqual(yield* Archive.importBytesOf(fs, yield* Archive.exportBytesOf(yield* memory())), 0)
      assert.deepStrictEqual(yield* fs.list(), [])
    })
  )

  it.effect("of a subdirectory or a read-only view contains the entries that the view shows", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ readOnly: false })
      yield* fs.write("a/b/c", "1")
      yield* fs.write("other", "2")
      const { readOnly, subdirectory } = yield* Effect.promise(() => import("../../src/filesystem/Decorator.ts"))
      const view = readOnly(yield* subdirectory("a")(fs))
      const copy = yield* memory()
      assert.strictEqual(yield* Archive.importZipOf(copy, Archive.exportZipOf(view)), 1)
      assert.deepStrictEqual(Object.keys(yield* shapeOf(copy)).sort(), ["b", "b/c"])
      assert.strictEqual(yield* reasonOf(Archive.importZipOf(view, Archive.exportZipOf(copy))), "AccessDenied")
    })
  )
})

describe("a strict export refuses an entry that an import would refuse:", () => {
  const rows: ReadonlyArray<
    readonly [title: string, reason: string, plant: (fs: Filesystem.Algebra) => Effect.Effect<unknown, unknown>]
  > = [
    ["a backslash in a name", "name", (fs) => fs.write("a\\b", "x")],
    ["a name that is a drive on Windows", "name", (fs) => fs.write("c:/x", "x")],
    ["names that differ only in case", "duplicate", (fs) => Effect.andThen(fs.write("d/a", "1"), fs.write("d/A", "2"))],
    ["directories that differ only in case", "duplicate", (fs) => Effect.andThen(fs.write("d/x", "1"), fs.write("D/y", "2"))],
    [
      "names that differ only in Unicode normalization",
      "duplicate",
      (fs) => Effect.andThen(fs.write("\u00e9", "1"), fs.write("e\u0301", "2"))
    ]
  ]
  for (const [title, reason, plant] of rows) {
    it.effect(`${title} (as ${reason}, before the first byte)`, () =>
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* fs.write("aaa", "first")
        yield* plant(fs)
        for (const bytes of [Archive.exportZipOf(fs, { strict: true }), Archive.exportTarOf(fs, { strict: true })]) {
          let seen = 0
          assert.strictEqual(
            yield* reasonOf(Stream.runForEach(bytes, (part) => Effect.sync(() => void (seen += part.length)))),
            reason
          )
          assert.strictEqual(seen, 0)
        }
      })
    )
  }

  it.live("links out of the root, FIFOs and names that are not UTF-8", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port, root } = yield* host()
        const fs = Filesystem.make(port)
        const reason = Effect.map(
          Effect.all([
            reasonOf(Stream.runDrain(Archive.exportZipOf(fs, { strict: true }))),
            reasonOf(Stream.runDrain(Archive.exportTarOf(fs, { strict: true })))
          ]),
          (reasons) => reasons.join()
        )
        assert.strictEqual(yield* reason, "done,done")
        for (const target of ["/etc/passwd", "../outside", "d/../../x", "a\\b"]) {
          Fs.symlinkSync(target, join(root, "link"))
          assert.strictEqual(yield* reason, "link,link", target)
          Fs.unlinkSync(join(root, "link"))
        }
        execFileSync("mkfifo", [join(root, "fifo")])
        assert.strictEqual(yield* reason, "unsupported,unsupported")
        Fs.unlinkSync(join(root, "fifo"))
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), "x")
        assert.strictEqual(yield* reason, "name,name")
      })
    )
  )

  it.effect("an entry beyond the limits on entries, bytes or path depth", () =>
    Effect.gen(function* () {
      const fs = yield* memory()
      yield* fs.write("a/b", "12345")
      yield* fs.write("c", "67890")
      yield* fs.symlink("d", "c")
      const reason = (changes: Partial<Limits.LimitsShape>) =>
        Effect.map(
          Effect.all([
            reasonOf(Stream.runDrain(Archive.exportZipOf(fs, { strict: true })).pipe(limited(changes))),
            reasonOf(Stream.runDrain(Archive.exportTarOf(fs, { strict: true })).pipe(limited(changes)))
          ]),
          (reasons) => reasons.join()
        )
      assert.strictEqual(yield* reason({ maxArchiveEntries: 4, maxArchiveBytes: 11 }), "done,done")
      assert.strictEqual(yield* reason({ maxArchiveEntries: 3 }), "tooLarge,tooLarge")
      assert.strictEqual(yield* reason({ maxArchiveBytes: 10 }), "tooLarge,tooLarge")
      assert.strictEqual(yield* reason({ maxPathDepth: 1 }), "name,name")
    })
  )
})

describe("a file that changes while it is exported", () => {
  const size = 400_000

  const shrinking = (after: number) =>
    Effect.map(memory(), (fs) => ({
      fs,
      odd: changed(fs, (port) => ({
        open: (path) =>
          Effect.map(port.open(path), (handle) => ({
            stat: handle.stat,
            read: (offset, length) => handle.read(offset, Math.max(0, Math.min(length, after - offset)))
          }))
      }))
    }))

  it.effect("fails the export when it becomes shorter", () =>
    Effect.gen(function* () {
      const { fs, odd } = yield* shrinking(200_000)
      for (const content of [noise(size), new Uint8Array(size)]) {
        yield* fs.writeBytes("large", content)
        assert.strictEqual(yield* reasonOf(Stream.runDrain(Archive.exportZipOf(odd))), "IoError")
        assert.strictEqual(yield* reasonOf(Stream.runDrain(Archive.exportTarOf(odd))), "IoError")
      }
    })
  )

  it.effect("fails the export when an uncompressed file has different bytes on its second read", () =>
    Effect.gen(function* () {
      const fs = yield* memory()
      yield* fs.writeBytes("large", noise(size))
      let reads = 0
      const odd = changed(fs, (port) => ({
        open: (path) =>
          Effect.map(port.open(path), (handle) => ({
            stat: handle.stat,
            read: (offset, length) =>
              Effect.map(handle.read(offset, length), (bytes) => {
                // The first read samples the beginning, the second computes the checksum.
                if (++reads > 2) bytes[0]! ^= 1
                return bytes
              })
          }))
      }))
      assert.strictEqual(yield* reasonOf(Stream.runDrain(Archive.exportZipOf(odd))), "IoError")
    })
  )

  it.effect("is omitted when it or its directory disappears after the listing, and the counts stay right", () =>
    Effect.gen(function* () {
      const fs = yield* memory()
      yield* fs.write("a", "stays")
      yield* fs.write("b", "goes")
      yield* fs.write("d/e", "goes with its directory")
      const odd = changed(fs, (port) => ({
        open: (path) => (path === "b" ? Effect.fail({ _tag: "NotFound" }) : port.open(path)),
        list: (path) => (path === "d" ? Effect.fail({ _tag: "NotFound" }) : port.list(path))
      }))
      for (const [bytes, take] of [
        [Archive.exportZipOf(odd), Archive.importZipOf],
        [Archive.exportTarOf(odd), Archive.importTarOf]
      ] as const) {
        const copy = yield* memory()
        assert.strictEqual(yield* take(copy, bytes), 1)
        assert.deepStrictEqual(Object.keys(yield* shapeOf(copy)), ["a"])
      }
    })
  )
})

describe("an import", () => {
  it.effect("requires permission to write and to delete, and otherwise reads nothing", () =>
    Effect.gen(function* () {
      for (const options of [{ readOnly: true }, { allowWrite: false }, { allowDelete: false }]) {
        const fs = yield* memory(options)
        let wasRead = false
        const bytes = Stream.suspend(() => {
          wasRead = true
          return Stream.empty
        })
        const error = yield* Effect.flip(Archive.importZipOf(fs, bytes))
        assert.deepStrictEqual([error._tag, error._tag === "AccessDenied" && error.why], ["AccessDenied", "readOnly"])
        assert.isFalse(wasRead)
      }
    })
  )

  it.effect("fails with the failure of its byte stream and changes nothing", () =>
    Effect.gen(function* () {
      const fs = yield* memory()
      yield* fs.write("kept", "x")
      const bytes = Stream.concat(Stream.succeed(new Uint8Array(100)), Stream.fail({ _tag: "NotFound", mine: true } as const))
      for (const take of [Archive.importZipOf, Archive.importTarOf]) {
        assert.deepStrictEqual(yield* Effect.flip(take(fs, bytes)), { _tag: "NotFound", mine: true } as never)
      }
      assert.strictEqual(yield* fs.readString("kept"), "x")
    })
  )

  it.effect("refuses symlinks if the filesystem does not support them", () =>
    Effect.gen(function* () {
      const fs = yield* awkward
      const target = changed(yield* memory(), () => ({ links: undefined, history: undefined }))
      assert.strictEqual(yield* reasonOf(Archive.importZipOf(target, Archive.exportZipOf(fs))), "link")
      assert.deepStrictEqual(yield* target.list(), [])
    })
  )

  it.effect("refuses a name that the path policy of the filesystem forbids", () =>
    Effect.gen(function* () {
      const fs = yield* memory({ policy: "vfs" })
      const bytes = build([{ name: "files/é", content: "x" }, manifest(1, 1)])
      assert.strictEqual(yield* reasonOf(Archive.importBytesOf(fs, bytes)), "name")
    })
  )

  it.live("changes nothing and closes its descriptors when it is interrupted in the middle of the stream", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port, root } = yield* host()
        const fs = Filesystem.make(port)
        yield* fs.write("kept", "x")
        const before = openDescriptors()
        const twelve = Stream.fromIterable(Array.from({ length: 12 }, () => new Uint8Array(1024 * 1024)))
        for (const take of [Archive.importZipOf, Archive.importTarOf]) {
          const fiber = yield* Effect.forkChild(take(fs, Stream.concat(twelve, Stream.never)))
          yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
        }
        assert.strictEqual(openDescriptors(), before)
        assert.deepStrictEqual(tree(root), { kept: "x" })
      })
    )
  )

  it.live("buffers a large stream in an unlinked file", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* fs.writeBytes("noise", noise(9 * 1024 * 1024))
        const bytes = yield* Archive.exportBytesOf(fs)
        assert.isAbove(bytes.length, 9 * 1024 * 1024)
        const spools = () => Fs.readdirSync(tmpdir()).filter((name) => name.startsWith("fs-algebra-spool-"))
        const before = openDescriptors()
        let during: ReadonlyArray<string> = []
        const watched = Stream.concat(
          Stream.fromIterable([bytes.subarray(0, 8_500_000), bytes.subarray(8_500_000)]),
          Stream.suspend(() => {
            during = spools()
            return Stream.empty
          })
        )
        const copy = yield* memory()
        assert.strictEqual(yield* Archive.importZipOf(copy, watched), 1)
        assert.deepStrictEqual(yield* shapeOf(copy), yield* shapeOf(fs))
        assert.deepStrictEqual(during, [])
        assert.strictEqual(openDescriptors(), before)
      })
    )
  )
})

describe("an archive file on the host", () => {
  it.live("does not contain itself if it lies inside the exported tree, even at the second export", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port, root } = yield* host()
        const fs = Filesystem.make(port)
        yield* fs.write("a", "1")
        const path = join(root, "archives/of/all.zip")
        assert.strictEqual(yield* Archive.exportArchiveOf(fs, path), 1)
        assert.strictEqual(yield* Archive.exportArchiveOf(fs, path), 1)
        const copy = yield* memory()
        yield* Archive.importArchiveOf(copy, path)
        assert.deepStrictEqual(Object.keys(yield* shapeOf(copy)).sort(), ["a", "archives", "archives/of"])
      })
    )
  )

  it.live("is neither deleted nor changed by repeated imports into the tree that contains it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port, root } = yield* host()
        const fs = Filesystem.make(port)
        yield* fs.write("a", "1")
        const path = join(root, "archives/all.zip")
        yield* Archive.exportArchiveOf(fs, path)
        const bytes = Fs.readFileSync(path)
        for (let i = 0; i < 2; i++) {
          yield* fs.write("a", "2")
          yield* fs.write("archives/other", "3")
          assert.strictEqual(yield* Archive.importArchiveOf(fs, path), 1)
          assert.deepStrictEqual(Object.keys(tree(root)), ["a", "archives", "archives/all.zip"])
          assert.strictEqual(yield* fs.readString("a"), "1")
          assert.deepStrictEqual(Fs.readFileSync(path), bytes)
        }
      })
    )
  )

  it.live("keeps its old content when an export fails, and no partial file or directory is left", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const directory = yield* fastDirectory
        const fs = yield* memory()
        yield* fs.write("a", "1")
        const path = join(directory, "all.zip")
        yield* Archive.exportArchiveOf(fs, path)
        const old = Fs.readFileSync(path)
        yield* fs.write("b\\c", "1")
        assert.strictEqual(yield* reasonOf(Archive.exportArchiveOf(fs, path, { strict: true })), "name")
        const within = join(directory, "new/directory/a.zip")
        assert.strictEqual(yield* reasonOf(Archive.exportArchiveOf(fs, within, { strict: true })), "name")
        assert.deepStrictEqual(Fs.readFileSync(path), old)
        assert.deepStrictEqual(Fs.readdirSync(directory), ["all.zip"])
      })
    )
  )

  it.live("that cannot be read or written gives an error with the path as the caller wrote it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const directory = yield* fastDirectory
        const fs = yield* memory()
        Fs.writeFileSync(join(directory, "file"), "x")
        Fs.mkdirSync(join(directory, "directory"))
        execFileSync("mkfifo", [join(directory, "fifo")])
        const failure = (
          effect: Effect.Effect<number, Archive.ArchiveError | { readonly _tag: string; readonly path?: string }>
        ) => Effect.map(Effect.flip(effect), (error) => [error._tag, "path" in error ? error.path : undefined])
        const at = (name: string) => join(directory, name)
        assert.deepStrictEqual(yield* failure(Archive.importArchiveOf(fs, at("missing"))), ["NotFound", at("missing")])
        assert.deepStrictEqual(yield* failure(Archive.importArchiveOf(fs, at("directory"))), ["NotAFile", at("directory")])
        assert.deepStrictEqual(yield* failure(Archive.importArchiveOf(fs, at("fifo"))), ["NotAFile", at("fifo")])
        assert.deepStrictEqual(yield* failure(Archive.importArchiveOf(fs, "a\0b")), ["InvalidPath", "a\0b"])
        assert.deepStrictEqual(yield* failure(Archive.exportArchiveOf(fs, at("directory"))), ["NotAFile", at("directory")])
        assert.deepStrictEqual(yield* failure(Archive.exportArchiveOf(fs, at("fifo"))), ["NotAFile", at("fifo")])
        assert.deepStrictEqual(yield* failure(Archive.exportArchiveOf(fs, at("file/a.zip"))), [
          "NotADirectory",
          at("file/a.zip")
        ])
      })
    )
  )
})
