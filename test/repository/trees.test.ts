import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Entry, Tree } from "../../src/repository/format/nodes.ts"
import * as Objects from "../../src/repository/format/objects.ts"
import * as Trees from "../../src/repository/format/trees.ts"
import { runs } from "../runs.ts"
import { random } from "./random.ts"
import { makeBlobs } from "./stores.ts"

const file = (name: string, size: number): Entry => ({
  kind: "file",
  name,
  mode: 0o644,
  createdAt: 0,
  modifiedAt: 0,
  content: { _tag: "Inline", bytes: new Uint8Array(size) }
})

const apply = (
  objects: Objects.Objects,
  tree: Tree,
  changes: ReadonlyArray<readonly [name: string, size: number | undefined]>
) =>
  Effect.reduce(
    changes,
    () => tree,
    (tree, [name, size]) => Trees.set(objects, tree, name, size === undefined ? undefined : file(name, size))
  )

const stored = (objects: Objects.Objects, tree: Tree) => Effect.map(objects.store([tree]), ([hash]) => hash)

type Change = readonly [name: string, size: number | undefined]

const rareNames = ["a", "é", "e\u0301", "Z", "\u{10000}", "\uffff", "-"]

/** Makes changes of few names. Large files split and merge nodes often. */
const makeChanges = (next: (below: number) => number, count: number): ReadonlyArray<Change> =>
  Array.from({ length: next(count) }, () => [
    next(8) === 0 ? rareNames[next(rareNames.length)]! : `${next(60)}`,
    next(3) === 0 ? undefined : next(2049)
  ])

const shuffled = <A>(next: (below: number) => number, all: ReadonlyArray<A>): ReadonlyArray<A> => {
  const out = [...all]
  for (let i = out.length - 1; i > 0; i--) {
    const j = next(i + 1)
    ;[out[i], out[j]] = [out[j]!, out[i]!]
  }
  return out
}

const seeds = Array.from({ length: runs(80) }, (_, i) => i + 1)

const forEachSeed = (check: (next: (below: number) => number, seed: string) => Effect.Effect<void, unknown>) =>
  Effect.forEach(seeds, (seed) => check(random(seed), `seed ${seed}`), { discard: true })

const makeObjects = () => Objects.make(makeBlobs(), { cacheBytes: 4096 })

describe("the tree of a directory", () => {
  it.effect("has the last entry that was set for each name, sorted by bytes", () =>
    forEachSeed((next, seed) =>
      Effect.gen(function* () {
        const changes = makeChanges(next, 150)
        const expected = new Map<string, number>()
        for (const [name, size] of changes) {
          if (size === undefined) expected.delete(name)
          else expected.set(name, size)
        }
        const objects = makeObjects()
        const tree = yield* stored(objects, yield* apply(objects, undefined, changes))
        const names = [...expected.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        assert.deepStrictEqual(
          yield* Trees.list(objects, tree),
          names.map((name) => file(name, expected.get(name)!)),
          seed
        )
        for (const [name] of changes) {
          const size = expected.get(name)
          assert.deepStrictEqual(yield* Trees.get(objects, tree, name), size === undefined ? undefined : file(name, size), seed)
        }
      })
    )
  )

  it.effect("depends only on its entries, not on the order and number of the changes", () =>
    forEachSeed((next, seed) =>
      Effect.gen(function* () {
        const [detour, changes] = [makeChanges(next, 120), makeChanges(next, 120)]
        const last = new Map(changes)
        const objects = makeObjects()
        const direct = yield* apply(objects, undefined, shuffled(next, [...last]))
        const wandered = yield* stored(objects, yield* apply(objects, undefined, detour))
        const removed = shuffled(next, [...new Map(detour).keys()]).map((name): Change => [name, undefined])
        const back = yield* apply(objects, yield* apply(objects, wandered, changes), removed)
        const again = yield* apply(objects, back, shuffled(next, [...last]))
        assert.strictEqual(yield* stored(objects, again), yield* stored(objects, direct), seed)
      })
    )
  )

  it.effect("differs from another tree in exactly the names whose entries differ", () =>
    forEachSeed((next, seed) =>
      Effect.gen(function* () {
        const [first, second] = [makeChanges(next, 120), makeChanges(next, 40)]
        const objects = makeObjects()
        const before = yield* stored(objects, yield* apply(objects, undefined, first))
        const after = yield* stored(objects, yield* apply(objects, before, second))
        const reported = new Map<string, readonly [Entry | undefined, Entry | undefined]>()
        yield* Trees.forEachDifference(objects, before, after, (one, other) => {
          const { name } = (one ?? other)!
          assert.isFalse(reported.has(name), seed)
          reported.set(name, [one, other])
        })
        for (const name of new Set([...first, ...second].map(([name]) => name))) {
          const pair = [yield* Trees.get(objects, before, name), yield* Trees.get(objects, after, name)] as const
          if (reported.has(name)) {
            assert.deepStrictEqual(reported.get(name), pair, seed)
            assert.notDeepEqual(pair[0], pair[1], seed)
          } else assert.deepStrictEqual(pair[0], pair[1], seed)
        }
      })
    )
  )

  it.effect("needs few reads and few new nodes for a change among 100,000 names", () =>
    Effect.gen(function* () {
      const blobs = makeBlobs()
      const objects = Objects.make(blobs, { cacheBytes: 1024 })
      const names = Array.from({ length: 100_000 }, (_, i) => `file-${i}.txt`)
      const tree = yield* stored(
        objects,
        yield* apply(
          objects,
          undefined,
          names.map((name) => [name, 0])
        )
      )
      Object.assign(blobs.counts, { puts: 0, gets: 0, bytes: 0 })
      const next = yield* stored(objects, yield* apply(objects, tree, [["file-77777.txt", 7]]))
      assert.isAtMost(blobs.counts.puts, 5)
      assert.isAtMost(blobs.counts.gets, 5)
      assert.isAtMost(blobs.counts.bytes, 40_000)
      const differences: Array<string> = []
      yield* Trees.forEachDifference(objects, tree, next, (_, after) => differences.push(after!.name))
      assert.deepStrictEqual(differences, ["file-77777.txt"])
      assert.isAtMost(blobs.counts.gets, 20)
      assert.strictEqual((yield* Trees.list(objects, next)).length, 100_000)
    })
  )
})
