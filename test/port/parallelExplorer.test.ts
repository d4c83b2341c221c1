import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { InMemory } from "../../src/index.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { parallelExplore } from "../../src/port/parallelExplorer.ts"

const tree = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`d${index}`, { "a.txt": "", sub: { "b.txt": "" } }]))

/** Walks the tree on a backend whose `list` yields several times. Counts the calls that run at the same time. */
const walked = (concurrency: number | undefined) =>
  Effect.gen(function* () {
    const { explore: _, perform: __, ...port } = yield* InMemory.make({ tree })
    let running = 0
    let most = 0
    const list: typeof port.list = (path) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          most = Math.max(most, ++running)
        }),
        () => Effect.andThen(Effect.repeat(Effect.yieldNow, { times: 3 }), port.list(path)),
        () => Effect.sync(() => running--)
      )
    const slow = { ...port, list }
    const fs = make(concurrency === undefined ? slow : { ...slow, explore: parallelExplore(slow, concurrency) })
    const paths = (yield* Stream.runCollect(fs.walk("."))).map(({ path }) => path)
    return { most, paths }
  })

describe("a walk with parallel lists", () => {
  it.effect("runs several lists at a time, never more than the limit, and has the same order", () =>
    Effect.gen(function* () {
      const one = yield* walked(undefined)
      const many = yield* walked(8)
      assert.strictEqual(one.most, 1)
      assert.strictEqual(many.most, 8)
      assert.strictEqual(many.paths.length, 160)
      assert.deepStrictEqual(many.paths, one.paths)
    })
  )
})
