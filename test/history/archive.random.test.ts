import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Zlib from "node:zlib"
import { host } from "../backends/posixHost.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Files from "../../src/testing/Files.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { collisionKey } from "../../src/history/zip/names.ts"
import { noise, plantAwkward, type Shape, shapeOf, withoutModes } from "./archiveTrees.ts"

const memory = Effect.map(InMemory.make(), Filesystem.make)

/** Returns a generator of numbers that are the same for the same seed. */
const numbers = (seed: number) => {
  let state = seed >>> 0
  return (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const interesting = [0, 1, 0x7f, 0x80, 0xff, 0x50, 0x4b]

/** Damages an archive at random: flips bits, changes bytes and numbers, cuts, doubles or moves pieces, or truncates. */
const damaged = (good: Uint8Array, seed: number): Uint8Array => {
  const next = numbers(seed)
  let bytes = Buffer.from(good)
  const times = 1 + next(3)
  for (let i = 0; i < times && bytes.length > 0; i++) {
    const at = next(bytes.length)
    const length = 1 + next(Math.min(64, bytes.length - at))
    switch (next(7)) {
      case 0:
        bytes[at]! ^= 1 << next(8)
        break
      case 1:
        bytes[at] = interesting[next(interesting.length)]!
        break
      case 2:
        bytes = bytes.subarray(0, at)
        break
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
        break
      case 4:
        bytes = Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)])
        break
      case 5:
        if (at + 4 <= bytes.length) bytes.writeUInt32LE([0, 1, 0xffffffff, bytes.length, next(2 ** 32)][next(5)]!, at)
        break
      default:
        Buffer.from(bytes.subarray(at, at + length)).copy(bytes, next(bytes.length))
    }
  }
  return Uint8Array.from(bytes)
}

const small = Effect.tap(memory, (fs) =>
  Effect.gen(function* () {
    yield* fs.write("a/b.txt", "some text, some text, some text\n")
    yield* fs.write("a/empty", "")
    yield* fs.writeBytes("noise", noise(300))
    yield* fs.symlink("a/link", "b.txt")
    yield* fs.mkdir("nothing")
    yield* fs.setAttributes("noise", { mode: 0o755 })
  })
)

/** Removes modes, links and empty directories, which no checksum protects. */
const guarded = (shape: Shape): Shape =>
  Object.fromEntries(Object.entries(withoutModes(shape)).filter(([, [kind]]) => kind === "file"))

describe("a damaged archive", () => {
  const soak = process.env["FS_ALGEBRA_SOAK"] === undefined ? 1 : 20

  it.effect("is refused with an ArchiveError and keeps the old tree, or is imported with every file intact", () =>
    Effect.gen(function* () {
      const good = yield* Archive.exportBytesOf(yield* small)
      const whole = guarded(yield* shapeOf(yield* small))
      const outcomes = { refused: 0, taken: 0 }
      for (let seed = 1; seed <= 3000 * soak; seed++) {
        const fs = yield* memory
        yield* fs.write("old", "old")
        const result = yield* Effect.result(Archive.importBytesOf(fs, damaged(good, seed)))
        const shape = yield* shapeOf(fs)
        if (result._tag === "Failure") {
          outcomes.refused++
          assert.strictEqual(result.failure._tag, "ArchiveError", `seed ${seed}: ${String(result.failure)}`)
          assert.deepStrictEqual(Object.keys(shape), ["old"], `seed ${seed}`)
        } else {
          outcomes.taken++
          assert.deepStrictEqual(guarded(shape), whole, `seed ${seed}`)
        }
      }
      // Harmful damage must be detected. Some damage is harmless, such as a changed bit of a mode or a time.
      assert.isAbove(outcomes.refused, 2000)
      assert.isAbove(outcomes.taken, 10)
    })
  )

  it.effect("is refused at every truncated length", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      const good = yield* Archive.exportBytesOf(yield* small)
      for (let length = 0; length < good.length; length++) {
        const error = yield* Effect.flip(Archive.importBytesOf(fs, good.subarray(0, length)))
        assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "corrupt", `${length} bytes`)
      }
    })
  )

  it.effect("in tar format, with or without gzip, is refused or replaces the whole tree", () =>
    Effect.gen(function* () {
      const good = Buffer.concat(yield* Stream.runCollect(Archive.exportTarOf(yield* small)))
      const outcomes = { refused: 0, taken: 0 }
      for (let seed = 1; seed <= 1500 * soak; seed++) {
        const fs = yield* memory
        yield* fs.write("old", "old")
        const bytes = damaged(seed % 3 === 0 ? Zlib.gzipSync(good) : good, seed)
        const result = yield* Effect.result(Archive.importTarOf(fs, Stream.succeed(bytes)))
        const names = Object.keys(yield* shapeOf(fs))
        if (result._tag === "Failure") {
          outcomes.refused++
          assert.strictEqual(result.failure._tag, "ArchiveError", `seed ${seed}: ${String(result.failure)}`)
          assert.deepStrictEqual(names, ["old"], `seed ${seed}`)
        } else {
          outcomes.taken++
          assert.notInclude(names, "old", `seed ${seed}`)
        }
      }
      assert.isAbove(outcomes.refused, 500)
      assert.isAbove(outcomes.taken, 10)
    })
  )

  it.effect("in tar format is refused when it is truncated anywhere before its end mark", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      const good = Buffer.concat(yield* Stream.runCollect(Archive.exportTarOf(yield* small)))
      for (let length = 0; length < good.length - 512; length += length % 512 === 510 ? 1 : length % 512 === 511 ? 2 : 85) {
        const bytes = Uint8Array.from(good.subarray(0, Math.min(length, good.length - 513)))
        const error = yield* Effect.flip(Archive.importTarOf(fs, Stream.succeed(bytes)))
        assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "corrupt", `${length} bytes`)
      }
      for (let length = 0; length < good.length; length += 512) {
        const bytes = Uint8Array.from(good.subarray(0, length))
        const error = yield* Effect.flip(Archive.importTarOf(fs, Stream.succeed(bytes)))
        assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "corrupt", `${length} bytes`)
      }
    })
  )
})

describe.runIf(process.env["FS_ALGEBRA_SOAK"] !== undefined)("a file of 300 MiB", () => {
  it.live("is exported and imported with less than 150 MiB of additional memory", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { outside, port, root } = yield* host()
        const fs = Filesystem.make(port)
        const path = join(outside, "large.zip")
        for (const content of [noise(1024 * 1024), new Uint8Array(1024 * 1024)]) {
          const file = Fs.openSync(join(root, "large"), "w")
          for (let i = 0; i < 300; i++) Fs.writeSync(file, content)
          Fs.closeSync(file)
          yield* Archive.exportArchiveOf(yield* small, path)
          yield* Archive.importArchiveOf(yield* memory, path)
          let most = 0
          const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 10)
          const before = process.memoryUsage().rss
          yield* Archive.exportArchiveOf(fs, path)
          yield* fs.write("large", "changed")
          yield* Archive.importArchiveOf(fs, path)
          clearInterval(watch)
          assert.strictEqual((yield* fs.stat("large")).sizeBytes, 300 * 1024 * 1024)
          assert.isBelow(most - before, 150 * 1024 * 1024)
        }
      })
    )
  )
})

const Named = Arbitrary.array(
  Arbitrary.all([
    Arbitrary.array(Arbitraries.name, { minLength: 1, maxLength: 3 }),
    Arbitraries.text,
    Arbitrary.schema(Schema.Int)
  ]),
  { maxLength: 8 }
)

/** Creates entries with names of any script. Skips an entry that cannot exist next to the others. */
const plantNamed = Effect.fnUntraced(function* (
  fs: Filesystem.Algebra,
  entries: typeof Named extends Arbitrary.Arbitrary<infer A> ? A : never
) {
  for (const [segments, text, number] of entries) {
    const path = segments.join("/")
    yield* Effect.ignore(number % 3 === 0 ? fs.mkdir(path) : fs.write(path, text))
    if (number % 5 === 0) yield* Effect.ignore(fs.setAttributes(path, { mode: 0o700 }))
  }
})

/** Removes the skipped entries and everything below them from a shape. */
const without = (shape: Shape, skipped: ReadonlyArray<Archive.SkippedEntry>): Shape =>
  Object.fromEntries(
    Object.entries(shape).filter(([path]) => !skipped.some((odd) => path === odd.path || path.startsWith(`${odd.path}/`)))
  )

const formats = [
  ["ZIP", Archive.exportZipOf, Archive.importZipOf],
  ["tar", Archive.exportTarOf, Archive.importTarOf]
] as const

describe("any tree", () => {
  for (const [format, out, back] of formats) {
    it.effect.prop(
      `is restored from ${format} without the skipped entries, and is exported whole or not at all with strict`,
      { entries: Named, files: Arbitraries.files },
      ({ entries, files }) =>
        Effect.gen(function* () {
          const fs = yield* memory
          yield* Files.plant(fs.port, files)
          yield* plantNamed(fs, entries)
          const whole = yield* shapeOf(fs)
          const skipped: Array<Archive.SkippedEntry> = []
          const copy = yield* memory
          yield* copy.write("old/file", "x")
          yield* back(copy, out(fs, { onSkipped: (entry) => void skipped.push(entry) }))
          const rest = without(whole, skipped)
          assert.deepStrictEqual(yield* shapeOf(copy), rest)
          for (const { path, reason } of skipped) {
            if (reason === "link") assert.strictEqual(whole[path]?.[0], "symlink", path)
            else {
              assert.strictEqual(reason, "duplicate", path)
              assert.include(Object.keys(rest).map(collisionKey), collisionKey(path))
            }
          }
          const other = yield* memory
          yield* other.write("old/file", "x")
          const strict = yield* Effect.result(back(other, out(fs, { strict: true })))
          if (skipped.length === 0) {
            assert.isTrue(Result.isSuccess(strict))
            assert.deepStrictEqual(yield* shapeOf(other), whole)
          } else {
            const reason = Result.isFailure(strict) && strict.failure._tag === "ArchiveError" ? strict.failure.reason : strict
            assert.include(
              skipped.map((entry) => entry.reason),
              reason
            )
            assert.deepStrictEqual(Object.keys(yield* shapeOf(other)), ["old", "old/file"])
          }
        }),
      { arbitrary: { runs: 100 } }
    )
  }

  it.live("is unchanged after a round trip from memory to a host and back", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { port } = yield* host()
        const disk = Filesystem.make(port)
        const awkward = yield* memory
        yield* plantAwkward(awkward)
        const next = numbers(7)
        for (let i = 0; i < 20; i++) {
          const fs = yield* memory
          for (let j = 0; j < 12; j++) {
            const path = Array.from({ length: 1 + next(3) }, () => "abc"[next(3)]!).join("/")
            yield* Effect.ignore(next(4) === 0 ? fs.symlink(path, "a") : fs.writeBytes(path, noise(next(3000))))
          }
          const [, out, back] = formats[i % 2]!
          const from = i % 5 === 4 ? awkward : fs
          yield* back(disk, out(from))
          const copy = yield* memory
          yield* back(copy, out(disk))
          assert.deepStrictEqual(yield* shapeOf(copy), yield* shapeOf(from))
          assert.deepStrictEqual(yield* shapeOf(disk), yield* shapeOf(from))
        }
      })
    )
  )
})
