import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { createHash } from "node:crypto"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import { DaemonChanged } from "../../src/journal/entries/status.ts"
import { JournalError } from "../../src/journal/errors.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as MemoryStore from "../../src/journal/store/memoryStore.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import type * as InMemory from "../../src/backends/InMemory.ts"
import { around } from "../../src/port/Backend.ts"
import { capture } from "../../src/testing/Files.ts"
import {
  asked,
  asking,
  bytes,
  chunk,
  dead,
  id,
  journaled,
  list,
  many,
  memory,
  plain,
  quiet,
  read,
  remove,
  started,
  stat,
  write
} from "./leafBench.ts"

const kindOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)
const messageOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.message : answer._tag)
const sha256 = (content: Uint8Array | string): string => createHash("sha256").update(content).digest("hex")

/** Returns the entry of a leaf that was killed. */
const killed = (more: Partial<DaemonChanged> = {}) =>
  new DaemonChanged({ daemon: "memory", instance: dead(), status: "Running", prefix: ".", ...more })

const begun = (
  { correlationId }: Entry.Efferent,
  met: Omit<Partial<Entry.FileStarted>, "_tag" | "correlationId" | "instance">
) => new Entry.FileStarted({ correlationId, instance: dead(), ...met })

describe("a leaf that starts", () => {
  it.effect("neither executes nor answers an answered request again", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        const first = yield* started(fs)
        const { all, append, ask } = yield* asked
        const done = [write("f", "x", "append"), read("f"), read("none"), list("/"), write("f", "y", "create")]
        for (const intent of done) yield* ask(intent)
        const parts = id()
        yield* append(chunk(parts, 0, "p", { path: "p", createMode: "append" }))
        yield* ask(chunk(parts, 1, "q", { isFinal: true }))
        yield* first.shutdown
        const before = yield* all
        yield* started(fs, { resume: "all" })
        yield* ask(stat("f"))
        yield* quiet
        const after = (yield* all).slice(before.length)
        assert.deepStrictEqual(
          after.map(({ _tag }) => _tag),
          ["DaemonChanged", "FileStat", "FileMetadata"]
        )
        assert.strictEqual(yield* fs.readString("f"), "x")
        assert.strictEqual(yield* fs.readString("p"), "pq")
      })
    )
  )

  it.effect("answers open reads, lists and stats, and reports open changes as not executed", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory({ tree: { f: "x", d: { g: "y" } } })
        const { answer, append } = yield* asked
        const reads = [read("f"), list("d"), stat("d/g"), read("none")]
        const changes = [write("f", "new"), remove("d/g"), write("new", "x", "create")]
        for (const intent of [...reads, ...changes]) yield* append(intent)
        const [whole, part] = [id(), id()]
        yield* append(chunk(whole, 0, "all", { path: "whole", isFinal: true }))
        yield* append(chunk(part, 0, "some", { path: "part" }))
        yield* started(fs)
        const answers = yield* Effect.forEach(reads, ({ correlationId }) => answer(correlationId))
        assert.deepStrictEqual(answers.map(kindOf), ["FileContent", "FileListing", "FileMetadata", "NotFound"])
        for (const one of [...changes.map(({ correlationId }) => correlationId), whole, part]) {
          const fault = yield* answer(one)
          assert.strictEqual(kindOf(fault), "IoError")
          assert.include(messageOf(fault), "not executed")
          // No leaf could have executed the changes.
          assert.notInclude(messageOf(fault), "may have")
        }
        assert.deepStrictEqual(
          yield* capture(fs.port),
          yield* capture((yield* memory({ tree: { f: "x", d: { g: "y" } } })).port)
        )
      })
    )
  )

  it.effect("executes open requests in order with the option resume all, even with parts that arrive later", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory({ tree: { f: "x" } })
        const { answer, append } = yield* asked
        const before = [write("f", "1", "append"), read("f"), write("f", "2", "append")]
        for (const intent of before) yield* append(intent)
        const part = id()
        yield* append(chunk(part, 0, "so", { path: "part" }))
        yield* started(fs, { resume: "all" })
        const told = yield* Effect.forEach(before, ({ correlationId }) => answer(correlationId))
        assert.deepStrictEqual(told.map(kindOf), ["FileWritten", "FileContent", "FileWritten"])
        const content = told[1]!
        assert.deepStrictEqual(content._tag === "FileContent" ? content.content : undefined, bytes("x1"))
        assert.strictEqual(yield* fs.readString("f"), "x12")
        yield* append(chunk(part, 2, "me", { isFinal: true }))
        assert.strictEqual(kindOf(yield* answer(part)), "FileWritten")
        assert.strictEqual(yield* fs.readString("part"), "some")
      })
    )
  )

  it.effect("lets a write in parts time out if it began earlier and has no last part", () =>
    journaled(
      Effect.gen(function* () {
        const { append, all } = yield* asked
        const part = id()
        yield* append(chunk(part, 0, "so", { path: "part" }))
        yield* started(yield* memory(), { resume: "all" })
        yield* quiet
        yield* TestClock.adjust("60 seconds")
        yield* quiet
        assert.deepStrictEqual((yield* all).filter(Entry.answers(part)).map(kindOf), ["Timeout"])
      })
    )
  )

  it.effect("reports an open change as possibly executed if the previous leaf announced no changes", () =>
    journaled(
      Effect.gen(function* () {
        const { answer, append } = yield* asked
        const [one, other] = [write("f", "x"), write("f", "x")]
        yield* append(killed())
        yield* append(one)
        yield* append(killed({ extended: true, instance: dead() + "1" }))
        yield* append(other)
        yield* started(yield* memory(), { extended: true })
        assert.include(messageOf(yield* answer(one.correlationId)), "may have made the change")
        const fault = messageOf(yield* answer(other.correlationId))
        assert.include(fault, "not executed")
        assert.notInclude(fault, "may have")
      })
    )
  )

  it.effect("reports a change requested before the first leaf of its path as possibly executed, and does not execute it", () =>
    journaled(
      Effect.gen(function* () {
        const { answer, append } = yield* asked
        const [before, elsewhere, after] = [write("d/f", "x", "append"), write("f", "x"), write("d/f", "x")]
        yield* append(before)
        yield* append(elsewhere)
        // The killed leaf may have resumed everything.
        yield* append(killed({ prefix: "d" }))
        yield* append(killed({ prefix: "d", extended: true, instance: dead() + "1" }))
        yield* append(after)
        const fs = yield* memory()
        yield* started(fs, { name: "memory", extended: true, resume: "all" })
        assert.include(messageOf(yield* answer(before.correlationId)), "may have made the change")
        assert.strictEqual(messageOf(yield* answer(elsewhere.correlationId)), "FileWritten")
        assert.strictEqual(messageOf(yield* answer(after.correlationId)), "FileWritten")
        assert.strictEqual(yield* fs.readString("d/f"), "x")
      })
    )
  )

  for (const [how, failure, is] of [
    ["leaf has finished its requests", undefined, "x"],
    ["leaf has not failed", "the disk broke", undefined]
  ] as const) {
    it.effect(`executes the open requests of a leaf that announced no changes only if that ${how}`, () =>
      journaled(
        Effect.gen(function* () {
          const { answer, append } = yield* asked
          const [before, change] = [killed(), write("f", "x", "append")]
          yield* append(before)
          yield* append(change)
          yield* append(new DaemonChanged({ ...before, status: "Completed", ...(failure === undefined ? {} : { failure }) }))
          const fs = yield* memory()
          yield* started(fs, { name: "memory", resume: "all" })
          assert.include(messageOf(yield* answer(change.correlationId)), is === undefined ? "may have" : "FileWritten")
          assert.strictEqual(yield* Effect.orElseSucceed(fs.readString("f"), () => undefined), is)
        })
      )
    )
  }
})

interface Case {
  readonly claim: string
  readonly intent: () => Entry.Efferent
  readonly met: Omit<Partial<Entry.FileStarted>, "_tag" | "correlationId" | "instance">
  /** The tree at the restart. */
  readonly now: InMemory.Tree
  /** The true answer, "not made", or "unclear" if the tree does not show whether the change was made. */
  readonly is: Record<string, unknown> | "not made" | "unclear"
}

const written = (path: string, bytesWritten: number) => ({ _tag: "FileWritten", path, bytesWritten })
const move = (path: string, to: string) => new Entry.FileMove({ correlationId: id(), path, to })
const edit = () =>
  new Entry.FileEdit({ correlationId: id(), path: "f", edits: [{ oldText: "a", newText: "b" }], version: true })
const edits = { bytesWritten: 3, replacements: 1, diff: "the diff" }
const link = () => new Entry.FileMakeLink({ correlationId: id(), path: "l", target: "f" })
const mkdir = () => new Entry.FileMakeDirectory({ correlationId: id(), path: "d" })
const set = () => new Entry.FileSetAttributes({ correlationId: id(), path: "f", mode: 0o600 })

const cases: ReadonlyArray<Case> = [
  // Replaced files: the present content decides.
  {
    claim: "the file to replace has the new content",
    intent: () => write("f", "new"),
    met: { size: 3 },
    now: { f: "new" },
    is: written("f", 3)
  },
  {
    claim: "the file to replace has its old size, which differs from the new one",
    intent: () => write("f", "news"),
    met: { size: 3 },
    now: { f: "old" },
    is: "not made"
  },
  {
    claim: "the file to replace has the old size, equal to the new one, and not the new content",
    intent: () => write("f", "new"),
    met: { size: 3 },
    now: { f: "old" },
    is: "not made"
  },
  {
    claim: "the file to replace has neither its old size nor the new one",
    intent: () => write("f", "new"),
    met: { size: 3 },
    now: { f: "other" },
    is: "unclear"
  },
  { claim: "the file to replace is missing", intent: () => write("f", "new"), met: { size: 3 }, now: {}, is: "unclear" },
  {
    claim: "the file to replace is now a directory",
    intent: () => write("f", "new"),
    met: { size: 3 },
    now: { f: {} },
    is: "unclear"
  },
  {
    claim: "the file to create exists with the new content",
    intent: () => write("f", "new", "create"),
    met: { size: null },
    now: { f: "new" },
    is: written("f", 3)
  },
  {
    claim: "the file to create is missing",
    intent: () => write("f", "new", "create"),
    met: { size: null },
    now: {},
    is: "not made"
  },
  {
    claim: "the file to create exists with other content",
    intent: () => write("f", "new", "create"),
    met: { size: null },
    now: { f: "old" },
    is: "unclear"
  },
  {
    claim: "the file to create existed before",
    intent: () => write("f", "new", "create"),
    met: { size: 3 },
    now: { f: "new" },
    is: "not made"
  },
  {
    claim: "the file to replace was missing before",
    intent: () => write("f", "new", "replace"),
    met: { size: null },
    now: { f: "new" },
    is: "not made"
  },
  {
    claim: "the announcement does not contain the state before the change",
    intent: () => write("f", "new"),
    met: {},
    now: { f: "new" },
    is: "unclear"
  },
  // Appends: the end of the file decides.
  {
    claim: "the appended bytes are at the end of the file",
    intent: () => write("f", "two", "append"),
    met: { size: 3 },
    now: { f: "onetwo" },
    is: written("f", 3)
  },
  {
    claim: "the file to append to has its old size",
    intent: () => write("f", "two", "append"),
    met: { size: 3 },
    now: { f: "one" },
    is: "not made"
  },
  {
    claim: "the file to append to has the new size and other bytes at its end",
    intent: () => write("f", "two", "append"),
    met: { size: 3 },
    now: { f: "oneTWO" },
    is: "unclear"
  },
  {
    claim: "the file to append to is larger than its new size",
    intent: () => write("f", "two", "append"),
    met: { size: 3 },
    now: { f: "onetwo three" },
    is: "unclear"
  },
  {
    claim: "the file that the append creates exists",
    intent: () => write("f", "two", "append"),
    met: { size: null },
    now: { f: "two" },
    is: written("f", 3)
  },
  {
    claim: "the file that the append creates is missing",
    intent: () => write("f", "two", "append"),
    met: { size: null },
    now: {},
    is: "not made"
  },
  {
    claim: "the file of an appendExisting was missing before",
    intent: () => write("f", "two", "appendExisting"),
    met: { size: null },
    now: {},
    is: "not made"
  },
  {
    claim: "the file that an empty append creates exists and is empty",
    intent: () => write("f", "", "append"),
    met: { size: null },
    now: { f: "" },
    is: written("f", 0)
  },
  // Deletions: the absence decides.
  {
    claim: "the file to delete is missing",
    intent: () => remove("f"),
    met: { size: 3, removes: { deleted: 1, directories: 0 } },
    now: {},
    is: { _tag: "FileDeleted", path: "f", deletedCount: 1, directories: 0 }
  },
  {
    claim: "the file to delete exists",
    intent: () => remove("f"),
    met: { size: 3, removes: { deleted: 1, directories: 0 } },
    now: { f: "old" },
    is: "not made"
  },
  { claim: "the file to delete was missing before", intent: () => remove("f"), met: { size: null }, now: {}, is: "not made" },
  {
    claim: "the tree to delete is missing",
    intent: () => remove("d", { recursive: true }),
    met: { size: 0, removes: { deleted: 5, directories: 2 } },
    now: {},
    is: { _tag: "FileDeleted", path: "d", deletedCount: 5, directories: 2 }
  },
  {
    claim: "the tree to delete is complete",
    intent: () => remove("d", { recursive: true }),
    met: { size: 0, removes: { deleted: 2, directories: 2 } },
    now: { d: { a: "", s: { b: "" } } },
    is: "not made"
  },
  {
    claim: "a part of the tree to delete is missing",
    intent: () => remove("d", { recursive: true }),
    met: { size: 0, removes: { deleted: 3, directories: 2 } },
    now: { d: { a: "", s: { b: "" } } },
    is: "unclear"
  },
  // Directories, moves, links, edits and attributes.
  {
    claim: "the directory to make exists",
    intent: mkdir,
    met: { size: null },
    now: { d: {} },
    is: { _tag: "FileDirectoryMade", path: "d" }
  },
  { claim: "the directory to make is missing", intent: mkdir, met: { size: null }, now: {}, is: "not made" },
  { claim: "the directory to make existed before", intent: mkdir, met: { size: 0 }, now: { d: {} }, is: "not made" },
  { claim: "a file has the path of the directory to make", intent: mkdir, met: { size: null }, now: { d: "" }, is: "unclear" },
  {
    claim: "the file to move has its new name",
    intent: () => move("f", "g"),
    met: { size: 3 },
    now: { g: "old" },
    is: { _tag: "FileMoved", path: "f", to: "g", files: 1, directories: 0, bytes: 3 }
  },
  {
    claim: "the directory to move has its new name",
    intent: () => move("d", "e"),
    met: { size: 0 },
    now: { e: { a: "xy", s: {} } },
    is: { _tag: "FileMoved", path: "d", to: "e", files: 1, directories: 2, bytes: 2 }
  },
  {
    claim: "the file to move has its old name",
    intent: () => move("f", "g"),
    met: { size: 3 },
    now: { f: "old", g: "x" },
    is: "not made"
  },
  {
    claim: "the file to move is missing under both names",
    intent: () => move("f", "g"),
    met: { size: 3 },
    now: {},
    is: "unclear"
  },
  {
    claim: "another file has the new name of the file to move",
    intent: () => move("f", "g"),
    met: { size: 3 },
    now: { g: "other" },
    is: "unclear"
  },
  {
    claim: "the file to move was missing before",
    intent: () => move("f", "g"),
    met: { size: null },
    now: { g: "old" },
    is: "not made"
  },
  {
    claim: "the link to make exists",
    intent: link,
    met: { size: null },
    now: { l: { link: "f" } },
    is: { _tag: "FileLinkMade", path: "l" }
  },
  {
    claim: "another link has the path of the link to make",
    intent: link,
    met: { size: null },
    now: { l: { link: "g" } },
    is: "unclear"
  },
  { claim: "the link to make is missing", intent: link, met: { size: null }, now: {}, is: "not made" },
  {
    claim: "the path of the link to make was taken before",
    intent: link,
    met: { size: 3 },
    now: { l: { link: "f" } },
    is: "not made"
  },
  {
    claim: "the file to edit has the new version",
    intent: edit,
    met: { size: 3, after: sha256("xby"), edits },
    now: { f: "xby" },
    is: { _tag: "FileEdited", path: "f", ...edits, version: sha256("xby") }
  },
  {
    claim: "the file to edit is unchanged",
    intent: edit,
    met: { size: 3, after: sha256("xby"), edits },
    now: { f: "xay" },
    is: "not made"
  },
  {
    claim: "the file to edit has neither its old content nor the new one",
    intent: edit,
    met: { size: 3, after: sha256("xby"), edits },
    now: { f: "other" },
    is: "unclear"
  },
  { claim: "the attributes to set do not have their new values", intent: set, met: { size: 0 }, now: { f: "" }, is: "not made" }
]

/** Starts a new leaf, and returns its answer and the resulting tree. */
const recovered = ({ intent, met, now }: Case, resume: "reads" | "all") =>
  journaled(
    Effect.gen(function* () {
      const fs = yield* memory({ tree: now })
      const { answer, append } = yield* asked
      const one = intent()
      yield* append(killed({ extended: true }))
      yield* append(one)
      yield* append(begun(one, met))
      yield* started(fs, { extended: true, resume })
      const told = yield* answer(one.correlationId)
      return { told, tree: yield* capture(fs.port), fs }
    })
  )

describe("a change that a killed leaf has announced", () => {
  for (const each of cases) {
    const ending =
      each.is === "not made"
        ? "is reported as not executed"
        : each.is === "unclear"
          ? "is reported as of unknown outcome"
          : "is answered as executed"
    it.effect(`${ending} if ${each.claim}`, () =>
      Effect.gen(function* () {
        const before = yield* capture((yield* memory({ tree: each.now })).port)
        const { told, tree } = yield* recovered(each, "reads")
        // The new leaf does nothing, whatever it answers.
        assert.deepStrictEqual(tree, before)
        if (typeof each.is === "object") assert.deepStrictEqual(plain(told, ["stat"]), each.is)
        else {
          assert.strictEqual(kindOf(told), "IoError")
          assert.include(messageOf(told), each.is === "unclear" ? "neither" : "before it made the change")
        }
        // With resume all, a change is executed only if it was certainly not made.
        const all = yield* recovered(each, "all")
        if (each.is === "not made") assert.notInclude(messageOf(all.told), "not executed")
        else {
          assert.deepStrictEqual(all.tree, before)
          assert.strictEqual(kindOf(all.told), kindOf(told))
        }
      })
    )
  }

  it.effect("in parts is recognised by the whole content, even if the content is large", () =>
    Effect.gen(function* () {
      for (const [size, mode] of [
        [10, "overwrite"],
        [2_000_000, "overwrite"],
        [2_000_000, "append"]
      ] as const) {
        for (const isMade of [true, false]) {
          yield* journaled(
            Effect.gen(function* () {
              const fs = yield* memory()
              yield* fs.write("f", "old")
              const content = many(size)
              const { answer, append } = yield* asked
              const one = id()
              yield* append(killed({ extended: true }))
              const half = Math.floor(size / 2)
              yield* append(chunk(one, 0, content.slice(0, half), { path: "f", createMode: mode }))
              const last = chunk(one, half, content.slice(half), { isFinal: true })
              yield* append(last)
              yield* append(begun(last, { size: 3 }))
              if (isMade) yield* fs.writeBytes("f", content, { mode })
              yield* started(fs, { extended: true })
              const told = yield* answer(one)
              assert.strictEqual(kindOf(told), isMade ? "FileWritten" : "IoError")
              if (told._tag === "FileWritten") assert.strictEqual(told.bytesWritten, size)
            })
          )
        }
      }
    })
  )

  it.effect("of attributes counts as made if the attributes have the requested values", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory({ tree: { f: "" } })
        const modified = DateTime.makeUnsafe(1_000_000)
        yield* fs.setAttributes("f", { mode: 0o600, modifiedAt: modified })
        const { answer, append } = yield* asked
        const one = new Entry.FileSetAttributes({ correlationId: id(), path: "f", mode: 0o600, modified })
        yield* append(killed({ extended: true }))
        yield* append(one)
        yield* append(begun(one, { size: 0 }))
        yield* started(fs, { extended: true })
        assert.strictEqual(kindOf(yield* answer(one.correlationId)), "FileAttributesSet")
      })
    )
  )
})

describe("a leaf that replaces another", () => {
  for (const options of [
    { name: "same", prefix: "b" },
    { name: "other", prefix: "a" }
  ] as const) {
    it.effect(`lets the other leaf finish and serves all later requests (${JSON.stringify(options)})`, () =>
      journaled(
        Effect.gen(function* () {
          const [one, other] = [yield* memory(), yield* memory()]
          const first = yield* started(one, { name: "same", prefix: "a" })
          const { append, ask } = yield* asked
          const mine = Array.from({ length: 300 }, (_, i) => write(`a/f${i % 7}`, String(i)))
          for (const intent of mine) yield* append(intent)
          const second = yield* started(other, options)
          assert.strictEqual(yield* second.status, "Running")
          const after = yield* ask(write(`${options.prefix}/g`, "x"))
          assert.strictEqual(kindOf(after), "FileWritten")
          assert.strictEqual(yield* first.status, "Completed")
          assert.isUndefined(yield* first.failure)
          const { told } = yield* asked
          const answers = yield* told(mine.map(({ correlationId }) => correlationId))
          assert.isTrue(answers.every((all) => all.length === 1 && kindOf(all[0]!) === "FileWritten"))
          assert.strictEqual(yield* one.readString("a/f5"), "299")
          assert.isFalse(yield* one.exists(`${options.prefix}/g`))
          assert.deepStrictEqual(
            (yield* other.list(options.prefix)).map(({ name }) => name),
            ["g"]
          )
        })
      )
    )
  }

  it.effect("waits for twice the timeout if the other leaf runs on another machine, and not at all for a dead leaf", () =>
    journaled(
      Effect.gen(function* () {
        const { all, append, ask } = yield* asked
        yield* append(killed())
        yield* started(yield* memory(), { prefix: "x", name: "x" })
        yield* append(new DaemonChanged({ daemon: "far", instance: "elsewhere", status: "Running", prefix: "y" }))
        yield* started(yield* memory(), { prefix: "y", timeout: "7 seconds" })
        assert.strictEqual(kindOf(yield* ask(stat("x/f"))), "NotFound")
        const waits = stat("y/f")
        yield* append(waits)
        yield* quiet
        yield* TestClock.adjust("13900 millis")
        yield* quiet
        assert.deepStrictEqual((yield* all).filter(Entry.answers(waits.correlationId)), [])
        yield* TestClock.adjust("100 millis")
        yield* quiet
        assert.deepStrictEqual((yield* all).filter(Entry.answers(waits.correlationId)).map(kindOf), ["NotFound"])
      })
    )
  )

  it.effect("starts as soon as the other leaf, on another machine, has completed", () =>
    journaled(
      Effect.gen(function* () {
        const { append, ask } = yield* asked
        const far = { daemon: "far", instance: "elsewhere", prefix: "." }
        yield* append(new DaemonChanged({ ...far, status: "Running" }))
        yield* started(yield* memory())
        yield* quiet
        yield* append(new DaemonChanged({ ...far, status: "Completed" }))
        assert.strictEqual(kindOf(yield* ask(stat("f"))), "NotFound")
      })
    )
  )

  it.effect("completes if a third leaf starts while it waits", () =>
    journaled(
      Effect.gen(function* () {
        const { append } = yield* asked
        yield* append(new DaemonChanged({ daemon: "far", instance: "elsewhere", status: "Running", prefix: "." }))
        const second = yield* started(yield* memory())
        yield* quiet
        yield* started(yield* memory())
        yield* second.awaitStatus("Completed")
        assert.isUndefined(yield* second.failure)
      })
    )
  )
})

describe("a leaf that is shut down", () => {
  it.effect("answers the requests that it has begun, and leaves later requests unanswered", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        const fs = make(around(inner.port, (_, next) => Effect.andThen(Effect.sleep("1 second"), next)))
        const leaf = yield* started(fs)
        const { all, append } = yield* asked
        const mine = [write("f", "1"), write("f", "2", "append"), read("f")]
        for (const intent of mine) yield* append(intent)
        yield* quiet
        const shutting = yield* Effect.forkChild(leaf.shutdown, { startImmediately: true })
        const late = write("late", "x")
        yield* append(late)
        for (let i = 0; i < 20; i++) {
          yield* quiet
          yield* TestClock.adjust("1 second")
        }
        yield* quiet
        assert.isDefined(shutting.pollUnsafe())
        const tags = (yield* all).map((entry) => (entry._tag === "DaemonChanged" ? entry.status : entry._tag))
        assert.deepStrictEqual(tags.slice(4), ["FileWrite", "FileWritten", "FileWritten", "FileContent", "Completed"])
        assert.strictEqual(yield* inner.readString("f"), "12")
        assert.isFalse(yield* inner.exists("late"))
      })
    )
  )
})

describe("a leaf that cannot finish its requests in time", () => {
  it.effect("answers the requests that it has begun, and leaves all others to the next leaf", () =>
    journaled(
      Effect.gen(function* () {
        const inner = yield* memory()
        const fs = make(around(inner.port, (_, next) => Effect.andThen(Effect.sleep("7 seconds"), next)))
        const leaf = yield* started(fs, { timeout: "10 seconds" })
        const { all, append } = yield* asked
        const mine = Array.from({ length: 5 }, (_, i) => write("f", String(i), "append"))
        for (const intent of mine) yield* append(intent)
        yield* quiet
        const shutting = yield* Effect.forkChild(leaf.shutdown, { startImmediately: true })
        for (let i = 0; i < 5; i++) {
          yield* quiet
          yield* TestClock.adjust("7 seconds")
        }
        yield* quiet
        assert.isDefined(shutting.pollUnsafe())
        assert.strictEqual(yield* leaf.status, "Completed")
        const answered = (yield* all).filter(Entry.isTerminal).map(({ correlationId }) => correlationId)
        // The second request has begun when ten seconds are over.
        assert.deepStrictEqual(answered, [mine[0]!.correlationId, mine[1]!.correlationId])
        assert.strictEqual(yield* inner.readString("f"), "01")
        yield* started(inner, { resume: "all" })
        const { told } = yield* asked
        yield* told(mine.map(({ correlationId }) => correlationId))
        assert.strictEqual(yield* inner.readString("f"), "01234")
      })
    )
  )
})

describe("a journal that fails", () => {
  it.effect("ends the leaf with the failure of the journal, and no further request is executed", () =>
    Effect.gen(function* () {
      const store = MemoryStore.make<Journal.Entry>()
      const full = new JournalError({ operation: "append", reason: "io", detail: "the disk of the journal is full" })
      let isFull = false
      const journal = Journal.make<Journal.Entry>({
        ...store,
        append: (entries, at) =>
          isFull && entries.some((entry) => Entry.isAfferent(entry)) ? Effect.fail(full) : store.append(entries, at)
      })
      const fs = yield* memory()
      const leaf = yield* Effect.provideService(started(fs), Journal.Journal, journal)
      const { append, ask } = asking(journal)
      assert.strictEqual(kindOf(yield* ask(write("f", "x"))), "FileWritten")
      isFull = true
      yield* append(write("f", "y"))
      yield* leaf.awaitStatus("Completed")
      const failure = yield* leaf.failure
      assert.deepStrictEqual([failure?.reason, failure?.cause], ["failed", full])
      yield* append(write("g", "y"))
      yield* quiet
      assert.isFalse(yield* fs.exists("g"))
    })
  )

  it.effect("because a content is lost makes only the request fail that needs the content", () =>
    Effect.gen(function* () {
      const store = MemoryStore.make<Journal.Entry>()
      const lost = new JournalError({ operation: "ContentStore.get", reason: "corrupt", detail: "it is gone" })
      const journal = Journal.make<Journal.Entry>({
        ...store,
        contents: { ...store.contents, get: () => Effect.fail(lost) }
      })
      const leaf = yield* Effect.provideService(started(yield* memory()), Journal.Journal, journal)
      const { ask } = asking(journal)
      const told = yield* ask(write("f", many(10_000)))
      assert.strictEqual(kindOf(told), "IoError")
      assert.include(messageOf(told), "it is gone")
      assert.strictEqual(kindOf(yield* ask(write("f", "x"))), "FileWritten")
      assert.strictEqual(yield* leaf.status, "Running")
    })
  )

  it.effect("because an entry is too large makes the answer a fault", () =>
    Effect.gen(function* () {
      const store = MemoryStore.make<Journal.Entry>()
      const journal = Journal.make<Journal.Entry>({
        ...store,
        append: (entries, at) =>
          entries.some((entry) => entry._tag === "FileListing")
            ? Effect.fail(new JournalError({ operation: "append", reason: "tooLarge", detail: "more than 1 MiB" }))
            : store.append(entries, at)
      })
      const leaf = yield* Effect.provideService(started(yield* memory()), Journal.Journal, journal)
      const told = yield* asking(journal).ask(list("/"))
      assert.strictEqual(kindOf(told), "IoError")
      assert.include(messageOf(told), "too large for the journal")
      assert.strictEqual(yield* leaf.status, "Running")
    })
  )
})

describe("Leaf.make", () => {
  it.effect("returns a leaf that the caller must start", () =>
    journaled(
      Effect.gen(function* () {
        const leaf = yield* Leaf.make(yield* memory())
        const { all, append } = yield* asked
        yield* append(stat("f"))
        yield* quiet
        assert.strictEqual(yield* leaf.status, "Stopped")
        assert.strictEqual((yield* all).length, 1)
      })
    )
  )
})
