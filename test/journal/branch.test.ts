import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { join } from "node:path"
import * as Fs from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Branch from "../../src/journal/Branch.ts"
import { JournalError } from "../../src/journal/errors.ts"
import * as F from "../../src/journal/FileSystemEntry.ts"
import { type Entry, Journal, layerFile, layerMemory, makeMemory, record, type Scrivener } from "../../src/journal/Journal.ts"
import * as Replay from "../../src/journal/Replay.ts"
import { agent, Limits, unlimited } from "../../src/model/Limits.ts"
import { capture, directory as F_directory, picture } from "../../src/testing/Files.ts"
import { leafOf } from "../conformance/branches.ts"
import { directory } from "../conformance/filesystems.ts"
import { onDisk } from "../scratch.ts"
import { answering } from "./fakeLeaf.ts"
import { withoutIdentity } from "./recordings.ts"

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

const intents = (journal: Scrivener<Entry>, after: number): Effect.Effect<ReadonlyArray<F.Efferent>, JournalError> =>
  Effect.map(Stream.runCollect(journal.stored(after)), (all) => all.map(({ entry }) => entry).filter(F.isEfferent))

/** Returns a branch, the filesystem behind its leaf, and the journal between them, all in memory. */
const world = (options: Branch.Options = {}, tree: InMemory.Tree = {}) =>
  Effect.gen(function* () {
    const extended = options.extended !== false
    const served = make(yield* InMemory.make({ tree }))
    yield* leafOf(served, { extended })
    return { served, journal: yield* Journal, fs: yield* Branch.make({ extended, ...options }) }
  })

const inWorld = <A, E>(effect: Effect.Effect<A, E, Journal | Scope.Scope>): Effect.Effect<A, E, Scope.Scope> =>
  Effect.provide(effect, layerMemory)

const tree = { a: "one", d: { f: "deep", e: {} } }

const paths = (found: ReadonlyArray<{ readonly path: string }>): ReadonlyArray<string> => found.map(({ path }) => path)

type Call = (fs: Algebra) => Effect.Effect<unknown, unknown>

const stream = (text: string): Stream.Stream<Uint8Array> => Stream.make(utf8(text))

/** Calls, and the requests that each appends to the journal. */
type Calls = ReadonlyArray<readonly [what: string, call: Call, tags: ReadonlyArray<string>]>

const missing: Calls = [
  ["exists of a missing path", (fs) => fs.exists("x/y/z"), ["FileStat"]],
  ["stat of a missing path", (fs) => Effect.flip(fs.stat("x/y/z")), ["FileStat"]]
]

const asEntries: Calls = [
  ["exists", (fs) => fs.exists("a"), ["FileStat"]],
  ["stat", (fs) => fs.stat("a"), ["FileStat"]],
  ["list", (fs) => fs.list("d"), ["FileList"]],
  ["read", (fs) => fs.read("a"), ["FileRead"]],
  ["readString", (fs) => fs.readString("a"), ["FileRead"]],
  ["readBytes", (fs) => fs.readBytes("a"), ["FileRead"]],
  ["readBytes of a part", (fs) => fs.readBytes("a", { offset: 1, limit: 1 }), ["FileRead"]],
  ["version", (fs) => fs.version("a"), ["FileRead"]],
  ["stream", (fs) => Stream.runDrain(fs.stream("a")), ["FileRead"]],
  ["write", (fs) => fs.write("a", "x"), ["FileWrite"]],
  ["write of a new file", (fs) => fs.write("x/y/z", "x"), ["FileWrite"]],
  ["write in mode create", (fs) => fs.write("b", "x", { mode: "create" }), ["FileWrite"]],
  ["append", (fs) => fs.write("a", "x", { mode: "append" }), ["FileWrite"]],
  ["writeBytes", (fs) => fs.writeBytes("a", utf8("x")), ["FileWrite"]],
  ["sink", (fs) => Stream.run(stream("x"), fs.sink("a")), ["FileStat", "FileWriteChunk"]],
  ["delete", (fs) => fs.delete("a"), ["FileDelete"]],
  ["recursive delete", (fs) => fs.delete("d", { recursive: true }), ["FileDelete"]],
  ["delete of a missing path", (fs) => fs.delete("x", { missing: "ignore" }), ["FileDelete"]]
]

const beyondThem: Calls = [
  // The second request looks for a link at any component of the path.
  ...missing.map(([what, call]) => [what, call, ["FileStat", "FileStat"]] as const),
  ["write with a precondition", (fs) => fs.write("b", "x", { ifMatch: null, version: true }), ["FileWrite"]],
  ["write that fails its precondition", (fs) => Effect.flip(fs.write("a", "x", { ifMatch: "no" })), ["FileWrite"]],
  ["write without parents", (fs) => Effect.flip(fs.write("x/y", "x", { createParents: false })), ["FileWrite"]],
  ["edit", (fs) => fs.edit("a", { oldText: "one", newText: "two" }), ["FileEdit"]],
  [
    "edit with a precondition",
    (fs) => Effect.flip(fs.edit("a", { oldText: "o", newText: "O" }, { ifMatch: "no" })),
    ["FileEdit"]
  ],
  ["mkdir", (fs) => fs.mkdir("x/y/z"), ["FileMakeDirectory"]],
  ["mkdir of an existing directory", (fs) => fs.mkdir("d"), ["FileMakeDirectory"]],
  ["move", (fs) => fs.move("d", "x/y"), ["FileMove"]],
  ["move over a file", (fs) => fs.move("d/f", "a", { overwrite: true }), ["FileMove"]]
]

describe("through a branch,", () => {
  for (const [what, call, tags] of [...asEntries, ...beyondThem]) {
    it.effect(`${what} appends ${tags.join(", then ")}`, () =>
      inWorld(
        Effect.gen(function* () {
          const { fs, journal } = yield* world({}, tree)
          yield* call(fs)
          assert.deepStrictEqual(
            (yield* intents(journal, 0)).map(({ _tag }) => _tag),
            [...tags]
          )
        })
      )
    )
  }

  for (const [what, call, tags] of [...asEntries, ...missing]) {
    it.effect(
      `${what} appends ${tags.join(", then ")} without optional fields if the journal has only basic kinds of entry`,
      () =>
        inWorld(
          Effect.gen(function* () {
            const { fs, journal } = yield* world({ extended: false }, tree)
            yield* call(fs)
            const all = yield* intents(journal, 0)
            assert.deepStrictEqual(
              all.map(({ _tag }) => _tag),
              [...tags]
            )
            for (const entry of all) {
              for (const field of ["ifMatch", "version", "createParents"]) assert.notProperty(entry, field)
            }
          })
        )
    )
  }
})

describe("a call through a branch", () => {
  it.effect("that edits a file appends a read and a write if the journal has only the basic kinds of entry", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, journal, served } = yield* world({ extended: false }, tree)
        const { diff, replacements } = yield* fs.edit("a", { oldText: "one", newText: "two" })
        assert.strictEqual(replacements, 1)
        assert.strictEqual(
          diff,
          "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n"
        )
        const [read, write] = yield* intents(journal, 0)
        assert.strictEqual(read?._tag, "FileRead")
        assert.strictEqual(write?._tag === "FileWrite" ? write.createMode : write?._tag, F.CreateMode.ReplaceExisting)
        assert.strictEqual(yield* served.readString("a"), "two")
      })
    )
  )

  const unsaid: ReadonlyArray<readonly [what: string, call: Call]> = [
    ["write with a precondition", (fs) => fs.write("a", "x", { ifMatch: null })],
    ["a version of an append", (fs) => fs.write("a", "x", { mode: "append", version: true })],
    ["write without parents", (fs) => fs.write("a", "x", { createParents: false })],
    ["edit with a precondition", (fs) => fs.edit("a", { oldText: "one", newText: "" }, { ifMatch: "no" })],
    ["delete with a precondition", (fs) => fs.delete("a", { ifMatch: "no" })],
    ["mkdir", (fs) => fs.mkdir("x")],
    ["move", (fs) => fs.move("a", "x")],
    ["copy", (fs) => fs.copy("a", "x")],
    ["setAttributes", (fs) => fs.setAttributes("a", { mode: 0o600 })]
  ]

  it.effect("that the basic kinds of entry cannot express fails as Unsupported, and changes nothing", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({ extended: false }, tree)
        for (const [what, call] of unsaid) {
          const error = (yield* Effect.flip(call(fs))) as { readonly _tag: string; readonly code?: string }
          assert.strictEqual(error._tag === "IoError" ? error.code : error._tag, "Unsupported", what)
        }
        assert.deepStrictEqual(yield* capture(served.port), picture({ a: "one", "d/f": "deep", "d/e": F_directory }))
      })
    )
  )

  it.effect("with invalid arguments sends no request; one that deletes or replaces the root sends no change", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, journal } = yield* world({}, tree)
        const calls: ReadonlyArray<readonly [Call, string]> = [
          [(fs) => fs.write("../a", "x"), "InvalidPath"],
          [(fs) => fs.write("a", "\ud800"), "InvalidArgument"],
          [(fs) => fs.write("a", "x", { mode: "create", ifMatch: null }), "InvalidArgument"],
          [(fs) => fs.edit("a", []), "InvalidArgument"],
          [(fs) => fs.delete("."), "AccessDenied"],
          [(fs) => fs.move("d", "d/below"), "InvalidArgument"],
          [(fs) => fs.move("a", "."), "AccessDenied"],
          [(fs) => Effect.provideService(fs.write("a", "123"), Limits, { ...agent, maxFileSize: 2 }), "LimitExceeded"]
        ]
        for (const [call, tag] of calls.filter(([, tag]) => tag !== "AccessDenied")) {
          assert.strictEqual(((yield* Effect.flip(call(fs))) as { readonly _tag: string })._tag, tag)
        }
        assert.deepStrictEqual(yield* intents(journal, 0), [])
        for (const [call, tag] of calls) {
          assert.strictEqual(((yield* Effect.flip(call(fs))) as { readonly _tag: string })._tag, tag)
        }
        assert.isTrue((yield* intents(journal, 0)).every((entry) => !F.isMutation(entry)))
      })
    )
  )

  it.effect("fails with the same error as the backend", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, { ...tree, "b.bin": Uint8Array.of(0xff) })
        const calls: ReadonlyArray<Call> = [
          (fs) => fs.stat("x"),
          (fs) => fs.list("a"),
          (fs) => fs.readString("d"),
          (fs) => fs.write("a/b", "x"),
          (fs) => fs.write("a", "x", { mode: "create" }),
          (fs) => fs.write("a", "x", { ifMatch: "0".repeat(64) }),
          (fs) => fs.edit("a", { oldText: "nothing", newText: "" }),
          (fs) => fs.edit("b.bin", { oldText: "x", newText: "" }),
          (fs) => fs.delete("d"),
          (fs) => fs.mkdir("a", { existOk: false }),
          (fs) => fs.move("./x", "y"),
          (fs) => fs.move("a", "./d/f"),
          (fs) => fs.move("d", "a", { overwrite: true })
        ]
        for (const call of calls) {
          assert.deepStrictEqual(
            { ...((yield* Effect.flip(call(fs))) as object) },
            { ...((yield* Effect.flip(call(served))) as object) }
          )
        }
      })
    )
  )

  it.effect("that edits a file obeys the caller's limits if they are below the limits of the leaf", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, journal, served } = yield* world({}, { a: "0123456789" })
        const edit = fs.edit("a", { oldText: "01", newText: "ten" }, { version: true })
        const refused = yield* Effect.flip(Effect.provideService(edit, Limits, { ...agent, maxReadBytes: 9 }))
        assert.strictEqual(refused._tag === "LimitExceeded" ? refused.limit : refused._tag, "maxReadBytes")
        const inserted = yield* Effect.flip(Effect.provideService(edit, Limits, { ...agent, maxFileSize: 2 }))
        assert.strictEqual(inserted._tag, "LimitExceeded")
        assert.strictEqual(yield* served.readString("a"), "0123456789")
        const edited = yield* Effect.provideService(edit, Limits, agent)
        assert.strictEqual(yield* served.readString("a"), "ten23456789")
        assert.strictEqual(edited.version, yield* served.version("a"))
        assert.isFalse((yield* intents(journal, 0)).some(({ _tag }) => _tag === "FileEdit"))
      })
    )
  )

  it.effect("that edits by a read and a write tries again after a concurrent edit, so that no edit is lost", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, { a: "-\n" })
        const other = yield* Branch.make({ extended: true })
        const lines = Array.from({ length: 8 }, (_, i) => `line ${i}`)
        yield* Effect.forEach(
          lines,
          (line, i) =>
            Effect.provideService(
              (i % 2 === 0 ? fs : other).edit("a", { oldText: "-\n", newText: `-\n${line}\n` }),
              Limits,
              agent
            ),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual((yield* served.readString("a")).trim().split("\n").sort(), ["-", ...lines])
      })
    )
  )
})

describe("a branch", () => {
  it.effect("without a leaf fails every call except exists with Timeout", () =>
    inWorld(
      Effect.gen(function* () {
        const fs = yield* Branch.make({ extended: true, timeout: "10 seconds" })
        for (const [what, call] of [...asEntries, ...beyondThem]) {
          if (what.startsWith("exists")) continue
          const fiber = yield* Effect.forkChild(Effect.exit(call(fs)), { startImmediately: true })
          yield* TestClock.adjust("10 seconds")
          const exit = yield* Fiber.join(fiber)
          const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : exit.value
          assert.strictEqual((error as { readonly _tag: string })._tag, "Timeout", what)
        }
      })
    )
  )

  it.effect("serves the next call after a waiting call is interrupted", () =>
    inWorld(
      Effect.gen(function* () {
        const journal = yield* Journal
        const fs = yield* Branch.make({ extended: true })
        for (const [what, call] of [...asEntries, ...beyondThem]) {
          const before = yield* journal.last
          const fiber = yield* Effect.forkChild(call(fs), { startImmediately: true })
          yield* journal.waitFor(before, F.isEfferent)
          yield* Fiber.interrupt(fiber)
          const exit = yield* Fiber.await(fiber)
          assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause), what)
        }
        yield* answering(journal, ({ correlationId }) =>
          Effect.succeed([new F.FileWritten({ correlationId, path: "a", bytesWritten: 1 })])
        )
        yield* fs.write("a", "x")
      })
    )
  )

  it.effect("fails with Unavailable after its journal fails or its scope ends", () =>
    Effect.gen(function* () {
      const error = new JournalError({ operation: "append", reason: "io", detail: "planned" })
      const journal = yield* Effect.provide(Journal, layerMemory)
      const scope = yield* Scope.make()
      const fs = yield* Branch.make({ extended: true }).pipe(
        Effect.provideService(Journal, { ...journal, append: () => Effect.fail(error) }),
        Scope.provide(scope)
      )
      const failed = yield* Effect.flip(fs.readString("a"))
      assert.strictEqual(failed._tag, "Unavailable")
      assert.include(failed.message, "planned")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(fs.write("a", "x")))._tag, "Unavailable")
    })
  )

  it.effect("lets one of two racing writers with the same precondition succeed, and gives the other a Conflict", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, { a: "0" })
        const other = yield* Branch.make({ extended: true })
        for (let round = 0; round < 20; round++) {
          const ifMatch = yield* served.version("a")
          const race = [fs, other].map((each, i) => Effect.exit(each.write("a", `${round} ${i}`, { ifMatch })))
          const exits = yield* Effect.all(race, { concurrency: "unbounded" })
          const won = exits.flatMap((exit, i) => (Exit.isSuccess(exit) ? [i] : []))
          assert.strictEqual(won.length, 1)
          assert.strictEqual(yield* served.readString("a"), `${round} ${won[0]}`)
          const lost = exits.find(Exit.isFailure)!
          assert.strictEqual((Cause.squash(lost.cause) as { readonly _tag: string })._tag, "Conflict")
        }
        const creating = [fs, other].map((each) => Effect.exit(each.write("new", "x", { mode: "create" })))
        const created = yield* Effect.all(creating, { concurrency: "unbounded" })
        assert.strictEqual(created.filter(Exit.isSuccess).length, 1)
      })
    )
  )

  it.effect("loses no edit if another branch uses the same leaf", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, { a: "-\n" })
        const other = yield* Branch.make({ extended: true })
        const inside = yield* subdirectory(".")(other)
        const lines = Array.from({ length: 60 }, (_, i) => `line ${i}`)
        yield* Effect.forEach(
          lines,
          (line, i) => [fs, other, inside][i % 3]!.edit("a", { oldText: "-\n", newText: `-\n${line}\n` }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual((yield* served.readString("a")).trim().split("\n").sort(), ["-", ...lines].sort())
      })
    )
  )

  it.effect("in a subdirectory checks preconditions at the leaf, and reports paths relative to the subdirectory", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, journal } = yield* world({}, { d: { f: "old", sub: { g: "x" } } })
        const inside = yield* subdirectory("d")(fs)
        const before = yield* journal.last
        const ifMatch = yield* inside.version("f")
        yield* inside.write("f", "new", { ifMatch })
        const { diff } = yield* inside.edit("sub/g", { oldText: "x", newText: "y" })
        assert.include(diff, "--- a/sub/g\n+++ b/sub/g\n")
        yield* inside.delete("sub", { recursive: true })
        yield* inside.mkdir("made")
        yield* inside.move("f", "moved")
        const missing = yield* Effect.flip(inside.move("nowhere", "x"))
        assert.strictEqual(missing.path, "nowhere")
        assert.deepStrictEqual(
          (yield* intents(journal, before)).map((entry) => [entry._tag, "path" in entry ? entry.path : undefined]),
          [
            ["FileRead", "d/f"],
            ["FileWrite", "d/f"],
            ["FileEdit", "d/sub/g"],
            ["FileDelete", "d/sub"],
            ["FileMakeDirectory", "d/made"],
            ["FileMove", "d/f"],
            ["FileMove", "d/nowhere"]
          ]
        )
      })
    )
  )

  it.effect("in a deleted subdirectory does not create the subdirectory again", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, { d: { f: "x" }, other: "y" })
        const inside = yield* subdirectory("d")(fs)
        yield* fs.delete("d", { recursive: true })
        const calls: ReadonlyArray<Call> = [
          (fs) => fs.write("f", "x"),
          (fs) => fs.write("deep/f", "x"),
          (fs) => fs.mkdir("deep"),
          (fs) => fs.mkdir("deep/er"),
          (fs) => Stream.run(stream("x"), fs.sink("f")),
          (fs) => fs.edit("f", { oldText: "x", newText: "y" })
        ]
        for (const call of calls) {
          assert.strictEqual(((yield* Effect.flip(call(inside))) as { readonly _tag: string })._tag, "NotFound")
        }
        assert.deepStrictEqual(yield* capture(served.port), picture({ other: "y" }))
      })
    )
  )

  it.effect("sends content over its threshold in chunks, and smaller content in one entry", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, journal, served } = yield* world({ streamingThreshold: 10, chunkSize: 4 })
        yield* fs.write("a", "0123456789")
        yield* fs.write("b", "0123456789a", { version: true })
        const sent = (yield* intents(journal, 0)).map((entry) => (entry._tag === "FileWriteChunk" ? entry.offset : entry._tag))
        assert.deepStrictEqual(sent, ["FileWrite", 0, 4, 8])
        assert.strictEqual(yield* served.readString("b"), "0123456789a")
      })
    )
  )

  it.effect("sets attributes in the filesystem of the leaf", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, tree)
        const modifiedAt = DateTime.makeUnsafe("2020-01-02T03:04:05.678Z")
        yield* fs.setAttributes("a", { mode: 0o640, modifiedAt })
        assert.deepStrictEqual(yield* fs.stat("a"), withoutIdentity(yield* served.stat("a")))
        assert.strictEqual((yield* fs.stat("a")).mode, 0o640)
        assert.strictEqual((yield* fs.stat("a")).modifiedAt?.epochMilliseconds, modifiedAt.epochMilliseconds)
      })
    )
  )

  for (const preservePermissions of [undefined, false, true]) {
    it.effect(`copies permission bits only if its leaf keeps them: preservePermissions ${preservePermissions}`, () =>
      inWorld(
        Effect.gen(function* () {
          const served = make(yield* InMemory.make({ tree }))
          yield* leafOf(served, { extended: true, preservePermissions })
          const fs = yield* Branch.make({ extended: true })
          yield* served.setAttributes("a", { mode: 0o741 })
          yield* served.setAttributes("d/f", { mode: 0o604 })
          yield* served.setAttributes("d", { mode: 0o751 })
          yield* fs.copy("a", "b")
          yield* fs.copy("d", "c")
          const keeps = preservePermissions === true
          assert.strictEqual((yield* served.stat("b")).mode === 0o741, keeps)
          assert.strictEqual((yield* served.stat("c")).mode === 0o751, keeps)
          assert.strictEqual((yield* served.stat("c/f")).mode === 0o604, keeps)
          yield* fs.move("a", "moved")
          assert.strictEqual((yield* served.stat("moved")).mode, 0o741)
          yield* fs.setAttributes("b", { mode: 0o640 })
          assert.strictEqual((yield* served.stat("b")).mode, 0o640)
        })
      )
    )
  }

  it.effect("keeps permission bits when it moves a file, but leaves the decision to the leaf when it copies", () =>
    inWorld(
      Effect.gen(function* () {
        const [from, keeping, other] = [
          make(yield* InMemory.make({ tree: { f: "x" } })),
          make(yield* InMemory.make()),
          make(yield* InMemory.make())
        ]
        yield* leafOf(from, { extended: true, name: "from" })
        yield* leafOf(keeping, { extended: true, name: "keeping", prefix: "keeping", preservePermissions: true })
        yield* leafOf(other, { extended: true, name: "other", prefix: "other" })
        const fs = yield* Branch.make({ extended: true })
        yield* from.setAttributes("f", { mode: 0o741 })
        yield* fs.copy("f", "keeping/f")
        yield* fs.copy("f", "other/f")
        assert.strictEqual((yield* keeping.stat("keeping/f")).mode, 0o741)
        assert.notStrictEqual((yield* other.stat("other/f")).mode, 0o741)
        yield* fs.move("f", "other/moved")
        assert.strictEqual((yield* other.stat("other/moved")).mode, 0o741)
      })
    )
  )

  it.effect("copies permission bits if its leaf keeps them, even if the branch is mounted or has a mount", () =>
    inWorld(
      Effect.gen(function* () {
        const served = make(yield* InMemory.make({ tree: { f: "x" } }))
        yield* leafOf(served, { extended: true, preservePermissions: true })
        const fs = yield* Branch.make({ extended: true })
        yield* served.setAttributes("f", { mode: 0o741 })
        const other = make(yield* InMemory.make({ tree: { g: "x" } }))
        yield* other.setAttributes("g", { mode: 0o741 })
        const around = yield* mount("m", other)(fs)
        yield* around.copy("f", "copied")
        assert.strictEqual((yield* served.stat("copied")).mode, 0o741)
        const within = yield* mount("m", fs)(other)
        yield* within.copy("g", "m/taken")
        assert.strictEqual((yield* served.stat("taken")).mode, 0o741)
        yield* within.copy("g", "h")
        yield* within.copy("m/f", "i")
        for (const path of ["h", "i"]) assert.strictEqual((yield* other.stat(path)).mode, 0o741, path)
      })
    )
  )

  it.effect("shows no drift in its journal or in a recorded journal if its leaf drops the permission bits of a copy", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, journal, served } = yield* world({}, tree)
        yield* served.setAttributes("a", { mode: 0o741 })
        const own = yield* makeMemory<Entry>()
        const recorded = yield* Effect.provideService(record()(fs), Journal, own)
        yield* recorded.copy("a", "b")
        yield* recorded.setAttributes("d/f", { mode: 0o604 })
        assert.notStrictEqual((yield* served.stat("b")).mode, 0o741)
        assert.deepStrictEqual(yield* Replay.drift(own, served), [])
        assert.deepStrictEqual(yield* Replay.drift(journal, served), [])
        yield* served.setAttributes("d/f", { mode: 0o600 })
        assert.deepStrictEqual(paths(yield* Replay.drift(own, served)), ["d/f"])
        assert.deepStrictEqual(paths(yield* Replay.drift(journal, served)), ["d/f"])
        assert.deepStrictEqual(yield* Replay.rerun(own, make(yield* InMemory.make({ tree }))), [])
        yield* Replay.undo(own, served, { to: 0, paths: ["b"] })
        assert.isFalse(yield* served.exists("b"))
      })
    )
  )

  it.effect("shows drift if the permission bits of a copy change after its leaf kept them", () =>
    inWorld(
      Effect.gen(function* () {
        const served = make(yield* InMemory.make({ tree }))
        yield* leafOf(served, { extended: true, preservePermissions: true })
        const own = yield* makeMemory<Entry>()
        const recorded = yield* Effect.provideService(record()(yield* Branch.make({ extended: true })), Journal, own)
        yield* served.setAttributes("a", { mode: 0o741 })
        yield* recorded.copy("a", "b")
        for (const journal of [own, yield* Journal]) assert.deepStrictEqual(yield* Replay.drift(journal, served), [])
        yield* served.setAttributes("b", { mode: 0o600 })
        for (const journal of [own, yield* Journal]) assert.deepStrictEqual(paths(yield* Replay.drift(journal, served)), ["b"])
      })
    )
  )

  it.effect("leaves the permission bits of a copy to an overlay or another filesystem that makes the copy", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, tree)
        yield* served.setAttributes("a", { mode: 0o741 })
        const upper = make(yield* InMemory.make())
        const over = overlay(upper)(fs)
        yield* over.copy("a", "b")
        assert.strictEqual((yield* upper.stat("b")).mode, 0o741)
        const inner = make(yield* InMemory.make())
        const mounted = yield* mount("m", inner)(fs)
        yield* mounted.copy("a", "m/b")
        assert.strictEqual((yield* inner.stat("b")).mode, 0o741)
      })
    )
  )

  it.effect("restores its snapshots", () =>
    inWorld(
      Effect.gen(function* () {
        const { fs, served } = yield* world({}, tree)
        const layer = Layer.provideMerge(Snapshots.layer, Layer.succeed(Filesystem, fs))
        yield* Effect.gen(function* () {
          const snapshots = yield* Snapshots.Snapshots
          const before = yield* capture(served.port)
          const taken = yield* snapshots.snapshot()
          yield* fs.write("a", "changed")
          yield* fs.delete("d", { recursive: true })
          yield* fs.write("new/file", "x")
          yield* snapshots.restore(taken)
          assert.deepStrictEqual(yield* capture(served.port), before)
        }).pipe(Effect.provide(layer))
      })
    )
  )

  it.live("removes a directory that contains names that no path can express", () =>
    inWorld(
      Effect.gen(function* () {
        const root = yield* directory
        Fs.mkdirSync(join(root, "d"))
        Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/d/`), Buffer.from([0x61, 0xff])]), "x")
        yield* leafOf(make(yield* PosixHost.make({ root })))
        const fs = yield* Branch.make({ extended: true })
        assert.deepStrictEqual(
          (yield* fs.list("d")).map(({ addressable }) => addressable),
          [false]
        )
        assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )
  )

  for (const [argument, options] of [
    ["chunkSize", { chunkSize: 0 }],
    ["chunkSize", { chunkSize: 1.5 }],
    ["streamingThreshold", { streamingThreshold: -1 }],
    ["timeout", { timeout: "-1 second" }],
    ["timeout", { timeout: "soon" as never }]
  ] as const) {
    it.effect(`with the options ${JSON.stringify(options)} fails with InvalidArgument`, () =>
      inWorld(
        Effect.gen(function* () {
          const error = yield* Effect.flip(Branch.make(options))
          assert.strictEqual(error._tag === "InvalidArgument" ? error.argument : error._tag, argument)
        })
      )
    )
  }
})

const MiB = 1024 * 1024

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const held = (): number => {
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return arrayBuffers + heapUsed
}
const size = (process.env["FS_ALGEBRA_SOAK"] === "1" ? 1024 : 64) * MiB

/** Returns bytes without repeated parts. */
const noise = (total: number): Stream.Stream<Uint8Array> =>
  Stream.map(Stream.rechunk(Stream.range(0, total / MiB - 1), 1), (index) => {
    const bytes = new Uint8Array(MiB)
    const words = new Uint32Array(bytes.buffer)
    let state = index + 1
    for (let i = 0; i < words.length; i++) words[i] = state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return bytes
  })

describe("a large file", () => {
  it.live(
    `of ${size / MiB} MiB is written and read in constant memory`,
    () =>
      Effect.gen(function* () {
        const root = yield* directory
        const disk = join(onDisk(), "large-file")
        Fs.mkdirSync(disk)
        yield* Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(disk, { recursive: true, force: true })))
        yield* Effect.gen(function* () {
          yield* leafOf(make(yield* PosixHost.make({ root })))
          const fs = yield* Branch.make({ extended: true })
          /** Samples the held memory at sixteen points. The median ignores late garbage collections. */
          const watched = <E>(stream: Stream.Stream<Uint8Array, E>, samples: Array<number>) => {
            let seen = 0
            return Stream.map(stream, (bytes) => {
              seen += bytes.length
              if (seen % (size / 16) < bytes.length) samples.push(held())
              return bytes
            })
          }
          const median = (samples: ReadonlyArray<number>): number => samples.toSorted((a, b) => a - b)[samples.length >> 1]!
          const before = held()
          const writing: Array<number> = []
          const reading: Array<number> = []
          const { version } = yield* Stream.run(watched(noise(size), writing), fs.sink("large", { version: true }))
          const counted = yield* Stream.runFold(
            watched(fs.stream("large"), reading),
            () => 0,
            (total, bytes) => total + bytes.length
          )
          assert.strictEqual(counted, size)
          assert.strictEqual(yield* fs.version("large"), version)
          for (const samples of [writing, reading]) assert.isBelow(median(samples) - before, Math.min(size / 4, 16 * MiB))
        }).pipe(Effect.provide(layerFile({ path: join(disk, "journal") })), Effect.provideService(Limits, unlimited))
      }).pipe(Effect.scoped),
    600_000
  )
})
