import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { TestClock } from "effect/testing"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import { contentsOf, memory, open, type Opened, stored, type StoreServices, tapped } from "./tapped.ts"

const inRepository = <A, E>({ fs }: Opened, effect: Effect.Effect<A, E, Filesystem>) =>
  Effect.provideService(Repository.transaction(effect), Filesystem, fs)

/** Runs an effect as another program would, which is in no transaction. */
const elsewhere = (effect: Effect.Effect<unknown, unknown>) => Effect.promise(() => Effect.runPromise(effect))

const tagOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.result(effect), (result) =>
    Result.isSuccess(result) ? "Success" : (result.failure as { readonly _tag: string })._tag
  )

const collect = (stores: StoreServices) => Effect.provideContext(Repository.collect(), stores)
const verify = (stores: StoreServices) => Effect.provideContext(Repository.verify("w"), stores)

const large = Array.from({ length: 30_000 }, (_, i) => `${i}\n`).join("")

/** Waits until a layer has heard of a commit. */
const until = (test: Effect.Effect<boolean, unknown>): Effect.Effect<void, unknown> =>
  Effect.flatMap(test, (isTrue) => (isTrue ? Effect.void : Effect.andThen(Effect.sleep("5 millis"), until(test))))

describe("a transaction of checkpoints", () => {
  it.live("shows its changes to other programs, and keeps the checkpoints that were taken in it after it fails", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs, snapshots } = yield* open(stores)
      const layer = Checkpoint.layer.pipe(Layer.provide([Session.layer(), Layer.succeed(Snapshots.Snapshots, snapshots)]))
      const checkpoint = Context.get(yield* Layer.build(layer), Checkpoint.Checkpoint)
      yield* fs.write("a", "old")
      const failing = Effect.gen(function* () {
        yield* fs.write("a", "new")
        yield* checkpoint.take("inside")
        assert.deepStrictEqual(yield* stored(stores), { a: "new" })
        return yield* Effect.fail("planned")
      })
      assert.strictEqual(yield* Effect.flip(checkpoint.transaction(failing)), "planned")
      assert.deepStrictEqual(yield* stored(stores), { a: "old" })
      yield* checkpoint.rollback("inside")
      assert.deepStrictEqual(yield* stored(stores), { a: "new" })
    }).pipe(Effect.scoped)
  )
})

describe("a transaction of snapshots", () => {
  it.live("that fails keeps the files that another layer has written meanwhile", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(stores)
      const other = yield* open(stores)
      yield* one.fs.write("a", "old")
      const failing = Effect.gen(function* () {
        yield* one.fs.write("a", "new")
        yield* one.fs.write("b", "new")
        assert.deepStrictEqual(yield* contentsOf(one.fs), { a: "new", b: "new" })
        yield* other.fs.write("same-fiber", "kept")
        yield* elsewhere(other.fs.write("acknowledged", "kept"))
        return yield* Effect.fail("planned")
      })
      assert.strictEqual(yield* Effect.flip(one.snapshots.transaction(failing)), "planned")
      const expected = { a: "old", acknowledged: "kept", "same-fiber": "kept" }
      assert.deepStrictEqual(yield* stored(stores), expected)
      yield* one.fs.write("a", "old")
      assert.deepStrictEqual(yield* contentsOf(one.fs), expected)
    })
  )

  it.live("that succeeds is one commit, and refuses to overwrite another writer", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(stores)
      const other = yield* open(stores)
      const heads = Context.get(stores, HeadStore)
      const before = (yield* heads.get("w"))!.sequence
      yield* one.snapshots.transaction(Effect.andThen(one.fs.write("a", "1"), one.fs.write("b", "1")))
      assert.strictEqual((yield* heads.get("w"))!.sequence, before + 1)
      const late = one.snapshots.transaction(
        Effect.andThen(one.fs.write("a", "mine"), elsewhere(other.fs.write("a", "acknowledged")))
      )
      const error = yield* Effect.flip(late)
      assert.strictEqual(error._tag, "SnapshotError")
      assert.include(error.message, '"a"')
      assert.deepStrictEqual(yield* stored(stores), { a: "acknowledged", b: "1" })
    })
  )

  it.live("inside another transaction discards only its own changes when it fails", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs, snapshots } = yield* open(stores)
      yield* snapshots.transaction(
        Effect.gen(function* () {
          yield* fs.write("outer", "1")
          yield* Effect.flip(snapshots.transaction(Effect.andThen(fs.write("inner", "1"), Effect.fail("planned"))))
          assert.deepStrictEqual(yield* contentsOf(fs), { outer: "1" })
        })
      )
      assert.deepStrictEqual(yield* stored(stores), { outer: "1" })
    })
  )

  it.live("may contain a transaction of another workspace, and each commits or discards its own changes", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(stores)
      const other = yield* open(stores, { workspace: "other" })
      const both = (end: Effect.Effect<void, string>) =>
        one.snapshots.transaction(
          Effect.gen(function* () {
            yield* inRepository(other, Effect.andThen(other.fs.write("inner", "1"), Effect.ignore(one.fs.write("inner", "1"))))
            yield* one.fs.write("outer", "1")
            yield* end
          })
        )
      yield* Effect.flip(both(Effect.fail("planned")))
      assert.deepStrictEqual(yield* stored(stores), {})
      assert.deepStrictEqual(yield* stored(stores, "other"), { inner: "1" })
      yield* both(Effect.void)
      assert.deepStrictEqual(yield* stored(stores), { inner: "1", outer: "1" })
    })
  )

  it.effect("that fails after a garbage collection keeps the old tree complete", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs, snapshots } = yield* open(stores)
      yield* fs.write("old", large)
      yield* TestClock.adjust("3 days")
      const failing = Effect.andThen(fs.delete("old"), Effect.andThen(collect(stores), Effect.fail("planned")))
      assert.strictEqual(yield* Effect.flip(snapshots.transaction(failing)), "planned")
      yield* verify(stores)
      assert.deepStrictEqual(yield* stored(stores), { old: large })
    })
  )
})

describe("a transaction beside another writer", () => {
  const cases: Record<
    string,
    readonly [
      mine: (opened: Opened) => Effect.Effect<unknown, unknown>,
      theirs: (opened: Opened) => Effect.Effect<unknown, unknown>
    ]
  > = {
    "of an append": [
      ({ fs }) => fs.write("log", "mine", { mode: "append" }),
      ({ fs }) => fs.write("log", "theirs", { mode: "append" })
    ],
    "of a new file": [
      ({ fs }) => fs.write("new", "mine", { mode: "create" }),
      ({ fs }) => fs.write("new", "theirs", { mode: "create" })
    ],
    "of a write that checks the old version": [
      ({ fs }) => Effect.flatMap(fs.version("log"), (ifMatch) => fs.write("log", "mine", { ifMatch })),
      ({ fs }) => fs.write("log", "theirs")
    ],
    "of a new directory": [({ fs }) => fs.mkdir("made"), ({ fs }) => fs.write("made", "theirs")],
    "of a new link": [({ fs }) => fs.symlink("link", "log"), ({ fs }) => fs.write("link", "theirs")],
    "of a mode": [({ fs }) => fs.port.attributes!.set("log" as never, { mode: 0o600 }), ({ fs }) => fs.delete("log")],
    "of a removed tree": [({ fs }) => fs.delete("dir", { recursive: true }), ({ fs }) => fs.write("dir/deep/new", "theirs")],
    "of a file in a removed tree": [
      ({ fs }) => fs.delete("dir", { recursive: true }),
      ({ fs }) => fs.write("dir/deep/old", "theirs")
    ],
    "of many new entries": [
      ({ fs }) =>
        Effect.asVoid(
          fs.port.perform!({ _tag: "MakeMany", entries: [{ path: "new" as never, bytes: Buffer.from("mine"), mode: 0o644 }] })
        ),
      ({ fs }) => fs.write("new", "theirs")
    ],
    "of a restored tree": [
      ({ snapshots }) => Effect.flatMap(snapshots.list, ([first]) => snapshots.restore(first!)),
      ({ fs }) => fs.write("dir/deep/old", "theirs")
    ],
    "of a captured tree": [({ snapshots }) => snapshots.snapshot(), ({ fs }) => fs.write("dir/deep/new", "theirs")]
  }
  for (const [name, [mine, theirs]] of Object.entries(cases)) {
    it.live(`${name} fails with Conflict, and the other writer's change stays`, () =>
      Effect.gen(function* () {
        const stores = yield* memory
        const one = yield* open(stores)
        const other = yield* open(stores)
        yield* one.fs.write("log", "start")
        yield* one.fs.write("dir/deep/old", "start", { createParents: true })
        yield* one.snapshots.snapshot()
        yield* one.fs.write("dir/more", "start")
        yield* until(other.fs.exists("dir/more"))
        const rival = elsewhere(theirs(other))
        assert.strictEqual(yield* tagOf(inRepository(one, Effect.andThen(mine(one), rival))), "Conflict")
        yield* verify(stores)
        const expected = yield* contentsOf(other.fs)
        assert.deepStrictEqual(yield* stored(stores), expected)
      })
    )
  }
})

describe("a long transaction", () => {
  const long = (opened: Opened, middle: Effect.Effect<unknown, unknown>) =>
    inRepository(
      opened,
      Effect.gen(function* () {
        yield* opened.fs.write("new", `${large}new`)
        yield* opened.fs.write("log", "more", { mode: "append" })
        yield* opened.snapshots.snapshot()
        yield* middle
      })
    )

  it.effect("that takes hours stores its content again, so that a later garbage collection keeps it", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      yield* opened.fs.write("log", large)
      let isArmed = true
      // The garbage collection runs between the last write of the transaction and its commit.
      const one = yield* open(
        tapped(stores, (step, call) => {
          if (step !== "compareAndSet" || !isArmed) return call
          isArmed = false
          return Effect.andThen(collect(stores), call)
        })
      )
      yield* long(one, TestClock.adjust("25 hours"))
      yield* verify(stores)
      assert.deepStrictEqual(yield* stored(stores), { log: `${large}more`, new: `${large}new` })
    })
  )

  it.effect("fails and changes nothing if a garbage collection has deleted its content", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      yield* opened.fs.write("log", large)
      const middle = Effect.andThen(TestClock.adjust("3 days"), collect(stores))
      assert.strictEqual(yield* tagOf(long(opened, middle)), "Unavailable")
      yield* verify(stores)
      assert.deepStrictEqual(yield* stored(stores), { log: large })
    })
  )
})

describe("the newest commit that a layer knows", () => {
  it.live("stays the newest when the answer of the layer's own older commit arrives later", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const other = yield* open(stores)
      let isArmed = false
      const one: Opened = yield* open(
        tapped(stores, (step, call) =>
          step === "compareAndSet" && isArmed
            ? Effect.tap(call, () => {
                isArmed = false
                return Effect.orDie(Effect.andThen(other.fs.write("b", "b"), until(Effect.suspend(() => one.fs.exists("b")))))
              })
            : call
        )
      )
      isArmed = true
      yield* one.fs.write("a", "a")
      assert.deepStrictEqual(yield* contentsOf(one.fs), { a: "a", b: "b" })
    })
  )

  it.live("stays the newest when a transaction begins with a head that was read earlier", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const gate = yield* Deferred.make<void>()
      const isReading = yield* Deferred.make<void>()
      let isArmed = false
      const one = yield* open(
        tapped(
          stores,
          (step, call) => {
            return Effect.suspend(() => {
              if (step !== "getHead" || !isArmed) return call
              isArmed = false
              return Effect.tap(call, () => Effect.andThen(Deferred.succeed(isReading, undefined), Deferred.await(gate)))
            })
          },
          false
        )
      )
      const other = yield* open(stores)
      yield* other.fs.write("b", "b")
      isArmed = true
      const transaction = yield* Effect.forkChild(inRepository(one, one.fs.exists("x")))
      yield* Deferred.await(isReading)
      yield* one.fs.write("mine", "x")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(transaction)
      assert.deepStrictEqual(yield* contentsOf(one.fs), { b: "b", mine: "x" })
    })
  )
})
