import { afterAll, assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { SqlClient } from "effect/sql/SqlClient"
import { BlobStore, HeadStore, Repository, Stores } from "../../../src/index.ts"
import { laws, storeSuite, suite } from "../../../src/testing/index.ts"
import { clean } from "../../durability/children.ts"
import { isSoak, randomPrograms } from "../../runs.ts"
import { contentLaws, contentsOn } from "../../journal/contentLaws.ts"
import { answered, expectAnswered, readChain, writer } from "./chain.ts"
import { postgresClient } from "./places.ts"
import { describePostgres, server, startServer } from "./postgres.ts"

afterAll(clean)

let places = 0
const layerAt = (url: string, tablePrefix?: string) =>
  Stores.layerSql(tablePrefix === undefined ? {} : { tablePrefix }).pipe(Layer.provide(postgresClient(url)))

const openAt = (url: string, tablePrefix?: string) =>
  Effect.map(Layer.build(Layer.fresh(layerAt(url, tablePrefix))), (context) => ({
    blobs: Context.get(context, BlobStore.BlobStore),
    heads: Context.get(context, HeadStore.HeadStore)
  }))

const head = (sequence: number): HeadStore.Head => ({
  root: "r",
  sequence,
  author: "ada",
  message: "m",
  committedAt: DateTime.makeUnsafe(0)
})

describePostgres("on Postgres", () => {
  storeSuite(
    "stores in SQL",
    Effect.map(Effect.promise(server), ({ url }) => layerAt(url, `place${places++}_`))
  )

  contentLaws(
    "stores in Postgres",
    Effect.flatMap(Effect.promise(server), ({ url }) => contentsOn(layerAt(url, `place${places++}_`)))
  )

  // Workspaces with names of their own share the tables, which take longer to make than a program to run.
  suite(
    "a repository on Postgres",
    Layer.unwrap(
      Effect.map(Effect.promise(server), ({ url }) =>
        Layer.provide(Repository.layer({ workspace: `laws ${places++}` }), layerAt(url, "laws_"))
      )
    ),
    { ...randomPrograms(5, 2_000), laws: isSoak ? laws : [] }
  )

  it.live("many programs can create the tables at the same time", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.promise(server)
      const opened = yield* Effect.forEach(Array.from({ length: 8 }), () => openAt(url, "together_"), {
        concurrency: "unbounded"
      })
      assert.isTrue(yield* opened[0]!.heads.compareAndSet("w", undefined, head(1)))
      for (const { heads } of opened) assert.strictEqual((yield* heads.get("w"))?.sequence, 1)
    }).pipe(Effect.scoped)
  )

  it.live("a program without the permission to create tables can use existing tables", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.promise(server)
      yield* openAt(url, "granted_")
      const context = yield* Layer.build(postgresClient(url))
      const sql = Context.get(context, SqlClient)
      yield* sql`create role guest login`
      yield* sql`revoke create on schema public from public`
      yield* sql`grant select, insert, update, delete on granted_blobs, granted_heads, granted_format to guest`
      const { blobs } = yield* openAt(url.replace("postgres@", "guest@"), "granted_")
      const hash = yield* blobs.put(Uint8Array.of(1))
      assert.deepStrictEqual(yield* blobs.get(hash), Uint8Array.of(1))
      const error = yield* Effect.flip(openAt(url.replace("postgres@", "guest@"), "absent_"))
      assert.strictEqual((error as Stores.StoreError).reason, "unavailable")
    }).pipe(Effect.scoped)
  )

  it.live("a rollback of the database transaction also undoes a new head", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.promise(server)
      const context = yield* Layer.build(postgresClient(url))
      const sql = Context.get(context, SqlClient)
      const stores = yield* Layer.build(
        Stores.layerSql({ tablePrefix: "rolled_" }).pipe(Layer.provide(Layer.succeed(SqlClient, sql)))
      )
      const heads = Context.get(stores, HeadStore.HeadStore)
      yield* Effect.ignore(
        sql.withTransaction(Effect.andThen(heads.compareAndSet("w", undefined, head(1)), Effect.fail("rolled back")))
      )
      assert.isUndefined(yield* heads.get("w"))
    }).pipe(Effect.scoped)
  )

  it.live("calls fail with unavailable while the server is paused, and no confirmed commit is lost", () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(startServer)
      yield* Effect.addFinalizer(() => Effect.sync(server.resume))
      const children = [writer({ place: { url: server.url }, name: "a", fibers: 4 }, false)]
      const context = yield* Layer.build(
        Stores.layerSql({ timeout: "1 second" }).pipe(Layer.provide(postgresClient(server.url)))
      )
      const blobs = Context.get(context, BlobStore.BlobStore)
      const heads = Context.get(context, HeadStore.HeadStore)
      const bytes = new TextEncoder().encode("content")
      const hash = yield* blobs.put(bytes)
      yield* Effect.promise(() => children[0]!.dots(20))
      server.pause()
      const calls: ReadonlyArray<readonly [string, Effect.Effect<unknown, BlobStore.StoreError>]> = [
        ["get", blobs.get(hash)],
        ["put", blobs.put(bytes)],
        ["has", blobs.has([hash])],
        ["list", Stream.runDrain(blobs.list)],
        ["head", heads.get("w")],
        ["compareAndSet", heads.compareAndSet("w", undefined, head(1))],
        ["large put", blobs.put(new Uint8Array(9 * 1024 * 1024))]
      ]
      for (const [name, call] of calls) {
        const error = yield* Effect.flip(call)
        assert.strictEqual(error.reason, "unavailable", name)
      }
      server.resume()
      assert.deepStrictEqual(yield* blobs.get(hash), bytes)
      yield* Effect.promise(() => children[0]!.dots(20))
      children[0]!.process.kill("SIGKILL")
      yield* Effect.promise(() => children[0]!.ended)
      expectAnswered(yield* readChain(yield* openAt(server.url)), children)
    }).pipe(Effect.scoped)
  )

  it.live("a put of a large blob fails, and its interruption ends, while the server waits in the commit", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.promise(server)
      yield* openAt(url, "stuck_")
      const sql = Context.get(yield* Layer.build(postgresClient(url)), SqlClient)
      // The server runs a deferred trigger in the commit. The trigger waits for a lock that the test holds.
      yield* sql`create function stuck() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock_shared(77); return null; end'`
      yield* sql`create constraint trigger stuck after insert on stuck_blobs deferrable initially deferred for each row execute function stuck()`
      const context = yield* Layer.build(
        Stores.layerSql({ tablePrefix: "stuck_", timeout: "300 millis" }).pipe(Layer.provide(postgresClient(url)))
      )
      const blobs = Context.get(context, BlobStore.BlobStore)
      const content = new Uint8Array(9 * 1024 * 1024).fill(5)
      const error = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_advisory_xact_lock(77)`
          // A fiber of its own lets the test end although the call does not.
          return yield* Fiber.join(yield* Effect.forkDetach(Effect.flip(blobs.put(content))))
        })
      )
      assert.strictEqual(error.reason, "unavailable")
      // Two parts are written in a transaction of four statements.
      assert.include(error.detail, "the database has not answered for 1s 200ms")
      const isInterrupted = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select pg_advisory_xact_lock(77)`
          const call = yield* Effect.forkDetach(blobs.put(new Uint8Array(9 * 1024 * 1024).fill(6)))
          const isWaiting = sql<{
            count: number
          }>`select count(*)::int as count from pg_locks where locktype = 'advisory' and not granted`
          while (Number((yield* isWaiting)[0]!.count) === 0) yield* Effect.sleep("5 millis")
          call.interruptUnsafe()
          return Exit.hasInterrupts(yield* Fiber.await(call))
        })
      )
      assert.isTrue(isInterrupted)
      const hash = yield* blobs.put(content)
      assert.strictEqual((yield* blobs.get(hash))?.length, content.length)
    }).pipe(Effect.scoped)
  )

  it.live(
    "no confirmed commit is lost if the server crashes and the writers are killed by SIGKILL",
    () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(startServer)
        const place = { url: server.url }
        const children = ["a", "b"].map((name) => writer({ place, name, fibers: 2 }, false))
        for (let round = 0; round < 3; round++) {
          // A writer that has not opened the store when the server crashes fails, as it should.
          yield* Effect.promise(() => Promise.all(children.slice(round).map((child) => child.dots(1))))
          yield* Effect.promise(() => children.at(-1)!.dots(150 * (round + 1)))
          yield* Effect.promise(server.crash)
          yield* Effect.promise(server.start)
          children[round]!.process.kill("SIGKILL")
          children.push(writer({ place, name: `later${round}`, fibers: 2 }, false))
        }
        yield* Effect.promise(() => children.at(-1)!.dots(150))
        for (const child of children) child.process.kill("SIGKILL")
        for (const child of children) {
          const { errors, signal } = yield* Effect.promise(() => child.ended)
          assert.strictEqual(signal, "SIGKILL", errors)
        }
        const authors = yield* readChain(yield* openAt(server.url))
        assert.isAbove(new Set(children.flatMap(answered).map(([, author]) => author.split(":")[0])).size, 2)
        expectAnswered(authors, children)
      }).pipe(Effect.scoped),
    120_000
  )
})
