import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import { traced } from "../../src/filesystem/Decorator.ts"
import { decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as MemoryStore from "../../src/journal/store/memoryStore.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { around, type Backend, type Commit } from "../../src/port/Backend.ts"
import { sha256 } from "../../src/runtime/hash.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { plant } from "../../src/testing/Files.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { another, entriesOf, look, makeJournal, record } from "./recordings.ts"
import * as Request from "../../src/port/Request.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const at = (path: string) => path as FsPath

/** Returns the entries without their random ids, each with its tag. */
const told = (entries: ReadonlyArray<Journal.Entry>) =>
  entries.map((entry) => {
    const { correlationId: _, ...rest } = { correlationId: "", ...entry }
    return rest
  })

const failing = (journal: Journal.Scrivener<Journal.Entry>, isBroken: (entry: Journal.Entry) => boolean) => ({
  ...journal,
  append: (entry: Journal.Entry) =>
    isBroken(entry)
      ? Effect.fail(new Journal.JournalError({ operation: "append", reason: "io", detail: "planned" }))
      : journal.append(entry)
})

describe("Journal.record", () => {
  it.effect("records each change before it is made, and its result with the replaced content or state", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "a/b": "one", "a/l": { link: "b" } })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      yield* recorded.write("a/b", "two")
      yield* recorded.write("c/d", "!", { mode: "append" })
      yield* Effect.flip(recorded.write("a/b", "three", { mode: "create" }))
      yield* recorded.move("c/d", "a/b", { overwrite: true })
      yield* recorded.setAttributes("a/b", { mode: 0o600 })
      yield* recorded.symlink("s", "a/b")
      yield* recorded.delete("s")
      yield* recorded.delete("a", { recursive: true })
      const directoryMode = 0o755
      const entries = told(yield* entriesOf(journal))
      const stamps = { modified: DateTime.makeUnsafe(0) }
      const fileMode = 0o644
      assert.deepStrictEqual(
        JSON.parse(JSON.stringify(entries)),
        JSON.parse(
          JSON.stringify([
            { _tag: "FileWrite", path: "a/b", content: utf8("two"), createMode: "overwrite", createParents: false },
            { _tag: "FileWritten", path: "a/b", bytesWritten: 3, previous: utf8("one") },
            { _tag: "FileWrite", path: "c/d", content: utf8("!"), createMode: "append", createParents: false },
            entries[3],
            { _tag: "FileMakeDirectory", path: "c", parents: false, existOk: false },
            { _tag: "FileDirectoryMade", path: "c" },
            { _tag: "FileWrite", path: "c/d", content: utf8("!"), createMode: "append", createParents: false },
            { _tag: "FileWritten", path: "c/d", bytesWritten: 1, previous: null },
            { _tag: "FileWrite", path: "a/b", content: utf8("three"), createMode: "create", createParents: false },
            entries[9],
            { _tag: "FileMove", path: "c/d", to: "a/b", overwrite: true, createParents: false },
            {
              _tag: "FileMoved",
              path: "c/d",
              to: "a/b",
              files: 1,
              directories: 0,
              bytes: 1,
              replaced: { path: "a/b", kind: "file", mode: fileMode, content: utf8("two") }
            },
            { _tag: "FileSetAttributes", path: "a/b", mode: 0o600 },
            { _tag: "FileAttributesSet", path: "a/b", previous: { mode: fileMode, ...stamps } },
            { _tag: "FileMakeLink", path: "s", target: "a/b" },
            { _tag: "FileLinkMade", path: "s" },
            { _tag: "FileDelete", path: "s", recursive: false },
            {
              _tag: "FileDeleted",
              path: "s",
              deletedCount: 1,
              directories: 0,
              removed: [{ path: "s", kind: "symlink", target: "a/b" }]
            },
            { _tag: "FileDelete", path: "a", recursive: true },
            {
              _tag: "FileDeleted",
              path: "a",
              deletedCount: 2,
              directories: 1,
              removed: [
                { path: "a", kind: "directory", mode: directoryMode },
                { path: "a/b", kind: "file", mode: 0o600, content: utf8("!") },
                { path: "a/l", kind: "symlink", target: "b" }
              ]
            }
          ])
        )
      )
      assert.deepInclude(entries[3], { _tag: "FileFault", faultKind: "NotFound", path: "c/d" })
      const fault = entries[9]!
      assert.deepInclude(fault, { _tag: "FileFault", faultKind: "AlreadyExists", path: "a/b" })
      assert.deepInclude("error" in fault ? fault.error : undefined, { _tag: "AlreadyExists", operation: "write", path: "a/b" })
    })
  )

  it.effect("gives each answer the id of its request, and uses no id for two requests", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const fs = yield* another()
      const [one, other] = [yield* record(journal, fs), yield* record(journal, fs)]
      for (const recorded of [one, other, one]) yield* recorded.write("a", "x")
      const ids = (yield* entriesOf(journal)).map((entry) => ("correlationId" in entry ? entry.correlationId : ""))
      assert.deepStrictEqual(ids, [ids[0], ids[0], ids[2], ids[2], ids[4], ids[4]])
      assert.strictEqual(new Set(ids).size, 3)
    })
  )

  it.effect("stores large contents by their hash, and records the hash as the version", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const recorded = yield* record(journal, yield* another())
      const large = new Uint8Array(10_000).fill(7)
      const ref = { sha256: sha256(large), size: 10_000 }
      yield* recorded.writeBytes("a", large)
      yield* recorded.write("a", "small")
      assert.deepStrictEqual(told(yield* entriesOf(journal)) as ReadonlyArray<unknown>, [
        { _tag: "FileWrite", path: "a", content: ref, createMode: "overwrite", createParents: false },
        { _tag: "FileWritten", path: "a", bytesWritten: 10_000, previous: null, version: ref.sha256 },
        { _tag: "FileWrite", path: "a", content: utf8("small"), createMode: "overwrite", createParents: false },
        { _tag: "FileWritten", path: "a", bytesWritten: 5, previous: ref }
      ])
      assert.deepStrictEqual(yield* journal.bytes(ref), large)
    })
  )

  it.effect("keeps written and replaced contents, even if callers, backends or readers change their arrays", () =>
    Effect.gen(function* () {
      const { port } = yield* another()
      const lent = new Uint8Array(16)
      const lend = (bytes: Uint8Array): Uint8Array => {
        lent.set(bytes)
        return lent.subarray(0, bytes.length)
      }
      const lending: Backend = {
        ...port,
        perform: Request.override(port.perform, (perform) => ({
          Read: (request) =>
            Effect.map(
              perform(request),
              Option.map((whole) => ({ stat: whole.stat, bytes: lend(whole.bytes), isLent: true }))
            )
        })),
        open: (path) =>
          Effect.map(port.open(path), (handle) => ({
            ...handle,
            read: (offset, length) => Effect.map(handle.read(offset, length), lend)
          }))
      }
      for (const self of [lending, { ...lending, perform: undefined }]) {
        const journal = yield* makeJournal
        const recorded = yield* record(journal, make(self))
        const given = utf8("one")
        yield* recorded.writeBytes("a", given)
        given.fill(0)
        yield* recorded.writeBytes("a", utf8("two"))
        yield* recorded.writeBytes("b", utf8("three"))
        yield* recorded.writeBytes("b", utf8("four"))
        lent.fill(0)
        const contents = Effect.map(entriesOf(journal), (entries) =>
          entries.flatMap((entry) =>
            entry._tag === "FileWrite" ? [entry.content] : entry._tag === "FileWritten" ? [entry.previous] : []
          )
        )
        const texts = Effect.map(contents, (found) =>
          found.map((bytes) => bytes && new TextDecoder().decode(bytes as Uint8Array))
        )
        assert.deepStrictEqual(yield* texts, ["one", null, "two", "one", "three", null, "four", "three"])
        for (const bytes of (yield* contents) as ReadonlyArray<Uint8Array | null>) {
          // The array behind a reader's bytes has nothing of other entries.
          assert.strictEqual(bytes?.buffer.byteLength, bytes?.length)
          bytes?.fill(0)
        }
        assert.deepStrictEqual(yield* texts, ["one", null, "two", "one", "three", null, "four", "three"])
        yield* recorded.delete("a")
        yield* recorded.delete("b")
      }
    })
  )

  it.effect("passes every entry to the journal's current `append`, even after `append` is replaced", () =>
    Effect.gen(function* () {
      for (const isEarly of [true, false]) {
        const journal = yield* makeJournal
        const { append } = journal
        const passed: Array<string> = []
        const replace = () =>
          Object.assign(journal, {
            append: (entry: Journal.Entry) => Effect.suspend(() => (passed.push(entry._tag), append(entry)))
          })
        if (isEarly) replace()
        const recorded = yield* record(journal, yield* another())
        if (!isEarly) replace()
        yield* recorded.write("a", "one")
        yield* recorded.write("a", "two")
        yield* recorded.mkdir("d")
        assert.lengthOf(passed, 6)
        assert.deepStrictEqual(
          passed,
          (yield* entriesOf(journal)).map(({ _tag }) => _tag)
        )
      }
    })
  )

  it.effect("keeps the contents of all entries even if a store detaches the ArrayBuffer of one entry", () =>
    Effect.gen(function* () {
      const store = MemoryStore.make<Journal.Entry>()
      const tryTransfer = ({ buffer }: Uint8Array): void => {
        try {
          structuredClone(buffer, { transfer: [buffer as ArrayBuffer] })
        } catch {}
      }
      const journal = Journal.make<Journal.Entry>({
        ...store,
        append: (added, at) =>
          Effect.tap(store.append(added, at), () =>
            Effect.sync(() => {
              for (const entry of added) {
                if (entry._tag === "FileWrite" && entry.path === "b") tryTransfer(entry.content as Uint8Array)
              }
            })
          )
      })
      const recorded = yield* record(journal, yield* another())
      yield* recorded.write("a", "one")
      yield* recorded.write("b", "two")
      yield* recorded.write("c", "three")
      const contents = (yield* entriesOf(journal)).flatMap((entry) =>
        entry._tag === "FileWrite" ? [new TextDecoder().decode(entry.content as Uint8Array)] : []
      )
      assert.deepStrictEqual(contents, ["one", "two", "three"])
    })
  )

  it.effect("records no previous contents with `previous: false`", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const fs = yield* another()
      yield* plant(fs.port, { "a/b": "one", c: "two", d: "three" })
      const recorded = yield* record(journal, fs, { previous: false })
      yield* recorded.write("c", "x")
      yield* recorded.move("d", "c", { overwrite: true })
      yield* recorded.setAttributes("c", { mode: 0o600 })
      yield* recorded.delete("a", { recursive: true })
      for (const entry of yield* entriesOf(journal)) {
        for (const field of ["previous", "removed", "replaced"]) assert.notProperty(entry, field)
      }
      // Each entry is removed on its own, so that an interruption still shows what is gone.
      const deleted = (yield* entriesOf(journal)).flatMap((entry) => (entry._tag === "FileDeleted" ? [entry.path] : []))
      assert.deepStrictEqual(deleted, ["a/b", "a"])
    })
  )

  it.effect("keeps its entries, even if a reader changes the entries it receives", () =>
    Effect.gen(function* () {
      for (const previous of [true, false]) {
        const journal = yield* makeJournal
        const recorded = yield* record(journal, yield* another(), { previous })
        yield* recorded.write("a", "one")
        yield* recorded.write("a", "two")
        const paths = Effect.map(entriesOf(journal), (entries) => entries.map((entry) => ("path" in entry ? entry.path : "")))
        for (const entry of yield* entriesOf(journal)) Reflect.set(entry, "path", "changed")
        assert.deepStrictEqual(yield* paths, ["a", "a", "a", "a"])
      }
    })
  )

  it.effect("records a stream in chunks, and publishes the file only after the last chunk is recorded", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const fs = yield* another()
      yield* fs.write("a", "old")
      const recorded = yield* record(journal, fs)
      const piece = new Uint8Array(50_000).map((_, i) => i % 251)
      const pieces = Stream.make(piece, piece, piece)
      yield* Stream.run(pieces, recorded.sink("a"))
      const entries = yield* entriesOf(journal)
      assert.deepStrictEqual(
        entries.map((entry) =>
          entry._tag === "FileWriteChunk"
            ? [
                entry.offset,
                "size" in entry.data ? entry.data.size : entry.data.length,
                entry.isFinal,
                entry.path,
                entry.createMode
              ]
            : entry._tag
        ),
        [
          [0, 65_536, false, "a", "overwrite"],
          [65_536, 65_536, false, undefined, undefined],
          [131_072, 150_000 - 131_072, true, undefined, undefined],
          "FileWritten"
        ]
      )
      assert.deepInclude(entries[3], { _tag: "FileWritten", path: "a", bytesWritten: 150_000, previous: utf8("old") })
      const parts = yield* Effect.forEach(entries, (entry) =>
        entry._tag === "FileWriteChunk" ? journal.bytes(entry.data) : Effect.succeed(new Uint8Array(0))
      )
      assert.strictEqual(sha256(Buffer.concat(parts)), sha256(Buffer.concat([piece, piece, piece])))
    })
  )

  it.effect("discards a stream that fails or is interrupted, and records no stream that never began", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const fs = yield* another()
      const recorded = yield* record(journal, fs)
      const chunk = new Uint8Array(70_000)
      yield* Effect.exit(Stream.run(Stream.concat(Stream.make(chunk), Stream.fail("broken")), recorded.sink("a")))
      yield* Effect.exit(Stream.run(Stream.fail("at once"), recorded.sink("b")))
      const hanging = yield* Deferred.make<void>()
      const stream = Stream.concat(
        Stream.make(chunk, chunk),
        Stream.fromEffect(Effect.andThen(Deferred.succeed(hanging, undefined), Effect.never))
      )
      const fiber = yield* Effect.forkChild(Stream.run(stream, recorded.sink("c")))
      yield* Deferred.await(hanging)
      yield* Fiber.interrupt(fiber)
      const entries = (yield* entriesOf(journal)).filter((entry) => entry._tag === "FileWriteChunk")
      assert.deepStrictEqual(
        entries.map(({ discard, isFinal, offset, path }) => [path, offset, isFinal, discard]),
        [
          ["a", 0, false, undefined],
          [undefined, 65_536, true, true],
          ["c", 0, false, undefined],
          [undefined, 65_536, false, undefined],
          [undefined, 131_072, true, true]
        ]
      )
      assert.strictEqual(yield* journal.last, 5)
      assert.deepStrictEqual(yield* look(fs.port), {})
    })
  )

  it.effect("refuses a change that cannot be recorded, with an error that says so", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { a: "one", "d/e": "two" })
      const before = yield* look(fs.port)
      const journal = failing(yield* makeJournal, () => true)
      const recorded = yield* record(journal, fs)
      const calls = [
        recorded.write("a", "two"),
        recorded.write("new", "two"),
        recorded.write("a", "two", { ifMatch: sha256(utf8("one")) }),
        Stream.run(Stream.make(utf8("x")), recorded.sink("a")),
        recorded.edit("a", { oldText: "one", newText: "two" }),
        recorded.delete("a"),
        recorded.delete("d", { recursive: true }),
        recorded.mkdir("m"),
        recorded.move("a", "b"),
        recorded.copy("a", "b"),
        recorded.symlink("s", "a"),
        recorded.setAttributes("a", { mode: 0o600 })
      ]
      for (const call of calls) {
        const error = yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string; readonly detail?: string }>)
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.detail, "nothing was done")
      }
      assert.deepStrictEqual(yield* look(fs.port), before)
    })
  )

  it.effect("fails if the result of a change cannot be recorded, and reports that the change was made", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { a: "one", d: "two" })
      const answers = new Set<string>(["FileWritten", "FileDeleted", "FileDirectoryMade", "FileMoved"])
      const journal = failing(yield* makeJournal, ({ _tag }) => answers.has(_tag))
      const { port } = yield* record(journal, fs)
      const calls = [
        port.write<never, never>(at("a"), utf8("two"), "replace"),
        port.write(at("s"), Stream.make(utf8("three")), "create"),
        port.remove(at("d")),
        port.makeDirectory(at("m")),
        port.rename(at("a"), at("b"), { replace: false })
      ]
      for (const call of calls) {
        const fault = yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string; readonly detail?: string }>)
        assert.strictEqual(fault._tag, "Unavailable")
        assert.include(fault.detail, "the change was made")
      }
      assert.deepStrictEqual(yield* look(fs.port), { b: 'file "two"', m: "directory", s: 'file "three"' })
    })
  )

  it.effect("records the true result of changes that are interrupted, die or fail late", () =>
    Effect.gen(function* () {
      const cases = [
        { operation: "Write", done: "FileWritten", run: (fs: ReturnType<typeof make>) => fs.write("a", "two") },
        { operation: "Remove", done: "FileDeleted", run: (fs: ReturnType<typeof make>) => fs.delete("a") },
        { operation: "Rename", done: "FileMoved", run: (fs: ReturnType<typeof make>) => fs.move("a", "b") },
        { operation: "MakeDirectory", done: "FileDirectoryMade", run: (fs: ReturnType<typeof make>) => fs.mkdir("m") },
        { operation: "MakeLink", done: "FileLinkMade", run: (fs: ReturnType<typeof make>) => fs.symlink("s", "a") },
        {
          operation: "SetAttributes",
          done: "FileAttributesSet",
          run: (fs: ReturnType<typeof make>) => fs.setAttributes("a", { mode: 0o600 })
        }
      ] as const
      for (const { done, operation, run } of cases) {
        for (const fault of ["hang", "die", { _tag: "IoError", detail: "planned" }] as const) {
          for (const when of ["before", "after"] as const) {
            const fs = yield* another()
            yield* fs.write("a", "one")
            const broken = faulty([{ operation, when, fault, nth: 1 }])(fs)
            const journal = yield* makeJournal
            const recorded = yield* record(journal, broken)
            const fiber = yield* Effect.forkChild(run(recorded) as Effect.Effect<unknown, unknown>, { startImmediately: true })
            if (fault === "hang") {
              yield* broken.hung
              yield* Fiber.interrupt(fiber)
            }
            const exit = yield* Fiber.await(fiber)
            assert.isTrue(Exit.isFailure(exit))
            const answer = (yield* entriesOf(journal))[1]
            assert.strictEqual(
              answer?._tag,
              when === "after" ? done : "FileFault",
              `${operation}, ${JSON.stringify(fault)} ${when}`
            )
          }
        }
      }
    })
  )

  it.effect("records the removed part of a tree if the removal fails", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "a/b": "one", "a/c": "two" })
      const half = make({
        ...fs.port,
        perform: Request.extend(fs.port.perform, {
          RemoveTree: () =>
            Effect.andThen(fs.port.remove(at("a/b")), Effect.fail({ _tag: "IoError", detail: "the disk is gone" } as const))
        })
      })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, half)
      yield* Effect.flip(recorded.delete("a", { recursive: true }))
      assert.deepStrictEqual(
        (yield* entriesOf(journal)).map((entry) => [entry._tag, "path" in entry ? entry.path : undefined]),
        [
          ["FileDelete", "a"],
          ["FileDelete", "a/b"],
          ["FileDeleted", "a/b"],
          ["FileFault", "a"]
        ]
      )
    })
  )

  it.effect("records the answer of a write while the write commits", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* makeJournal
      const { port } = yield* record(journal, fs)
      const seen: Array<string | undefined> = []
      const note = Effect.map(Effect.orDie(entriesOf(journal)), (entries) => void seen.push(entries.at(-1)?._tag))
      yield* port.write(at("a"), Stream.make(utf8("x")), "create", {
        commit: (publish) =>
          Effect.andThen(
            note,
            Effect.tap(publish, () => note)
          )
      })
      assert.deepStrictEqual(seen, ["FileWriteChunk", "FileWritten"])
    })
  )

  it.effect("records the result of a write that fails late or is interrupted, unless the result is unknown", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const broken: Fault = { _tag: "IoError", detail: "after it was published" }
      const reached = yield* Deferred.make<void>()
      const hang = Effect.andThen(Deferred.succeed(reached, undefined), Effect.interruptible(Effect.never))
      const inTurn: Commit = (publish) => publish
      const hangs: Commit = () => hang
      const write = (how: "done" | "hangs"): Backend["write"] => {
        const port = fs.port
        return (path, bytes, mode, { commit = inTurn } = {}) =>
          how === "done"
            ? Effect.andThen(port.write(path, bytes, mode, { commit }), Effect.fail(broken))
            : Effect.andThen(commit(hang), Effect.die("never"))
      }
      const tags = Effect.fnUntraced(function* (how: "done" | "hangs", commit: Commit) {
        const journal = yield* makeJournal
        const { port } = yield* record(journal, make({ ...fs.port, write: write(how) }))
        const fiber = yield* Effect.forkChild(port.write<never, never>(at("a"), utf8("x"), "replace", { commit }), {
          startImmediately: true
        })
        if (how === "hangs") {
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
        }
        assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
        return (yield* entriesOf(journal)).map(({ _tag }) => _tag)
      })
      assert.deepStrictEqual(yield* tags("done", inTurn), ["FileWrite", "FileWritten"])
      // The write had begun to publish, so its result is unknown.
      assert.deepStrictEqual(yield* tags("hangs", inTurn), ["FileWrite"])
      // The write had not begun to publish.
      assert.deepStrictEqual(yield* tags("hangs", hangs), ["FileWrite", "FileFault"])
    })
  )

  it.effect("records every change in the port of the filesystem", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      const below: Array<string> = []
      const journal = yield* makeJournal
      const changing = new Set<string>(["Write", "MakeDirectory", "Remove", "Rename", "MakeLink", "SetAttributes"])
      const seen = make(
        around(fs.port, (operation, next) =>
          changing.has(operation._tag)
            ? Effect.andThen(
                Effect.sync(() => void below.push(operation._tag)),
                next
              )
            : next
        )
      )
      const recorded = yield* record(journal, seen)
      yield* recorded.write("a/b/c", "one")
      yield* recorded.copy("a", "d")
      yield* recorded.edit("d/b/c", { oldText: "one", newText: "two" })
      yield* recorded.symlink("l", "a")
      yield* recorded.write("l/x", "through")
      yield* recorded.move("d", "a/d")
      yield* recorded.setAttributes("a/d", { mode: 0o700 })
      yield* recorded.delete("a", { recursive: true })
      const asked = (yield* entriesOf(journal)).flatMap((entry) => {
        switch (entry._tag) {
          case "FileWrite":
            return ["Write"]
          case "FileWriteChunk":
            return entry.isFinal ? ["Write"] : []
          case "FileMakeDirectory":
            return ["MakeDirectory"]
          case "FileDelete":
            return ["Remove"]
          case "FileMove":
            return ["Rename"]
          case "FileMakeLink":
            return ["MakeLink"]
          case "FileSetAttributes":
            return ["SetAttributes"]
          default:
            return []
        }
      })
      assert.isAbove(asked.length, 12)
      assert.deepStrictEqual(asked, below)
    })
  )

  it.effect("keeps the rules and the locks of the port, and only those of its requests that the journal can record", () =>
    Effect.gen(function* () {
      const inner = traced(make(yield* InMemory.make({ allowDelete: false })))
      const whole = make({
        ...inner.port,
        perform: Request.extend(inner.port.perform, { Write: () => Effect.die("past the journal") })
      })
      const { port } = yield* record(yield* makeJournal, whole)
      assert.strictEqual(port.locks, inner.port.locks)
      assert.strictEqual(port.rules, inner.port.rules)
      assert.strictEqual(port.calls, inner.port.calls)
      assert.isUndefined(port.history)
      assert.deepStrictEqual([...port.perform!.tags].sort(), ["Read", "RemoveTree", "Stat"])
      const looking = yield* record(yield* makeJournal, whole, { reads: true })
      assert.deepStrictEqual([...looking.port.perform!.tags], ["RemoveTree"])
      assert.strictEqual((yield* Effect.flip(make(port).delete("a")))._tag, "AccessDenied")
    })
  )

  it.effect("can be applied to a layer", () =>
    Effect.gen(function* () {
      const layer = decorate(Journal.record())(InMemory.layer()).pipe(Layer.provideMerge(Journal.layerMemory))
      const count = Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("a", "x")
        return yield* (yield* Journal.Journal).last
      })
      assert.strictEqual(yield* Effect.provide(count, layer), 2)
    })
  )

  it.effect("records changes under a temporary name", () =>
    Effect.gen(function* () {
      const journal = yield* makeJournal
      const { port } = yield* record(journal, yield* another())
      yield* TemporaryNames.withName((name) => Effect.andThen(port.makeDirectory(at(name)), port.remove(at(name))))
      const tags = (yield* entriesOf(journal)).map(({ _tag }) => _tag)
      assert.deepStrictEqual(tags, ["FileMakeDirectory", "FileDirectoryMade", "FileDelete", "FileDeleted"])
    })
  )
})
