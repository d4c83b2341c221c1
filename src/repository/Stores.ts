/**
 * The stores in which repositories keep their blobs and heads.
 *
 * All stores behave in the same way, which `StoreSuite` in `fs-algebra/testing` tests. The stores differ in their durability,
 * and in the programs that can share them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { BlobStore } from "./BlobStore.ts"
import { HeadStore } from "./HeadStore.ts"
import { optionsOfUrl } from "./stores/jetStream/options.ts"
import * as Memory from "./stores/memory.ts"
import type { SqlClient } from "effect/sql/SqlClient"
import type { BucketOptions } from "./stores/bucket.ts"
import type { DirectoryOptions } from "./stores/directory.ts"
import type { JetStreamOptions } from "./stores/jetStream/options.ts"
import type { StoreError } from "./errors.ts"
import type { SqlOptions } from "./stores/sql.ts"
import type { SqliteOptions } from "./stores/sqlite.ts"
import type { Stores } from "./stores/stores.ts"

export type {
  /**
   * The options of stores in a bucket.
   *
   * @since 0.1.0
   */
  BucketOptions
} from "./stores/bucket.ts"
export type {
  /**
   * The options of stores in a directory.
   *
   * @since 0.1.0
   */
  DirectoryOptions
} from "./stores/directory.ts"
export type {
  /** @since 0.1.0 */
  Authentication,
  /**
   * The options of stores on a NATS server.
   *
   * @since 0.1.0
   */
  JetStreamOptions
} from "./stores/jetStream/options.ts"
export type {
  /**
   * The options of stores in a SQL database.
   *
   * @since 0.1.0
   */
  SqlOptions
} from "./stores/sql.ts"
export type {
  /**
   * The options of a client of SQLite.
   *
   * @since 0.1.0
   */
  SqliteOptions
} from "./stores/sqlite.ts"

export {
  /** @since 0.1.0 */
  StoreError
} from "./errors.ts"

const toContext = ({ blobs, heads }: Stores): Context.Context<BlobStore | HeadStore> =>
  Context.add(Context.make(BlobStore, blobs), HeadStore, heads)

/**
 * Provides stores in memory, for tests. Each build of the layer makes new, empty stores. So share one layer between the programs
 * that work together, or provide it once around all of them.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function* () {
 *   const blobs = yield* BlobStore.BlobStore
 *   const hash = yield* blobs.put(Uint8Array.of(1, 2, 3))
 *   return yield* blobs.get(hash, { offset: 1, length: 9 })
 * })
 * yield* Effect.provide(program, Stores.layerMemory) // => Uint8Array.of(2, 3)
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<BlobStore | HeadStore> = Layer.effectContext(Effect.map(Memory.make, toContext))

/**
 * Provides stores in a directory. Any number of programs on one machine may use the directory at the same time. No server is
 * needed.
 *
 * A change is complete or absent after a crash of the program. With `fsync: true`, a complete change also survives a loss of
 * power. If content is put again, the content is compared with the stored bytes, and a damaged file is replaced. Building the
 * layer removes the leftovers of dead processes.
 *
 * Fails with `invalid` if the directory contains other files, or a store of a later version.
 *
 * Limits:
 *
 * - Programs on several machines, or in several containers, may share the directory if each can see within 60 seconds that
 *   another is alive. A program that is paused for longer while it replaces a head may overwrite a newer head when it
 *   continues.
 * - The directory must support renames that replace files. On network disks, `changes` may report a head only after a second.
 * - A blob has at most 1 GiB.
 *
 * @example
 * ```ts
 * const stores = Stores.layerDirectory({ directory: "/var/lib/reports", fsync: true })
 * yield* Effect.provide(BlobStore.BlobStore.use((blobs) => blobs.put(Uint8Array.of(1, 2, 3))), stores)
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerDirectory = (options: DirectoryOptions): Layer.Layer<BlobStore | HeadStore, StoreError> =>
  Layer.effectContext(
    Effect.flatMap(
      Effect.promise(() => import("./stores/directory.ts")),
      ({ open }) => Effect.map(open(options), toContext)
    )
  )

/**
 * Provides stores in the tables of a SQL database: Postgres with `PgClient` of `@effect/sql-pg`, or SQLite with `sqliteClient`.
 * Creates the tables if they do not exist. Any number of programs may use the tables at the same time.
 *
 * A change that has returned is as durable as a committed transaction of the database. If content is put again, the content is
 * compared with the stored bytes, and a damaged row is replaced.
 *
 * Fails with `invalid` for another kind of database, for an invalid prefix, and for tables of a later version.
 *
 * Limits:
 *
 * - `changes` queries the database four times a second for each reader. A call that waits for longer than `timeout` for a
 * Postgres   server fails with `unavailable`, and the server may still make the change later.
 * - A call inside a transaction of the same client is part of that transaction.
 * - A Postgres database must have the encoding UTF8. A blob has at most 1 GiB.
 *
 * @example
 * ```ts
 * const stores = Stores.layerSql().pipe(Layer.provide(Stores.sqliteClient({ file: "reports.db" })))
 * yield* Effect.provide(BlobStore.BlobStore.use((blobs) => blobs.put(Uint8Array.of(1, 2, 3))), stores)
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerSql = (options: SqlOptions = {}): Layer.Layer<BlobStore | HeadStore, StoreError, SqlClient> =>
  Layer.effectContext(
    Effect.flatMap(
      Effect.promise(() => import("./stores/sql.ts")),
      ({ open }) => Effect.map(open(options), toContext)
    )
  )

/**
 * Provides a SQL client for SQLite that uses Node's own module `node:sqlite`, so that no package is needed. Node marks this
 * module as experimental. Several programs on one machine may use the file at the same time; the file must not be on a network
 * disk.
 *
 * @category layers
 * @since 0.1.0
 */
export const sqliteClient = (options: SqliteOptions): Layer.Layer<SqlClient, StoreError> =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./stores/sqlite.ts")),
      ({ layer }) => layer(options)
    )
  )

/**
 * Provides stores in a bucket, or below a prefix of a bucket, of an S3-compatible store. Any number of programs on any machines
 * may use the bucket at the same time. A change that has returned is as durable as an object of the bucket.
 *
 * Building the layer tests, with an object of its own, that the store obeys conditional writes. Fails with `unavailable` if the
 * store ignores conditions, does not answer or refuses the credentials. Fails with `invalid` for an invalid option.
 *
 * Limits:
 *
 * - `changes` polls the store once a second for each reader. `storedAt` may be truncated to whole seconds.
 * - A deleted workspace leaves an object of one byte. The bucket must not have versioning, because some stores then ignore
 *   conditions.
 * - `has` and `delete` send one request for each hash. `put` sends existing content again.
 *
 * Requires the package `aws4fetch`, unless the requests are not signed.
 *
 * @example
 * ```ts
 * const stores = Stores.layerBucket({ bucket: "reports", prefix: "workspaces", endpoint: "http://127.0.0.1:9000" })
 * yield* Effect.provide(BlobStore.BlobStore.use((blobs) => blobs.put(Uint8Array.of(1, 2, 3))), stores)
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerBucket = (options: BucketOptions): Layer.Layer<BlobStore | HeadStore, StoreError> =>
  Layer.effectContext(
    Effect.flatMap(
      Effect.promise(() => import("./stores/bucket.ts")),
      ({ open }) => Effect.map(open(options), toContext)
    )
  )

/**
 * Provides stores on a NATS server with JetStream. The blobs are in the object store `NAME-blobs`, and the heads in the
 * key-value bucket `NAME-heads`. Creates both if they do not exist. Any number of programs on any machines may use them at the
 * same time. A change that has returned is as durable as a message of a stream with file storage.
 *
 * While the server cannot be reached, calls wait for up to `timeout`. If the answer to a change is lost, the change is sent
 * again, and the server makes it only once. The server notifies `changes` of each head.
 *
 * Fails with `unavailable` if the server does not answer, refuses the credentials or has no JetStream. Fails with `invalid` for
 * an invalid option, and for buckets whose settings can lose messages.
 *
 * Limits:
 *
 * - The result of a `compareAndSet` may be unknown if the connection is lost, and more than 15 other changes follow before
 *   the client reconnects. The call then fails with `unavailable`.
 * - A deleted workspace leaves a marker of about 200 bytes. A program that is killed during a `put` leaves parts of one blob. A
 *   garbage collection removes them when they are older than its grace period and than one hour.
 * - `put` sends existing content again. `has` and `delete` send one request for each hash.
 * - `storedAt` is the time of the server's clock.
 *
 * Requires the packages `@nats-io/transport-node` and `@nats-io/jetstream`, and a NATS server of 2.9 or later.
 *
 * @example
 * ```ts
 * const stores = Stores.layerJetStream({ servers: ["nats-1:4222", "nats-2:4222"], name: "reports" })
 * yield* Effect.provide(BlobStore.BlobStore.use((blobs) => blobs.put(Uint8Array.of(1, 2, 3))), stores)
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layerJetStream = (options: JetStreamOptions): Layer.Layer<BlobStore | HeadStore, StoreError> =>
  Layer.effectContext(
    Effect.flatMap(
      Effect.promise(() => import("./stores/jetStream.ts")),
      ({ open }) => Effect.map(open(options), toContext)
    )
  )

/**
 * Reads the options of `layerJetStream` from one text: `nats://HOST:PORT/NAME`. Several hosts of one cluster are separated by
 * commas. Credentials precede the hosts: `nats://USER:PASSWORD@HOST:PORT/NAME` or `nats://TOKEN@HOST:PORT/NAME`. With `tls://`,
 * the connection must be encrypted.
 *
 * Fails with `invalid` for any other text. The message does not contain the text, because the text may contain a password.
 *
 * @example
 * ```ts
 * const options = yield* Stores.jetStreamUrl("nats://nats-1:4222,nats-2:4222/reports")
 * options.servers // => ["nats-1:4222", "nats-2:4222"]
 * ```
 * @category layers
 * @since 0.1.0
 */
export const jetStreamUrl: (url: string) => Effect.Effect<JetStreamOptions, StoreError> = optionsOfUrl
