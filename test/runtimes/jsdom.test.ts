// @vitest-environment jsdom
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import { directory } from "../backends/posixHost.ts"
import { expected } from "./expected.ts"
import { conformance, features } from "./kit.ts"

describe("the library in tests with a simulated browser", () => {
  it("runs in a realm with a document", () => {
    assert.strictEqual(typeof (globalThis as any).document.createElement, "function")
  })

  it("keeps every law in memory", { timeout: 400_000 }, async () => {
    const { broken, held } = await conformance({ programs: 20, hasThreads: false })
    assert.deepStrictEqual(broken, [])
    assert.isAbove(held, 800)
  })

  it("makes archives, overlays, mounts, snapshots and tools", async () => {
    assert.deepStrictEqual(await features(), expected)
  })

  it.live("writes, reads, searches and archives a directory on the host", () =>
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("a/text.txt", "hello\n")
        yield* fs.writeBytes("a/bytes.bin", new TextEncoder().encode("hello, bytes\n"))
        yield* Stream.run(Stream.make(new TextEncoder().encode("streamed\n")), fs.sink("a/stream.txt"))
        assert.strictEqual(yield* fs.readString("a/text.txt"), "hello\n")
        assert.deepStrictEqual(
          (yield* fs.glob("**/*.txt")).matches.map(({ path }) => path),
          ["a/stream.txt", "a/text.txt"]
        )
        assert.deepStrictEqual(
          (yield* fs.grep("(h|x)el+o")).matches.map(({ path }) => path),
          ["a/bytes.bin", "a/text.txt"]
        )
        const zipped = yield* Archive.exportBytesOf(fs)
        yield* fs.delete("a", { recursive: true })
        assert.strictEqual(yield* Archive.importBytesOf(fs, zipped), 3)
      }).pipe(Effect.provide(PosixHost.layer({ root })))
    })
  )
})
