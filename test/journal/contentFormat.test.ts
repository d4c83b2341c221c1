/** The layout of the contents of a journal file. An earlier version of the library wrote the journal in `golden`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as ContentStore from "../../src/journal/ContentStore.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { StoreError } from "../../src/repository/BlobStore.ts"
import { makeBlobs } from "../repository/stores.ts"
import { inMemory } from "../scratch.ts"
import { sha256, write } from "./journalLaws.ts"

const golden = fileURLToPath(new URL("golden", import.meta.url))

const text = (n: number, size: number): Uint8Array =>
  new TextEncoder().encode(`line ${n}\n`.repeat(Math.ceil(size / 7))).slice(0, size)

const refOf = (bytes: Uint8Array) => ({ sha256: sha256(bytes), size: bytes.length })

const copied = (): string => {
  const directory = Fs.mkdtempSync(join(inMemory(), "golden-"))
  Fs.cpSync(golden, directory, { recursive: true })
  return join(directory, "contents.journal")
}

const filesOf = (directory: string): ReadonlyArray<string> =>
  Fs.readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => Fs.statSync(join(directory, name)).isFile())
    .sort()

const sizes = [10, 4_096, 4_097, 70_000]

describe("a journal file whose contents are in a store of blobs", () => {
  it.live("reads and verifies the contents in this store, and has no directory of contents", () =>
    Effect.gen(function* () {
      const path = join(Fs.mkdtempSync(join(inMemory(), "elsewhere-")), "journal")
      const blobs = makeBlobs()
      const contents = ContentStore.make(blobs)
      const written = Effect.gen(function* () {
        const journal = yield* Journal.makeFile(Journal.Entry, { path, contents })
        for (const n of [1, 2, 3]) yield* journal.append(write(`w${n}`, text(n, 5_000)))
      })
      yield* Effect.scoped(written)
      assert.isFalse(Fs.existsSync(`${path}.contents`))
      assert.strictEqual(blobs.all.size, 3)
      const reader = yield* Journal.makeFile(Journal.Entry, { path, contents, readOnly: true })
      assert.deepStrictEqual(yield* reader.contents.get(refOf(text(1, 5_000))), text(1, 5_000))
      assert.strictEqual((yield* Effect.flip(reader.contents.put(text(9, 9)))).reason, "readOnly")
      const [first, second] = [1, 2].map((n) => sha256(text(n, 5_000)))
      blobs.all.delete(first!)
      blobs.all.set(second!, { ...blobs.all.get(second!)!, bytes: text(3, 5_000) })
      assert.deepStrictEqual((yield* Journal.verify(path, { contents })).contents, { referenced: 3, missing: 1, damaged: 1 })
      assert.strictEqual((yield* Effect.flip(contents.get(refOf(text(2, 5_000))))).reason, "corrupt")
    }).pipe(Effect.scoped)
  )

  it.live("fails with the detail of the store, and appends no entry whose content is not stored", () =>
    Effect.gen(function* () {
      const path = join(Fs.mkdtempSync(join(inMemory(), "full-")), "journal")
      for (const [reason, expected] of [
        ["full", "io"],
        ["unavailable", "unavailable"]
      ] as const) {
        const contents = ContentStore.make({
          ...makeBlobs(),
          put: () => Effect.fail(new StoreError({ reason, detail: "of the store" }))
        })
        const journal = yield* Journal.makeFile(Journal.Entry, { path: `${path}-${reason}`, contents })
        const error = yield* Effect.flip(journal.append(write("w", text(1, 5_000))))
        assert.deepStrictEqual([error.reason, error.detail], [expected, "of the store"])
        assert.strictEqual(yield* journal.last, 0)
      }
    }).pipe(Effect.scoped)
  )
})

describe("a journal file with contents of an earlier version", () => {
  it.live("is intact, and each content is read whole and in chunks", () =>
    Effect.gen(function* () {
      const path = copied()
      const { chained, contents, entries, torn } = yield* Journal.verify(path)
      assert.deepStrictEqual(
        { chained, contents, entries, torn },
        { chained: true, contents: { referenced: 2, missing: 0, damaged: 0 }, entries: 4, torn: false }
      )
      for (const readOnly of [true, false]) {
        const journal = yield* Journal.makeFile(Journal.Entry, { path, readOnly })
        const found = yield* Stream.runCollect(journal.stored())
        for (const [n, { entry }] of found.entries()) {
          assert.strictEqual(entry._tag, "FileWrite")
          if (entry._tag === "FileWrite") assert.deepStrictEqual(yield* journal.bytes(entry.content), text(n, sizes[n]!))
        }
        assert.strictEqual(found.length, sizes.length)
        const streamed = new Uint8Array(Buffer.concat([text(9, 100_000), text(8, 5_000)]))
        const chunks = yield* Stream.runCollect(journal.contents.stream(refOf(streamed)))
        assert.deepStrictEqual(new Uint8Array(Buffer.concat(chunks)), streamed)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is continued in the same layout, and keeps each content once", () =>
    Effect.gen(function* () {
      const path = copied()
      const before = filesOf(`${path}.contents`)
      const journal = yield* Journal.makeFile(Journal.Entry, { path })
      yield* journal.append(write("again", text(3, 70_000)))
      assert.deepStrictEqual(filesOf(`${path}.contents`), before)
      yield* journal.append(write("new", text(4, 70_000)))
      const hash = sha256(text(4, 70_000))
      assert.deepStrictEqual(filesOf(`${path}.contents`), [...before, `${hash.slice(0, 2)}/${hash.slice(2)}`].sort())
      assert.deepStrictEqual((yield* Journal.verify(path)).contents, { referenced: 3, missing: 0, damaged: 0 })
    }).pipe(Effect.scoped)
  )
})
