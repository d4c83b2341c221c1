import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { host, tree } from "../backends/posixHost.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import { read } from "../../src/history/zip/reader.ts"
import { fromBytes } from "../../src/history/zip/spool.ts"
import * as Limits from "../../src/model/Limits.ts"
import { build, type Ending, manifest } from "./zipBuilder.ts"
import { catalogue } from "./zipCatalogue.ts"

const planted = Effect.fnUntraced(function* (fs: Filesystem.Algebra) {
  yield* fs.write("kept/one.txt", "one")
  yield* fs.write("good.txt", "another")
  yield* fs.mkdir("empty")
  yield* fs.symlink("link", "kept/one.txt")
})

/** Lists everything that a caller can see. */
const seen = Effect.fnUntraced(function* (fs: Filesystem.Algebra) {
  const out: Array<unknown> = []
  for (const { kind, path } of yield* Stream.runCollect(fs.walk())) {
    const { mode, modifiedAt } = yield* fs.stat(path)
    const content = kind === "file" ? yield* fs.readString(path) : kind === "symlink" ? yield* fs.readLink(path) : undefined
    out.push([path, kind, mode, modifiedAt?.epochMilliseconds, content])
  }
  return out
})

describe("an import of a hostile archive", () => {
  it.effect("succeeds for the same archive without its defect", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const bytes = build([
        { name: "files/good.txt", content: "good", method: 8 },
        { name: "files/x", content: "abc" },
        manifest(2, 7)
      ])
      assert.strictEqual(yield* Archive.importBytesOf(fs, bytes), 2)
      assert.strictEqual(yield* fs.readString("x"), "abc")
    })
  )

  it.effect("says whether bytes follow the archive or its comment is truncated", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const messageFor = (ending: Ending) =>
        Effect.map(Effect.flip(Archive.importBytesOf(fs, build([manifest(0, 0)], ending))), ({ message }) => message)
      assert.include(yield* messageFor({ after: Buffer.from("x") }), "the archive has bytes after its end")
      assert.include(yield* messageFor({ commentLength: 100 }), "the comment at the end of the archive is truncated")
    })
  )

  for (const { bytes, reason, title } of catalogue) {
    it.effect(`is refused as ${reason} and changes nothing: ${title}`, () =>
      Effect.gen(function* () {
        const fs = Filesystem.make(yield* InMemory.make())
        yield* planted(fs)
        const before = yield* seen(fs)
        const error = yield* Effect.flip(Archive.importBytesOf(fs, bytes()))
        assert.instanceOf(error, Archive.ArchiveError)
        assert.strictEqual((error as Archive.ArchiveError).reason, reason, error.message)
        assert.deepStrictEqual(yield* seen(fs), before)
      })
    )
  }

  it.live("is refused in the same way from a stream and on a host, and changes nothing inside or outside the root", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { outside, port, root } = yield* host()
        Fs.writeFileSync(join(outside, "untouched"), "outside")
        const fs = Filesystem.make(port)
        yield* planted(fs)
        const before = yield* seen(fs)
        assert.isAtLeast(catalogue.length, 38)
        for (const { bytes, reason, title } of catalogue) {
          const all = bytes()
          const size = Math.max(1000, Math.ceil(all.length / 50))
          const pieces = Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.subarray(i * size, (i + 1) * size))
          const error = yield* Effect.flip(Archive.importZipOf(fs, Stream.fromIterable(pieces)))
          assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, reason, title)
          assert.deepStrictEqual(yield* seen(fs), before, title)
        }
        assert.deepStrictEqual(tree(outside), { untouched: "outside" })
        assert.deepStrictEqual(Fs.readdirSync(root).sort(), ["empty", "good.txt", "kept", "link"])
      })
    )
  )
})

describe("an import of an archive", () => {
  const small = (changes: Partial<Limits.LimitsShape>) =>
    Effect.provideService(Limits.Limits, { ...Limits.standard, ...changes })
  const refusal = (bytes: Uint8Array, changes: Partial<Limits.LimitsShape>) =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const exit = yield* Effect.result(Archive.importBytesOf(fs, bytes).pipe(small(changes)))
      return exit._tag === "Failure"
        ? exit.failure._tag === "ArchiveError"
          ? exit.failure.reason
          : exit.failure
        : exit.success
    })
  const three = () =>
    build([
      { name: "files/a/", mode: 0o40755 },
      { name: "files/a/b", content: "12345" },
      { name: "files/c", content: "67890" },
      manifest(2, 10)
    ])

  it.effect("accepts as many entries as maxArchiveEntries, not counting the manifest, and refuses one more", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* refusal(three(), { maxArchiveEntries: 3 }), 2)
      assert.strictEqual(yield* refusal(three(), { maxArchiveEntries: 2 }), "tooLarge")
    })
  )

  it.effect("accepts as many bytes as maxArchiveBytes, and refuses one more", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* refusal(three(), { maxArchiveBytes: 10 }), 2)
      assert.strictEqual(yield* refusal(three(), { maxArchiveBytes: 9 }), "tooLarge")
    })
  )

  it.effect("refuses paths that are too deep or too long", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* refusal(three(), { maxPathDepth: 2 }), 2)
      assert.strictEqual(yield* refusal(three(), { maxPathDepth: 1 }), "name")
      assert.strictEqual(yield* refusal(three(), { maxPathLength: 2 }), "name")
    })
  )

  it.effect("stops reading an endless stream", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const endless = Stream.forever(Stream.succeed(new Uint8Array(64 * 1024)))
      const error = yield* Effect.flip(
        Archive.importZipOf(fs, endless).pipe(small({ maxArchiveBytes: 1024 * 1024, maxArchiveEntries: 10 }))
      )
      assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "tooLarge")
    })
  )

  it.effect("ignores the entries outside files/", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const bytes = build([
        { name: "meta/", mode: 0o40755 },
        { name: "meta/note.txt", content: "not ours", method: 8 },
        { name: "files/a", content: "1" },
        manifest(1, 1)
      ])
      assert.strictEqual(yield* Archive.importBytesOf(fs, bytes), 1)
      assert.deepStrictEqual(
        (yield* seen(fs)).map((row) => (row as Array<unknown>)[0]),
        ["a"]
      )
    })
  )

  it.effect("keeps permission bits, but drops setuid, setgid and sticky bits and modes without a file type", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const bytes = build([
        { name: "files/s", content: "1", mode: 0o107750 },
        { name: "files/none", content: "1", mode: 0o600 },
        { name: "files/dos", content: "1", mode: 0o100600, host: 0 },
        manifest(3, 3)
      ])
      const { tree } = yield* read(fromBytes(bytes), { limits: Limits.standard, policy: undefined })
      const modes = [...tree.entries].map(([name, node]) => [name, node.kind === "file" ? node.mode : node.kind])
      assert.deepStrictEqual(modes, [
        ["s", 0o750],
        ["none", undefined],
        ["dos", undefined]
      ])
      yield* Archive.importBytesOf(fs, bytes)
      assert.strictEqual((yield* fs.stat("s")).mode, 0o750)
      assert.strictEqual((yield* fs.stat("none")).mode, 0o644)
      assert.strictEqual((yield* fs.stat("dos")).mode, 0o644)
    })
  )

  it.effect("accepts data descriptors of any form and names in CP437", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make())
      const crc = 0x83dcefb7 // of "1"
      const streamed = (name: string, signed: boolean, isWide: boolean) => ({
        name,
        content: "1",
        flags: 0x808,
        behind: Buffer.concat([
          signed ? Buffer.from([0x50, 0x4b, 7, 8]) : Buffer.alloc(0),
          Buffer.from([crc & 255, (crc >> 8) & 255, (crc >> 16) & 255, (crc >>> 24) & 255]),
          ...[1, 1].map((value) => Buffer.from(isWide ? [value, 0, 0, 0, 0, 0, 0, 0] : [value, 0, 0, 0]))
        ])
      })
      const bytes = build([
        streamed("files/a", true, false),
        streamed("files/b", false, false),
        streamed("files/c", true, true),
        streamed("files/d", false, true),
        { name: Buffer.from([...Buffer.from("files/"), 0x84, 0xe1]), content: "1", flags: 0 },
        manifest(5, 5)
      ])
      assert.strictEqual(yield* Archive.importBytesOf(fs, bytes), 5)
      assert.deepStrictEqual(
        (yield* seen(fs)).map((row) => (row as Array<unknown>)[0]),
        ["a", "b", "c", "d", "äß"]
      )
    })
  )
})
