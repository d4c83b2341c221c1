import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as Correlation from "../../src/journal/Correlation.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Replay from "../../src/journal/Replay.ts"
import * as Limits from "../../src/model/Limits.ts"
import { sha256 } from "../../src/runtime/hash.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { plant } from "../../src/testing/Files.ts"
import { directory } from "../conformance/filesystems.ts"
import { another, look, makeJournal, outcome, programs, record, watching } from "./recordings.ts"

describe("Replay.tree", () => {
  it.effect.prop(
    "equals the real tree at every position of a random program",
    [programs],
    ([program]) =>
      Effect.gen(function* () {
        const fs = yield* another()
        const { journal, pictures } = yield* watching(fs.port)
        const recorded = yield* record(journal, fs)
        for (const command of program) yield* outcome(recorded, command)
        for (const [position, picture] of pictures.entries()) {
          const tree = yield* Replay.tree(journal, { until: position })
          assert.deepStrictEqual(yield* look(tree.port), picture, `at ${position}`)
        }
      }),
    { arbitrary: { runs: 40, size: 40 } }
  )

  it.effect.prop(
    "over a base equals the real tree at every position",
    [programs, Arbitraries.files],
    ([program, files]) =>
      Effect.gen(function* () {
        const [fs, base] = [yield* another(), yield* another()]
        yield* plant(fs.port, files)
        yield* plant(base.port, files)
        const { journal, pictures } = yield* watching(fs.port)
        const recorded = yield* record(journal, fs)
        for (const command of program) yield* outcome(recorded, command)
        for (const [position, picture] of pictures.entries()) {
          const tree = yield* Replay.tree(journal, { until: position, base })
          assert.deepStrictEqual(yield* look(tree.port), picture, `at ${position}`)
        }
        assert.deepStrictEqual(yield* look(base.port), pictures[0], "the base is as it was")
      }),
    { arbitrary: { runs: 30, size: 30 } }
  )

  it.effect("includes entries that are older than the journal, if recorded changes contain their state", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "a/b": "one", "a/c": { link: "b" }, "d/e": "two", "d/untouched": "three", f: "four" })
      const { journal, pictures } = yield* watching(fs.port)
      const recorded = yield* record(journal, fs)
      yield* recorded.write("d/e", " and more", { mode: "append" })
      yield* recorded.delete("a", { recursive: true })
      yield* recorded.move("f", "g")
      yield* recorded.write("g", "five")
      for (const [position, { "d/untouched": _, ...picture }] of pictures.entries()) {
        const tree = yield* Replay.tree(journal, { until: position })
        assert.deepStrictEqual(yield* look(tree.port), picture, `at ${position}`)
      }
    })
  )

  it.effect("over a base includes moved directories with their content", () =>
    Effect.gen(function* () {
      const files = { "a/b/c": "one", "a/d": "two", "a/l": { link: "d" }, e: "three" }
      const [fs, base] = [yield* another(), yield* another()]
      yield* plant(fs.port, files)
      yield* plant(base.port, files)
      const { journal, pictures } = yield* watching(fs.port)
      const recorded = yield* record(journal, fs, { previous: false })
      yield* recorded.move("a", "f")
      yield* recorded.move("f/b", "a")
      yield* recorded.move("e", "f/d", { overwrite: true })
      yield* recorded.write("f/d", "four", { mode: "append" })
      yield* recorded.delete("f/l")
      for (const [position, picture] of pictures.entries()) {
        const tree = yield* Replay.tree(journal, { until: position, base })
        assert.deepStrictEqual(yield* look(tree.port), picture, `at ${position}`)
      }
    })
  )

  it.effect("fails with NotRecorded if it depends on a content that was not recorded", () =>
    Effect.gen(function* () {
      const [fs, base] = [yield* another(), yield* another()]
      for (const one of [fs, base]) yield* one.write("a", "old")
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs, { previous: false })
      yield* recorded.write("a", " and new", { mode: "append" })
      assert.deepInclude(yield* Effect.flip(Replay.tree(journal)), { _tag: "NotRecorded", operation: "tree", path: "a" })
      assert.strictEqual(yield* (yield* Replay.tree(journal, { base })).readString("a"), "old and new")
    })
  )

  it.effect("includes the effects that leaves report: created parents, followed links, edits", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const ids = Correlation.sequential()
      const tell = Effect.fnUntraced(function* (
        ask: (id: string) => FileSystemEntry.Efferent,
        answer: (id: string) => FileSystemEntry.Afferent
      ) {
        const id = yield* ids
        yield* journal.appendAll([ask(id), answer(id)])
      })
      const text = (content: string) => new TextEncoder().encode(content)
      const write = (path: string, content: string, createMode: FileSystemEntry.CreateMode = "overwrite") =>
        tell(
          (correlationId) => new FileSystemEntry.FileWrite({ correlationId, path, content: text(content), createMode }),
          (correlationId) => new FileSystemEntry.FileWritten({ correlationId, path, bytesWritten: content.length })
        )
      yield* write("/a/b/c.txt", "one two")
      yield* tell(
        (correlationId) => new FileSystemEntry.FileMakeLink({ correlationId, path: "link", target: "a/b" }),
        (correlationId) => new FileSystemEntry.FileLinkMade({ correlationId, path: "link" })
      )
      yield* write("link/c.txt", " three", "append")
      yield* tell(
        (correlationId) =>
          new FileSystemEntry.FileEdit({ correlationId, path: "link/c.txt", edits: [{ oldText: "two", newText: "2" }] }),
        (correlationId) =>
          new FileSystemEntry.FileEdited({ correlationId, path: "link/c.txt", bytesWritten: 11, replacements: 1, diff: "" })
      )
      yield* tell(
        (correlationId) => new FileSystemEntry.FileMove({ correlationId, path: "a", to: "moved/here" }),
        (correlationId) =>
          new FileSystemEntry.FileMoved({ correlationId, path: "a", to: "moved/here", files: 1, directories: 2, bytes: 11 })
      )
      yield* write("x", "failed")
      yield* tell(
        (correlationId) => new FileSystemEntry.FileDelete({ correlationId, path: "moved", recursive: false }),
        (correlationId) =>
          new FileSystemEntry.FileFault({ correlationId, faultKind: "DirectoryNotEmpty", path: "moved", message: "no" })
      )
      const tree = yield* Replay.tree(journal)
      assert.deepStrictEqual(yield* look(tree.port), {
        link: "link -> a/b",
        moved: "directory",
        "moved/here": "directory",
        "moved/here/b": "directory",
        "moved/here/b/c.txt": 'file "one 2 three"',
        x: 'file "failed"'
      })
    })
  )

  it.effect("fails with NotRecorded if a change leads through an absolute link, as drift and undo do", () =>
    Effect.gen(function* () {
      const { FileLinkMade, FileMakeLink, FileWrite, FileWritten } = FileSystemEntry
      for (const answered of [true, false]) {
        const journal = yield* makeJournal
        const content = new TextEncoder().encode("new")
        yield* journal.appendAll([
          new FileMakeLink({ correlationId: "1", path: "d/l", target: "/srv/root/x" }),
          new FileLinkMade({ correlationId: "1", path: "d/l" }),
          new FileWrite({ correlationId: "2", path: "d/l", content, createMode: "overwrite" }),
          ...(answered ? [new FileWritten({ correlationId: "2", path: "d/l", bytesWritten: 3 })] : [])
        ])
        const fs = yield* another()
        yield* plant(fs.port, { "d/l": { link: "/srv/root/x" }, x: "new" })
        const before = yield* look(fs.port)
        const notRecorded = { _tag: "NotRecorded", path: "d/l" } as const
        assert.deepInclude(yield* Effect.flip(Replay.drift(journal, fs)), notRecorded)
        assert.deepInclude(yield* Effect.flip(Replay.undo(journal, fs, { to: 0 })), notRecorded)
        assert.deepStrictEqual(yield* look(fs.port), before)
        if (answered) assert.deepInclude(yield* Effect.flip(Replay.tree(journal)), notRecorded)
        const past = yield* Replay.tree(journal, { until: 2, base: yield* another() })
        assert.deepStrictEqual(yield* look(past.port), { d: "directory", "d/l": "link -> /srv/root/x" })
      }
    })
  )

  it.effect("includes the changes of an absolute link itself", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const { FileDelete, FileDeleted, FileLinkMade, FileMakeLink, FileMove, FileMoved } = FileSystemEntry
      yield* journal.appendAll([
        new FileMakeLink({ correlationId: "1", path: "l", target: "/srv/root/x" }),
        new FileLinkMade({ correlationId: "1", path: "l" }),
        new FileMove({ correlationId: "2", path: "l", to: "m" }),
        new FileMoved({ correlationId: "2", path: "l", to: "m", files: 1, directories: 0, bytes: 0 })
      ])
      const fs = yield* another()
      yield* plant(fs.port, { m: { link: "/srv/root/x" } })
      assert.deepStrictEqual(yield* look((yield* Replay.tree(journal)).port), { m: "link -> /srv/root/x" })
      assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
      yield* journal.appendAll([
        new FileDelete({ correlationId: "3", path: "m" }),
        new FileDeleted({ correlationId: "3", path: "m", deletedCount: 1 })
      ])
      assert.deepStrictEqual(yield* look((yield* Replay.tree(journal)).port), {})
    })
  )

  it.effect("fails with NotRecorded if an edit was made to content that differs from the recorded content", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const { FileEdit, FileEdited, FileWrite, FileWritten } = FileSystemEntry
      const path = "a"
      const edited = (version: string) => [
        new FileWrite({ correlationId: "1", path, content: new TextEncoder().encode("one"), createMode: "overwrite" }),
        new FileWritten({ correlationId: "1", path, bytesWritten: 3 }),
        new FileEdit({ correlationId: "2", path, edits: [{ oldText: "one", newText: "two" }] }),
        new FileEdited({ correlationId: "2", path, bytesWritten: 3, replacements: 1, diff: "", version })
      ]
      yield* journal.appendAll(edited(sha256(new TextEncoder().encode("two"))))
      assert.strictEqual(yield* (yield* Replay.tree(journal)).readString("a"), "two")
      yield* journal.appendAll(edited("0".repeat(64)))
      assert.strictEqual((yield* Effect.flip(Replay.tree(journal)))._tag, "NotRecorded")
    })
  )

  it.effect.prop(
    "equals the tree of a leaf after a random program through a branch",
    [programs],
    ([program]) =>
      Effect.gen(function* () {
        const served = yield* another()
        const journal = yield* makeJournal
        yield* Effect.gen(function* () {
          const leaf = yield* Leaf.make(served, { limits: Limits.unlimited, extended: true })
          yield* leaf.start
          const branch = yield* Branch.make({ extended: true })
          for (const command of program) yield* outcome(branch, command)
        }).pipe(Effect.scoped, Effect.provideService(Journal.Journal, journal))
        const tree = yield* Replay.tree(journal)
        assert.deepStrictEqual(yield* look(tree.port), yield* look(served.port))
        assert.deepStrictEqual(yield* Replay.drift(journal, served), [])
        const again = yield* another()
        assert.deepStrictEqual(yield* Replay.rerun(journal, again), [])
        assert.deepStrictEqual(yield* look(again.port), yield* look(served.port))
      }),
    { arbitrary: { runs: 20, size: 30 } }
  )

  it.live("equals the real tree on a disk", () =>
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.gen(function* () {
        const fs = yield* Filesystem
        const { journal, pictures } = yield* watching(fs.port)
        const recorded = yield* record(journal, fs)
        yield* recorded.write("a/b/c", "one")
        yield* recorded.copy("a", "d")
        yield* recorded.move("d/b/c", "a/b/c", { overwrite: true })
        yield* recorded.write("a/b/c", "x".repeat(5_000))
        yield* recorded.edit("a/b/c", { oldText: "x".repeat(4_990), newText: "y", match: "first" })
        yield* recorded.symlink("a/link", "b/c")
        yield* recorded.delete("a", { recursive: true })
        for (const [position, picture] of pictures.entries()) {
          const tree = yield* Replay.tree(journal, { until: position })
          assert.deepStrictEqual(yield* look(tree.port), picture, `at ${position}`)
        }
      }).pipe(Effect.provide(PosixHost.layer({ root })))
    })
  )
})
