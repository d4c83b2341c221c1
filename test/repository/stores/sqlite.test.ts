import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { SqlClient } from "effect/sql/SqlClient"
import * as Fs from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { BlobStore, HeadStore, Stores } from "../../../src/index.ts"
import { storeSuite } from "../../../src/testing/index.ts"
import { clean } from "../../durability/children.ts"
import { inMemory } from "../../scratch.ts"
import { answered, expectAnswered, readChain, writer } from "./chain.ts"

afterAll(clean)

const makeFresh = (): string => join(Fs.mkdtempSync(join(inMemory(), "sqlite-")), "store.db")

const layerAt = (file: string, options?: Stores.SqlOptions) =>
  Stores.layerSql(options).pipe(Layer.provide(Stores.sqliteClient({ file })))

const openAt = (file: string, options?: Stores.SqlOptions) =>
  Effect.map(Layer.build(Layer.fresh(layerAt(file, options))), (context) => ({
    blobs: Context.get(context, BlobStore.BlobStore),
    heads: Context.get(context, HeadStore.HeadStore)
  }))

storeSuite(
  "stores in SQLite",
  Effect.sync(() => layerAt(makeFresh()))
)

const bytes = new TextEncoder().encode("abc")
const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
const head = (sequence: number): HeadStore.Head => ({
  root: hash,
  sequence,
  author: "ada",
  message: "m",
  committedAt: DateTime.makeUnsafe(0)
})

const reasonOf = <A, R>(effect: Effect.Effect<A, Stores.StoreError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

/** Runs statements as another program would. */
const tamper = (file: string, ...statements: ReadonlyArray<string>): void => {
  const database = new DatabaseSync(file)
  for (const statement of statements) database.exec(statement)
  database.close()
}

describe("stores in SQL", () => {
  it.live("refuse a prefix that is not a plain name", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      for (const tablePrefix of ["", "1a", "A", "a-b", 'a"b', "a; drop table x; --", "a b", "ä", "a".repeat(41)]) {
        assert.strictEqual(yield* reasonOf(openAt(file, { tablePrefix })), "invalid", tablePrefix)
      }
    }).pipe(Effect.scoped)
  )

  it.live("are independent for different prefixes", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      const one = yield* openAt(file, { tablePrefix: "one_" })
      const two = yield* openAt(file, { tablePrefix: "two_" })
      yield* one.blobs.put(bytes)
      yield* one.heads.compareAndSet("w", undefined, head(1))
      assert.strictEqual(yield* reasonOf(two.blobs.get(hash)), "missing")
      assert.deepStrictEqual(yield* Stream.runCollect(two.heads.list), [])
    }).pipe(Effect.scoped)
  )

  it.live("refuse tables of a later version, and another kind of database", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      yield* openAt(file)
      tamper(file, "update fs_algebra_format set version = 2")
      assert.strictEqual(yield* reasonOf(openAt(file)), "invalid")
      const client = yield* Effect.map(Layer.build(Stores.sqliteClient({ file })), (context) => Context.get(context, SqlClient))
      const other = new Proxy(client, {
        get: (target, key) =>
          key === "withoutTransforms"
            ? () => other
            : key === "onDialectOrElse"
              ? (options: { readonly orElse: () => unknown }) => options.orElse()
              : Reflect.get(target, key)
      })
      const layer = Stores.layerSql().pipe(Layer.provide(Layer.succeed(SqlClient, other)))
      assert.strictEqual(yield* reasonOf(Layer.build(layer)), "invalid")
    }).pipe(Effect.scoped)
  )

  it.live("detect damaged rows, and replace them when the content is put again", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      const { blobs, heads } = yield* openAt(file)
      const large = new Uint8Array(20 << 20).fill(3)
      const largeHash = yield* blobs.put(large)
      yield* blobs.put(bytes)
      const damages = [
        `update fs_algebra_blobs set content = x'00'`,
        `update fs_algebra_blobs set content = 'text'`,
        `update fs_algebra_blobs set size = -5`,
        `update fs_algebra_blobs set size = 9000000000000000`,
        `update fs_algebra_blobs set content = zeroblob(20000000)`
      ]
      for (const damage of damages) {
        tamper(file, damage)
        assert.strictEqual(yield* reasonOf(blobs.get(hash)), "corrupt", damage)
        assert.strictEqual(yield* reasonOf(blobs.get(largeHash)), "corrupt", damage)
        yield* blobs.put(bytes)
        yield* blobs.put(large)
        assert.deepStrictEqual(yield* blobs.get(hash), bytes)
        assert.strictEqual((yield* blobs.get(largeHash)).length, large.length)
      }
      tamper(file, "delete from fs_algebra_blobs where part = 1")
      assert.strictEqual(yield* reasonOf(blobs.get(largeHash)), "corrupt")
      assert.strictEqual(yield* reasonOf(blobs.get(largeHash, { offset: 9 << 20, length: 5 })), "corrupt")

      yield* heads.compareAndSet("w", undefined, head(1))
      for (const text of ["", "null", '{"version":2}', "x".repeat(1_000_000)]) {
        tamper(file, `update fs_algebra_heads set head = '${text}'`)
        assert.strictEqual(yield* reasonOf(heads.get("w")), "corrupt", text.slice(0, 40))
        assert.isFalse(yield* heads.compareAndSet("w", head(1), head(2)))
      }
    }).pipe(Effect.scoped)
  )

  it.live("fail with full if the database is full, and with unavailable if a table is missing", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      const context = yield* Layer.build(Stores.sqliteClient({ file }))
      const sql = Context.get(context, SqlClient)
      const stores = yield* Layer.build(Stores.layerSql().pipe(Layer.provide(Layer.succeed(SqlClient, sql))))
      const blobs = Context.get(stores, BlobStore.BlobStore)
      yield* blobs.put(bytes)
      yield* sql`pragma max_page_count = 20`
      assert.strictEqual(yield* reasonOf(blobs.put(new Uint8Array(1 << 20))), "full")
      assert.deepStrictEqual(yield* blobs.get(hash), bytes)
      yield* sql`drop table fs_algebra_blobs`
      assert.strictEqual(yield* reasonOf(blobs.get(hash)), "unavailable")
    }).pipe(Effect.scoped)
  )

  it.live("can be opened by many programs at once", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      const opened = yield* Effect.forEach(Array.from({ length: 10 }), () => openAt(file), { concurrency: "unbounded" })
      yield* opened[0]!.blobs.put(bytes)
      for (const { blobs } of opened) assert.deepStrictEqual(yield* blobs.get(hash), bytes)
    }).pipe(Effect.scoped)
  )

  /** Locks the database as another program would. */
  const locked = (file: string) => {
    const other = new DatabaseSync(file)
    other.exec("begin immediate")
    return () => {
      other.exec("commit")
      other.close()
    }
  }
  const turns = Effect.promise(async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  })

  it.live("wait while another program has locked the database", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      const { blobs, heads } = yield* openAt(file)
      const unlock = locked(file)
      const put = yield* Effect.forkChild(blobs.put(bytes))
      const isSet = yield* Effect.forkChild(heads.compareAndSet("w", undefined, head(1)))
      yield* turns
      unlock()
      assert.strictEqual(yield* Fiber.join(put), hash)
      assert.isTrue(yield* Fiber.join(isSet))
      assert.strictEqual((yield* heads.get("w"))?.sequence, 1)
    }).pipe(Effect.scoped)
  )

  it.live("keep a change that had to wait, when a transaction of another fiber fails", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      const context = yield* Layer.build(Stores.sqliteClient({ file }))
      const stores = yield* Layer.build(Stores.layerSql().pipe(Layer.provide(Layer.succeedContext(context))))
      const heads = Context.get(stores, HeadStore.HeadStore)
      const sql = Context.get(context, SqlClient)
      for (let round = 0; round < 20; round++) {
        const unlock = locked(file)
        const isSet = yield* Effect.forkChild(heads.compareAndSet(`w${round}`, undefined, head(1)))
        yield* turns
        const isAnswered = yield* Deferred.make<void>()
        const failing = yield* Effect.forkChild(
          sql.withTransaction(Effect.andThen(Deferred.await(isAnswered), Effect.fail("rollback")))
        )
        yield* turns
        unlock()
        assert.isTrue(yield* Fiber.join(isSet))
        yield* Deferred.succeed(isAnswered, undefined)
        yield* Fiber.await(failing)
        assert.strictEqual((yield* heads.get(`w${round}`))?.sequence, 1, `round ${round}`)
      }
    }).pipe(Effect.scoped)
  )

  it.live("report a file that is not a database as corrupt, and a path below a file as unavailable", () =>
    Effect.gen(function* () {
      const file = makeFresh()
      Fs.writeFileSync(file, "x".repeat(10_000))
      assert.strictEqual(yield* reasonOf(openAt(file)), "corrupt")
      assert.strictEqual(yield* reasonOf(openAt(join(file, "below"))), "unavailable")
    }).pipe(Effect.scoped)
  )
})

describe("processes on one SQLite file that are killed by SIGKILL", () => {
  it.live("lose no confirmed commit, make none twice, and do not block other processes", () =>
    Effect.gen(function* () {
      const place = { file: makeFresh() }
      const children = ["a", "b", "c"].map((name) => writer({ place, name, fibers: 2 }))
      for (let round = 0; round < 3; round++) {
        const victim = children.at(-1)!
        yield* Effect.promise(() => victim.dots(200))
        victim.process.kill("SIGKILL")
        const { errors, signal } = yield* Effect.promise(() => victim.ended)
        assert.strictEqual(signal, "SIGKILL", errors)
        children.push(writer({ place, name: `later${round}`, fibers: 2 }))
      }
      yield* Effect.promise(() => children.at(-1)!.dots(200))
      for (const child of children) child.process.kill("SIGKILL")
      for (const child of children) assert.strictEqual((yield* Effect.promise(() => child.ended)).signal, "SIGKILL")
      const authors = yield* readChain(yield* openAt(place.file))
      assert.isAbove(new Set(children.flatMap(answered).map(([, author]) => author.split(":")[0])).size, 2)
      expectAnswered(authors, children)
    }).pipe(Effect.scoped)
  )
})
