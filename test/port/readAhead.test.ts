import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { stat as makeStat } from "../../src/model/Entry.ts"
import { ioError } from "../../src/model/Fault.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Handle } from "../../src/port/Backend.ts"
import { readAhead } from "../../src/port/readAhead.ts"

const block = 64 * 1024
const size = 20 * block + 100
const content = Uint8Array.from({ length: size }, (_, at) => (at >> 8) & 255)

interface Asked {
  readonly offset: number
  readonly length: number
  readonly done: Deferred.Deferred<Uint8Array, Fault>
  isInterrupted: boolean
}

/** A handle whose reads end when the test says so. */
const held = () => {
  const asked: Array<Asked> = []
  const handle: Handle = {
    stat: makeStat({ path: "a" as FsPath, kind: "file", sizeBytes: size }),
    read: (offset, length) =>
      Effect.suspend(() => {
        const one: Asked = { offset, length, done: Deferred.makeUnsafe(), isInterrupted: false }
        asked.push(one)
        return Effect.onInterrupt(Deferred.await(one.done), () => Effect.sync(() => void (one.isInterrupted = true)))
      })
  }
  const answer = ({ done, length, offset }: Asked) =>
    Deferred.doneUnsafe(done, Effect.succeed(content.slice(offset, offset + length)))
  return { handle, asked, answer }
}

const immediate = (read: Handle["read"]): Handle => ({ ...held().handle, read })
const slice: Handle["read"] = (offset, length) => Effect.sync(() => content.slice(offset, Math.min(size, offset + length)))

/** Reads the file from its start, and answers each request at once. */
const readBlocks = (handle: Handle, count: number, { answer, asked }: ReturnType<typeof held>) =>
  Effect.gen(function* () {
    for (let nth = 0; nth < count; nth++) {
      const fiber = yield* Effect.forkChild(handle.read(nth * block, block), { startImmediately: true })
      answer(asked.find(({ offset }) => offset === nth * block)!)
      assert.deepStrictEqual(yield* Fiber.join(fiber), content.slice(nth * block, (nth + 1) * block))
    }
  })

describe("readAhead", () => {
  it.effect("asks for nothing beyond the first read", () =>
    Effect.gen(function* () {
      const file = held()
      yield* readBlocks(yield* readAhead(file.handle, 8 * block), 1, file)
      assert.strictEqual(file.asked.length, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("asks for blocks in order, and for no more than the limit while the reader does not read", () =>
    Effect.gen(function* () {
      const file = held()
      const handle = yield* readAhead(file.handle, 8 * block)
      yield* readBlocks(handle, 5, file)
      assert.deepStrictEqual(
        file.asked.map(({ offset }) => offset / block),
        Array.from({ length: 12 }, (_, nth) => nth)
      )
      yield* Effect.yieldNow
      assert.strictEqual(file.asked.length, 12)
    }).pipe(Effect.scoped)
  )

  it.effect("asks for nothing beyond the end of the file", () =>
    Effect.gen(function* () {
      const asked: Array<number> = []
      const handle = yield* readAhead(
        immediate((offset, length) => {
          asked.push(offset + length)
          return slice(offset, length)
        }),
        8 * block
      )
      const parts: Array<Uint8Array> = []
      for (let at = 0; at < size; at += block) parts.push(yield* handle.read(at, Math.min(block, size - at)))
      assert.deepStrictEqual(Buffer.concat(parts), Buffer.from(content))
      assert.strictEqual(Math.max(...asked), size)
      assert.strictEqual(asked.length, 21)
    }).pipe(Effect.scoped)
  )

  it.effect("gives the bytes of each offset, however the reader jumps and however short the answers are", () =>
    Effect.gen(function* () {
      let calls = 0
      const handle = yield* readAhead(
        immediate((offset, length) => slice(offset, ++calls % 3 === 0 ? Math.ceil(length / 2) : length)),
        8 * block
      )
      const offsets = [0, 1, 2, 3, 9, 10, 11, 4, 5, 6, 7, 5, 6, 7, 8, 20, 0, 1].map((nth) => nth * block)
      for (const offset of offsets) {
        for (let at = offset; at < Math.min(size, offset + 3 * block);) {
          const bytes = yield* handle.read(at, block)
          assert.isAbove(bytes.length, 0)
          assert.deepStrictEqual(bytes, content.slice(at, at + bytes.length))
          at += bytes.length
        }
      }
    }).pipe(Effect.scoped)
  )

  it.effect("interrupts the requests for blocks that the reader jumps over", () =>
    Effect.gen(function* () {
      const file = held()
      const handle = yield* readAhead(file.handle, 8 * block)
      yield* readBlocks(handle, 3, file)
      const pending = file.asked.slice(3)
      assert.isAbove(pending.length, 0)
      yield* Effect.forkChild(handle.read(18 * block, block), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isTrue(pending.every(({ isInterrupted }) => isInterrupted))
    }).pipe(Effect.scoped)
  )

  it.effect("interrupts all requests if the reader is interrupted, and can be read again", () =>
    Effect.gen(function* () {
      const file = held()
      const handle = yield* readAhead(file.handle, 8 * block)
      yield* readBlocks(handle, 3, file)
      const reader = yield* Effect.forkChild(handle.read(3 * block, block), { startImmediately: true })
      yield* Fiber.interrupt(reader)
      assert.isTrue(file.asked.slice(3).every(({ isInterrupted }) => isInterrupted))
      const again = yield* Effect.forkChild(handle.read(3 * block, block), { startImmediately: true })
      file.answer(file.asked.at(-1)!)
      assert.deepStrictEqual(yield* Fiber.join(again), content.slice(3 * block, 4 * block))
    }).pipe(Effect.scoped)
  )

  it.effect("interrupts all requests when the scope closes", () =>
    Effect.gen(function* () {
      const file = held()
      const scope = yield* Scope.make()
      const handle = yield* Scope.provide(readAhead(file.handle, 8 * block), scope)
      yield* readBlocks(handle, 3, file)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(file.asked.slice(3).every(({ isInterrupted }) => isInterrupted))
    })
  )

  it.effect("fails the read of the block that has failed, and no earlier one", () =>
    Effect.gen(function* () {
      const fault = ioError("broken", "EIO")
      let isBroken = true
      const handle = yield* readAhead(
        immediate((offset, length) => (isBroken && offset === 4 * block ? Effect.fail(fault) : slice(offset, length))),
        8 * block
      )
      for (const nth of [0, 1, 2, 3]) yield* handle.read(nth * block, block)
      assert.strictEqual(yield* Effect.flip(handle.read(4 * block, block)), fault)
      isBroken = false
      assert.deepStrictEqual(yield* handle.read(4 * block, block), content.slice(4 * block, 5 * block))
    }).pipe(Effect.scoped)
  )

  it.effect("gives each of several readers an array of its own", () =>
    Effect.gen(function* () {
      const handle = yield* readAhead(immediate(slice), 8 * block)
      for (const nth of [0, 1, 2]) yield* handle.read(nth * block, block)
      const found = yield* Effect.all([handle.read(3 * block, block), handle.read(3 * block, block)], { concurrency: 2 })
      assert.deepStrictEqual(found[0], content.slice(3 * block, 4 * block))
      assert.deepStrictEqual(found[1], found[0])
      assert.notStrictEqual(found[0], found[1])
    }).pipe(Effect.scoped)
  )
})
