/**
 * A SQLite client that uses Node's own module. Each statement runs synchronously. If another connection has locked the
 * database, the statement is retried for up to 30 seconds. Other fibers run meanwhile, but their statements wait.
 */
import type * as NodeSqlite from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import { makeCompilerSqlite } from "effect/sql/Statement"
import * as ProcessLock from "../../runtime/processLock.ts"
import { builtin } from "../../runtime/node.ts"
import { StoreError } from "../errors.ts"
import { reasonOf } from "./sql.ts"

export interface SqliteOptions {
  /** The path of the database file, which is created if it does not exist. `:memory:` is a database in memory. */
  readonly file: string
}

const lockedMillis = 30_000
const pauseMillis = 5

/** Converts an error of Node. Node has the result code of SQLite in `errcode`, but `classifySqliteError` reads `errno`. */
const toSqlError = (cause: unknown): SqlError =>
  new SqlError({
    reason: classifySqliteError(
      cause instanceof Error && "errcode" in cause ? Object.assign(cause, { errno: cause.errcode }) : cause,
      {
        message: "Failed to execute statement",
        operation: "execute"
      }
    )
  })

const retryLocked = <A>(run: Effect.Effect<A, SqlError>, left = lockedMillis): Effect.Effect<A, SqlError> =>
  Effect.catchIf(
    run,
    ({ reason }) => reason._tag === "LockTimeoutError" && left > 0,
    () => Effect.andThen(ProcessLock.pause(pauseMillis), retryLocked(run, left - pauseMillis))
  )

const connect = (database: NodeSqlite.DatabaseSync): Connection => {
  const run = <A>(use: () => A): Effect.Effect<A, SqlError> => retryLocked(Effect.try({ try: use, catch: toSqlError }))
  const all = (sql: string, params: ReadonlyArray<unknown>) =>
    run(() => database.prepare(sql).all(...(params as ReadonlyArray<NodeSqlite.SQLInputValue>)))
  const execute: Connection["execute"] = (sql, params, transformRows) =>
    Effect.map(all(sql, params), (rows) => (transformRows === undefined ? rows : transformRows(rows)))
  const executeValues: Connection["executeValues"] = (sql, params) =>
    Effect.map(all(sql, params), (rows) => rows.map((row) => Object.values(row)))
  return {
    execute,
    executeRaw: all,
    executeStream: (sql, params, transformRows) => Stream.fromIterableEffect(execute(sql, params, transformRows)),
    executeValues,
    executeValuesUnprepared: executeValues,
    executeUnprepared: execute
  }
}

const open = ({ file }: SqliteOptions): Effect.Effect<SqlClient.SqlClient, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const database = yield* Effect.acquireRelease(
      Effect.try({
        try: () => {
          const sqlite = builtin<typeof NodeSqlite>("node:sqlite")
          return new sqlite.DatabaseSync(file)
        },
        catch: (cause) =>
          new StoreError({
            reason: "unavailable",
            detail: `the SQLite database cannot be opened: ${cause instanceof Error ? cause.message : String(cause)}`
          })
      }),
      (database) => Effect.sync(() => database.close())
    )
    const connection = connect(database)
    // With WAL, readers do not wait for writers. With `synchronous = full`, a committed change survives a loss of power.
    yield* Effect.forEach(["pragma journal_mode = wal", "pragma synchronous = full"], (sql) =>
      connection.executeRaw(sql, [])
    ).pipe(
      Effect.mapError(
        (error) => new StoreError({ reason: reasonOf(error), detail: `the SQLite database cannot be used: ${error.message}` })
      )
    )
    const semaphore = yield* Semaphore.make(1)
    // A statement has the connection until it is done, also while it waits. Otherwise the statement could become part of another
    // fiber's transaction, and be rolled back with this transaction.
    const acquirers = SqlClient.makeSqliteAcquirers({
      connection: Effect.succeed(connection),
      semaphore,
      isTransaction: () => database.isTransaction
    })
    return yield* Effect.provide(
      SqlClient.make({
        ...acquirers,
        compiler: makeCompilerSqlite(),
        driver: "sqlite-node",
        spanAttributes: [["db.system.name", "sqlite"]],
        // A transaction that begins with a read cannot always write later.
        beginTransaction: "begin immediate"
      }),
      Reactivity.layer
    )
  })

export const layer = (options: SqliteOptions): Layer.Layer<SqlClient.SqlClient, StoreError> =>
  Layer.effect(SqlClient.SqlClient, open(options))
