/** Hostile and mistaken requests to a leaf. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { asked, asking, bytes, chunk, freshDirectory, host, id, many, quiet, read, started, stat, write } from "./leafBench.ts"

const kindOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)

const served = <A, E, R>(use: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const root = join(freshDirectory(), "root")
    Fs.mkdirSync(root)
    const serving = Effect.gen(function* () {
      const leaf = yield* started(yield* host(root), { extended: true })
      yield* use(root)
      // The next request is served.
      const { ask } = yield* asked
      assert.strictEqual(kindOf(yield* ask(stat("/"))), "FileMetadata")
      assert.strictEqual(yield* leaf.status, "Running")
      assert.deepStrictEqual(Fs.readdirSync(join(root, "..")), ["root"])
    })
    return Effect.provide(Effect.scoped(serving), Journal.layerFile({ path: join(freshDirectory(), "journal") }))
  })

describe("a leaf", () => {
  it.live("refuses paths of a million characters, also as target of a move", () =>
    served(() =>
      Effect.gen(function* () {
        const { ask } = yield* asked
        const [long, deep] = ["x".repeat(1_000_000), "a/".repeat(500_000) + "b"]
        for (const path of [long, deep]) {
          const move = new Entry.FileMove({ correlationId: id(), path: "f", to: path })
          for (const intent of [stat(path), write(path, "x"), chunk(id(), 0, "x", { path, isFinal: true }), move]) {
            assert.strictEqual(kindOf(yield* ask(intent)), "PathTooLong", intent._tag)
          }
        }
      })
    )
  )

  it.live(
    "refuses paths and links out of its root, and accepts names of object properties and an id of a million characters",
    () =>
      served((root) =>
        Effect.gen(function* () {
          const { ask } = yield* asked
          for (const path of ["../x", "a/../../x", "//x", "a\u0000", "a\ud800"]) {
            assert.strictEqual(kindOf(yield* ask(write(path, "x"))), "InvalidPath", path)
            const move = new Entry.FileMove({ correlationId: id(), path: "f", to: path })
            assert.strictEqual(kindOf(yield* ask(move)), "InvalidPath", path)
          }
          const out = new Entry.FileMakeLink({ correlationId: id(), path: "l", target: "../../x" })
          assert.strictEqual(kindOf(yield* ask(out)), "AccessDenied")
          for (const name of ["__proto__", "constructor", "hasOwnProperty"]) {
            const put = new Entry.FileWrite({ correlationId: name, path: name, content: bytes(name), createMode: "create" })
            assert.strictEqual(kindOf(yield* ask(put)), "FileWritten")
            assert.strictEqual(Fs.readFileSync(join(root, name), "utf8"), name)
          }
          const long = new Entry.FileStat({ correlationId: "i".repeat(1_000_000), path: "__proto__" })
          assert.strictEqual(kindOf(yield* ask(long)), "FileMetadata")
          const far = yield* ask(read("__proto__", { offset: 1e9, length: Number.MAX_SAFE_INTEGER }))
          assert.deepInclude(far, { _tag: "FileContent", content: new Uint8Array(0), totalSize: 9, isPartial: true })
        })
      )
  )

  it.live("writes nothing if the content of a request is missing or has another size", () =>
    served((root) =>
      Effect.gen(function* () {
        const journal = yield* Journal.Journal
        const { ask, append, answer } = asking(journal)
        const there = yield* journal.contents.put(many(5_000))
        const lies = [
          { sha256: "a".repeat(64), size: 1 },
          { ...there, size: 4_999 },
          { ...there, size: 5_001 },
          { ...there, size: 2 ** 50 }
        ]
        for (const content of lies) {
          const whole = new Entry.FileWrite({ correlationId: id(), path: "f", content, createMode: "overwrite" })
          assert.strictEqual(kindOf(yield* ask(whole)), "IoError")
          const parts = id()
          yield* append(chunk(parts, 0, "some", { path: "f" }))
          yield* append(new Entry.FileWriteChunk({ correlationId: parts, offset: 4, data: content, isFinal: true }))
          assert.strictEqual(kindOf(yield* answer(parts)), "IoError")
        }
        yield* quiet
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )
  )
})
