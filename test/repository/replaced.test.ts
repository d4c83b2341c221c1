/** A workspace that another program deletes and makes again under an open layer. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { contentsOf, memory, open, type StoreServices, stored, tapped } from "./tapped.ts"

const remove = (stores: StoreServices, workspace = "w") =>
  Effect.gen(function* () {
    const heads = Context.get(stores, HeadStore)
    assert.isTrue(yield* heads.delete(workspace, (yield* heads.get(workspace))!))
  })

const fork = (stores: StoreServices, from: string, to: string) => Effect.provide(Repository.fork(from, to), stores)

/** Checks that a layer shows and changes nothing any more. */
const isEnded = (fs: Algebra) =>
  Effect.gen(function* () {
    for (const use of [fs.write("mine", "x"), fs.readString("old"), fs.list("."), fs.stat("old"), fs.delete("old")]) {
      const error = yield* Effect.flip(use as Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>)
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "deleted and made again")
    }
  })

const soon = (use: Effect.Effect<unknown, unknown>) =>
  Effect.timeout(
    Effect.gen(function* () {
      while ((yield* Effect.result(use))._tag === "Success") yield* Effect.sleep("5 millis")
    }),
    "4 seconds"
  )

/** The number of commits of the new workspace: fewer than, as many as and more than those of the old one, which has 5. */
const lengths = [1, 4, 5, 9]

describe("a workspace that was deleted and made again", () => {
  for (const commits of lengths) {
    it.live(`(${commits} commits) is not shown by a layer of the old workspace that gets the new head reported`, () =>
      Effect.gen(function* () {
        const stores = yield* memory
        const one = yield* open(stores)
        for (const text of ["1", "2", "3", "4"]) yield* one.fs.write("old", text)
        yield* remove(stores)
        const other = yield* open(stores)
        for (let i = 1; i < commits; i++) yield* other.fs.write("new", `${i}`)
        yield* soon(one.fs.exists("old"))
        yield* isEnded(one.fs)
        assert.deepStrictEqual(yield* stored(stores), commits === 1 ? {} : { new: `${commits - 1}` })
      })
    )

    it.live(`(${commits} commits) is not changed by a layer of the old workspace that gets no new head reported`, () =>
      Effect.gen(function* () {
        const stores = yield* memory
        const one = yield* open(tapped(stores, (_, call) => call, false))
        for (const text of ["1", "2", "3", "4"]) yield* one.fs.write("old", text)
        yield* remove(stores)
        const other = yield* open(stores)
        for (let i = 1; i < commits; i++) yield* other.fs.write("new", `${i}`)
        yield* isEnded(one.fs)
        assert.deepStrictEqual(yield* stored(stores), commits === 1 ? {} : { new: `${commits - 1}` })
      })
    )
  }

  it.live("gets no change from a layer that read the head before the deletion and replaces the head after it", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      let race: Effect.Effect<unknown, unknown> | undefined
      const one = yield* open(
        tapped(
          stores,
          (step, call) => {
            const before = step === "compareAndSet" ? race : undefined
            if (before === undefined) return call
            race = undefined
            return Effect.andThen(Effect.orDie(before), call)
          },
          false
        )
      )
      yield* one.fs.write("old", "1")
      race = Effect.scoped(
        Effect.andThen(
          remove(stores),
          Effect.flatMap(open(stores), ({ fs }) => Effect.andThen(fs.write("new", "1"), fs.write("old", "theirs")))
        )
      )
      const error = yield* Effect.flip(one.fs.write("mine", "x"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.deepStrictEqual(yield* stored(stores), { new: "1", old: "theirs" })
      yield* isEnded(one.fs)
    })
  )

  it.live("does not get the changes of a transaction that began before the deletion", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(stores)
      yield* one.fs.write("old", "1")
      const [isInside, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const transaction = yield* Effect.forkChild(
        Repository.transaction(
          Effect.gen(function* () {
            yield* one.fs.write("mine", yield* one.fs.readString("old"))
            yield* Deferred.succeed(isInside, undefined)
            yield* Deferred.await(gate)
            // The transaction shows what it began with, until it ends.
            return yield* contentsOf(one.fs)
          })
        ).pipe(Effect.provideService(Filesystem, one.fs))
      )
      yield* Deferred.await(isInside)
      yield* remove(stores)
      yield* (yield* open(stores)).fs.write("new", "1")
      yield* Deferred.succeed(gate, undefined)
      const error = yield* Effect.flip(Fiber.join(transaction))
      assert.strictEqual((error as { readonly _tag: string })._tag, "Unavailable")
      assert.deepStrictEqual(yield* stored(stores), { new: "1" })
    })
  )

  it.live("is another workspace even if it is a fork of its own copy and has the same files", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(tapped(stores, (_, call) => call, false))
      yield* one.fs.write("old", "1")
      yield* fork(stores, "w", "copy")
      yield* remove(stores)
      yield* fork(stores, "copy", "w")
      yield* isEnded(one.fs)
      assert.deepStrictEqual(yield* stored(stores), { old: "1" })
    })
  )

  it.live("keeps working in a layer to which the store reports the old head late", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const first = yield* open(stores)
      for (const text of ["1", "2", "3"]) yield* first.fs.write("old", text)
      const heads = Context.get(stores, HeadStore)
      const late = (yield* heads.get("w"))!
      yield* remove(stores)
      // The store reports the head of the deleted workspace to a layer of the new one.
      const stale: StoreServices = Context.add(stores, HeadStore, {
        ...heads,
        changes: (workspace) => {
          const { changes } = heads
          return workspace === "w" ? Stream.concat(Stream.succeed(late), changes(workspace)) : changes(workspace)
        }
      })
      const one = yield* open(stale)
      const other = yield* open(stores)
      yield* other.fs.write("new", "1")
      while (!(yield* one.fs.exists("new"))) yield* Effect.sleep("2 millis")
      yield* one.fs.write("mine", "x")
      assert.deepStrictEqual(yield* contentsOf(one.fs), { mine: "x", new: "1" })
    })
  )

  it.live("is the same workspace if its head is the old head again", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const heads = Context.get(stores, HeadStore)
      const one = yield* open(stores)
      yield* one.fs.write("old", "1")
      const head = (yield* heads.get("w"))!
      yield* remove(stores)
      assert.strictEqual((yield* Effect.flip(one.fs.write("mine", "x")))._tag, "Unavailable")
      assert.isTrue(yield* heads.compareAndSet("w", undefined, head))
      yield* one.fs.write("mine", "x")
      assert.deepStrictEqual(yield* stored(stores), { mine: "x", old: "1" })
    })
  )
})
