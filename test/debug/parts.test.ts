/**
 * Large texts in parts: every byte is in one part, parts end at line ends where possible, and lines keep their
 * numbers.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Content from "../../src/debug/content.ts"
import { partOfLine } from "../../src/debug/partOfLine.ts"
import { make as makeWorkspace } from "../../src/debug/workspace.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import type { FsPath } from "../../src/model/FsPath.ts"

const path = "log" as FsPath

const holding = (log: string) => Effect.map(InMemory.make({ tree: { log } }), make)

const textsOf = (log: string, maxPart: number) =>
  Effect.gen(function* () {
    const fs = yield* holding(log)
    const index = yield* Content.indexOf(fs, path, maxPart)
    const texts = yield* Effect.forEach(index.offsets, (_, part) => Content.read(fs, path, index, part))
    return { index, texts }
  })

const linesOf = (text: string): number => (text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0))

describe("a text in parts", () => {
  it.effect.prop(
    "equals its joined parts, each of which has the number of its first line",
    [
      Schema.Array(Schema.Literals(["a", "\n", "é", "語", "😀", "line\n", "a long line of text"])),
      Schema.Int.check(Schema.isBetween({ minimum: 4, maximum: 40 }))
    ],
    ([pieces, maxPart]) =>
      Effect.gen(function* () {
        const log = pieces.join("")
        const { index, texts } = yield* textsOf(log, maxPart)
        assert.strictEqual(texts.join(""), log)
        assert.strictEqual(index.totalLines, linesOf(log))
        let before = ""
        for (const [part, text] of texts.entries()) {
          assert.strictEqual(index.firstLines[part], before.split("\n").length)
          assert.isAtMost(Buffer.byteLength(text), maxPart + 6)
          if (part < texts.length - 1 && text.includes("\n")) assert.isTrue(text.endsWith("\n"))
          before += text
        }
      })
  )

  it.effect("has an index that finds the part in which a line begins", () =>
    Effect.gen(function* () {
      const { index } = yield* textsOf("1\n2\n3\na very long lin\n5\n", 8)
      assert.deepStrictEqual(index.firstLines, [1, 4, 4, 5])
      const found = [0, 1, 2, 3, 4, 5, 6, 1000].map((line) => partOfLine(index.firstLines, line))
      assert.deepStrictEqual(found, [0, 0, 0, 0, 1, 3, 3, 3])
    })
  )

  it.effect("is shown completely even above 8 MiB", () =>
    Effect.gen(function* () {
      const count = 300_000
      const lines = Array.from({ length: count }, (_, i) => `${i + 1} ${"x".repeat(60)}`)
      const fs = yield* holding(lines.join("\n"))
      const seen: Array<string> = []
      const first = yield* Content.describePath(fs, path)
      assert.deepInclude(first.part, { number: 0, total_lines: count })
      for (const number of first.part!.first_lines.keys()) {
        const { content, part } = yield* Content.describePath(fs, path, { part: number })
        assert.strictEqual(part!.number, number)
        assert.isTrue(content!.startsWith(`${part!.first_lines[number]} `))
        seen.push(content!)
      }
      assert.isAbove(seen.length, 2)
      assert.strictEqual(seen.join(""), lines.join("\n"))
      const last = yield* Content.describePath(fs, path, { line: count })
      assert.strictEqual(last.part!.number, seen.length - 1)
      const refusal = yield* Effect.flip(Content.describePath(fs, path, { part: seen.length }))
      assert.match(refusal.message, /has \d+ parts, counted from 0/)
    })
  )

  it.effect("of a snapshot is indexed once, even if many other snapshots are shown in between", () =>
    Effect.gen(function* () {
      const fs = yield* holding("line\n".repeat(2_000_000))
      const snapshots = yield* Effect.provide(
        Snapshots.Snapshots,
        Layer.provide(Snapshots.layerWith({}), Layer.succeed(Filesystem, fs))
      )
      let reads = 0
      const counted = (view: Algebra): Algebra => ({
        ...view,
        stream: (...args) =>
          Stream.onStart(
            view.stream(...args),
            Effect.sync(() => void reads++)
          )
      })
      const source = yield* makeWorkspace({
        filesystem: fs,
        snapshots: Effect.succeed({ ...snapshots, view: (snapshot) => Effect.map(snapshots.view(snapshot), counted) }),
        journal: undefined,
        title: "",
        path: ""
      })
      const { snapshotId } = yield* snapshots.snapshot()
      const part = Effect.gen(function* () {
        const look = (yield* source.look(snapshotId))!
        const { part } = yield* Content.describePath(look.filesystem, path, { part: 1, tree: look.identity })
        return part!.total_lines
      })
      assert.strictEqual(yield* part, 2_000_000)
      for (let i = 0; i < 10; i++) {
        yield* fs.write("other", `${i}`)
        yield* source.look((yield* snapshots.snapshot()).snapshotId)
      }
      yield* source.reload
      assert.strictEqual(yield* part, 2_000_000)
      assert.strictEqual(reads, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("is indexed again after the file has changed", () =>
    Effect.gen(function* () {
      const fs = yield* holding("a\n".repeat(5_000_000))
      assert.strictEqual((yield* Content.describePath(fs, path)).part!.total_lines, 5_000_000)
      yield* fs.write(path, "more\n", { mode: "append" })
      assert.strictEqual((yield* Content.describePath(fs, path)).part!.total_lines, 5_000_001)
    })
  )
})
