/** Files of other programs whose names look like temporary names of this library, in journals that record their changes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Journal from "../../src/journal/Journal.ts"
import * as Replay from "../../src/journal/Replay.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { capture, plant } from "../../src/testing/Files.ts"
import * as Names from "../runtime/names.ts"
import { another, entriesOf, type Files, makeJournal, record } from "./recordings.ts"

const changesOf = (journal: Files) =>
  Effect.map(Stream.runCollect(Replay.changes(journal)), (all) =>
    Array.from(all, ({ kind, outcome, path, to }) => [kind, path as string, to as string | undefined, outcome])
  )

const { decodeSync, encodeSync } = (() => {
  const json = Schema.toCodecJson(Journal.Entry)
  return { decodeSync: Schema.decodeUnknownSync(json), encodeSync: Schema.encodeSync(json) }
})()

/** Returns the journal as an installation with another key would have written it. */
const fromElsewhere = Effect.fnUntraced(function* (journal: Files): Effect.fn.Return<Files> {
  const other = yield* makeJournal
  const text = JSON.stringify((yield* Effect.orDie(entriesOf(journal))).map((entry) => encodeSync(entry)))
  const foreign = text.replace(/-([0-9a-f]{32})\.tmp/g, (_, code: string) => `-${[...code].reverse().join("")}.tmp`)
  for (const said of JSON.parse(foreign) as ReadonlyArray<unknown>) yield* Effect.orDie(other.append(decodeSync(said)))
  return other
})

const names = [".~fsa-a.tmp", Names.forged(Names.dead()), Names.forged(Names.elsewhere, "exchange")]

for (const name of names) {
  describe(`a file of another program called ${name.replace(/[0-9a-z]{6,}/g, "…")}`, () => {
    it.effect("is listed by Replay.changes when it is removed or moved", () =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, { [name]: "x", [`d/${name}`]: "y" })
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.delete(name)
        yield* recorded.move(`d/${name}`, "shown")
        const expected = [
          ["FileDelete", name, undefined, "done"],
          ["FileMove", `d/${name}`, "shown", "done"]
        ]
        assert.deepStrictEqual(yield* changesOf(journal), expected)
      })
    )

    it.effect("is listed by Replay.changes when it is written through a link", () =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, { [name]: "x" })
        yield* fs.port.links!.make("l" as FsPath, name)
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.write("l", "new")
        yield* recorded.delete(name)
        assert.deepStrictEqual(
          (yield* changesOf(journal)).filter(([, , , outcome]) => outcome === "done").map(([kind, path]) => [kind, path]),
          [
            ["FileWrite", name],
            ["FileDelete", name]
          ]
        )
      })
    )

    it.effect("is reported by Replay.drift if it exists again", () =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, { [name]: "x" })
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.delete(name)
        assert.deepStrictEqual(yield* Replay.drift(journal, fs), [])
        yield* plant(fs.port, { [name]: "again" })
        assert.deepStrictEqual(
          (yield* Replay.drift(journal, fs)).map(({ path }) => path as string),
          [name]
        )
      })
    )

    it.effect("is restored by Replay.undo, also in a directory", () =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, { [name]: "x", [`d/${name}`]: "y", "d/e/z": "z" })
        const before = yield* capture(fs.port)
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs)
        yield* recorded.delete(name)
        yield* recorded.delete("d", { recursive: true })
        yield* Replay.undo(journal, recorded, { to: 0 })
        assert.deepStrictEqual(yield* capture(fs.port), before)
        const told = (yield* changesOf(journal)).map(([, path]) => path)
        // The directory is removed by one entry and restored entry by entry.
        assert.deepStrictEqual([...told].sort(), [name, name, "d", "d", "d/e", "d/e/z", `d/${name}`].sort())
      })
    )

    it.effect("is read from a replay double", () =>
      Effect.gen(function* () {
        const fs = yield* another()
        yield* plant(fs.port, { [name]: "x", ".~fsa-other.tmp": "y" })
        const journal = yield* makeJournal
        const recorded = yield* record(journal, fs, { reads: true })
        yield* recorded.readString(name)
        yield* recorded.readString(".~fsa-other.tmp")
        const double = yield* Replay.double(journal)
        assert.strictEqual(yield* double.readString(".~fsa-other.tmp"), "y")
        assert.strictEqual(yield* double.readString(name), "x")
      })
    )
  })
}

describe("a journal of another installation", () => {
  it.effect("is listed without the temporary names of its filesystem", () =>
    Effect.gen(function* () {
      const fs = yield* another()
      yield* plant(fs.port, { "was/x": "x", a: "one" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs, { reads: true })
      yield* recorded.write("a", "two")
      yield* recorded.delete("was", { recursive: true })
      yield* Replay.undo(journal, recorded, { to: 0 })
      const other = yield* fromElsewhere(journal)
      assert.isTrue(JSON.stringify(yield* entriesOf(other)).includes(".~fsa-"))
      const told = yield* changesOf(other)
      assert.deepStrictEqual(told, yield* changesOf(journal))
      assert.isFalse(JSON.stringify(told).includes(".~fsa-"))
      assert.deepStrictEqual(yield* Replay.drift(other, fs), [])
    })
  )
})

describe("the journal of this installation", () => {
  it.effect("lists the changes of a temporary name, even after the port refused a request to create this name", () =>
    Effect.gen(function* () {
      const name = Names.forged(Names.elsewhere)
      const fs = yield* another()
      yield* plant(fs.port, { [name]: "x" })
      const journal = yield* makeJournal
      const recorded = yield* record(journal, fs)
      // The port answers that the name is taken.
      yield* Effect.flip(recorded.port.makeDirectory(name as FsPath))
      yield* recorded.delete(name)
      assert.deepStrictEqual(
        (yield* changesOf(journal)).map(([kind, , , outcome]) => [kind, outcome]),
        [
          ["FileMakeDirectory", "failed"],
          ["FileDelete", "done"]
        ]
      )
    })
  )
})
