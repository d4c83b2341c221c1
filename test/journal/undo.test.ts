import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Replay from "../../src/journal/Replay.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { fold, type FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { sha256 } from "../../src/runtime/hash.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { directory as emptyDirectory, type Picture, plant } from "../../src/testing/Files.ts"
import { faulty } from "../../src/testing/Faults.ts"
import type { Command } from "../../src/testing/Model.ts"
import { directory } from "../conformance/filesystems.ts"
import { another, entriesOf, look, makeJournal, outcome, programs, record, watching } from "./recordings.ts"
import { runs } from "../runs.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const share = Arbitrary.map(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 }))), (n) => n / 100)

const inCapitals = (command: Command): Command => {
  const capital = (key: string, value: unknown) => (/^(path|from|to)$/.test(key) ? String(value).toUpperCase() : value)
  return Object.fromEntries(Object.entries(command).map(([key, value]) => [key, capital(key, value)])) as unknown as Command
}

const folded = (picture: Picture): Picture =>
  Object.fromEntries(Object.entries(picture).map(([path, entry]) => [fold(path as FsPath), entry]))

describe("Replay.undo", () => {
  it.effect.prop(
    "restores the tree of any position, even through a recorded filesystem, and can be undone itself",
    [programs, Arbitraries.files, share],
    ([program, files, share]) =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, files)
        const { journal, pictures } = yield* watching(fs.port)
        const recorded = yield* record(journal, fs)
        for (const command of program) yield* outcome(recorded, command)
        const end = pictures.length - 1
        const to = Math.floor(share * end)
        const last = yield* journal.last
        const changes = yield* Replay.undo(journal, recorded, { to })
        assert.deepStrictEqual(yield* look(fs.port), pictures[to], `to ${to} of ${end}`)
        const both = { ...pictures[to], ...pictures[end] }
        assert.deepStrictEqual(
          changes.map(({ path }) => path as string).sort(),
          Object.keys(both)
            .filter((path) => pictures[to]![path] !== pictures[end]![path])
            .sort(),
          "answers what differs"
        )
        yield* Replay.undo(journal, recorded, { to: last })
        assert.deepStrictEqual(yield* look(fs.port), pictures[end], "the undo undone")
      }),
    { arbitrary: { runs: runs(60), size: 40 } }
  )

  it.effect.prop(
    "restores the tree on a case-insensitive disk even if paths are in both cases",
    [programs, Arbitraries.files, share],
    ([program, files, share]) =>
      Effect.gen(function* () {
        const fs = yield* another({ caseInsensitive: true })
        // If two names are equal on this disk, the second file cannot be created.
        yield* Effect.exit(plant(fs.port, files))
        const { journal, pictures } = yield* watching(fs.port)
        const recorded = yield* record(journal, fs)
        for (const [i, command] of program.entries()) yield* outcome(recorded, i % 2 === 0 ? command : inCapitals(command))
        const [to, last] = [Math.floor(share * (pictures.length - 1)), yield* journal.last]
        yield* Replay.undo(journal, recorded, { to })
        assert.deepStrictEqual(folded(yield* look(fs.port)), folded(pictures[to]!), `to ${to} of ${last}`)
        yield* Replay.undo(journal, recorded, { to: last })
        assert.deepStrictEqual(folded(yield* look(fs.port)), folded(pictures[last]!), "the undo undone")
      }),
    { arbitrary: { runs: runs(100), size: 40 } }
  )

  it.effect("restores contents by their hash, links, empty directories and permissions", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const large = utf8("large ".repeat(2_000))
      yield* plant(fs.port, { "a/large": large, "a/small": "small", "a/link": { link: "small" }, "a/b/empty": emptyDirectory })
      yield* fs.setAttributes("a/small", { mode: 0o600 })
      yield* fs.setAttributes("a", { mode: 0o750 })
      const before = yield* look(fs.port)
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.setAttributes("a/small", { mode: 0o644, modifiedAt: DateTime.makeUnsafe(0) })
      yield* recorded.delete("a", { recursive: true })
      yield* recorded.write("a", "a file now")
      yield* Replay.undo(journal, recorded, { to: 0 })
      assert.deepStrictEqual(yield* look(fs.port), before)
      assert.strictEqual((yield* fs.stat("a/small")).mode, 0o600)
      assert.strictEqual((yield* fs.stat("a")).mode, 0o750)
    })
  )

  const attributesAt = (fs: Algebra, path: string) =>
    Effect.map(fs.stat(path), ({ mode, modifiedAt }) => ({ mode, modified: modifiedAt?.epochMilliseconds }))

  it.effect.each([
    "was there before",
    "was made",
    "was made and set",
    "was overwritten",
    "was a directory",
    "was the root"
  ] as const)("restores the permission bits of an entry that %s, and can itself be undone", (how) =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      const path = how === "was a directory" ? "d" : how === "was the root" ? "." : "a"
      if (how === "was a directory") yield* plant(fs.port, { "d/x": "x" })
      else if (how === "was there before" || how === "was overwritten") yield* fs.write("a", "x")
      else if (how !== "was the root") yield* recorded.write("a", "x")
      if (how === "was made and set")
        yield* recorded.setAttributes("a", { mode: 0o640, modifiedAt: DateTime.makeUnsafe(7_000) })
      const before = yield* attributesAt(fs, path)
      const to = yield* journal.last
      if (how === "was overwritten") yield* recorded.write("a", "y")
      yield* recorded.setAttributes(path, { mode: 0o700, modifiedAt: DateTime.makeUnsafe(5_000) })
      yield* recorded.setAttributes(path, { mode: 0o600 })
      const last = yield* journal.last
      const after = yield* attributesAt(fs, path)
      assert.deepStrictEqual(yield* Replay.undo(journal, recorded, { to, dryRun: true }), [
        { _tag: "Modified", path: path as FsPath }
      ])
      assert.deepStrictEqual(yield* attributesAt(fs, path), after, "a dry run changes nothing")
      assert.deepStrictEqual(yield* Replay.undo(journal, recorded, { to }), [{ _tag: "Modified", path: path as FsPath }])
      assert.strictEqual((yield* attributesAt(fs, path)).mode, before.mode)
      // The time of a directory, or of a file that was written since, differs.
      if (path === "a" && how !== "was overwritten") assert.deepStrictEqual(yield* attributesAt(fs, path), before)
      assert.deepStrictEqual(yield* Replay.undo(journal, recorded, { to }), [])
      yield* Replay.undo(journal, recorded, { to: last })
      const again = yield* attributesAt(fs, path)
      // Preparing an undo in the root changes its time.
      assert.deepStrictEqual(path === "." ? { ...again, modified: after.modified } : again, after, "the undo undone")
    })
  )

  it.effect("restores changed timestamps, and changes nothing else", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* fs.write("a", "x")
      yield* fs.mkdir("d")
      const before = [yield* attributesAt(fs, "a"), yield* attributesAt(fs, "d")]
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.setAttributes("a", { modifiedAt: DateTime.makeUnsafe(5_000) })
      yield* recorded.setAttributes("d", { modifiedAt: DateTime.makeUnsafe(5_000) })
      assert.deepStrictEqual(
        (yield* Replay.undo(journal, fs, { to: 0 })).map(({ path }) => path as string),
        ["a", "d"]
      )
      assert.deepStrictEqual([yield* attributesAt(fs, "a"), yield* attributesAt(fs, "d")], before)
    })
  )

  it.effect("leaves all times as they were if it fails to write a file", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { a: "x", b: "x" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.setAttributes("a", { modifiedAt: DateTime.makeUnsafe(5_000) })
      yield* recorded.write("b", "y")
      const refused: Fault = { _tag: "AccessDenied", why: "permission" }
      const port = { ...fs.port, write: () => Effect.fail(refused) }
      const error = yield* Effect.flip(Replay.undo(journal, make(port), { to: 0 }))
      assert.strictEqual(error._tag, "AccessDenied")
      assert.strictEqual((yield* attributesAt(fs, "a")).modified, 5_000)
      assert.strictEqual(yield* fs.readString("b"), "y")
    })
  )

  it.effect("fails with NotRecorded if no entry has the former permission bits, and with Conflict after a foreign change", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* fs.write("a", "x")
      yield* fs.write("b", "x")
      const journal = yield* makeJournal
      const untold = yield* record(journal, fs, { previous: false })
      yield* untold.setAttributes("a", { mode: 0o600 })
      const error = yield* Effect.flip(Replay.undo(journal, fs, { to: 0 }))
      assert.deepInclude(error, { _tag: "NotRecorded", path: "a" })
      const to = yield* journal.last
      const recorded = yield* record(journal, fs)
      yield* recorded.setAttributes("b", { mode: 0o600 })
      yield* fs.setAttributes("b", { mode: 0o640 })
      assert.deepInclude(yield* Effect.flip(Replay.undo(journal, fs, { to })), { _tag: "Conflict", path: "b" })
      assert.strictEqual((yield* fs.stat("b")).mode, 0o640)
    })
  )

  it.effect("appears in Replay.changes as ordinary changes, without hidden names", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "was/deep/x": "x", "was/y": "y", a: "one", gone: "g" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a", "two")
      yield* recorded.delete("was", { recursive: true })
      yield* recorded.delete("gone")
      yield* recorded.write("new", "n")
      const to = yield* journal.last
      yield* Replay.undo(journal, recorded, { to: 0 })
      const all = Array.from(yield* Stream.runCollect(Replay.changes(journal)))
      const made = all.filter(({ position }) => position > to)
      assert.deepStrictEqual(made.map(({ kind, outcome, path, version }) => [kind, path as string, outcome, version]).sort(), [
        ["FileDelete", "new", "done", undefined],
        ["FileMakeDirectory", "was", "done", undefined],
        ["FileMakeDirectory", "was/deep", "done", undefined],
        ["FileWrite", "a", "done", sha256(utf8("one"))],
        ["FileWrite", "gone", "done", sha256(utf8("g"))],
        ["FileWrite", "was/deep/x", "done", sha256(utf8("x"))],
        ["FileWrite", "was/y", "done", sha256(utf8("y"))]
      ])
      assert.isFalse(all.some(({ path, to }) => `${path} ${to ?? ""}`.includes(".~fsa")))
    })
  )

  it.effect("that fails appears in Replay.changes together with its rollback", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { a: "one", b: "one" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.delete("a")
      yield* recorded.delete("b")
      const to = yield* journal.last
      const refused: Fault = { _tag: "AccessDenied", why: "permission" }
      const port: Backend = {
        ...fs.port,
        rename: (from, to, options) => (to === "b" ? Effect.fail(refused) : fs.port.rename(from, to, options))
      }
      const again = yield* record(journal, make(port))
      yield* Effect.flip(Replay.undo(journal, again, { to: 0 }))
      const made = Array.from(yield* Stream.runCollect(Replay.changes(journal))).filter(({ position }) => position > to)
      assert.deepStrictEqual(
        made.map(({ kind, outcome, path }) => [kind, path as string, outcome]),
        [
          ["FileWrite", "a", "done"],
          ["FileWrite", "b", "failed"],
          ["FileDelete", "a", "done"]
        ]
      )
    })
  )

  it.effect("restores moved directories whose content is not in the journal", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "a/deep/x": "x", "a/y": "y", c: "c" })
      const before = yield* look(fs.port)
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.move("a", "b")
      yield* recorded.write("b/y", "other")
      yield* recorded.move("b/deep", "c2")
      yield* recorded.write("a", "in its place")
      yield* Replay.undo(journal, fs, { to: 0 })
      assert.deepStrictEqual(yield* look(fs.port), before)
    })
  )

  it.effect("over foreign changes fails with Conflict and both versions, and changes nothing", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a", "one")
      yield* recorded.write("b/c", "two")
      const to = yield* journal.last
      yield* recorded.write("a", "three")
      yield* recorded.write("b/c", "four")
      yield* fs.write("b/c", "foreign")
      const before = yield* look(fs.port)
      const error = yield* Effect.flip(Replay.undo(journal, recorded, { to }))
      assert.deepInclude(error, {
        _tag: "Conflict",
        path: "b/c",
        expected: sha256(utf8("four")),
        actual: sha256(utf8("foreign"))
      })
      assert.deepStrictEqual(yield* look(fs.port), before)
      // Other paths may have changed.
      yield* Replay.undo(journal, recorded, { to, paths: ["a"] })
      assert.strictEqual(yield* fs.readString("a"), "one")
      assert.strictEqual(yield* fs.readString("b/c"), "foreign")
    })
  )

  it.effect("of a file that was changed and changed back fails with Conflict after a foreign change", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a", "one")
      const to = yield* journal.last
      yield* recorded.write("a", "two")
      yield* recorded.write("a", "one")
      yield* fs.write("a", "foreign")
      assert.strictEqual((yield* Effect.flip(Replay.undo(journal, fs, { to })))._tag, "Conflict")
    })
  )

  it.effect("of a file that was moved away and back fails with Conflict after a foreign change", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a", "one")
      const to = yield* journal.last
      yield* recorded.move("a", "b")
      yield* recorded.move("b", "a")
      assert.deepStrictEqual(yield* Replay.undo(journal, fs, { to }), [])
      yield* fs.write("a", "foreign")
      assert.deepInclude(yield* Effect.flip(Replay.undo(journal, fs, { to })), { _tag: "Conflict", path: "a" })
    })
  )

  it.effect("reverts a move with `replace` that replaced no file", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { a: "one", b: "two" })
      const before = yield* look(fs.port)
      const journal = yield* makeJournal
      const { port } = yield* record(journal, fs)
      yield* port.rename("a" as FsPath, "c" as FsPath, { replace: true })
      yield* port.rename("b" as FsPath, "c" as FsPath, { replace: true })
      yield* Replay.undo(journal, fs, { to: 0 })
      assert.deepStrictEqual(yield* look(fs.port), before)
    })
  )

  it.effect("fails instead of removing a foreign file together with a directory", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("made/a", "one")
      yield* fs.write("made/foreign", "precious")
      const before = yield* look(fs.port)
      const error = yield* Effect.flip(Replay.undo(journal, recorded, { to: 0 }))
      assert.deepInclude(error, { _tag: "Conflict", path: "made/foreign", expected: null })
      assert.deepStrictEqual(yield* look(fs.port), before)
    })
  )

  it.effect("fails without a change if a link moved and the filesystem cannot read links", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "d/l": { link: "x" }, l: { link: "y" } })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      for (const [from, to] of [
        ["l", "m"],
        ["d", "e"]
      ] as const) {
        const before = yield* journal.last
        yield* recorded.move(from, to)
        const moved = yield* look(fs.port)
        const linkless = make({ ...fs.port, links: undefined, perform: undefined, explore: undefined })
        assert.deepStrictEqual(yield* Replay.drift(journal, linkless), [])
        const error = yield* Effect.flip(Replay.undo(journal, linkless, { to: before }))
        assert.deepInclude(error, { _tag: "IoError", path: from === "l" ? "m" : "e/l", code: "ENOTSUP" } as const)
        assert.deepStrictEqual(yield* look(fs.port), moved)
      }
    })
  )

  it.effect("restores only the requested paths of a removed directory", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "d/x": "one", "d/y": "two", "d/e/z": "three" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.delete("d", { recursive: true })
      yield* Replay.undo(journal, recorded, { to: 0, paths: ["d/x", "/d/e/"] })
      assert.deepStrictEqual(yield* look(fs.port), {
        d: "directory",
        "d/e": "directory",
        "d/e/z": 'file "three"',
        "d/x": 'file "one"'
      })
    })
  )

  it.effect("fails with Conflict if it could also fail with NotRecorded", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { b: "old" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs, { previous: false })
      yield* recorded.write("a", "one", { mode: "create" })
      yield* recorded.write("b", "two")
      yield* fs.write("a", "foreign")
      assert.strictEqual((yield* Effect.flip(Replay.undo(journal, fs, { to: 0 })))._tag, "Conflict")
    })
  )

  it.effect("without previous contents fails with NotRecorded, and changes nothing", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* fs.write("a", "old")
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs, { previous: false })
      yield* recorded.write("a", "new")
      const to = yield* journal.last
      yield* recorded.write("a", "newer")
      assert.deepInclude(yield* Effect.flip(Replay.undo(journal, recorded, { to: 0 })), { _tag: "NotRecorded", path: "a" })
      assert.strictEqual(yield* fs.readString("a"), "newer")
      yield* Replay.undo(journal, recorded, { to })
      assert.strictEqual(yield* fs.readString("a"), "new")
    })
  )

  it.effect("reports its changes with dryRun, and makes none", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a/b", "one")
      yield* recorded.write("c", "one")
      const to = yield* journal.last
      yield* recorded.delete("a", { recursive: true })
      yield* recorded.write("c", "two")
      yield* recorded.write("d", "three")
      const before = yield* look(fs.port)
      const last = yield* journal.last
      const changes = yield* Replay.undo(journal, recorded, { to, dryRun: true })
      assert.deepStrictEqual(changes, [
        { _tag: "Added", path: "a" },
        { _tag: "Added", path: "a/b" },
        { _tag: "Modified", path: "c" },
        { _tag: "Removed", path: "d" }
      ] as never)
      assert.deepStrictEqual(yield* look(fs.port), before)
      assert.strictEqual(yield* journal.last, last)
    })
  )

  it.effect("ignores paths above the root in foreign entries", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const removed = ["d", "d/..", "d/../..", "d/../../evil", "../evil"].map(
        (path) => ({ path, kind: path.endsWith("evil") ? "file" : "directory", content: utf8("x") }) as const
      )
      const at = { correlationId: "1", path: "d" }
      yield* journal.append(new FileSystemEntry.FileDelete({ ...at, recursive: true }))
      yield* journal.append(new FileSystemEntry.FileDeleted({ ...at, deletedCount: 1, removed }))
      const fs = yield* another()
      yield* Replay.undo(journal, fs, { to: 0 })
      assert.deepStrictEqual(Object.keys(yield* look(fs.port)), ["d"])
    })
  )

  it.effect("refuses an invalid position", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      for (const to of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        assert.deepInclude(yield* Effect.flip(Replay.undo(journal, fs, { to })), { _tag: "InvalidArgument", argument: "to" })
      }
    })
  )

  it.effect("accepts an unanswered write both as made and as not made", () =>
    Effect.gen(function* () {
      for (const done of [true, false]) {
        const fs = yield* another()
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.write("a", "one")
        const to = yield* journal.last
        yield* recorded.write("b", "other")
        const { FileWrite } = FileSystemEntry
        yield* journal.append(
          new FileWrite({
            correlationId: "killed",
            path: "a",
            content: utf8("two"),
            createMode: "overwrite",
            createParents: false
          })
        )
        if (done) yield* fs.write("a", "two")
        yield* Replay.undo(journal, fs, { to })
        assert.strictEqual(yield* fs.readString("a"), "one")
        assert.isFalse(yield* fs.exists("b"))
        yield* fs.write("a", "neither")
        assert.strictEqual((yield* Effect.flip(Replay.undo(journal, fs, { to })))._tag, "Conflict")
      }
    })
  )

  it.effect("leaves the old tree or the new tree if any step fails, hangs or dies", () =>
    Effect.gen(function* () {
      const scene = Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, { "a/b": "one", "a/c": "two", d: "three" })
        const old = yield* look(fs.port)
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.move("a", "moved")
        yield* recorded.write("moved/b", "changed")
        yield* recorded.delete("d")
        yield* recorded.write("e/f", "new")
        return { fs, journal, old, now: yield* look(fs.port) }
      })
      const { fs, journal } = yield* scene
      const trial = faulty([])(fs)
      yield* Replay.undo(journal, trial, { to: 0 })
      const steps = trial.happened.length
      assert.isAbove(steps, 20)
      const faults = [
        { fault: { _tag: "IoError", detail: "planned" }, when: "before" },
        { fault: { _tag: "IoError", detail: "planned" }, when: "after" },
        { fault: "die", when: "before" },
        { fault: "hang", when: "before" }
      ] as const
      let changed = 0
      for (let i = 0; i < steps; i++) {
        for (const planned of faults) {
          const { fs, journal, now, old } = yield* scene
          const { operation } = trial.happened[i]!
          const nth = trial.happened.slice(0, i + 1).filter((step) => step.operation === operation).length
          const broken = faulty([{ operation, nth, ...planned }])(fs)
          const fiber = yield* Effect.forkChild(Replay.undo(journal, broken, { to: 0 }), { startImmediately: true })
          if (planned.fault === "hang") {
            yield* broken.hung
            yield* Fiber.interrupt(fiber)
          }
          const exit = yield* Fiber.await(fiber)
          const left = yield* look(fs.port)
          const what = `step ${i}, ${operation}, ${JSON.stringify(planned)}`
          if (Exit.isSuccess(exit)) changed++
          // An interruption during the cleanup comes after the undo is complete.
          const isDone = Exit.isSuccess(exit) || (planned.fault === "hang" && !("moved" in left))
          assert.deepStrictEqual(left, isDone ? old : now, what)
        }
      }
      assert.isBelow(changed, steps)
    })
  )

  it.live("restores a tree on disk, and an undo of the undo brings the changes back", () =>
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("a/b", "one")
        yield* fs.symlink("a/l", "b")
        const before = yield* look(fs.port)
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.edit("a/b", { oldText: "one", newText: "two" })
        yield* recorded.copy("a", "c")
        yield* recorded.delete("a", { recursive: true })
        const after = yield* look(fs.port)
        const last = yield* journal.last
        yield* Replay.undo(journal, recorded, { to: 0 })
        assert.deepStrictEqual(yield* look(fs.port), before)
        yield* Replay.undo(journal, recorded, { to: last })
        assert.deepStrictEqual(yield* look(fs.port), after)
        assert.isAbove((yield* entriesOf(journal)).length, last)
      }).pipe(Effect.provide(PosixHost.layer({ root })))
    })
  )
})
