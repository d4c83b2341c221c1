import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import * as InMemory from "../../src/backends/InMemory.ts"
import { makePages } from "../../src/filesystem/platform/open.ts"
import { runs } from "../runs.ts"

const page = 64 * 1024

/** Positions around the edges of pages. */
const Offset = Schema.Literals([0, 1, 100, page - 1, page, page + 1, 2 * page - 1, 2 * page, 3 * page + 7])

const Step = Schema.TaggedUnion({
  write: { offset: Offset, length: Schema.Literals([0, 1, 3, page - 1, page, 2 * page + 1]), fill: Schema.Literals([1, 2, 3]) },
  truncate: { size: Offset },
  read: { offset: Offset, length: Schema.Literals([0, 1, 50, page, 3 * page]) }
})

/** Makes the model of pages: the content as one array. */
const modelled = (before: Uint8Array) => {
  let bytes = before
  const resize = (size: number) => {
    const next = new Uint8Array(size)
    next.set(bytes.subarray(0, size))
    bytes = next
  }
  return {
    content: () => bytes,
    write: (offset: number, data: Uint8Array) => {
      if (data.length === 0) return
      if (offset + data.length > bytes.length) resize(offset + data.length)
      bytes.set(data, offset)
    },
    truncate: resize,
    read: (offset: number, length: number) => bytes.slice(offset, offset + length)
  }
}

const agree = (actual: Uint8Array, expected: Uint8Array) => assert.isTrue(Buffer.from(actual).equals(expected), "other bytes")

describe("pages", () => {
  it.effect.prop(
    "behave like one array with the same writes",
    [Schema.Literals([0, 1, page, page + 500, 3 * page]), Arbitrary.array(Arbitrary.schema(Step), { maxLength: 12 })],
    ([size, program]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const before = Uint8Array.from({ length: size }, (_, i) => 100 + (i % 91))
          const port = yield* InMemory.make({ tree: { base: before } })
          const pages = makePages(size === 0 ? undefined : yield* port.open("base" as never))
          const model = modelled(before)
          for (const step of program) {
            if (step._tag === "write") {
              const data = new Uint8Array(step.length).fill(step.fill)
              yield* pages.write(step.offset, data)
              model.write(step.offset, data)
              data.fill(0)
            } else if (step._tag === "truncate") {
              yield* pages.truncate(step.size)
              model.truncate(step.size)
            } else agree(yield* pages.read(step.offset, step.length), model.read(step.offset, step.length))
            assert.strictEqual(pages.size(), model.content().length)
          }
          agree(Buffer.concat(yield* Stream.runCollect(pages.content)), model.content())
        })
      ),
    { arbitrary: { runs: runs(300) } }
  )

  it.effect("keep both of two concurrent writes to a page that was not loaded", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const port = yield* InMemory.make({ tree: { base: "......" } })
        const opened = yield* port.open("base" as never)
        const pages = makePages({ ...opened, read: (at, length) => Effect.andThen(Effect.yieldNow, opened.read(at, length)) })
        const write = (at: number, text: string) => pages.write(at, new TextEncoder().encode(text))
        yield* Effect.all([write(0, "a"), write(5, "b")], { concurrency: "unbounded" })
        assert.strictEqual(new TextDecoder().decode(yield* pages.read(0, 6)), "a....b")
      })
    )
  )
})
