import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { StoreError } from "../../src/repository/BlobStore.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { contentsOf, memory, open, type Opened, type Step, stored, type StoreServices, type Tap, tapped } from "./tapped.ts"

const countSteps = () => {
  const counts: Partial<Record<Step, number>> = {}
  const tap: Tap = (step, call) => {
    counts[step] = (counts[step] ?? 0) + 1
    return call
  }
  return { counts, tap }
}

const headOf = (stores: StoreServices, workspace = "w") => Context.get(stores, HeadStore).get(workspace)

const inRepository = <A, E>({ fs }: Opened, effect: Effect.Effect<A, E, Filesystem>) =>
  Effect.provideService(Repository.transaction(effect), Filesystem, fs)

describe("the commits of a workspace", () => {
  it.live("are shared by writes of 50 fibers, and each write returns after its commit", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { counts, tap } = countSteps()
      const { fs } = yield* open(tapped(stores, tap))
      counts.compareAndSet = 0
      yield* Effect.forEach(
        Array.from({ length: 50 }, (_, i) => i),
        (i) =>
          Effect.gen(function* () {
            yield* fs.write(`f${i}`, `${i}`)
            assert.strictEqual((yield* stored(stores))[`f${i}`], `${i}`)
          }),
        { concurrency: "unbounded" }
      )
      assert.isAtMost(counts.compareAndSet!, 3)
      assert.strictEqual(Object.keys(yield* stored(stores)).length, 50)
    })
  )

  it.live(`contain one write each with durability "each"`, () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores, { durability: "each" })
      const before = (yield* headOf(stores))!.sequence
      yield* Effect.forEach(["a", "b", "c"], (path) => fs.write(path, path), { concurrency: "unbounded" })
      assert.strictEqual((yield* headOf(stores))!.sequence, before + 3)
    })
  )

  it.live("have heads with the author, a message and the next number", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores, { author: "ann" })
      yield* fs.write("notes.md", "x")
      const head = (yield* headOf(stores))!
      assert.deepInclude(head, { author: "ann", message: "write notes.md", sequence: 2 })
    })
  )

  it.live("are not made for a change that fails", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      yield* fs.write("a", "x")
      const before = yield* headOf(stores)
      yield* Effect.flip(fs.write("a", "y", { mode: "create" }))
      assert.deepStrictEqual(yield* headOf(stores), before)
    })
  )

  it.live("store at most two nodes and read none for the move of a directory with 2,000 files", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { counts, tap } = countSteps()
      const opened = yield* open(tapped(stores, tap))
      yield* inRepository(
        opened,
        Effect.forEach(Array.from({ length: 2000 }), (_, i) => opened.fs.write(`d/${i % 10}/${i}`, `${i}`))
      )
      Object.assign(counts, { put: 0, get: 0 })
      yield* opened.fs.move("d", "e")
      assert.isAtMost(counts.put!, 2)
      assert.strictEqual(counts.get, 0)
      assert.strictEqual(yield* opened.fs.readString("e/7/1997"), "1997")
    })
  )

  it.live("are seen by other layers on the same workspace", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(stores)
      const other = yield* open(stores)
      yield* one.fs.write("a", "1")
      while (!(yield* other.fs.exists("a"))) yield* Effect.yieldNow
      assert.strictEqual(yield* other.fs.readString("a"), "1")
    })
  )

  it.live("are not made if the workspace was deleted, and the workspace is not created again", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const { fs } = yield* open(stores)
      const heads = Context.get(stores, HeadStore)
      yield* heads.delete("w", (yield* heads.get("w"))!)
      const error = yield* Effect.flip(fs.write("a", "x"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.isUndefined(yield* heads.get("w"))
    })
  )

  it.live("are no longer made after the layer is closed: a write fails with Unavailable", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const scope = yield* Scope.make()
      const { fs } = yield* Scope.provide(open(stores), scope)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(fs.write("a", "x")))._tag, "Unavailable")
    })
  )
})

/** Opens two layers. `race` runs an effect of the first layer directly before the second replaces the head. */
const rivals = Effect.gen(function* () {
  const stores = yield* memory
  const one = yield* open(stores)
  let pending: Effect.Effect<unknown, unknown> | undefined
  const other = yield* open(
    tapped(
      stores,
      (step, call) => {
        if (step !== "compareAndSet" || pending === undefined) return call
        const run = pending
        pending = undefined
        return Effect.andThen(Effect.orDie(run), call)
      },
      false
    )
  )
  return { stores, one, other, race: (effect: Effect.Effect<unknown, unknown>) => void (pending = effect) }
})

const versionOf = (text: string): string => createHash("sha256").update(text).digest("hex")

describe("a writer whose commit loses the race", () => {
  it.live("makes its change on the other writer's commit if both changed different files", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      race(one.fs.write("a", "one"))
      yield* other.fs.write("b", "other")
      assert.deepStrictEqual(yield* stored(stores), { a: "one", b: "other" })
    })
  )

  it.live("fails with Conflict and both versions, if the other writer changed the same file", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      yield* one.fs.write("a", "old")
      race(one.fs.write("a", "one"))
      const error = yield* Effect.flip(other.fs.write("a", "other"))
      assert.deepInclude(error, { _tag: "Conflict", path: "a", expected: versionOf("old"), actual: versionOf("one") })
      assert.deepStrictEqual(yield* stored(stores), { a: "one" })
      yield* other.fs.write("a", "other")
      assert.deepStrictEqual(yield* stored(stores), { a: "other" })
    })
  )

  it.live("fails with Conflict for a precondition that no longer holds, even if its layer knows only an old tree", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      yield* other.fs.write("a", "old")
      race(one.fs.write("a", "one"))
      const error = yield* Effect.flip(other.fs.write("a", "other", { ifMatch: versionOf("old") }))
      assert.deepInclude(error, { _tag: "Conflict", expected: versionOf("old"), actual: versionOf("one") })
      yield* one.fs.write("a", "again")
      const stale = yield* Effect.flip(other.fs.write("a", "other", { ifMatch: versionOf("one") }))
      assert.deepInclude(stale, { _tag: "Conflict", expected: versionOf("one"), actual: versionOf("again") })
      assert.deepStrictEqual(yield* stored(stores), { a: "again" })
    })
  )

  it.live("appends after the other writer's append", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      yield* one.fs.write("log", "0")
      race(one.fs.write("log", "1", { mode: "append" }))
      yield* other.fs.write("log", "2", { mode: "append" })
      assert.deepStrictEqual(yield* stored(stores), { log: "012" })
    })
  )

  it.live("fails to create a file that the other writer created", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      race(one.fs.write("a", "one", { mode: "create" }))
      assert.strictEqual((yield* Effect.flip(other.fs.write("a", "x", { mode: "create" })))._tag, "AlreadyExists")
      assert.deepStrictEqual(yield* stored(stores), { a: "one" })
    })
  )

  it.live("does not remove a file that the other writer changed", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      yield* one.fs.write("a", "old")
      yield* other.fs.write("b", "")
      race(one.fs.write("a", "new"))
      assert.strictEqual((yield* Effect.flip(other.fs.delete("a")))._tag, "Conflict")
      assert.deepStrictEqual(yield* stored(stores), { a: "new", b: "" })
    })
  )

  it.live("moves a directory with the files that the other writer added to it", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      yield* one.fs.write("d/a", "1")
      yield* other.fs.write("x", "")
      race(one.fs.write("d/b", "2"))
      yield* other.fs.move("d", "e")
      assert.deepStrictEqual(yield* stored(stores), { e: "/", "e/a": "1", "e/b": "2", x: "" })
    })
  )

  it.live("fails only the conflicting change of several changes in one commit", () =>
    Effect.gen(function* () {
      const { one, other, race, stores } = yield* rivals
      race(one.fs.write("b", "one"))
      const results = yield* Effect.forEach(["a", "b", "c"], (path) => Effect.result(other.fs.write(path, "other")), {
        concurrency: "unbounded"
      })
      const failed = results.map(Result.isFailure)
      assert.isTrue(failed.filter(Boolean).length <= 1)
      assert.deepStrictEqual(yield* stored(stores), { a: "other", b: failed[1] ? "one" : "other", c: "other" })
    })
  )
})

describe("a transaction", () => {
  it.live("is one commit, whose changes become visible at once", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      const before = (yield* headOf(stores))!.sequence
      yield* inRepository(
        opened,
        Effect.gen(function* () {
          yield* opened.fs.write("a/b/c", "1")
          yield* opened.fs.move("a/b/c", "d")
          assert.deepStrictEqual(yield* contentsOf(opened.fs), { a: "/", "a/b": "/", d: "1" })
          // Another program, outside the transaction.
          assert.deepStrictEqual(yield* Effect.promise(() => Effect.runPromise(stored(stores))), {})
        })
      )
      assert.strictEqual((yield* headOf(stores))!.sequence, before + 1)
      assert.deepStrictEqual(yield* stored(stores), { a: "/", "a/b": "/", d: "1" })
    })
  )

  it.live("changes nothing if it fails, dies or is interrupted", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const opened = yield* open(stores)
      yield* opened.fs.write("a", "old")
      for (const end of [Effect.fail("no"), Effect.die("no"), Effect.interrupt]) {
        const exit = yield* Effect.exit(inRepository(opened, Effect.andThen(opened.fs.write("a", "new"), end)))
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(yield* contentsOf(opened.fs), { a: "old" })
      }
      assert.deepStrictEqual(yield* stored(stores), { a: "old" })
    })
  )

  const raceCases: Record<string, readonly [(opened: Opened) => Effect.Effect<unknown, unknown>, expected: string]> = {
    "a file that it read": [({ fs }) => fs.write("read", "x"), "Conflict"],
    "a file that it found absent": [({ fs }) => fs.write("absent", "x"), "Conflict"],
    "the names of a directory that it listed": [({ fs }) => fs.write("listed/more", "x"), "Conflict"],
    "a file that it wrote": [({ fs }) => fs.write("written", "x"), "Conflict"],
    "another file": [({ fs }) => fs.write("other", "x"), "Success"]
  }
  for (const [name, [run, expected]] of Object.entries(raceCases)) {
    it.live(`ends with ${expected} if another writer changes ${name}`, () =>
      Effect.gen(function* () {
        const { one, other, race, stores } = yield* rivals
        yield* one.fs.write("read", "1")
        yield* one.fs.mkdir("listed")
        race(run(one))
        const exit = yield* Effect.result(
          inRepository(
            other,
            Effect.gen(function* () {
              yield* other.fs.readString("read")
              yield* other.fs.exists("absent")
              yield* other.fs.list("listed")
              yield* other.fs.write("written", "mine")
            })
          )
        )
        const found = Result.isSuccess(exit) ? "Success" : (exit.failure as { _tag: string })._tag
        assert.strictEqual(found, expected)
        assert.strictEqual((yield* stored(stores))["written"] === "mine", expected === "Success")
      })
    )
  }

  it.live("is refused on a filesystem that is not a repository", () =>
    Effect.gen(function* () {
      const { InMemory } = yield* Effect.promise(() => import("../../src/index.ts"))
      const error = yield* Effect.flip(Effect.provide(Repository.transaction(Effect.void), InMemory.layer()))
      assert.strictEqual(error._tag, "IoError")
    })
  )
})

// Faults at every call of a store.

const unavailable = Effect.fail(new StoreError({ reason: "unavailable", detail: "the planned fault" }))

const faults: Record<
  string,
  (call: Effect.Effect<unknown, StoreError>, interrupt: Effect.Effect<void>) => Effect.Effect<unknown, StoreError>
> = {
  "does not answer": () => unavailable,
  "loses its answer": (call) => Effect.andThen(call, unavailable),
  "is full": () => Effect.fail(new StoreError({ reason: "full", detail: "the planned fault" })),
  dies: () => Effect.die("the planned defect"),
  "dies after its work": (call) => Effect.andThen(call, Effect.die("the planned defect")),
  "is slow while the caller is interrupted": (call, interrupt) => Effect.andThen(interrupt, call)
}

const large = "0123456789".repeat(1000)

const operations: Record<string, (opened: Opened) => Effect.Effect<unknown, unknown>> = {
  "write of a small file": ({ fs }) => fs.write("new", "x"),
  "write of a large file": ({ fs }) => fs.write("d/file", large),
  append: ({ fs }) => fs.write("d/large", "tail", { mode: "append" }),
  makeDirectory: ({ fs }) => fs.mkdir("made"),
  move: ({ fs }) => fs.move("d", "e"),
  "delete of a directory": ({ fs }) => fs.delete("d", { recursive: true }),
  link: ({ fs }) => fs.symlink("link", "d"),
  transaction: (opened) => inRepository(opened, Effect.andThen(opened.fs.write("t1", "1"), opened.fs.write("d/t2", "2"))),
  restore: ({ fs, snapshots }) =>
    Effect.flatMap(snapshots.list, ([first]) => Effect.andThen(snapshots.restore(first!), fs.exists(".")))
}

describe("a fault of a store leaves the old or the new tree, and loses no confirmed change:", () => {
  for (const [faultName, fault] of Object.entries(faults)) {
    for (const [name, operation] of Object.entries(operations)) {
      it.live(`${name}, if any call ${faultName}`, () =>
        Effect.gen(function* () {
          const prepared = Effect.gen(function* () {
            const stores = yield* memory
            let calls = 0
            let nth = 0
            const interrupt = yield* Deferred.make<void>()
            const opened = yield* open(
              tapped(stores, <A>(_: Step, call: Effect.Effect<A, StoreError>) =>
                ++calls === nth
                  ? (fault(call, Effect.asVoid(Deferred.succeed(interrupt, undefined))) as Effect.Effect<A, StoreError>)
                  : call
              )
            )
            yield* opened.snapshots.snapshot()
            yield* opened.fs.write("d/large", large)
            const arm = (at: number) => {
              calls = 0
              nth = at
            }
            return { stores, opened, interrupt, arm, calls: () => calls }
          })
          const expected = yield* Effect.scoped(
            Effect.gen(function* () {
              const { arm, calls, opened, stores } = yield* prepared
              const before = yield* stored(stores)
              arm(-1)
              yield* operation(opened)
              return { before, after: yield* stored(stores), calls: calls() }
            })
          )
          assert.isAtLeast(expected.calls, 2)
          for (let at = 1; at <= expected.calls; at++) {
            yield* Effect.scoped(
              Effect.gen(function* () {
                const { arm, interrupt, opened, stores } = yield* prepared
                arm(at)
                const fiber = yield* Effect.forkChild(Effect.exit(operation(opened)))
                const interrupted = yield* Effect.forkChild(Effect.andThen(Deferred.await(interrupt), Fiber.interrupt(fiber)))
                const outcome = yield* Fiber.await(fiber)
                yield* Fiber.interrupt(interrupted)
                const isAcknowledged = Exit.isSuccess(outcome) && Exit.isSuccess(outcome.value)
                arm(-1)
                // A later change waits for a commit that still runs, and shows that the layer goes on.
                yield* opened.fs.write("later", "1")
                const { later, ...found } = yield* stored(stores)
                assert.strictEqual(later, "1")
                const isNew = JSON.stringify(found) === JSON.stringify(expected.after)
                if (isAcknowledged) assert.deepStrictEqual(found, expected.after, `call ${at}`)
                else if (!isNew) assert.deepStrictEqual(found, expected.before, `call ${at}`)
                yield* Effect.provide(Repository.verify("w"), stores)
              })
            )
          }
        })
      )
    }
  }
})

describe("a lost answer of compareAndSet", () => {
  const lostOnce = (overtake: (one: Opened) => Effect.Effect<unknown, unknown>, apply: boolean) =>
    Effect.gen(function* () {
      const stores = yield* memory
      const one = yield* open(stores)
      let isArmed = false
      const other = yield* open(
        tapped(stores, <A>(step: Step, call: Effect.Effect<A, StoreError>) => {
          if (step !== "compareAndSet" || !isArmed) return call
          isArmed = false
          const done: Effect.Effect<unknown, StoreError> = apply ? call : Effect.void
          return Effect.andThen(Effect.andThen(done, Effect.orDie(overtake(one))), unavailable) as Effect.Effect<A, StoreError>
        })
      )
      isArmed = true
      return { stores, other }
    })

  it.live("counts as a success if the head is the new head", () =>
    Effect.gen(function* () {
      const { other, stores } = yield* lostOnce(() => Effect.void, true)
      yield* other.fs.write("a", "x", { mode: "create" })
      assert.deepStrictEqual(yield* stored(stores), { a: "x" })
      assert.strictEqual((yield* headOf(stores))!.sequence, 2)
    })
  )

  it.live("counts as a success if other writers have committed on top of the new head", () =>
    Effect.gen(function* () {
      const { other, stores } = yield* lostOnce(({ fs }) => Effect.andThen(fs.write("b", "1"), fs.write("c", "2")), true)
      yield* other.fs.write("a", "x", { mode: "create" })
      assert.deepStrictEqual(yield* stored(stores), { a: "x", b: "1", c: "2" })
    })
  )

  it.live("causes another attempt if the head is still the old head, or is the head of another writer", () =>
    Effect.gen(function* () {
      const unchanged = yield* lostOnce(() => Effect.void, false)
      yield* unchanged.other.fs.write("log", "x", { mode: "append" })
      assert.deepStrictEqual(yield* stored(unchanged.stores), { log: "x" })
      const overtaken = yield* lostOnce(({ fs }) => fs.write("b", "1"), false)
      yield* overtaken.other.fs.write("log", "x", { mode: "append" })
      assert.deepStrictEqual(yield* stored(overtaken.stores), { b: "1", log: "x" })
    })
  )

  it.live("is reported as unknown if too many commits followed", () =>
    Effect.gen(function* () {
      const { other, stores } = yield* lostOnce(
        ({ fs }) => Effect.forEach(Array.from({ length: 40 }), (_, i) => fs.write(`b${i}`, "")),
        true
      )
      const error = yield* Effect.flip(other.fs.write("a", "x"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.strictEqual((yield* stored(stores))["a"], "x")
    })
  )
})

describe("the time of a commit", () => {
  it.live("may be before the time of the commit before it", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const heads = Context.get(stores, HeadStore)
      const { fs } = yield* open(stores)
      const head = (yield* heads.get("w"))!
      const future = { ...head, sequence: head.sequence + 1, committedAt: DateTime.makeUnsafe("2990-01-01T00:00:00Z") }
      assert.isTrue(yield* heads.compareAndSet("w", head, future))
      yield* fs.write("a", "x")
      assert.deepStrictEqual(yield* stored(stores), { a: "x" })
    })
  )
})
