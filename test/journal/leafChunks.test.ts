import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as Decorator from "../../src/filesystem/Decorator.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Limits from "../../src/model/Limits.ts"
import {
  asked,
  chunk,
  host,
  id,
  journaled,
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

/** Splits a content into parts of `size` bytes. */
const parts = (correlationId: string, content: Uint8Array, size: number, path: string, mode?: Entry.CreateMode) => {
  const out: Array<Entry.FileWriteChunk> = []
  for (let offset = 0; offset === 0 || offset < content.length; offset += size) {
    const first = offset === 0 ? { path, ...(mode === undefined ? {} : { createMode: mode }) } : {}
    out.push(
      chunk(correlationId, offset, content.slice(offset, offset + size), { ...first, isFinal: offset + size >= content.length })
    )
  }
  return out
}

describe("a write in several parts", () => {
  for (const [name, fs] of [
    ["memory", memory()],
    ["a host directory", Effect.suspend(() => host())]
  ] as const) {
    it.effect(`is made as a whole with its last part, and is answered once (${name})`, () =>
      journaled(
        Effect.gen(function* () {
          const self = yield* fs
          yield* started(self, { streamingThreshold: 20_000 })
          const { all, answer, append, content, ask } = yield* asked
          yield* self.write("f", "old")
          // Small parts fit in entries, large ones do not; the whole is over and under the threshold.
          for (const [length, size] of [
            [10_000, 100],
            [50_000, 5_000],
            [50_000, 49_999],
            [0, 1],
            [1, 1]
          ] as const) {
            const one = id()
            const whole = many(length, size)
            const before = yield* self.readBytes("f")
            for (const part of parts(one, whole, size, "/f")) {
              assert.deepStrictEqual((yield* self.readBytes("f")).content, before.content)
              yield* append(part)
              yield* quiet
            }
            assert.deepStrictEqual(plain(yield* answer(one)), { _tag: "FileWritten", path: "/f", bytesWritten: length })
            const now = yield* ask(read("f"))
            const found = (yield* self.readBytes("f")).content
            assert.deepStrictEqual(Buffer.compare(found, whole), 0, `${length} in parts of ${size}`)
            if (now._tag === "FileContent") assert.strictEqual((yield* content(now.content)).length, length)
            assert.strictEqual((yield* all).filter(Entry.answers(one)).length, 1)
          }
        })
      )
    )

    it.effect(`follows its mode, and does not affect concurrent writes (${name})`, () =>
      journaled(
        Effect.gen(function* () {
          const self = yield* fs
          yield* started(self)
          const { answer, append } = yield* asked
          yield* self.write("f", "old")
          const [one, two, three] = [id(), id(), id()]
          const first = parts(one, many(10), 4, "f", "append")
          const second = parts(two, many(10, 100), 4, "g", "create")
          const third = parts(three, many(10), 4, "f", "create")
          for (let i = 0; i < 3; i++) for (const all of [first, second, third]) yield* append(all[i]!)
          assert.strictEqual(kindOf(yield* answer(one)), "FileWritten")
          assert.strictEqual(kindOf(yield* answer(two)), "FileWritten")
          assert.strictEqual(kindOf(yield* answer(three)), "AlreadyExists")
          const expected = Buffer.concat([Buffer.from("old"), many(10)])
          assert.strictEqual(Buffer.compare((yield* self.readBytes("f")).content, expected), 0)
          assert.strictEqual(Buffer.compare((yield* self.readBytes("g")).content, many(10, 100)), 0)
        })
      )
    )
  }

  it.effect("is ordered among other requests by the position of its last part", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* started(fs)
        const { answer, append, ask } = yield* asked
        const one = id()
        const [first, last] = parts(one, many(8), 4, "f")
        yield* append(first!)
        assert.strictEqual(kindOf(yield* ask(stat("f"))), "NotFound")
        yield* ask(write("f", "in between"))
        yield* append(last!)
        const after = remove("f")
        yield* append(after)
        assert.strictEqual(kindOf(yield* answer(one)), "FileWritten")
        assert.strictEqual(kindOf(yield* answer(after.correlationId)), "FileDeleted")
      })
    )
  )

  const failing = (
    claim: string,
    send: (one: string) => ReadonlyArray<Entry.FileWriteChunk>,
    kind: string,
    options: Parameters<typeof started>[1] = {}
  ) =>
    it.effect(claim, () =>
      journaled(
        Effect.gen(function* () {
          const fs = yield* Effect.orDie(Effect.flatMap(memory(), Decorator.quota({ maxBytes: 20 })))
          yield* fs.write("f", "old")
          yield* started(fs, options)
          const { all, answer, append, ask } = yield* asked
          const one = id()
          for (const part of send(one)) {
            yield* append(part)
            yield* quiet
          }
          const fault = yield* answer(one)
          assert.strictEqual(kindOf(fault), kind)
          // Later parts neither revive the write nor get an answer.
          yield* append(chunk(one, 4, "late", { isFinal: true }))
          yield* append(chunk(one, 0, "again", { path: "f", isFinal: true }))
          yield* ask(stat("f"))
          assert.strictEqual((yield* all).filter(Entry.answers(one)).length, 1)
          assert.strictEqual(yield* fs.readString("f"), "old")
        })
      )
    )

  failing(
    "with a gap fails with IoError",
    (one) => [chunk(one, 0, "four", { path: "f" }), chunk(one, 5, "more", { isFinal: true })],
    "IoError"
  )
  failing(
    "with a repeated part fails with IoError",
    (one) => [chunk(one, 0, "four", { path: "f" }), chunk(one, 0, "four", { path: "f" })],
    "IoError"
  )
  failing("without its first part fails with IoError", (one) => [chunk(one, 4, "more", { isFinal: true })], "IoError")
  failing("without a path fails with InvalidPath", (one) => [chunk(one, 0, "four")], "InvalidPath")
  failing("with an invalid path fails with InvalidPath", (one) => [chunk(one, 0, "four", { path: "a/../f" })], "InvalidPath")
  failing(
    "that changes its path fails with IoError",
    (one) => [chunk(one, 0, "four", { path: "f" }), chunk(one, 4, "more", { path: "g", isFinal: true })],
    "IoError"
  )
  failing(
    "over the quota fails with DiskFull",
    (one) => [chunk(one, 0, "x".repeat(15), { path: "f" }), chunk(one, 15, "x".repeat(15), { isFinal: true })],
    "DiskFull"
  )
  failing(
    "over the maximum file size fails with IoError at the first part that exceeds it",
    (one) => [chunk(one, 0, "x".repeat(7), { path: "f" }), chunk(one, 7, "x".repeat(7))],
    "IoError",
    { limits: { ...Limits.standard, maxFileSize: 10 } }
  )
  failing("fails with AccessDenied if writing is forbidden", (one) => [chunk(one, 0, "x", { path: "f" })], "AccessDenied", {
    allowWrite: false
  })

  it.effect("that is discarded gets no answer, and its id can be used again", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* started(fs)
        const { all, answer, append, ask } = yield* asked
        const one = id()
        yield* append(chunk(one, 0, "four", { path: "f" }))
        yield* append(chunk(one, 4, "", { discard: true, isFinal: true }))
        yield* ask(stat("f"))
        assert.deepStrictEqual((yield* all).filter(Entry.answers(one)), [])
        for (const part of parts(one, many(8), 4, "f")) yield* append(part)
        assert.strictEqual(kindOf(yield* answer(one)), "FileWritten")
      })
    )
  )

  it.effect("fails with Timeout if a part does not arrive within a minute of the previous part", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* started(fs)
        const { all, append, ask } = yield* asked
        const [one, other] = [id(), id()]
        yield* append(chunk(one, 0, "four", { path: "f" }))
        yield* append(chunk(other, 0, "four", { path: "g" }))
        yield* quiet
        yield* TestClock.adjust("59 seconds")
        yield* append(chunk(one, 4, "more"))
        yield* quiet
        yield* TestClock.adjust("59 seconds")
        yield* quiet
        const answered = (which: string) => Effect.map(all, (all) => all.filter(Entry.answers(which)).map(kindOf))
        assert.deepStrictEqual(yield* answered(other), ["Timeout"])
        assert.deepStrictEqual(yield* answered(one), [])
        yield* TestClock.adjust("1 second")
        yield* quiet
        assert.deepStrictEqual(yield* answered(one), ["Timeout"])
        yield* append(chunk(one, 8, "late", { isFinal: true }))
        assert.strictEqual(kindOf(yield* ask(stat("f"))), "NotFound")
      })
    )
  )

  it.effect("is not affected by another request with its id, which fails with IoError", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* started(fs)
        const { answers, append } = yield* asked
        const one = id()
        const [first, last] = parts(one, many(8), 4, "f")
        yield* append(first!)
        const at = yield* append(new Entry.FileStat({ correlationId: one, path: "f" }))
        assert.deepStrictEqual((yield* answers(one, at)).map(kindOf), ["IoError"])
        const end = yield* append(last!)
        assert.deepStrictEqual((yield* answers(one, end)).map(kindOf), ["FileWritten"])
      })
    )
  )

  it.live("succeeds for two hundred concurrent writes", () =>
    journaled(
      Effect.gen(function* () {
        const fs = yield* memory()
        yield* started(fs)
        const { answer, append } = yield* asked
        const ids = Array.from({ length: 200 }, id)
        for (const i of [0, 1, 2]) {
          for (const [n, one] of ids.entries()) {
            yield* append(chunk(one, i * 2, `${i}${n % 10}`, { isFinal: i === 2, ...(i === 0 ? { path: `d/${n}` } : {}) }))
          }
        }
        for (const [n, one] of ids.entries()) {
          assert.strictEqual(kindOf(yield* answer(one)), "FileWritten")
          assert.strictEqual(yield* fs.readString(`d/${n}`), `0${n % 10}1${n % 10}2${n % 10}`)
        }
      })
    )
  )
})
