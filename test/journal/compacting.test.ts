import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { DaemonChanged, LeafCheckpoint } from "../../src/journal/entries/status.ts"
import { FileFault, FileMetadata } from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Compacting from "../../src/journal/store/maintenance.ts"
import * as Answered from "../../src/journal/leaf/answered.ts"
import * as Replay from "../../src/journal/Replay.ts"
import { inMemory } from "../scratch.ts"
import { asking, memory, quiet, read, started, stat, write } from "./leafBench.ts"
import { another, record } from "./recordings.ts"

const fresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "compact-")), "journal")
const opened = (path: string, options: Partial<Journal.FileOptions> = {}) =>
  Journal.makeFile(Journal.Entry, { path, ...options })
const large = (letter: string): string => letter.repeat(5_000)

/** Records five writes of one file, each with a content over 4 KiB. */
const recordedInto = (path: string, options: Partial<Journal.FileOptions> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* another()
      const journal = yield* opened(path, options)
      const recorded = yield* record(journal, fs)
      for (const letter of "abcde") yield* recorded.write("f", large(letter))
      return fs
    })
  )

const entriesAt = (path: string) =>
  Effect.scoped(Effect.flatMap(opened(path, { readOnly: true }), (journal) => Stream.runCollect(journal.stored())))

/** Returns every file in the directory of the journal, by relative path. */
const files = (path: string): Record<string, string> =>
  Object.fromEntries(
    Fs.readdirSync(join(path, ".."), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(join(path, "..").length + 1), Fs.readFileSync(file, "latin1")])
  )

describe("Journal.compact", () => {
  it.effect.each([true, false])(
    "removes the oldest entries; the others keep their positions and hashes (chained: %s)",
    (chained) =>
      Effect.gen(function* () {
        const path = fresh()
        yield* recordedInto(path, { chained })
        const before = yield* entriesAt(path)
        const { head } = yield* Journal.verify(path)
        const result = yield* Journal.compact(path, { before: 7 })
        assert.deepStrictEqual(result, { removed: 6, first: 7, contents: 2 })
        assert.deepStrictEqual(yield* entriesAt(path), before.slice(6))
        const verified = yield* Journal.verify(path)
        assert.deepInclude(verified, { entries: 4, after: 6, chained, torn: false })
        assert.strictEqual(verified.head, head)
        assert.deepInclude(verified.contents, { missing: 0, damaged: 0 })
        assert.deepStrictEqual(yield* Journal.compact(path, { before: 7 }), { removed: 0, first: 7, contents: 0 })
        assert.deepStrictEqual(yield* Journal.compact(path, { before: 9 }), { removed: 2, first: 9, contents: 1 })
        assert.strictEqual((yield* Journal.verify(path)).head, head)
      })
  )

  it.effect("keeps the numbering of positions, and tampering is still detected", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* recordedInto(path, { chained: true })
      yield* Journal.compact(path, { before: 7 })
      const position = yield* Effect.scoped(Effect.flatMap(opened(path), (journal) => journal.append(stat("f"))))
      assert.strictEqual(position, 11)
      yield* Journal.verify(path)
      const text = Fs.readFileSync(path, "utf8")
      for (const tampered of [
        text.replace('"after":6', '"after":5'),
        text.replace(/"chain":"./, (start) => start.slice(0, -1) + (start.endsWith("0") ? "1" : "0")),
        text.replace('"after":6', '"after":-1'),
        text.replace('"v":2', '"v":3'),
        text.replace('"after":6,', ""),
        [text.split("\n")[0], ...text.split("\n").slice(2)].join("\n")
      ]) {
        assert.notStrictEqual(tampered, text)
        Fs.writeFileSync(path, tampered)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Journal.verify(path))), tampered.slice(0, 150))
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.scoped(opened(path)))))
      }
    })
  )

  it.effect("makes reads from removed positions fail with `compacted`, except a read from the beginning", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* recordedInto(path)
      yield* Journal.compact(path, { before: 7 })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* opened(path)
          const positions = (after?: number) =>
            Effect.map(Stream.runCollect(journal.stored(after)), (all) => all.map(({ position }) => position))
          assert.deepStrictEqual(yield* positions(), [7, 8, 9, 10])
          assert.deepStrictEqual(yield* positions(6), [7, 8, 9, 10])
          assert.deepInclude(yield* Effect.flip(positions(5)), { reason: "compacted", position: 6 })
          assert.deepInclude(yield* Effect.flip(Stream.runHead(journal.tail(1))), { reason: "compacted", position: 2 })
          const backward = yield* Stream.runCollect(journal.readBackward())
          assert.deepStrictEqual(
            backward.map(({ position }) => position),
            [10, 9, 8, 7]
          )
        })
      )
    })
  )

  it.effect("makes an undo to a removed position fail with NotRecorded, and permits later positions", () =>
    Effect.gen(function* () {
      const path = fresh()
      const fs = yield* recordedInto(path)
      yield* Journal.compact(path, { before: 7 })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* opened(path)
          for (const refused of [Replay.undo(journal, fs, { to: 4 }), Replay.tree(journal, { until: 0 })]) {
            const error = yield* Effect.flip(
              refused as Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>
            )
            assert.strictEqual(error._tag, "NotRecorded")
            assert.include(error.message, "compacted")
          }
          yield* Replay.undo(journal, fs, { to: 6 })
          assert.strictEqual(yield* fs.readString("f"), large("c"))
        })
      )
    })
  )

  it.effect("accepts a time, removes only whole appends, and never removes the last entry", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* opened(path)
          yield* journal.appendAll([stat("a"), stat("b"), stat("c")])
          yield* journal.append(stat("d"))
        })
      )
      const [first] = yield* entriesAt(path)
      const time = (millis: number) => DateTime.makeUnsafe(first!.at + millis)
      assert.deepInclude(yield* Journal.compact(path, { before: time(-1) }), { removed: 0, first: 1 })
      assert.deepInclude(yield* Journal.compact(path, { before: 3 }), { removed: 0, first: 1 })
      assert.deepInclude(yield* Journal.compact(path, { before: time(60_000) }), { removed: 3, first: 4 })
      assert.strictEqual((yield* entriesAt(path)).length, 1)
      assert.deepInclude(yield* Effect.flip(Journal.compact(path, { before: 0 })), { reason: "invalid" })
    })
  )

  it.effect("is refused while a writer is open, and keeps files of other programs and shared contents", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* recordedInto(path)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* opened(path)
          assert.deepInclude(yield* Effect.flip(Journal.compact(path, { before: 3 })), { reason: "busy" })
        })
      )
      const [folder] = Fs.readdirSync(`${path}.contents`)
      const strange = join(`${path}.contents`, folder!, "notes")
      Fs.writeFileSync(strange, "mine")
      Fs.symlinkSync(strange, join(`${path}.contents`, folder!, "0".repeat(62)))
      assert.deepInclude(yield* Journal.compact(path, { before: 3, contents: `${path}.contents` }), { contents: 0 })
      yield* Journal.compact(path, { before: 9 })
      assert.strictEqual(Fs.readFileSync(strange, "utf8"), "mine")
      assert.isTrue(Fs.lstatSync(join(`${path}.contents`, folder!, "0".repeat(62))).isSymbolicLink())
    })
  )

  it.effect("leaves the old journal or the new journal if all system calls from any step on fail", () =>
    Effect.gen(function* () {
      let isOver = false
      for (let step = 0; !isOver; step++) {
        const path = fresh()
        yield* recordedInto(path, { chained: true })
        const old = yield* entriesAt(path)
        let calls = 0
        const dying = <A extends ReadonlyArray<unknown>, B>(call: (...args: A) => B) =>
          ((...args: A) => {
            if (calls++ >= step) throw Object.assign(new Error("killed"), { code: "EIO", errno: -5 })
            return call(...args)
          }) as (...args: A) => B
        const { create, rename, sync, syncDirectory, unlink, write } = Compacting.realDisk
        const disk: Compacting.Disk = {
          create: dying(create),
          // Writes only half, so that a kill also leaves half a file.
          write: dying((descriptor, bytes) => write(descriptor, bytes.subarray(0, Math.ceil(bytes.length / 2)))),
          sync: dying(sync),
          rename: dying(rename),
          syncDirectory: dying(syncDirectory),
          unlink: dying(unlink)
        }
        isOver = Exit.isSuccess(yield* Effect.exit(Compacting.compact(path, { before: 7 }, disk)))
        const now = yield* entriesAt(path)
        assert.oneOf(now.length, [10, 4], `step ${step}`)
        assert.deepStrictEqual(now, old.slice(old.length - now.length))
        assert.deepInclude((yield* Journal.verify(path)).contents, { missing: 0, damaged: 0 })
        // The next compaction finishes the job and removes the leftovers.
        yield* Journal.compact(path, { before: 7 })
        assert.strictEqual((yield* entriesAt(path)).length, 4)
        assert.notProperty(files(path), "journal.compacting")
      }
    })
  )

  it.effect("does not write through a link that has the name of its draft", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* recordedInto(path)
      const victim = join(path, "..", "victim")
      Fs.writeFileSync(victim, "mine")
      Fs.symlinkSync(victim, `${path}.compacting`)
      yield* Journal.compact(path, { before: 7 })
      assert.strictEqual(Fs.readFileSync(victim, "utf8"), "mine")
      assert.isFalse(Fs.lstatSync(path).isSymbolicLink())
    })
  )
})

describe("Journal.compact of the journal of a leaf", () => {
  const filled = (journal: Journal.Scrivener<Journal.Entry>, pairs: number) =>
    journal.appendAll(
      Array.from({ length: pairs }, () => {
        const request = stat("f")
        return [request, new FileMetadata({ correlationId: request.correlationId, size: 1, isDirectory: false })]
      }).flat()
    )
  const leaf = (instance: string, status: "Running" | "Completed") =>
    new DaemonChanged({ daemon: "leaf", instance, status, prefix: "." })

  it.effect("keeps unanswered requests, and the entries of the leaves that may have begun to serve them", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* opened(path)
          yield* filled(journal, 10)
          yield* journal.append(leaf("one.1", "Running")) // 21
          yield* filled(journal, 10)
          yield* journal.append(write("f", "never answered")) // 42
          yield* filled(journal, 4_000)
        })
      )
      const result = yield* Journal.compact(path, { before: 8_000 })
      assert.strictEqual(result.kept, "unanswered")
      assert.isAtMost(result.first, 21)
    })
  )

  it.effect("keeps the latest entries, by which a leaf recognises repeated requests", () =>
    Effect.gen(function* () {
      const path = fresh()
      const once = stat("f")
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* opened(path)
          yield* journal.append(leaf("one.1", "Running"))
          yield* journal.appendAll([
            once,
            new FileFault({ correlationId: once.correlationId, faultKind: "NotFound", path: "f", message: "" })
          ])
          yield* journal.append(leaf("one.1", "Completed"))
          for (let i = 0; i < 5; i++) yield* filled(journal, 100)
          yield* journal.append(once)
          for (let i = 0; i < 60; i++) yield* filled(journal, 100)
        })
      )
      const last = 4 + 1_000 + 1 + 12_000
      assert.deepInclude(yield* Journal.compact(path, { before: 600 }), { removed: 1, first: 2, kept: "recent" })
      const { first, kept } = yield* Journal.compact(path, { before: last })
      assert.strictEqual(kept, "recent")
      assert.isAtMost(first, last - Answered.duplicateWindow + 1)
      assert.isAbove(first, last - Answered.duplicateWindow - 300)
    })
  )

  it.live("leaves a journal that a leaf can still serve, even if many answered requests are removed", () =>
    Effect.gen(function* () {
      const path = fresh()
      const fs = yield* memory({ tree: { f: "x" } })
      const visit = (request: ReturnType<typeof stat> | ReturnType<typeof read>) =>
        Effect.scoped(
          Effect.gen(function* () {
            const journal = yield* opened(path)
            const here = asking(journal)
            yield* Effect.provideService(started(fs, { extended: true }), Journal.Journal, journal)
            const answer = yield* here.ask(request)
            yield* quiet
            return answer._tag
          })
        )
      yield* Effect.scoped(
        Effect.flatMap(opened(path), (journal) =>
          Effect.forEach(Array.from({ length: 100 }), () => filled(journal, 100), { discard: true })
        )
      )
      assert.strictEqual(yield* visit(stat("f")), "FileMetadata")
      assert.isTrue((yield* entriesAt(path)).some(({ entry }) => entry instanceof LeafCheckpoint))
      const { removed } = yield* Journal.compact(path, { before: 19_000 })
      assert.isAbove(removed, 10_000)
      assert.strictEqual(yield* visit(read("f")), "FileContent")
      assert.strictEqual((yield* Journal.verify(path)).torn, false)
    })
  )
})
