import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Matching, searchWithoutNode } from "../../src/runtime/matching.ts"
import { content, expected, queries, query as queryOf, question, textOf } from "./searched.ts"

const contents = Array.from({ length: 60 }, (_, seed) => content(seed, (seed * seed * 7) % 5000))
// Each content is a view of a larger buffer, whose other bytes must not be searched.
const views = contents.map((bytes) => new Uint8Array([1, 2, 3, ...bytes, 4, 5]).subarray(3, 3 + bytes.length))

describe("matching of contents in memory", () => {
  const wanted = queries.map((query) => contents.map((bytes, i) => expected(bytes, query, i === 0 ? 2 : 1)))

  it.effect("gives the results of the plain engine on this thread, without Node, and by workers", () =>
    Effect.gen(function* () {
      const matching = yield* Matching
      for (const [i, query] of queries.entries()) {
        const found = (answer: ReadonlyArray<{ readonly found: unknown }>) => answer.map(({ found }) => found)
        assert.deepStrictEqual(found(matching.searchInline(query, views, 2)), wanted[i])
        assert.deepStrictEqual(found(searchWithoutNode(query, views, 2)), wanted[i])
        const away = yield* matching.searchInWorkers(query, views, 2)
        if ("_tag" in away) return assert.fail(away._tag)
        assert.deepStrictEqual(found(away), wanted[i])
      }
      assert.isTrue(views.every((bytes, i) => Buffer.compare(bytes, contents[i]!) === 0))
    })
  )

  it.effect("gives the same results when there are more than a worker sends at a time", () =>
    Effect.gen(function* () {
      const matching = yield* Matching
      const many = Array.from({ length: 12 }, (_, i) => Buffer.from(`foo ${i}\n`.repeat(60_000)))
      const query = queryOf(question("foo", { literal: "foo" }))
      const wanted = many.map((bytes) => expected(bytes, query, 1))
      const counts = (answer: ReadonlyArray<{ readonly found: unknown }>) =>
        answer.map(({ found }) => (found as Array<unknown>).length)
      assert.deepStrictEqual(
        counts(matching.searchInline(query, many, 1)),
        wanted.map((found) => found.length)
      )
      const away = yield* matching.searchInWorkers(query, many, 1)
      assert.deepStrictEqual("_tag" in away ? away : away.map(({ found }) => found), wanted as never)
    })
  )

  it.effect("returns the text of each content with a match", () =>
    Effect.gen(function* () {
      const matching = yield* Matching
      const query = { ...queries[0]!, includesText: true }
      const answer = matching.searchInline(query, views, 1)
      assert.isTrue(answer.some(({ text }) => text !== undefined))
      for (const [i, { found, text }] of answer.entries()) {
        const hasText = typeof found !== "string" && found.length > 0
        assert.strictEqual(text, hasText ? textOf(contents[i]!) : undefined)
      }
      assert.deepStrictEqual(searchWithoutNode(query, views, 1), answer)
    })
  )
})
