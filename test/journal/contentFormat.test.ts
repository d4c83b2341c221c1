/** The journal in `golden` was written by version 0.1 before its contents became a `BlobStore`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Journal from "../../src/journal/Journal.ts"
import { inMemory } from "../scratch.ts"
import { sha256, write } from "./journalLaws.ts"

const golden = fileURLToPath(new URL("golden", import.meta.url))

const text = (n: number, size: number): Uint8Array =>
  new TextEncoder().encode(`line ${n}\n`.repeat(Math.ceil(size / 7))).slice(0, size)

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
        const ref = { sha256: sha256(streamed), size: streamed.length }
        const chunks = yield* Stream.runCollect(journal.contents.stream(ref))
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
