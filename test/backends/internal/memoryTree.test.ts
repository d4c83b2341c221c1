import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Content from "../../../src/backends/memory/content.ts"
import { makeMemoryPort } from "../../../src/backends/memory/port.ts"
import * as MemoryTree from "../../../src/backends/memory/tree.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import * as Watchers from "../../../src/port/watchers.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import { Model, modelStep, runStep, show, showModel, Step } from "./memoryModel.ts"

const at = (path: string) => path as FsPath
const now = DateTime.makeUnsafe(0)

interface Memory {
  readonly tree: MemoryTree.MemoryTree
  readonly port: Backend
  readonly events: Array<readonly [tag: string, path: string]>
}

const make = (caseInsensitive = false): Memory => {
  const events: Memory["events"] = []
  const listener: MemoryTree.Listener = { isActive: () => true, emit: (tag, path) => void events.push([tag, path]) }
  const tree = MemoryTree.make({ now, caseInsensitive, listener })
  return {
    tree,
    port: makeMemoryPort(
      tree,
      Watchers.make((path) => path),
      { caseInsensitive, rules: {} }
    ),
    events
  }
}

const showCaptured = (captured: MemoryTree.Captured, caseInsensitive: boolean) => {
  const { tree, port } = make(caseInsensitive)
  tree.restore(captured)
  return show(port)
}

const copyOf = (model: Model): Model => {
  const copy = new Model(model.folds)
  copy.things = new Map(model.things)
  return copy
}

const pathsOf = (lines: ReadonlyArray<string>) => lines.map((line) => line.split(" ")[0]!).sort()

for (const caseInsensitive of [false, true]) {
  const suffix = caseInsensitive ? ", ignoring case" : ""

  it.effect.prop(
    `the memory tree equals the model after any program, with the same faults${suffix}`,
    [Arbitrary.array(Step, { maxLength: 60 })],
    ([steps]) =>
      Effect.gen(function* () {
        const { port } = make(caseInsensitive)
        const model = new Model(caseInsensitive)
        for (const step of steps) {
          const result = yield* Effect.result(runStep(port, step))
          assert.strictEqual(Result.isFailure(result) ? result.failure._tag : undefined, modelStep(model, step))
        }
        assert.deepStrictEqual(yield* show(port), showModel(model))
      }),
    { arbitrary: { runs: 300 } }
  )

  const Moment = Arbitrary.all({
    steps: Arbitrary.array(Step, { maxLength: 12 }),
    restore: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: -3, maximum: 3 })))
  })
  it.effect.prop(
    `a captured memory tree never changes, whatever happens to the tree or to its restored copies${suffix}`,
    [Arbitrary.array(Moment, { maxLength: 8 })],
    ([moments]) =>
      Effect.gen(function* () {
        const { tree, port, events } = make(caseInsensitive)
        let model = new Model(caseInsensitive)
        const kept: Array<readonly [MemoryTree.Captured, Model]> = []
        for (const { restore, steps } of moments) {
          for (const step of steps) {
            const result = yield* Effect.result(runStep(port, step))
            assert.strictEqual(Result.isFailure(result) ? result.failure._tag : undefined, modelStep(model, step))
          }
          kept.push([tree.capture(), copyOf(model)])
          if (restore < 0 || restore >= kept.length) continue
          const [captured, then] = kept[restore]!
          const before = yield* show(port)
          events.length = 0
          tree.restore(captured)
          model = copyOf(then)
          const after = yield* show(port)
          assert.deepStrictEqual(after, showModel(model))

          const paths = new Set(pathsOf(before))
          for (const [tag, path] of events) {
            if (tag === "Created") assert.isFalse(paths.has(path), `${path} is created twice`)
            else assert.isTrue(paths.has(path), `${path} is ${tag} and did not exist`)
            if (tag === "Created") paths.add(path)
            if (tag === "Removed") paths.delete(path)
          }
          assert.deepStrictEqual([...paths].sort(), pathsOf(after))
          const told = new Set(events.map(([, path]) => path))
          for (const line of after) {
            if (!before.includes(line)) assert.isTrue(told.has(line.split(" ")[0]!), `no event for ${line}`)
          }
        }
        for (const [captured, then] of kept) {
          assert.deepStrictEqual(yield* showCaptured(captured, caseInsensitive), showModel(then))
        }
      }),
    { arbitrary: { runs: 300 } }
  )
}

describe("a captured tree", () => {
  const content = (text: string) => Content.of(new TextEncoder().encode(text))!
  const text = (tree: MemoryTree.MemoryTree, path: string) => {
    const node = tree.get(at(path))
    return node?.kind === "file" ? new TextDecoder().decode(Content.view(node.content)) : undefined
  }
  it("keeps its content when two restored trees append to the same file", () => {
    const { tree } = make()
    tree.write(at("f"), content("a"), "create", now)
    tree.write(at("f"), content("b"), "append", now)
    const start = tree.capture()
    tree.write(at("f"), content("1"), "append", now)
    const one = tree.capture()
    tree.restore(start)
    tree.write(at("f"), content("2"), "append", now)
    assert.strictEqual(text(tree, "f"), "ab2")
    tree.restore(one)
    assert.strictEqual(text(tree, "f"), "ab1")
    tree.restore(start)
    assert.strictEqual(text(tree, "f"), "ab")
  })
  it("keeps times and modes, also of the root", () => {
    const { tree } = make()
    tree.makeDirectory(at("d"), now)
    const captured = tree.capture()
    const later = DateTime.makeUnsafe(5000)
    for (const path of [".", "d"]) tree.setAttributes(at(path), { mode: 0o700, modifiedAt: later })
    tree.restore(captured)
    for (const path of [".", "d"]) {
      assert.strictEqual(tree.get(at(path))!.mode, 0o755)
      assert.strictEqual(tree.get(at(path))!.modifiedAt, now)
    }
  })
  it("shares unchanged directories with the live tree", () => {
    const { tree } = make()
    for (const path of ["a", "b"]) {
      tree.makeDirectory(at(path), now)
      tree.write(at(`${path}/f`), content(path), "create", now)
    }
    const before = tree.get(at("b"))
    tree.capture()
    tree.write(at("a/f"), content("new"), "replace", now)
    assert.strictEqual(tree.get(at("b")), before)
  })
  it("is not changed by another tree that was restored from it", () => {
    const { tree } = make()
    tree.write(at("f"), content("old"), "create", now)
    const captured = tree.capture()
    const { tree: other } = make()
    other.restore(captured)
    other.write(at("f"), content("new"), "replace", now)
    other.write(at("g"), content("new"), "create", now)
    assert.strictEqual(text(tree, "f"), "old")
    assert.isUndefined(tree.get(at("g")))
    tree.write(at("f"), content("mine"), "replace", now)
    assert.strictEqual(text(other, "f"), "new")
  })
  it("is restored over a directory that has changed since and is in the cache of the live tree", () => {
    const { tree } = make()
    tree.makeDirectory(at("d"), now)
    const captured = tree.capture()
    tree.write(at("d/f"), content("x"), "create", now)
    assert.strictEqual(text(tree, "d/f"), "x")
    tree.restore(captured)
    assert.isUndefined(tree.get(at("d/f")))
  })
})
