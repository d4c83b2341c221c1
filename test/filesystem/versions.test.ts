/** The types of versions and preconditions. `tsc` checks the lines that expect an error. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import { make } from "../../src/filesystem/Filesystem.ts"

describe("a version", () => {
  it.effect("is a string if it was requested, and can guard the next call", () =>
    Effect.gen(function* () {
      const fs = make(yield* InMemory.make({ tree: { a: "old" } }))
      const page = yield* fs.read("a", { version: true })
      const written = yield* fs.write("a", "new", { ifMatch: page.version, version: true })
      const edited = yield* fs.edit("a", { oldText: "new", newText: "newer" }, { ifMatch: written.version, version: true })
      const poured = yield* Stream.run(Stream.make(new Uint8Array(1)), fs.sink("a", { ifMatch: edited.version, version: true }))
      const bytes = yield* fs.readBytes("a", { version: true })
      const versions: ReadonlyArray<string> = [poured.version, bytes.version]
      assert.strictEqual(versions[0], versions[1])
      yield* fs.delete("a", { ifMatch: bytes.version })
      assert.isFalse(yield* fs.exists("a"))
    })
  )

  it.effect("is missing from the type if it was not requested, and an absent version is rejected as precondition", () =>
    Effect.gen(function* () {
      const fs = make(yield* InMemory.make({ tree: { a: "old" } }))
      const page = yield* fs.read("a")
      // @ts-expect-error: there is no version without `version: true`
      const forgotten = fs.write("a", "new", { ifMatch: page.version })
      assert.strictEqual((yield* Effect.flip(forgotten))._tag, "InvalidArgument")
      const asks: boolean = page.totalLines > 1
      const perhaps = yield* fs.read("a", { version: asks })
      // @ts-expect-error: the version may be absent
      const unguarded = fs.delete("a", { ifMatch: perhaps.version })
      assert.strictEqual((yield* Effect.flip(unguarded))._tag, "InvalidArgument")
      // @ts-expect-error: undefined is no precondition
      const nothing = fs.edit("a", { oldText: "old", newText: "new" }, { ifMatch: undefined })
      assert.strictEqual((yield* Effect.flip(nothing))._tag, "InvalidArgument")
      assert.strictEqual(yield* fs.readString("a"), "old")
    })
  )
})
