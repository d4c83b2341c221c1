import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Replay from "../../src/journal/Replay.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend, Commit } from "../../src/port/Backend.ts"
import { sha256 } from "../../src/runtime/hash.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { adversarial } from "../../src/testing/Faults.ts"
import { plant } from "../../src/testing/Files.ts"
import { directory } from "../conformance/filesystems.ts"
import { another, entriesOf, type Files, look, makeJournal, outcome, programs, record, withoutIdentity } from "./recordings.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const file = (text: string): Replay.State => ({ kind: "file", sizeBytes: utf8(text).length, version: sha256(utf8(text)) })
const nothing: Replay.State = { kind: "nothing" }

describe("Replay.double", () => {
  it.effect.prop(
    "gives the recorded answers of a random program, without any disk",
    [programs, Arbitraries.files],
    ([program, files]) =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, files)
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs, { reads: true })
        const expected = yield* Effect.forEach(program, (command) => outcome(recorded, command))
        const double = yield* Replay.double(journal)
        for (const [i, command] of program.entries()) {
          assert.deepStrictEqual(yield* outcome(double, command), expected[i], JSON.stringify(command))
        }
      }),
    { arbitrary: { runs: 60, size: 40 } }
  )

  it.live("gives the answers of a disk: stats with times and modes, pages, preconditions, streams, errors", () =>
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.gen(function* () {
        const host = yield* Filesystem
        const large = new Uint8Array(200_000).map((_, i) => i % 249)
        const session = (fs: Algebra) =>
          Effect.all([
            fs.writeBytes("a/large", large, { version: true }),
            Effect.map(fs.stat("a/large"), withoutIdentity),
            fs.readBytes("a/large", { offset: 150_000, limit: 10 }),
            fs.version("a/large"),
            Effect.map(Stream.runCollect(fs.stream("a/large")), (all) => sha256(Buffer.concat(all))),
            Effect.flip(fs.write("a/large", "x", { ifMatch: "0".repeat(64) })),
            fs.write("a/large", "x", { ifMatch: sha256(large), version: true }),
            Stream.run(Stream.make(utf8("one"), utf8("two")), fs.sink("a/sunk")),
            fs.readString("a/sunk"),
            fs.grep("two", { path: "a" }),
            fs.symlink("l", "a/sunk"),
            fs.readLink("l"),
            fs.readString("l"),
            Effect.flip(fs.read("none")),
            fs.copy("a", "b"),
            fs.list("b"),
            fs.delete("a", { recursive: true }),
            fs.exists("a/large")
          ])
        const journal = yield* makeJournal
        const expected = yield* session(yield* record(journal, host, { reads: true }))
        const before = yield* look(host.port)
        const actual = yield* session(yield* Replay.double(journal))
        assert.deepStrictEqual(JSON.stringify(actual), JSON.stringify(expected))
        assert.deepStrictEqual(yield* look(host.port), before)
      }).pipe(Effect.provide(PosixHost.layer({ root })))
    })
  )

  it.effect("gives repeated calls their answers in the recorded order, and then fails", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs, { reads: true })
      for (const text of ["one", "three"]) {
        yield* fs.write("a", text)
        yield* recorded.stat("a")
      }
      const double = yield* Replay.double(journal)
      assert.strictEqual((yield* double.stat("a")).sizeBytes, 3)
      assert.strictEqual((yield* double.stat("a")).sizeBytes, 5)
      const error = yield* Effect.flip(double.stat("a"))
      assert.strictEqual(error._tag, "Unavailable")
    })
  )

  it.effect("fails as Unavailable and names the operation if the call was never recorded", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const recorded = yield* record(journal, yield* another(), { reads: true })
      yield* recorded.write("a", "one")
      const double = yield* Replay.double(journal)
      const error = yield* Effect.flip(double.write("a", "two"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, `write a, replace, content ${sha256(utf8("two"))}`)
      assert.strictEqual((yield* Effect.flip(double.list("b")))._tag, "Unavailable")
      assert.strictEqual((yield* double.write("a", "one")).bytesWritten, 3)
    })
  )
})

describe("Replay.double with a commit", () => {
  it.effect("runs the commit of a write only if the recorded write reached its commit", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const refused: Fault = { _tag: "NotFound" }
      const port: Backend = {
        ...fs.port,
        write: (path, bytes, mode, how) => (path === "nowhere" ? Effect.fail(refused) : fs.port.write(path, bytes, mode, how))
      }
      const session = Effect.fnUntraced(function* (port: Backend) {
        const committed: Array<string> = []
        for (const path of ["a", "nowhere"] as ReadonlyArray<string>) {
          const commit: Commit = (publish) =>
            Effect.andThen(
              Effect.sync(() => void committed.push(path)),
              publish
            )
          yield* Effect.exit(port.write<never, never>(path as FsPath, utf8("x"), "create", { commit }))
        }
        return committed
      })
      const journal = yield* makeJournal
      assert.deepStrictEqual(yield* session((yield* record(journal, make(port), { reads: true })).port), ["a"])
      assert.deepStrictEqual(yield* session((yield* Replay.double(journal)).port), ["a"])
    })
  )
})

describe("Replay.drift", () => {
  it.effect("finds exactly the changes that are not in the journal", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "was/there": "old", elsewhere: "old" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a", "one")
      yield* recorded.write("b/c", "two")
      yield* recorded.write("b/d", "x".repeat(5_000))
      yield* recorded.symlink("l", "a")
      yield* recorded.write("gone", "three")
      yield* recorded.delete("gone")
      yield* recorded.move("was", "moved")
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      // Files that the journal has not touched may change.
      yield* fs.write("elsewhere", "new")
      yield* fs.write("b/foreign", "new")
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      yield* fs.write("a", "eno")
      yield* fs.delete("b/c")
      yield* fs.write("b/d", "y".repeat(5_000))
      yield* fs.delete("l")
      yield* fs.symlink("l", "b")
      yield* fs.mkdir("gone")
      yield* fs.delete("moved", { recursive: true })
      const expected: ReadonlyArray<{ path: string; expected: Replay.State; actual: Replay.State }> = [
        { path: "a", expected: file("one"), actual: file("eno") },
        { path: "b/c", expected: file("two"), actual: nothing },
        { path: "b/d", expected: file("x".repeat(5_000)), actual: file("y".repeat(5_000)) },
        { path: "gone", expected: nothing, actual: { kind: "directory" } },
        { path: "l", expected: { kind: "symlink", target: "a" }, actual: { kind: "symlink", target: "b" } },
        { path: "moved", expected: { kind: "unknown" }, actual: nothing }
      ]
      const found: ReadonlyArray<unknown> = yield* Replay.drift(journal, fs)
      assert.deepStrictEqual(found, expected)
      assert.deepStrictEqual((yield* Replay.drift(journal, fs, { paths: ["/b"] })).map(({ path }) => path) as Array<string>, [
        "b/c",
        "b/d"
      ])
    })
  )

  it.effect("compares the permission bits that are in the journal", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { a: "x", "d/x": "x", b: "x" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.setAttributes("a", { mode: 0o600 })
      yield* recorded.setAttributes("d", { mode: 0o700 })
      yield* recorded.write("c", "x")
      yield* recorded.write("b", "y")
      yield* recorded.setAttributes("c", { mode: 0o640 })
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      // These bits are not in the journal.
      yield* fs.setAttributes("b", { mode: 0o600 })
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      yield* fs.setAttributes("a", { mode: 0o644 })
      yield* fs.setAttributes("d", { mode: 0o755 })
      yield* fs.setAttributes("c", { mode: 0o444 })
      const found: ReadonlyArray<unknown> = yield* Replay.drift(journal, fs)
      assert.deepStrictEqual(found, [
        { path: "a", expected: { kind: "unknown", mode: 0o600 }, actual: { ...file("x"), mode: 0o644 } },
        { path: "c", expected: { ...file("x"), mode: 0o640 }, actual: { ...file("x"), mode: 0o444 } },
        { path: "d", expected: { kind: "unknown", mode: 0o700 }, actual: { kind: "directory", mode: 0o755 } }
      ])
    })
  )

  it.effect("reports unknown entries with `all`, and marks entries that may be older than the journal", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "was/there": "x", "moved/y": "y" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.mkdir("made")
      yield* recorded.write("was/here", "x")
      yield* recorded.move("moved", "to")
      yield* recorded.write("gone", "x")
      yield* recorded.delete("gone")
      assert.deepStrictEqual(
        (yield* Replay.drift(journal, fs, { all: true })).map(({ expected, path }) => `${path} ${expected.kind}`),
        ["to/y unknown", "was/there unknown"]
      )
      yield* plant(fs.port, { "made/new": "n", "made/sub/deep": "n", "was/new": "n", gone: "back" })
      const found = yield* Replay.drift(journal, fs, { all: true })
      assert.deepStrictEqual(
        found.map(({ actual, expected, path }) => `${path} ${expected.kind} ${actual.kind}`),
        [
          "gone nothing file",
          "made/new nothing file",
          "made/sub nothing directory",
          "made/sub/deep nothing file",
          "to/y unknown file",
          "was/new unknown file",
          "was/there unknown file"
        ]
      )
      assert.deepStrictEqual(
        (yield* Replay.drift(journal, fs, { all: true, paths: ["made/sub"] })).map(({ path }) => path as string),
        ["made/sub", "made/sub/deep"]
      )
      assert.deepStrictEqual(
        (yield* Replay.drift(journal, fs)).map(({ path }) => path as string),
        ["gone"]
      )
    })
  )

  it.effect.prop(
    "finds no drift after a random program",
    [programs, Arbitraries.files],
    ([program, files]) =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, files)
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        for (const command of program) yield* outcome(recorded, command)
        assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      }),
    { arbitrary: { runs: 40, size: 40 } }
  )

  it.effect("finds later changes if it compares with an earlier position", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a", "one")
      const until = yield* journal.last
      yield* recorded.write("a", "two")
      yield* recorded.write("b", "three")
      const found: ReadonlyArray<unknown> = yield* Replay.drift(journal, fs, { until })
      assert.deepStrictEqual(found, [{ path: "a", expected: file("one"), actual: file("two") }])
    })
  )

  it.effect("ignores the parent directories of changed entries, and writes in progress", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "d/x": "one" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("d/x", "two")
      const name = TemporaryNames.make() as FsPath
      yield* recorded.port.makeDirectory(name)
      yield* fs.port.remove(name)
      TemporaryNames.forget(name)
      yield* fs.delete("d", { recursive: true })
      const found: ReadonlyArray<unknown> = yield* Replay.drift(journal, fs)
      assert.deepStrictEqual(found, [{ path: "d/x", expected: file("two"), actual: nothing }])
    })
  )

  it.effect("accepts an unanswered change both as made and as not made", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* fs.write("a", "one")
      const journal = yield* makeJournal
      const { FileWrite, FileWritten } = FileSystemEntry
      const path = "a"
      yield* journal.appendAll([
        new FileWrite({ correlationId: "1", path, content: utf8("one"), createMode: "overwrite" }),
        new FileWritten({ correlationId: "1", path, bytesWritten: 3 }),
        new FileWrite({ correlationId: "2", path, content: utf8("two"), createMode: "overwrite" })
      ])
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      yield* fs.write("a", "two")
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      yield* fs.write("a", "three")
      assert.strictEqual((yield* Replay.drift(journal, fs)).length, 1)
    })
  )
})

describe("Replay.rerun", () => {
  const recorded = Effect.fnUntraced(function* (
    program: Parameters<typeof outcome>[1] extends infer C ? ReadonlyArray<C> : never,
    options?: { readonly reads: boolean }
  ) {
    const journal = yield* makeJournal
    const fs = yield* record(journal, yield* another(), options)
    for (const command of program) yield* outcome(fs, command as never)
    return { fs, journal }
  })

  it.effect.prop(
    "finds no difference on another backend, and makes the same tree",
    [programs],
    ([program]) =>
      Effect.gen(function* () {
        const { fs, journal } = yield* recorded(program, { reads: true })
        const against = adversarial(yield* another())
        assert.deepStrictEqual(yield* Replay.rerun(journal, against), [])
        assert.deepStrictEqual(yield* look(against.port), yield* look(fs.port))
        const other = yield* makeJournal
        const odd = yield* record(other, adversarial(yield* another()), { reads: true })
        for (const command of program) yield* outcome(odd, command)
        yield* odd.write("long", "read in more than one piece")
        yield* odd.readString("long")
        assert.deepStrictEqual(yield* Replay.rerun(other, yield* another()), [])
      }),
    { arbitrary: { runs: 20, size: 30 } }
  )

  it.live("finds no difference on a disk", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const journal = yield* makeJournal
      const fs = yield* record(journal, yield* another(), { reads: true })
      yield* fs.write("a/b", "one")
      yield* Effect.flip(fs.write("a/b/c", "below a file"))
      yield* Stream.run(Stream.make(new Uint8Array(100_000)), fs.sink("large"))
      yield* fs.edit("a/b", { oldText: "one", newText: "two" })
      yield* fs.move("a", "c")
      yield* fs.delete("c", { recursive: true })
      yield* fs.list()
      yield* Effect.gen(function* () {
        const host = yield* Filesystem
        assert.deepStrictEqual(yield* Replay.rerun(journal, host), [])
        assert.deepStrictEqual(yield* look(host.port), yield* look(fs.port))
      }).pipe(Effect.provide(PosixHost.layer({ root })))
    })
  )

  it.effect("finds different answers of a backend, and returns the expected and the actual answer", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const fs = yield* record(journal, yield* another(), { reads: true })
      yield* fs.write("a/b", "one")
      yield* fs.readString("a/b")
      yield* fs.mkdir("d")
      yield* fs.delete("a/b")
      yield* fs.list("a")
      const good = yield* another()
      const shouting = make({
        ...good.port,
        perform: undefined,
        explore: undefined,
        open: (path) =>
          Effect.map(good.port.open(path), (handle) => ({
            ...handle,
            read: (offset, length) => Effect.map(handle.read(offset, length), () => utf8("ONE"))
          })),
        makeDirectory: (path) => (path === "d" ? Effect.fail({ _tag: "DiskFull" } as const) : good.port.makeDirectory(path)),
        list: (path) => Effect.map(good.port.list(path), (all) => [...all, { name: "ghost", kind: "file", addressable: true }])
      })
      const found = yield* Replay.rerun(journal, shouting)
      assert.deepStrictEqual(
        found.map(({ actual, expected, kind, path }) => [kind, path as string, expected, actual]),
        [
          [
            "FileRead",
            "a/b",
            { answer: "content", bytes: 3, sha256: sha256(utf8("one")) },
            { answer: "content", bytes: 3, sha256: sha256(utf8("ONE")) }
          ],
          ["FileMakeDirectory", "d", { answer: "done" }, { answer: "fault", kind: "DiskFull" }],
          ["FileList", "a", { answer: "listing", entries: [] }, { answer: "listing", entries: ["ghost file"] }]
        ]
      )
      const entries = yield* entriesOf(journal)
      for (const { correlationId, position } of found) {
        const entry = entries[position - 1]!
        assert.strictEqual("correlationId" in entry ? entry.correlationId : "", correlationId)
      }
      assert.strictEqual((yield* Replay.rerun(journal, shouting, { filter: { paths: ["d"] } })).length, 1)
    })
  )

  it.effect("runs the requests to leaves again, as calls of a filesystem", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const Entries = FileSystemEntry
      const text = (content: string) => utf8(content)
      yield* journal.appendAll([
        new Entries.FileWrite({ correlationId: "1", path: "/a/b", content: text("one"), createMode: "create" }),
        new Entries.FileWritten({ correlationId: "1", path: "/a/b", bytesWritten: 3 }),
        new Entries.FileWriteChunk({ correlationId: "2", path: "c", offset: 0, data: text("tw"), isFinal: false }),
        new Entries.FileWriteChunk({ correlationId: "2", offset: 2, data: text("o"), isFinal: true }),
        new Entries.FileWritten({ correlationId: "2", path: "c", bytesWritten: 3 }),
        new Entries.FileRead({ correlationId: "3", path: "a/b", offset: 1 }),
        new Entries.FileContent({ correlationId: "3", content: text("ne"), totalSize: 3, isPartial: true }),
        new Entries.FileRead({ correlationId: "4", path: "../a" }),
        new Entries.FileFault({ correlationId: "4", faultKind: "InvalidPath", path: "../a", message: "no" }),
        new Entries.FileDelete({ correlationId: "5", path: "a" }),
        new Entries.FileDeleted({ correlationId: "5", path: "a", deletedCount: 1 }),
        new Entries.FileWrite({ correlationId: "6", path: "never", content: text("answered"), createMode: "create" })
      ])
      const fs = yield* another()
      const found = yield* Replay.rerun(journal, fs)
      assert.deepStrictEqual(
        found.map(({ actual, correlationId, position }) => ({ actual, correlationId, position })),
        [{ correlationId: "5", position: 10, actual: { answer: "fault", kind: "DirectoryNotEmpty" } }]
      )
      assert.deepStrictEqual(yield* look(fs.port), { a: "directory", "a/b": 'file "one"', c: 'file "two"' })
    })
  )

  it.effect("treats links in a chunked write as in an ordinary write", () =>
    Effect.gen(function* () {
      const { FileFault, FileWrite, FileWriteChunk } = FileSystemEntry
      for (const [links, faultKind] of [
        ["refuse", "AccessDenied"],
        ["leave", "NotAFile"]
      ] as const) {
        const journal = yield* makeJournal
        const of = { path: "l", createMode: "overwrite", links } as const
        const fault = (correlationId: string) => new FileFault({ correlationId, faultKind, path: "l", message: "it is a link" })
        yield* journal.appendAll([
          new FileWrite({ correlationId: "1", content: utf8("new"), ...of }),
          fault("1"),
          new FileWriteChunk({ correlationId: "2", offset: 0, data: utf8("ne"), isFinal: false, ...of }),
          new FileWriteChunk({ correlationId: "2", offset: 2, data: utf8("w"), isFinal: true }),
          fault("2")
        ])
        const fs = yield* another()
        yield* plant(fs.port, { a: "old", l: { link: "a" } })
        assert.deepStrictEqual(yield* Replay.rerun(journal, fs), [], links)
        assert.deepStrictEqual(yield* look(fs.port), { a: 'file "old"', l: "link -> a" }, links)
      }
    })
  )

  it.effect("skips a chunked write whose last chunk is missing", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const { FileFault, FileWriteChunk } = FileSystemEntry
      for (const correlationId of ["1", "step:1"]) {
        yield* journal.appendAll([
          new FileWriteChunk({ correlationId, path: "a", offset: 0, data: utf8("half"), isFinal: false }),
          new FileFault({ correlationId, faultKind: "IoError", path: "a", message: "the last part is missing" })
        ])
      }
      const fs = yield* another()
      yield* plant(fs.port, { a: "old" })
      assert.deepStrictEqual(yield* Replay.rerun(journal, fs), [])
      assert.deepStrictEqual(yield* look(fs.port), { a: 'file "old"' })
    })
  )
})

describe("Replay.changes and filters", () => {
  const session = Effect.fnUntraced(function* (journal: Files) {
    const fs = yield* record(journal, yield* another())
    yield* TestClock.adjust(1_000)
    yield* fs.write("a", "one")
    yield* TestClock.adjust(1_000)
    yield* fs.mkdir("d")
    yield* fs.move("a", "d/a")
    yield* Effect.flip(fs.mkdir("d", { existOk: false }))
    yield* Effect.flip(fs.write("d", "no"))
    yield* Stream.run(Stream.make(utf8("sunk")), fs.sink("d/s"))
    yield* fs.delete("d/a")
  })

  it.effect("list each change with its outcome, and unanswered changes last", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      yield* session(journal)
      yield* journal.append(
        new FileSystemEntry.FileWrite({ correlationId: "open", path: "/x", content: utf8("never"), createMode: "create" })
      )
      const changes = yield* Stream.runCollect(Replay.changes(journal))
      const told: ReadonlyArray<unknown> = changes.map(({ correlationId: _, message: __, ...change }) => change)
      assert.deepStrictEqual(told, [
        {
          position: 1,
          answered: 2,
          at: 1_000,
          kind: "FileWrite",
          path: "a",
          outcome: "done",
          bytes: 3,
          version: sha256(utf8("one"))
        },
        { position: 3, answered: 4, at: 2_000, kind: "FileMakeDirectory", path: "d", outcome: "done" },
        { position: 5, answered: 6, at: 2_000, kind: "FileMove", path: "a", to: "d/a", outcome: "done", bytes: 3 },
        { position: 7, answered: 8, at: 2_000, kind: "FileWrite", path: "d", outcome: "failed", fault: "NotAFile" },
        {
          position: 9,
          answered: 10,
          at: 2_000,
          kind: "FileWrite",
          path: "d/s",
          outcome: "done",
          bytes: 4,
          version: sha256(utf8("sunk"))
        },
        { position: 11, answered: 12, at: 2_000, kind: "FileDelete", path: "d/a", outcome: "done" },
        { position: 13, at: 2_000, kind: "FileWrite", path: "x", outcome: "unanswered", bytes: 5 }
      ])
    })
  )

  it.effect("distinguish a refused request from an earlier request with the same id", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const { FileFault, FileWrite, FileWritten } = FileSystemEntry
      const write = (content: string) =>
        new FileWrite({ correlationId: "1", path: "a", content: utf8(content), createMode: "overwrite" })
      yield* journal.appendAll([
        write("first"),
        write("second"),
        new FileFault({ correlationId: "1", faultKind: "IoError", path: "a", message: "in flight" }),
        new FileWritten({ correlationId: "1", path: "a", bytesWritten: 5 })
      ])
      const changes = yield* Stream.runCollect(Replay.changes(journal))
      assert.deepStrictEqual(
        changes.map(({ answered, outcome, position }) => [position, answered, outcome]),
        [
          [2, 3, "failed"],
          [1, 4, "done"]
        ]
      )
      assert.strictEqual(yield* (yield* Replay.tree(journal)).readString("a"), "first")
    })
  )

  it.effect("select requests by path, kind and correlation id, together with their answers", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      yield* session(journal)
      const positions = (filter: Replay.Filter) =>
        Effect.map(Stream.runCollect(Replay.select(filter)(journal.stored())), (all) => all.map(({ position }) => position))
      const all = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
      const [first] = yield* entriesOf(journal)
      const id = first !== undefined && "correlationId" in first ? first.correlationId : ""
      assert.deepStrictEqual(yield* positions({}), all)
      assert.deepStrictEqual(yield* positions({ paths: ["a"] }), [1, 2, 5, 6])
      assert.deepStrictEqual(yield* positions({ paths: ["/d/"] }), [3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
      assert.deepStrictEqual(yield* positions({ paths: ["d/s"] }), [9, 10])
      assert.deepStrictEqual(yield* positions({ paths: ["nowhere"] }), [])
      assert.deepStrictEqual(yield* positions({ paths: ["."] }), all)
      assert.deepStrictEqual(yield* positions({ kinds: ["FileWrite"] }), [1, 7, 9])
      assert.deepStrictEqual(yield* positions({ kinds: ["FileWriteChunk"] }), [9])
      assert.deepStrictEqual(yield* positions({ kinds: ["FileWritten", "FileFault"], paths: ["d"] }), [8, 10])
      assert.deepStrictEqual(yield* positions({ correlationIds: [id] }), [1, 2])
      const changed = (filter: Replay.Filter) =>
        Effect.map(Stream.runCollect(Replay.changes(journal, filter)), (all) => all.map(({ position }) => position))
      assert.deepStrictEqual(yield* changed({ paths: ["d"], kinds: ["FileWrite", "FileMove"] }), [5, 7, 9])
      assert.deepStrictEqual(yield* changed({ correlationIds: [id] }), [1])
    })
  )

  it.effect("match the path of each entry's own request, even if a cancelled write used the same correlation id", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const { FileContent, FileRead, FileWriteChunk } = FileSystemEntry
      const [correlationId, noBytes] = ["1", new Uint8Array(0)]
      yield* journal.appendAll([
        new FileWriteChunk({ correlationId, path: "in/a.txt", offset: 0, data: utf8("a"), isFinal: false }),
        new FileWriteChunk({ correlationId, offset: 1, data: noBytes, isFinal: true, discard: true }),
        new FileRead({ correlationId, path: "out/b.txt" }),
        new FileContent({ correlationId, content: utf8("b"), totalSize: 1, isPartial: false })
      ])
      const positions = (path: string) =>
        Effect.map(Stream.runCollect(Replay.select({ paths: [path] })(journal.stored())), (all) =>
          all.map(({ position }) => position)
        )
      assert.deepStrictEqual(yield* positions("in"), [1, 2])
      assert.deepStrictEqual(yield* positions("out"), [3, 4])
    })
  )
})
