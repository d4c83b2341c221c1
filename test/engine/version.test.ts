import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { createHash } from "node:crypto"
import { hashFile, ofBytes, ofHandle } from "../../src/engine/version.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { parse, type FsPath } from "../../src/model/FsPath.ts"
import type { Handle } from "../../src/port/Backend.ts"
import { hasher } from "../../src/runtime/hash.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)

/** Makes a handle on a file that returns at most `most` bytes a read. */
const handleOf = (content: Uint8Array, most: number, reads: Array<readonly [number, number]> = []): Handle => ({
  stat: { path: parse("a") as FsPath, kind: "file", isFile: true, isDirectory: false, sizeBytes: content.length },
  read: (offset, length) =>
    Effect.sync(() => {
      reads.push([offset, length])
      return content.slice(offset, offset + Math.min(length, most))
    })
})

const random = (size: number) => {
  const content = new Uint8Array(size)
  for (let i = 0, x = 1; i < size; i++) content[i] = x = (x * 48_271) % 2_147_483_647
  return content
}
const expected = (content: Uint8Array) => createHash("sha256").update(content).digest("hex")

describe("a version", () => {
  // The examples of FIPS 180-2, appendix B, and the empty message.
  it.each([
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ]
  ])("of %j is its SHA-256 in lower-case hex", (text, version) => {
    assert.strictEqual(ofBytes(utf8(text)), version)
  })

  it.effect("of an open file is the hash of its bytes, even if reads are short", () =>
    Effect.gen(function* () {
      const content = random(2_000_003)
      for (const most of [content.length, 65_536, 70_001]) {
        assert.strictEqual(yield* ofHandle(handleOf(content, most)), expected(content))
      }
      assert.strictEqual(yield* ofHandle(handleOf(new Uint8Array(0), 1)), expected(new Uint8Array(0)))
    })
  )

  it.effect("of a large file is computed from blocks of at most 1 MiB, and each byte is read once", () =>
    Effect.gen(function* () {
      const reads: Array<readonly [number, number]> = []
      yield* ofHandle(handleOf(random(3_000_000), 1 << 20, reads))
      let at = 0
      for (const [offset, length] of reads) {
        assert.strictEqual(offset, at)
        assert.isAtMost(length, 1 << 20)
        at += length
      }
      assert.strictEqual(at, 3_000_000)
    })
  )

  it.effect("is taken from the backend's handle if the handle provides it", () =>
    Effect.gen(function* () {
      const handle: Handle = { ...handleOf(utf8("abc"), 3), read: () => Effect.die("read"), version: Effect.succeed("kept") }
      assert.strictEqual(yield* ofHandle(handle), "kept")
    })
  )

  it.effect("of a file that became shorter is the hash of the remaining bytes", () =>
    Effect.gen(function* () {
      const handle = handleOf(utf8("abc"), 3)
      const longer: Handle = { ...handle, stat: { ...handle.stat, sizeBytes: 10 } }
      assert.strictEqual(yield* ofHandle(longer), expected(utf8("abc")))
    })
  )

  it.effect("fails with the fault of the failed read", () =>
    Effect.gen(function* () {
      const fault: Fault = { _tag: "IoError", code: "EIO", detail: "broken" }
      const handle: Handle = { ...handleOf(utf8("abc"), 3), read: () => Effect.fail(fault) }
      assert.deepStrictEqual(yield* Effect.flip(ofHandle(handle)), fault)
    })
  )

  it.effect("is computed again at each run of its effect", () =>
    Effect.gen(function* () {
      const version = ofHandle(handleOf(utf8("abc"), 2))
      assert.strictEqual(yield* version, expected(utf8("abc")))
      assert.strictEqual(yield* version, expected(utf8("abc")))
    })
  )

  it.effect("lets other fibers run while it is computed, and stops when it is interrupted", () =>
    Effect.gen(function* () {
      const block = new Uint8Array(1 << 20)
      let reads = 0
      const endless: Handle = {
        ...handleOf(block, 1),
        stat: { ...handleOf(block, 1).stat, sizeBytes: Number.MAX_SAFE_INTEGER },
        read: (_, length) =>
          Effect.sync(() => {
            reads++
            return block.subarray(0, length)
          })
      }
      const fiber = yield* Effect.forkChild(ofHandle(endless), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isAbove(reads, 0)
      assert.isBelow(reads, 100)
    })
  )
})

describe("a hasher", () => {
  it.effect("can continue after a digest, so that an append needs no second read", () =>
    Effect.gen(function* () {
      const old = random(1_500_000)
      const appended = utf8("and more")
      const hash = hasher()
      yield* hashFile(handleOf(old, 100_000), hash)
      assert.strictEqual(hash.digest(), expected(old))
      hash.update(appended)
      assert.strictEqual(hash.digest(), expected(Buffer.concat([old, appended])))
      assert.strictEqual(hash.digest(), hash.digest())
    })
  )
})
