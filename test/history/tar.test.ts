import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import * as Zlib from "node:zlib"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Limits from "../../src/model/Limits.ts"
import { plantAwkward, shapeOf } from "./archiveTrees.ts"

interface Part {
  readonly name: string | Uint8Array
  readonly type?: string
  readonly content?: string | Uint8Array
  readonly link?: string | Uint8Array
  readonly mode?: number
  readonly size?: number
}

const bytesOf = (text: string | Uint8Array): Buffer => (typeof text === "string" ? Buffer.from(text) : Buffer.from(text))

/** Returns one entry after POSIX.1-1988 (ustar), byte by byte. */
const entry = ({ content = "", link = "", mode = 0o644, name, size, type = "0" }: Part): Buffer => {
  const data = bytesOf(content)
  const block = Buffer.alloc(512)
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1")
  bytesOf(name).copy(block, 0, 0, 100)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size ?? data.length, 124, 12)
  octal(0, 136, 12)
  block.write("        ", 148, "latin1")
  block.write(type, 156, "latin1")
  bytesOf(link).copy(block, 157, 0, 100)
  block.write("ustar\x0000", 257, "latin1")
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7
  )
  return Buffer.concat([block, data, Buffer.alloc((512 - (data.length % 512)) % 512)])
}

const end = Buffer.alloc(1024)

const tar = (...parts: ReadonlyArray<Part>): Uint8Array => Uint8Array.from(Buffer.concat([...parts.map(entry), end]))

const good: Part = { name: "good", content: "good" }

const memory = Effect.map(InMemory.make(), Filesystem.make)

const outcome = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const fs = yield* memory
  yield* fs.write("old", "old")
  const result = yield* Effect.result(Archive.importTarOf(fs, Stream.succeed(bytes)))
  if (result._tag === "Success") return { files: result.success, shape: yield* shapeOf(fs), fs }
  assert.deepStrictEqual(Object.keys(yield* shapeOf(fs)), ["old"])
  return result.failure._tag === "ArchiveError" ? result.failure.reason : result.failure
})

const limited = (changes: Partial<Limits.LimitsShape>) =>
  Effect.provideService(Limits.Limits, { ...Limits.standard, ...changes })

const refused: ReadonlyArray<readonly [title: string, reason: string, bytes: Uint8Array]> = [
  ...[
    "../evil",
    "a/../../evil",
    "a/../b",
    "/etc/evil",
    "//x",
    "C:/evil",
    "a\\b",
    "..\\evil",
    "a\nb",
    "a//b",
    "a/./b",
    ".//x"
  ].map((name) => [`the name ${JSON.stringify(name)}`, "name", tar(good, { name, content: "x" })] as const),
  ["a directory above the root", "name", tar(good, { name: "../", type: "5" })],
  ["a directory that is the root of the machine", "name", tar(good, { name: "/", type: "5" })],
  ["a name that is not UTF-8", "name", tar(good, { name: Buffer.from([0x61, 0xff]), content: "x" })],
  ["the same name twice", "duplicate", tar(good, good)],
  ["the same name twice, once with ./", "duplicate", tar(good, { name: "./good", content: "x" })],
  ["names that differ in case", "duplicate", tar(good, { name: "GOOD", content: "x" })],
  ["names that differ in Unicode normalization", "duplicate", tar({ name: "\u00e9" }, { name: "e\u0301" })],
  ["a file below a file", "duplicate", tar(good, { name: "good/x", content: "x" })],
  ["a file below a link", "duplicate", tar({ name: "l", type: "2", link: "d" }, { name: "l/x", content: "x" })],
  ["a link out of the root", "link", tar(good, { name: "l", type: "2", link: "../x" })],
  ["an absolute link", "link", tar(good, { name: "l", type: "2", link: "/etc/passwd" })],
  ["a link with an empty target", "link", tar(good, { name: "l", type: "2", link: "" })],
  ["a link that is not UTF-8", "link", tar(good, { name: "l", type: "2", link: Buffer.from([0xff]) })],
  ["a hard link to a missing entry", "link", tar(good, { name: "h", type: "1", link: "missing" })],
  ["a hard link to a later entry", "link", tar({ name: "h", type: "1", link: "good" }, good)],
  ["a hard link to a directory", "link", tar({ name: "d/", type: "5" }, { name: "h", type: "1", link: "d" })],
  ["a hard link to a symlink", "link", tar({ name: "l", type: "2", link: "x" }, { name: "h", type: "1", link: "l" })],
  ["a hard link to a file outside of the root", "name", tar(good, { name: "h", type: "1", link: "/etc/passwd" })],
  ["a character device", "unsupported", tar(good, { name: "x", type: "3" })],
  ["a block device", "unsupported", tar(good, { name: "x", type: "4" })],
  ["a FIFO", "unsupported", tar(good, { name: "x", type: "6" })],
  ["a sparse file", "unsupported", tar(good, { name: "x", type: "S" })],
  ["a volume label", "unsupported", tar(good, { name: "x", type: "V" })],
  ["a damaged header", "corrupt", tar(good).map((byte, i) => (i === 5 ? byte ^ 1 : byte))],
  ["a file that is longer than the archive", "corrupt", tar({ name: "x", content: "abc", size: 1_000_000 })],
  [
    "a file without its last block",
    "corrupt",
    Uint8Array.from(entry({ name: "x", content: "x".repeat(1024) }).subarray(0, 1024))
  ],
  ["no end mark", "corrupt", Uint8Array.from(entry(good))],
  ["half of the end mark", "corrupt", Uint8Array.from(Buffer.concat([entry(good), Buffer.alloc(512)]))],
  [
    "a long name at its end, without an entry",
    "corrupt",
    Uint8Array.from(Buffer.concat([entry({ name: "x", type: "L", content: "long" })]))
  ],
  ["nothing", "corrupt", new Uint8Array(0)],
  ["one byte", "corrupt", Uint8Array.from([0x1f])],
  ["text", "corrupt", Uint8Array.from(Buffer.from("text ".repeat(500)))],
  ["truncated gzip data", "corrupt", Uint8Array.from(Zlib.gzipSync(tar(good)).subarray(0, -9))],
  ["gzip data of a text", "corrupt", Uint8Array.from(Zlib.gzipSync("text ".repeat(500)))],
  ["damaged gzip data", "corrupt", Uint8Array.from(Zlib.gzipSync(tar(good)).map((byte, i) => (i === 30 ? byte ^ 0xff : byte)))]
]

describe("a tar archive", () => {
  it.effect("with ./ before its names is imported without the mode of its root", () =>
    Effect.gen(function* () {
      const found = yield* outcome(
        tar(
          { name: "./", type: "5", mode: 0o700 },
          { name: "./d/", type: "5", mode: 0o750 },
          { name: "./d/x", content: "1", mode: 0o104755 }
        )
      )
      assert.deepStrictEqual(
        typeof found === "object" &&
          "shape" in found &&
          Object.entries(found.shape).map(([path, [kind, mode]]) => [path, kind, mode]),
        [
          ["d", "directory", 0o750],
          ["d/x", "file", 0o755]
        ]
      )
    })
  )

  it.effect("without entries makes an empty tree", () =>
    Effect.gen(function* () {
      const found = yield* outcome(tar())
      assert.deepStrictEqual("shape" in (found as object) && (found as { shape: object }).shape, {})
    })
  )

  it.effect("compressed with gzip is imported from chunks of any size", () =>
    Effect.gen(function* () {
      const bytes = Uint8Array.from(Zlib.gzipSync(tar(good, { name: "zeros", content: new Uint8Array(3_000_000) })))
      for (const size of [1, 2, 100, 100_000]) {
        const fs = yield* memory
        const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
          bytes.subarray(i * size, (i + 1) * size)
        )
        assert.strictEqual(yield* Archive.importTarOf(fs, Stream.fromIterable(pieces)), 2)
        assert.strictEqual((yield* fs.stat("zeros")).sizeBytes, 3_000_000)
      }
    })
  )

  it.effect("is imported with separate files for its hard links", () =>
    Effect.gen(function* () {
      const found = yield* outcome(tar({ name: "./a", content: "same", mode: 0o600 }, { name: "./b", type: "1", link: "./a" }))
      if (!("shape" in (found as object))) return assert.fail(String(found))
      const { files, fs, shape } = found as { files: number; fs: Filesystem.Algebra; shape: Record<string, unknown> }
      assert.strictEqual(files, 2)
      assert.deepStrictEqual(shape["b"], shape["a"])
      yield* fs.write("b", "other")
      assert.strictEqual(yield* fs.readString("a"), "same")
    })
  )

  for (const [title, reason, bytes] of refused) {
    it.effect(`with ${title} is refused as ${reason}, and nothing changes`, () =>
      Effect.map(outcome(bytes), (found) => assert.strictEqual<unknown>(found, reason))
    )
  }

  it.effect("may reach the limits but not exceed them, and hard links count as files", () =>
    Effect.gen(function* () {
      const bytes = tar({ name: "abcd", content: "12345" }, { name: "b", type: "1", link: "abcd" }, { name: "d/", type: "5" })
      const at = (changes: Partial<Limits.LimitsShape>) =>
        Effect.map(outcome(bytes).pipe(limited(changes)), (found) => (typeof found === "string" ? found : "taken"))
      assert.strictEqual(yield* at({ maxArchiveEntries: 3, maxArchiveBytes: 10 }), "taken")
      assert.strictEqual(yield* at({ maxArchiveEntries: 2 }), "tooLarge")
      assert.strictEqual(yield* at({ maxArchiveBytes: 9 }), "tooLarge")
      assert.strictEqual(yield* at({ maxSegmentLength: 3 }), "name")
    })
  )

  it.effect("is refused as soon as its uncompressed size exceeds the limit", () =>
    Effect.gen(function* () {
      const bomb = Uint8Array.from(Zlib.gzipSync(tar({ name: "zeros", content: new Uint8Array(64 * 1024 * 1024) })))
      assert.isBelow(bomb.length, 100_000)
      assert.strictEqual(yield* outcome(bomb).pipe(limited({ maxArchiveBytes: 1024 * 1024 })), "tooLarge")
      const padding = Uint8Array.from(Zlib.gzipSync(Buffer.concat([tar(good), Buffer.alloc(64 * 1024 * 1024)])))
      assert.strictEqual(
        yield* outcome(padding).pipe(limited({ maxArchiveBytes: 1024 * 1024, maxArchiveEntries: 10 })),
        "tooLarge"
      )
    })
  )

  it.effect("has the same bytes for the same tree at the same time", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* plantAwkward(fs)
      const bytes = Effect.map(Stream.runCollect(Archive.exportTarOf(fs)), (parts) => Buffer.concat(parts))
      const first = yield* bytes
      assert.deepStrictEqual(yield* bytes, first)
      yield* TestClock.adjust("1 second")
      assert.notDeepEqual(yield* bytes, first)
    })
  )

  it.effect("is refused at import and at a strict export for a name with U+FFFD, which a ZIP archive may have", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* fs.write("a\ufffd", "x")
      const error = yield* Effect.flip(Stream.runDrain(Archive.exportTarOf(fs, { strict: true })))
      assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "name")
      assert.strictEqual(yield* outcome(tar({ name: "a\ufffd", content: "x" })), "name")
      const copy = yield* memory
      assert.strictEqual(yield* Archive.importZipOf(copy, Archive.exportZipOf(fs)), 1)
    })
  )
})
