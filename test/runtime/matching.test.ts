import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Query } from "../../src/model/search.ts"
import { Matching, type Searchable, searchWithoutNode } from "../../src/runtime/matching.ts"
import { content, expected, queries, query as queryOf, question, textOf } from "./searched.ts"

const contents = Array.from({ length: 60 }, (_, seed) => content(seed, (seed * seed * 7) % 5000))
// Each content is a view of a larger buffer, whose other bytes must not be searched.
const views = contents.map((bytes) => new Uint8Array([1, 2, 3, ...bytes, 4, 5]).subarray(3, 3 + bytes.length))

const pathOf = (index: number) => `${index}.txt` as FsPath

/** Calls a search for the rest until nothing is left. */
const toEnd = (search: Matching["searchInline"], query: Query, { contents, from }: Omit<Searchable, "pathOf">) => {
  const out: Array<ReturnType<typeof search>[number]> = []
  while (out.length < contents.length) {
    const done = out.length
    const rest = {
      contents: contents.slice(done),
      from: done === 0 ? from : 1,
      pathOf: (index: number) => pathOf(done + index)
    }
    out.push(...search(query, rest))
  }
  return out
}

describe("matching of contents in memory", () => {
  const some = { contents: views, from: 2, pathOf }
  const wanted = queries.map((query) =>
    contents.map((bytes, i) => {
      const found = expected(bytes, query, i === 0 ? 2 : 1)
      return typeof found === "string" ? found : found.map((match) => ({ path: pathOf(i), ...match }))
    })
  )

  it.effect("gives the same results on this thread, in workers, and without Node", () =>
    Effect.gen(function* () {
      const matching = yield* Matching
      for (const [i, query] of queries.entries()) {
        const found = (answer: ReadonlyArray<{ readonly found: unknown }>) => answer.map(({ found }) => found)
        assert.deepStrictEqual(found(toEnd(matching.searchInline, query, some)), wanted[i])
        assert.deepStrictEqual(found(toEnd(searchWithoutNode, query, some)), wanted[i])
        const inWorkers = yield* matching.searchInWorkers(query, some)
        if ("_tag" in inWorkers) return assert.fail(inWorkers._tag)
        assert.deepStrictEqual(found(inWorkers), wanted[i])
      }
      assert.isTrue(views.every((bytes, i) => Buffer.compare(bytes, contents[i]!) === 0))
    })
  )

  it.effect("gives the same results for more contents than a worker receives at a time", () =>
    Effect.gen(function* () {
      const matching = yield* Matching
      const many = Array.from({ length: 12 }, (_, i) => Buffer.from(`foo ${i}\n`.repeat(60_000)))
      const query = queryOf(question("foo", { literal: "foo" }))
      const wanted = many.map((bytes) => expected(bytes, query, 1))
      const counts = (answer: ReadonlyArray<{ readonly found: unknown }>) =>
        answer.map(({ found }) => (found as Array<unknown>).length)
      assert.deepStrictEqual(
        counts(toEnd(matching.searchInline, query, { contents: many, from: 1 })),
        wanted.map((found) => found.length)
      )
      const inWorkers = yield* matching.searchInWorkers(query, { contents: many, from: 1, pathOf })
      const withPaths = wanted.map((found, i) => (found as Array<object>).map((match) => ({ path: pathOf(i), ...match })))
      assert.deepStrictEqual("_tag" in inWorkers ? inWorkers : inWorkers.map(({ found }) => found), withPaths as never)
    })
  )

  it.effect("returns the text of each content with a match", () =>
    Effect.gen(function* () {
      const matching = yield* Matching
      const query = { ...queries[0]!, includesText: true }
      const answer = toEnd(matching.searchInline, query, { contents: views, from: 1 })
      assert.isTrue(answer.some(({ text }) => text !== undefined))
      for (const [i, { found, text }] of answer.entries()) {
        const hasText = typeof found !== "string" && found.length > 0
        assert.strictEqual(text, hasText ? textOf(contents[i]!) : undefined)
      }
      assert.deepStrictEqual(toEnd(searchWithoutNode, query, { contents: views, from: 1 }), answer)
    })
  )
})
