/** Tests stores of heads that lie, and forged histories. `verify` reports them, but reports no honest history. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { BlobStore } from "../../src/repository/BlobStore.ts"
import { decode, encode, noAnswers, type Root } from "../../src/repository/format/nodes.ts"
import type { Head } from "../../src/repository/HeadStore.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { memory, open, type StoreServices } from "./tapped.ts"

type Heads = Context.Service.Shape<typeof HeadStore>

const withHeads = (stores: StoreServices, change: (heads: Heads) => Partial<Heads>): StoreServices => {
  const heads = Context.get(stores, HeadStore)
  return Context.add(stores, HeadStore, { ...heads, ...change(heads) })
}

const verify = (stores: StoreServices, workspace = "w") => Effect.provide(Repository.verify(workspace), stores)

const refusal = (stores: StoreServices, workspace = "w") =>
  Effect.map(Effect.flip(verify(stores, workspace)), (error) => {
    assert.strictEqual(error._tag === "StoreError" && error.reason, "corrupt")
    assert.include(error.message, "history")
    return error.message
  })

const setHead = (stores: StoreServices, change: (head: Head) => Head, workspace = "w") =>
  Effect.gen(function* () {
    const heads = Context.get(stores, HeadStore)
    const head = (yield* heads.get(workspace))!
    assert.isTrue(yield* heads.delete(workspace, head))
    assert.isTrue(yield* heads.compareAndSet(workspace, undefined, change(head)))
  })

describe("verify", () => {
  for (const lost of [2, 3, 5]) {
    it.live(`reports that a store has confirmed the commit ${lost} without making it`, () =>
      Effect.gen(function* () {
        const stores = yield* memory
        let left = lost
        const lying = withHeads(stores, (heads) => ({
          compareAndSet: (workspace, expected, next) =>
            --left === 0 ? Effect.succeed(true) : heads.compareAndSet(workspace, expected, next)
        }))
        const { fs } = yield* open(lying, {})
        for (let i = 2; i < lost; i++) yield* fs.write(`f${i}`, "x")
        yield* fs.write("lost", "x")
        yield* verify(stores)
        yield* fs.write("next", "x")
        assert.include(yield* refusal(stores), `commit ${lost} `)
        // Later commits keep the record of the lost commit.
        for (let i = 0; i < 40; i++) yield* fs.write("later", `${i}`)
        assert.include(yield* refusal(stores), `commit ${lost} `)
      })
    )
  }

  it.live("reports that a store has replaced a head without comparing it", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const [begun, overtaken] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const lying = withHeads(stores, (heads) => ({
        compareAndSet: (workspace, _, next) =>
          Effect.andThen(
            Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(overtaken)),
            Effect.flatMap(heads.get(workspace), (present) => heads.compareAndSet(workspace, present, next))
          )
      }))
      const one = yield* open(stores)
      const other = yield* open(lying)
      const late = yield* Effect.forkScoped(other.fs.write("other", "x"))
      yield* Deferred.await(begun)
      yield* one.fs.write("one", "x")
      yield* Deferred.succeed(overtaken, undefined)
      yield* Fiber.join(late)
      assert.isFalse(yield* other.fs.exists("one"))
      yield* verify(stores)
      yield* one.fs.write("next", "x")
      yield* refusal(stores)
    })
  )

  it.live("reports a head with the number of another commit", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      yield* fs.write("a", "1")
      yield* fs.write("a", "2")
      yield* verify(stores)
      yield* setHead(stores, (head) => ({ ...head, sequence: head.sequence + 1 }))
      assert.include(yield* refusal(stores), "commit 4 ")
    })
  )

  it.live("reports a head with the largest possible number, on which a write fails with IoError", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* (yield* open(stores)).fs.write("a", "1")
      yield* setHead(stores, (head) => ({ ...head, sequence: Number.MAX_SAFE_INTEGER }))
      yield* refusal(stores)
      const { fs } = yield* open(stores)
      assert.strictEqual(yield* fs.readString("a"), "1")
      const error = yield* Effect.flip(fs.write("b", "x"))
      assert.strictEqual(error._tag, "IoError")
      assert.include(error.message, "the last number")
      assert.isFalse(yield* fs.exists("b"))
    })
  )

  it.live("reports a history that skips a commit", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const heads = Context.get(stores, HeadStore)
      const { fs } = yield* open(stores)
      const first = (yield* heads.get("w"))!
      for (const text of ["1", "2", "3"]) yield* fs.write("a", text)
      // The next commit is made on an old root with the number of the newest one.
      yield* setHead(stores, (head) => ({ ...head, root: first.root }))
      const other = yield* open(stores)
      yield* other.fs.write("b", "x")
      yield* refusal(stores)
    })
  )

  it.live("reports nothing for a workspace that was deleted and created again while a writer had it open", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const heads = Context.get(stores, HeadStore)
      const { fs } = yield* open(stores)
      for (const text of ["1", "2", "3"]) yield* fs.write("a", text)
      yield* heads.delete("w", (yield* heads.get("w"))!)
      const again = yield* open(stores)
      yield* again.fs.write("b", "x")
      yield* Effect.flip(fs.write("a", "4"))
      yield* verify(stores)
      // A fork of another workspace under the same name is another history, too.
      yield* Effect.provide(Repository.fork("w", "other"), stores)
      yield* heads.delete("w", (yield* heads.get("w"))!)
      yield* Effect.provide(Repository.fork("other", "w"), stores)
      yield* Effect.flip(again.fs.write("a", "6"))
      yield* (yield* open(stores)).fs.write("a", "7")
      yield* verify(stores)
      yield* verify(stores, "other")
    })
  )

  it.live("reports nothing for racing writers, although a lost race leaves a root with the same number", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const all = [yield* open(stores), yield* open(stores), yield* open(stores)]
      for (let i = 0; i < 20; i++) {
        yield* Effect.forEach(all, ({ fs }, n) => fs.write(`f${n}`, `${i}`), { concurrency: "unbounded" })
      }
      yield* verify(stores)
      yield* Effect.provide(Repository.collect({ grace: 0 }), stores)
      yield* verify(stores)
    })
  )

  it.live("reports nothing for a workspace whose first commits have format version 1", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const blobs = Context.get(stores, BlobStore)
      const { fs } = yield* open(stores)
      for (const text of ["1", "2", "3"]) yield* fs.write("a", text)
      const { root: hash } = (yield* Context.get(stores, HeadStore).get("w"))!
      const root = decode(hash, yield* blobs.get(hash))
      assert.isTrue("kind" in root && root.kind === "root")
      const old = yield* blobs.put(encode({ ...(root as Root), past: undefined, answers: noAnswers }))
      yield* setHead(stores, (head) => ({ ...head, root: old }))
      yield* verify(stores)
      const newer = yield* open(stores)
      assert.strictEqual(yield* newer.fs.readString("a"), "3")
      for (const text of ["4", "5"]) yield* newer.fs.write("a", text)
      yield* verify(stores)
    })
  )
})
