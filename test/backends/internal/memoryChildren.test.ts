import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Children from "../../../src/backends/memory/hashTrie.ts"
import { runs } from "../../runs.ts"

interface Item extends Children.Entry {
  readonly value: number
}
const item = (key: string, value = 0): Item => ({ key, hash: Children.hashOf(key, 0, key.length), value })
const get = (self: Children.Children<Item>, key: string) => Children.get(self, `/${key}/`, 1, 1 + key.length)
const all = (self: Children.Children<Item>) => {
  const out: Array<readonly [string, number]> = []
  Children.forEach(self, ({ key, value }) => out.push([key, value]))
  return out.sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Returns names with one hash, built from pairs of blocks that lead to the same state of the hash. */
const colliding = (rounds: number): ReadonlyArray<string> => {
  let names = [""]
  for (let round = 0; round < rounds; round++) {
    const prefix = names[0]!
    const seen = new Map<number, string>()
    for (let i = 0; ; i++) {
      const block = i.toString(36)
      const text = prefix + block
      const hash = Children.hashOf(text, 0, text.length)
      const other = seen.get(hash)
      seen.set(hash, block)
      if (other === undefined) continue
      names = names.flatMap((name) => [name + other, name + block])
      break
    }
  }
  return names
}
const hostile = colliding(6)

describe("the entries of a directory in memory", () => {
  it("include 64 names with one common hash in these tests", () => {
    assert.strictEqual(new Set(hostile).size, 64)
    assert.strictEqual(new Set(hostile.map((name) => item(name).hash)).size, 1)
  })

  const Key = Arbitrary.map(
    Arbitrary.all([
      Arbitrary.schema(Schema.Boolean),
      Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 63 })))
    ]),
    ([isHostile, n]) => (isHostile ? hostile[n]! : `name-${n}`)
  )
  const Step = Arbitrary.all({
    operation: Arbitrary.schema(Schema.Literals(["set", "set", "set", "remove", "capture"])),
    key: Key
  })

  it.effect.prop(
    "equal a Map after the same steps, and captured entries never change",
    [Arbitrary.array(Step, { minLength: 100, maxLength: 300 })],
    ([steps]) =>
      Effect.sync(() => {
        let owner = {}
        let self: Children.Children<Item> = Children.empty
        const map = new Map<string, number>()
        const captured: Array<readonly [Children.Children<Item>, ReadonlyArray<readonly [string, number]>]> = []
        const expected = () => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
        for (const [i, { key, operation }] of steps.entries()) {
          if (operation === "capture") {
            owner = {}
            captured.push([self, expected()])
          } else if (operation === "set") {
            self = Children.set(self, item(key, i), owner)
            map.set(key, i)
          } else {
            const found = get(self, key)
            assert.strictEqual(found?.value, map.get(key))
            if (found !== undefined) self = Children.remove(self, found, owner)
            map.delete(key)
          }
        }
        captured.push([self, expected()])
        for (const [children, entries] of captured) {
          assert.deepStrictEqual(all(children), entries)
          for (const [key, value] of entries) assert.strictEqual(get(children, key)?.value, value)
        }
        for (const [before, entries] of captured) {
          const patched = new Map(entries)
          Children.forEachDifference(before, self, (before, after) => {
            assert.notStrictEqual(before, after)
            if (before !== undefined) assert.strictEqual(patched.get(before.key), before.value)
            if (after === undefined) patched.delete(before!.key)
            else patched.set(after.key, after.value)
          })
          assert.deepStrictEqual(
            [...patched].sort(([a], [b]) => (a < b ? -1 : 1)),
            expected()
          )
        }
      }),
    { arbitrary: { runs: runs(150) } }
  )

  it("are copied only in a few small pieces by a change after a capture, however many there are", () => {
    let self: Children.Children<Item> = Children.empty
    const owner = {}
    for (let i = 0; i < 50_000; i++) self = Children.set(self, item(`name-${i}`), owner)
    const changed = Children.set(self, item("name-7", 1), {})
    const pieces = (children: Children.Children<Item>, into = new Set<unknown>()): Set<unknown> => {
      into.add(children)
      if (children.kind === "branch") for (const child of children.items) if (child !== undefined) pieces(child, into)
      return into
    }
    const old = pieces(self)
    const fresh = [...pieces(changed)].filter((piece) => !old.has(piece)) as Array<Children.Children<Item>>
    assert.isAtMost(fresh.length, 7)
    for (const { items } of fresh) assert.isAtMost(Array.isArray(items) ? items.length : items.size, 32)
    assert.strictEqual(get(self, "name-7")!.value, 0)
    assert.strictEqual(get(changed, "name-7")!.value, 1)
  })
})
