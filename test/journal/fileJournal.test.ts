import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { FileEdit, type FileStat } from "../../src/journal/FileSystemEntry.ts"
import { Entry, type FileOptions, Journal, type JournalError, layerFile, makeFile, verify } from "../../src/journal/Journal.ts"
import { inMemory } from "../scratch.ts"
import { bytesOf, journalLaws, sha256, stat, write } from "./journalLaws.ts"

const fresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "journal-")), "journal.jsonl")
const opened = (options: Omit<FileOptions, "path"> = {}) => Effect.suspend(() => makeFile(Entry, { path: fresh(), ...options }))

journalLaws("a file", opened(), { entries: 8_000, readers: 10 })
journalLaws("a chained file that is synced at each append", opened({ chained: true, fsync: true }), {
  entries: 800,
  readers: 5
})

const idsOf = (path: string, options: Omit<FileOptions, "path"> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* makeFile(Entry, { path, ...options })
      const read = yield* Stream.runCollect(journal.stored())
      assert.deepStrictEqual(
        read.map(({ position }) => position),
        read.map((_, index) => index + 1)
      )
      return read.map(({ entry }) => (entry as FileStat).correlationId)
    })
  )

/** Appends each call on its own and closes the journal. */
const written = (path: string, calls: ReadonlyArray<ReadonlyArray<Entry>>, options: Omit<FileOptions, "path"> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* makeFile(Entry, { path, ...options })
      for (const call of calls) yield* journal.appendAll(call)
    })
  )

const failureOf = (path: string): Effect.Effect<JournalError> =>
  Effect.flip(Effect.asVoid(idsOf(path))) as Effect.Effect<JournalError>

/** Returns the ids in the order of the file. */
const idsIn = (path: string): ReadonlyArray<string> =>
  linesOf(path)
    .slice(1)
    .map((line) => (JSON.parse(line) as { entry: FileStat }).entry.correlationId)

const linesOf = (path: string): Array<string> => Fs.readFileSync(path, "utf8").split("\n").slice(0, -1)
const write_ = (path: string, lines: ReadonlyArray<string>): void =>
  Fs.writeFileSync(path, lines.map((line) => `${line}\n`).join(""))

describe("a file journal", () => {
  it.live("is read again, and continued, after it is reopened", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, [[stat(1)], [write("w", bytesOf(5_000))], [stat(3)]])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* makeFile(Entry, { path })
          assert.strictEqual(yield* journal.last, 3)
          assert.strictEqual(yield* journal.append(stat(4)), 4)
          assert.deepStrictEqual(yield* journal.bytes({ sha256: sha256(bytesOf(5_000)), size: 5_000 }), bytesOf(5_000))
        })
      )
      assert.deepStrictEqual(yield* idsOf(path), ["stat-1", "w", "stat-3", "stat-4"])
    })
  )

  it.live("has a header line and one line of JSON per entry, with mode 0600", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, [[stat(1)], [write("w", new Uint8Array([1, 2, 3]))]])
      const lines = linesOf(path).map((line) => JSON.parse(line) as Record<string, unknown>)
      assert.deepStrictEqual(lines[0], { format: "fs-algebra/journal", v: 1, chained: false })
      for (const line of lines.slice(1)) assert.isNumber(line["at"])
      assert.deepStrictEqual(
        lines.slice(1).map(({ at: _, ...line }) => line),
        [
          { v: 1, pos: 1, entry: { _tag: "FileStat", correlationId: "stat-1", path: "dir/1" } },
          {
            v: 1,
            pos: 2,
            entry: { _tag: "FileWrite", correlationId: "w", path: "f", content: "AQID", createMode: "overwrite" }
          }
        ]
      )
      assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o600)
      assert.deepStrictEqual(Fs.readdirSync(dirname(path)), ["journal.jsonl"])
    })
  )

  it.live("can be the Journal service of a program", () =>
    Effect.gen(function* () {
      const path = fresh()
      const program = Effect.flatMap(Journal, (journal) => journal.append(stat(1)))
      assert.strictEqual(yield* Effect.provide(program, layerFile({ path })), 1)
      assert.strictEqual(yield* Effect.provide(program, layerFile({ path })), 2)
    })
  )

  it.live("accepts entries of any schema", () =>
    Effect.gen(function* () {
      const path = fresh()
      const kind = Schema.Struct({ name: Schema.String, day: Schema.DateTimeUtc })
      const entry = Schema.decodeUnknownSync(Schema.toCodecJson(kind))({ name: "a", day: "2026-01-02T00:00:00.000Z" })
      yield* Effect.scoped(Effect.flatMap(makeFile(kind, { path }), (journal) => journal.append(entry)))
      const read = Effect.scoped(Effect.flatMap(makeFile(kind, { path }), (journal) => Stream.runCollect(journal.stored())))
      assert.deepStrictEqual(
        (yield* read).map(({ entry }) => entry),
        [entry]
      )
    })
  )

  it.live("refuses the whole append if an entry is invalid", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const journal = yield* opened()
        const odd = { _tag: "FileStat", correlationId: 7 } as unknown as Entry
        assert.strictEqual((yield* Effect.flip(journal.appendAll([stat(1), odd]))).reason, "invalid")
        assert.strictEqual(yield* journal.append(stat(2)), 1)
      })
    )
  )

  it.live("reads lines of any length at any position", () =>
    Effect.gen(function* () {
      const path = fresh()
      const long = new FileEdit({ correlationId: "long", path: "f", edits: [{ oldText: "x".repeat(1_500_000), newText: "é" }] })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* makeFile(Entry, { path })
          for (let n = 0; n < 6; n++) {
            yield* journal.appendAll(Array.from({ length: 999 }, (_, index) => stat(n * 1000 + index)))
            yield* journal.append(long)
          }
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* makeFile(Entry, { path })
          for (let at = 0; at < 6_000; at = at * 2 + 7) {
            const [found] = yield* Stream.runCollect(Stream.take(journal.stored(at), 1))
            assert.strictEqual(found!.position, at + 1)
            assert.deepStrictEqual(found!.entry, (at + 1) % 1000 === 0 ? long : stat(at))
          }
          const back = yield* Stream.runCollect(journal.readBackward())
          assert.deepStrictEqual(
            back.map(({ position }) => position),
            Array.from({ length: 6_000 }, (_, index) => 6_000 - index)
          )
          assert.deepStrictEqual(back[0]!.entry, long)
        })
      )
    })
  )

  it.live("refuses chained: true if the file has no chain, and continues an existing chain with chained: false", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, calls)
      assert.strictEqual((yield* Effect.flip(written(path, [], { chained: true }))).reason, "invalid")
      const chained = fresh()
      yield* written(chained, calls, { chained: true })
      yield* written(chained, [[stat(6)]], { chained: false })
      assert.deepInclude(yield* verify(chained), { entries: 6, chained: true })
    })
  )
})

describe("a file journal that is opened after a crash", () => {
  for (const chained of [false, true]) {
    it.live(`drops an append that was truncated at any byte, and continues, ${chained ? "" : "not "}chained`, () =>
      Effect.gen(function* () {
        const path = fresh()
        yield* written(path, [[stat(1)], [stat(2), stat(3)]], { chained })
        const before = Fs.statSync(path).size
        yield* written(path, [[stat(4), write("é\ud83d\ude00", bytesOf(20))]])
        const whole = Fs.readFileSync(path)
        for (let size = before; size < whole.length; size++) {
          Fs.writeFileSync(path, whole.subarray(0, size))
          assert.strictEqual((yield* verify(path)).torn, size > before)
          yield* written(path, [[stat(6)]])
          assert.deepStrictEqual(idsIn(path), ["stat-1", "stat-2", "stat-3", "stat-6"], `torn at ${size}`)
          if (size % 16 === 0) assert.deepInclude(yield* verify(path), { entries: 4, torn: false })
        }
        Fs.writeFileSync(path, whole)
        assert.strictEqual((yield* idsOf(path)).length, 5)
      })
    )
  }

  it.live("starts as a new journal if its first line was truncated at any byte", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, [], { chained: true })
      const header = Fs.readFileSync(path)
      for (let size = 0; size < header.length; size++) {
        Fs.writeFileSync(path, header.subarray(0, size))
        yield* written(path, [[stat(1)]])
        assert.deepStrictEqual(yield* idsOf(path), ["stat-1"])
      }
    })
  )

  it.live("never changes a file that is not a journal", () =>
    Effect.gen(function* () {
      const path = fresh()
      for (const text of ["dear diary", "dear diary\n", '{"format":"other"}\n', "{}\n", "\n", "\u0000".repeat(300)]) {
        Fs.writeFileSync(path, text)
        assert.strictEqual((yield* failureOf(path)).reason, "corrupt", JSON.stringify(text))
        assert.strictEqual(Fs.readFileSync(path, "utf8"), text)
      }
    })
  )

  it.live("fails with `version` if a later version of the library wrote its entries", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, [[stat(1)], [stat(2)]])
      const [header, ...lines] = linesOf(path)
      write_(path, [header!, lines[0]!, lines[1]!.replace('"v":1', '"v":2')])
      const failure = yield* failureOf(path)
      assert.deepStrictEqual([failure.reason, failure.position], ["version", 2])
      write_(path, ['{"format":"fs-algebra/journal","v":3,"chained":false,"more":true}', ...lines])
      assert.strictEqual((yield* failureOf(path)).reason, "version")
    })
  )
})

const calls = [[stat(1)], [stat(2), write("w", bytesOf(9))], [stat(4)], [stat(5)]]

describe("damage in a file journal", () => {
  it.live("is found at every byte of a chained journal", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, calls, { chained: true })
      const whole = Fs.readFileSync(path)
      const header = whole.indexOf(10) + 1
      for (let at = 0; at < whole.length; at++) {
        for (const mask of at % 2 === 0 ? [1, 0x80] : [2, 0x2a]) {
          const flipped = Buffer.from(whole)
          flipped[at]! ^= mask
          Fs.writeFileSync(path, flipped)
          const failure = yield* Effect.flip(verify(path))
          assert.include(["corrupt", "version"], failure.reason, `byte ${at}`)
          // The position is the position of the entry whose line contains the byte.
          const expected = whole.subarray(0, at).filter((byte) => byte === 10).length
          if (at >= header) assert.strictEqual(failure.position, expected, `byte ${at}`)
        }
      }
    })
  )

  it.live("is found when the journal is opened", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, calls, { chained: true })
      const whole = Fs.readFileSync(path)
      for (let at = 0; at < whole.length; at += 13) {
        const flipped = Buffer.from(whole)
        flipped[at]! ^= 4
        Fs.writeFileSync(path, flipped)
        assert.include(["corrupt", "version"], (yield* failureOf(path)).reason, `byte ${at}`)
        assert.deepStrictEqual(Fs.readFileSync(path), flipped)
      }
    })
  )

  const lines: Record<string, (lines: ReadonlyArray<string>) => ReadonlyArray<string>> = {
    "a line that was deleted": ([header, a, b, , d, e]) => [header!, a!, b!, d!, e!],
    "the first line of all": ([, ...rest]) => rest,
    "two lines that were swapped": ([header, a, b, c, d, e]) => [header!, a!, b!, c!, e!, d!],
    "a line that is there twice": ([header, a, ...rest]) => [header!, a!, a!, ...rest],
    "a line that was added": ([header, ...rest]) => [header!, ...rest, rest.at(-1)!.replace('"pos":5', '"pos":6')],
    "an empty line": ([header, a, ...rest]) => [header!, a!, "", ...rest]
  }
  for (const chained of [true, false]) {
    for (const [claim, change] of Object.entries(lines)) {
      // In an unchained journal, an added line looks like an appended line.
      if (!chained && claim === "a line that was added") continue
      it.live(`is found: ${claim}, ${chained ? "" : "not "}chained`, () =>
        Effect.gen(function* () {
          const path = fresh()
          yield* written(path, calls, { chained })
          yield* verify(path)
          write_(path, change(linesOf(path)))
          assert.strictEqual((yield* Effect.flip(verify(path))).reason, "corrupt")
          assert.strictEqual((yield* failureOf(path)).reason, "corrupt")
        })
      )
    }
  }

  it.live("is found: a chained journal marked as unchained, and mixed lines of two appends", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, calls, { chained: true })
      const [header, ...lines] = linesOf(path)
      write_(path, [header!.replace("true", "false"), ...lines])
      assert.deepInclude(yield* Effect.flip(verify(path)), { reason: "corrupt", position: 1 })
      const plain = fresh()
      yield* written(plain, [[stat(1), stat(2), stat(3)], [stat(4)]])
      for (const [more, position] of [
        ["3", 2],
        ["1", 2]
      ] as const) {
        const changed = linesOf(plain).map((line) => line.replace('"more":2', `"more":${more}`))
        write_(path, changed)
        assert.deepInclude(yield* Effect.flip(verify(path)), { reason: "corrupt", position })
      }
    })
  )

  it.live("is found: a line of another chained journal, because each hash covers all previous lines", () =>
    Effect.gen(function* () {
      const [path, other] = [fresh(), fresh()]
      yield* written(path, calls, { chained: true })
      yield* written(other, [[stat(8)], ...calls.slice(1)], { chained: true })
      const lines = linesOf(path)
      let hash = sha256(Buffer.from(`${lines[0]!}\n`))
      for (const line of lines.slice(1)) {
        const body = line.slice(0, line.lastIndexOf(',"hash":"'))
        hash = sha256(Buffer.from(hash + body))
        assert.strictEqual(line, `${body},"hash":"${hash}"}`)
      }
      assert.strictEqual((yield* verify(path)).head, hash)
      write_(path, [...lines.slice(0, 2), ...linesOf(other).slice(2)])
      assert.deepInclude(yield* Effect.flip(verify(path)), { reason: "corrupt", position: 2 })
    })
  )

  it.live("is found: truncated lines of a chained journal, because its last hash differs", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, calls, { chained: true })
      const { head } = yield* verify(path)
      assert.match(head!, /^[0-9a-f]{64}$/)
      write_(path, linesOf(path).slice(0, -1))
      assert.notStrictEqual((yield* verify(path)).head, head)
    })
  )

  it.live("is found: JSON that is not an entry, when the entry is read", () =>
    Effect.gen(function* () {
      const path = fresh()
      yield* written(path, calls)
      write_(
        path,
        linesOf(path).map((line) => line.replace('"correlationId":"stat-4"', '"correlationId":4'))
      )
      const failure = yield* failureOf(path)
      assert.deepStrictEqual([failure.reason, failure.position], ["corrupt", 4])
      assert.strictEqual((yield* Effect.flip(verify(path))).position, 4)
    })
  )

  it.live("is found: missing and changed contents, each counted once", () =>
    Effect.gen(function* () {
      const path = fresh()
      const contents = [5_000, 6_000, 7_000].map((size) => bytesOf(size))
      yield* written(
        path,
        [...contents, contents[0]!].map((content, index) => [write(`w${index}`, content)])
      )
      const sound = { entries: 4, chained: false, torn: false }
      assert.deepStrictEqual(yield* verify(path), { ...sound, contents: { referenced: 3, missing: 0, damaged: 0 } })
      const file = (bytes: Uint8Array): string => join(`${path}.contents`, sha256(bytes).slice(0, 2), sha256(bytes).slice(2))
      Fs.rmSync(file(contents[0]!))
      Fs.appendFileSync(file(contents[1]!), "x")
      assert.deepStrictEqual(yield* verify(path), { ...sound, contents: { referenced: 3, missing: 1, damaged: 1 } })
    })
  )
})

describe("a file journal that is closed", () => {
  it.live("contains every accepted append, and later calls fail with the reason closed", () =>
    Effect.gen(function* () {
      const path = fresh()
      const scope = yield* Scope.make()
      const journal = yield* Scope.provide(makeFile(Entry, { path }), scope)
      const tail = yield* Effect.forkChild(Effect.flip(Stream.runDrain(journal.tail())), { startImmediately: true })
      const appends = yield* Effect.forEach(Array.from({ length: 100 }), (_, n) =>
        Effect.forkChild(journal.append(stat(n)), { startImmediately: true })
      )
      yield* Scope.close(scope, Exit.void)
      const answered = yield* Effect.forEach(appends, Fiber.join)
      assert.deepStrictEqual(
        answered,
        answered.map((_, index) => index + 1)
      )
      assert.strictEqual((yield* Fiber.join(tail)).reason, "closed")
      for (const effect of [journal.append(stat(1)), journal.last, Stream.runDrain(journal.stored()), journal.appendAll([])]) {
        assert.strictEqual((yield* Effect.flip(Effect.asVoid(effect as Effect.Effect<unknown, JournalError>))).reason, "closed")
      }
      assert.strictEqual((yield* idsOf(path)).length, 100)
    })
  )
})
