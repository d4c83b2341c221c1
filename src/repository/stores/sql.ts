/**
 * Stores in the tables of a SQL database, through effect's `SqlClient`: SQLite or Postgres.
 *
 * A blob is one row, or several rows of at most 8 MiB, because Postgres clients limit the size of an answer. A head is one row,
 * which one statement compares and replaces.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { concatenate } from "../../runtime/buffer.ts"
import { createHash } from "../../runtime/node.ts"
import { StoreError } from "../errors.ts"
import * as Blobs from "./blobs.ts"
import * as Heads from "./heads.ts"
import * as Spool from "./spool.ts"
import type { Stores } from "./stores.ts"
import * as Wakes from "./wakes.ts"

export interface SqlOptions {
  /**
   * The prefix of the table names: lowercase letters, digits and "_". Stores with different prefixes in one database are
   * independent.
   * @default "fs_algebra_"
   */
  readonly tablePrefix?: string | undefined
  /**
   * The longest wait for the answer of a Postgres server to one statement, before a call fails with `unavailable`. The server may
   * still make the change later.
   * @default "1 minute"
   */
  readonly timeout?: Duration.Input | undefined
}

const version = 1
const partBytes = 8 * 1024 * 1024
/** The number of hashes in one statement. Old versions of SQLite permit 999 parameters. */
const hashesAtOnce = 500
const pageSize = 1_000
/** The maximum number of statements that open the store. */
const openingStatements = 10
const pollTime = "250 millis"
const maxDetailChars = 300

const invalid = (detail: string): StoreError => new StoreError({ reason: "invalid", detail })

/** The codes for a database without space: two of Postgres (disk full, out of memory), and one of SQLite. */
const fullCodes: ReadonlySet<unknown> = new Set(["53100", "53200"])
const sqliteFull = 13
/**
 * The codes for a damaged database: in Postgres, damaged data or a damaged index; in SQLite, a malformed file or a file of
 * another format.
 */
const corruptCodes: ReadonlySet<unknown> = new Set(["XX001", "XX002"])
const sqliteCorrupt: ReadonlySet<number> = new Set([11, 26])

/** Returns the StoreError reason for a database error. */
export const reasonOf = ({ reason }: SqlError): StoreError["reason"] => {
  const cause = (reason as { readonly cause?: unknown }).cause
  if (typeof cause !== "object" || cause === null) return "unavailable"
  const code = "code" in cause ? cause.code : undefined
  const number = "errcode" in cause && typeof cause.errcode === "number" ? cause.errcode & 0xff : undefined
  if (fullCodes.has(code) || number === sqliteFull) return "full"
  return corruptCodes.has(code) || (number !== undefined && sqliteCorrupt.has(number)) ? "corrupt" : "unavailable"
}

const toStoreError =
  (what: string) =>
  (error: SqlError): StoreError => {
    const cause = (error.reason as { readonly cause?: unknown }).cause
    const said = `${error.message}${cause instanceof Error ? `: ${cause.message}` : ""}`
    return new StoreError({ reason: reasonOf(error), detail: `${what}: the database failed: ${said.slice(0, maxDetailChars)}` })
  }

/** Tests whether a statement was certainly not applied, and may succeed if it is repeated. */
const isConflict = (error: SqlError | StoreError): boolean =>
  error._tag === "SqlError" && (error.reason._tag === "DeadlockError" || error.reason._tag === "SerializationError")

/** Interrupts a fiber, and waits for its end, but at most for the given time. */
const interruptWithin = <A, E>(fiber: Fiber.Fiber<A, E>, duration: Duration.Duration): Effect.Effect<void> =>
  Effect.flatMap(Effect.forkDetach(Effect.interruptible(Effect.sleep(duration))), (timer) =>
    Effect.callback<void>((resume) => {
      const end = (): void => {
        timer.interruptUnsafe()
        resume(Effect.void)
      }
      fiber.addObserver(end)
      timer.addObserver(end)
      fiber.interruptUnsafe()
    })
  )

/**
 * Runs an effect for at most the given time. An effect that has not ended by then is interrupted, but not awaited: the start and
 * the commit of a transaction cannot be interrupted, and a server that does not answer does not confirm an interruption. An
 * interruption of the caller waits for at most the same time.
 */
const abandonedAfter = <A, E, R>(run: Effect.Effect<A, E, R>, duration: Duration.Duration, timedOut: Effect.Effect<never, E>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(restore(run), { startImmediately: true }), (fiber) =>
      Effect.flatMap(
        Effect.onInterrupt(restore(Effect.timeoutOption(Fiber.await(fiber), duration)), () => interruptWithin(fiber, duration)),
        Option.match({
          onNone: () =>
            Effect.andThen(
              Effect.sync(() => fiber.interruptUnsafe()),
              timedOut
            ),
          onSome: (exit): Effect.Effect<A, E> => exit
        })
      )
    )
  )

/** Makes the function that runs the statements of a call. Without `timeout`, the function waits without a limit. */
const makeAnswer =
  (timeout: Duration.Duration | undefined) =>
  (what: string, statements = 1) =>
  <A>(run: Effect.Effect<A, SqlError | StoreError>): Effect.Effect<A, StoreError> => {
    const limit = timeout && Duration.times(timeout, statements)
    const timedOut = Effect.suspend(() => {
      const detail = `${what}: the database has not answered for ${Duration.format(limit!)}`
      return Effect.fail(new StoreError({ reason: "unavailable", detail }))
    })
    const limited = limit === undefined ? run : abandonedAfter(run, limit, timedOut)
    return limited.pipe(
      Effect.retry({ while: isConflict, times: 20, schedule: Schedule.jittered(Schedule.spaced("20 millis")) }),
      Effect.mapError((error) => (error._tag === "StoreError" ? error : toStoreError(what)(error)))
    )
  }

type Answer = ReturnType<typeof makeAnswer>

interface Tables {
  readonly blobs: string
  readonly heads: string
  readonly format: string
}

/** Creates the tables if they do not exist. Several programs may do so at once. */
const prepare = (sql: SqlClient, tables: Tables, answer: Answer): Effect.Effect<void, StoreError> => {
  const { hasTables, lock, texts } = sql.onDialectOrElse({
    pg: () => ({
      hasTables: sql<{ found: unknown }>`select to_regclass(${`"${tables.format}"`})::text as found`,
      lock: sql`select pg_advisory_xact_lock(hashtext(${tables.format}))`,
      texts: { bytes: "bytea", text: 'text collate "C"', whole: "bigint" }
    }),
    orElse: () => ({
      hasTables: sql<{ found: unknown }>`select max(name) as found from sqlite_master where name = ${tables.format}`,
      lock: Effect.void,
      texts: { bytes: "blob", text: "text", whole: "integer" }
    })
  })
  const [bytes, text, whole] = [sql.literal(texts.bytes), sql.literal(texts.text), sql.literal(texts.whole)]
  const readVersion = Effect.gen(function* () {
    const [row] = yield* hasTables
    if (row?.found === null || row === undefined) return undefined
    const [format] = yield* sql<{ version: number }>`select version from ${sql(tables.format)}`
    return format === undefined ? undefined : Number(format.version)
  })
  const create = Effect.gen(function* () {
    yield* lock
    if ((yield* readVersion) !== undefined) return
    yield* sql`create table if not exists ${sql(tables.blobs)} (hash ${text} not null, part integer not null, size ${whole} not null, stored_at ${whole} not null, content ${bytes} not null, primary key (hash, part))`
    yield* sql`create table if not exists ${sql(tables.heads)} (workspace ${text} not null primary key, head text not null)`
    yield* sql`create table if not exists ${sql(tables.format)} (version integer not null)`
    yield* sql`insert into ${sql(tables.format)} (version) values (${version})`
  })
  return Effect.gen(function* () {
    if ((yield* readVersion) === undefined) yield* sql.withTransaction(create)
    return yield* readVersion
  }).pipe(
    answer("opening the store", openingStatements),
    Effect.flatMap((found) =>
      found === version
        ? Effect.void
        : Effect.fail(
            invalid(
              found === undefined
                ? `the table ${tables.format} has no row with a version`
                : `the tables ${tables.blobs} and ${tables.heads} have the version ${found}; update fs-algebra`
            )
          )
    )
  )
}

const toBytes = (value: unknown): Uint8Array => (value instanceof Uint8Array ? new Uint8Array(value) : new Uint8Array())

const makeBlobs = (sql: SqlClient, tables: Tables, answer: Answer) => {
  const table = sql(tables.blobs)
  const isSame = (bytes: Uint8Array) =>
    sql.onDialectOrElse({
      pg: () => sql`sha256(content) = ${new Uint8Array(createHash("sha256").update(bytes).digest())}`,
      orElse: () => sql`content = ${bytes}`
    })
  /** Runs a statement for all hashes, in groups that one statement can name. Returns all its rows. */
  const forHashes = <A>(
    what: string,
    hashes: ReadonlyArray<string>,
    run: (some: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<A>, SqlError>
  ): Effect.Effect<ReadonlyArray<A>, StoreError> => {
    const groups = Arr.chunksOf(hashes, hashesAtOnce)
    return Effect.map(Effect.forEach(groups, run), (rows) => rows.flat()).pipe(answer(what, Math.max(1, groups.length)))
  }
  const partsOf = (size: number): number => Math.max(1, Math.ceil(size / partBytes))

  /** Reads `length` bytes from `offset` of a part, with the size of the whole blob. */
  const readPart = (hash: string, part: number, offset: number, length: number) =>
    sql<{
      size: number | bigint
      content: unknown
    }>`select size, substr(content, ${offset + 1}, ${length}) as content from ${table} where hash = ${hash} and part = ${part}`

  /** Writes the parts one after another, so that one of them is in memory at a time. */
  const putSource = (hash: string, { read, size }: Spool.Source): Effect.Effect<void, StoreError> =>
    Effect.gen(function* () {
      const what = `put of the blob ${hash}`
      const now = Math.trunc(yield* Clock.currentTimeMillis)
      const count = partsOf(size)
      const contentOf = (part: number) => read(part * partBytes, Math.min(partBytes, size - part * partBytes))
      const refresh = Effect.gen(function* () {
        for (let part = 0; part < count; part++) {
          const content = yield* contentOf(part)
          const found =
            yield* sql`update ${table} set stored_at = ${now} where hash = ${hash} and part = ${part} and size = ${size} and ${isSame(content)} returning part`
          if (found.length === 0) return false
        }
        return true
      })
      const insert = Effect.gen(function* () {
        for (let part = 0; part < count; part++) {
          const content = yield* contentOf(part)
          yield* sql`insert into ${table} (hash, part, size, stored_at, content) values (${hash}, ${part}, ${size}, ${now}, ${content}) on conflict (hash, part) do update set size = excluded.size, stored_at = excluded.stored_at, content = excluded.content`
        }
      })
      if (yield* answer(what, count)(refresh)) return
      yield* answer(what, count + 2)(count === 1 ? insert : sql.withTransaction(insert))
    })

  const sizeOf: Blobs.Contents["sizeOf"] = (hash) =>
    sql<{ size: number | bigint }>`select size from ${table} where hash = ${hash} and part = 0`.pipe(
      answer(`look at the blob ${hash}`),
      Effect.map(([row]) => (row === undefined ? undefined : Number(row.size)))
    )

  return Blobs.make({
    put: (hash, bytes) => putSource(hash, Spool.sourceOf(bytes)),
    putStream: Spool.spooled(sizeOf, putSource),
    sizeOf,
    get: (hash, range) =>
      Effect.gen(function* () {
        const what = answer(`get of the blob ${hash}`)
        const from = range?.offset ?? 0
        // The first part has the size of the blob.
        const firstOffset = Math.min(from, partBytes)
        const firstLength = Math.min(range?.length ?? partBytes, partBytes - firstOffset)
        const [first] = yield* what(readPart(hash, 0, firstOffset, firstLength))
        if (first === undefined) return undefined
        const size = Number(first.size)
        const end = range === undefined ? size : Math.min(size, from + range.length)
        if (!Number.isSafeInteger(size) || size < 0 || end - from > Blobs.maxBlobBytes) {
          return yield* Blobs.corruptBlob(hash, "its row has an impossible size")
        }
        const chunks = [toBytes(first.content)]
        for (let part = Math.max(1, Math.floor(from / partBytes)); part * partBytes < end; part++) {
          const offset = Math.max(0, from - part * partBytes)
          const [row] = yield* what(readPart(hash, part, offset, Math.min(partBytes, end - part * partBytes) - offset))
          if (row === undefined) {
            // Another program may have deleted the blob meanwhile.
            if ((yield* what(readPart(hash, 0, 0, 0))).length === 0) return undefined
            return yield* Blobs.corruptBlob(hash, `its part ${part} is missing`)
          }
          chunks.push(toBytes(row.content))
        }
        return chunks.length === 1 ? chunks[0]! : concatenate(chunks)
      }),
    has: (hashes) =>
      Effect.map(
        forHashes(
          "has",
          hashes,
          (some) => sql<{ hash: string }>`select hash from ${table} where part = 0 and ${sql.in("hash", some)}`
        ),
        (rows) => rows.map(({ hash }) => hash)
      ),
    delete: (hashes) =>
      Effect.asVoid(forHashes("delete of blobs", hashes, (some) => sql`delete from ${table} where ${sql.in("hash", some)}`)),
    deleteOlder: (hashes, millis) =>
      Effect.map(
        forHashes(
          "delete of old blobs",
          hashes,
          (some) =>
            sql<{
              part: number
            }>`delete from ${table} where ${sql.in("hash", some)} and stored_at < ${Math.trunc(millis)} returning part`
        ),
        (rows) => rows.filter(({ part }) => Number(part) === 0).length
      ),
    list: Stream.paginate("", (last) =>
      sql<{
        hash: string
        stored_at: number | bigint
      }>`select hash, stored_at from ${table} where part = 0 and hash > ${last} order by hash limit ${pageSize}`.pipe(
        answer("list of the blobs"),
        Effect.map((rows) => {
          const page = rows.map(({ hash, stored_at }) => ({ hash, storedAt: DateTime.makeUnsafe(Number(stored_at)) }))
          return [page, rows.length === pageSize ? Option.some(rows.at(-1)!.hash) : Option.none()] as const
        })
      )
    )
  })
}

const makeHeads = (sql: SqlClient, tables: Tables, answer: Answer) => {
  const table = sql(tables.heads)
  const wakes = Wakes.make()
  return Heads.make({
    read: (workspace) =>
      sql<{
        head: string
      }>`select substr(head, 1, ${Heads.maxHeadBytes + 1}) as head from ${table} where workspace = ${workspace}`.pipe(
        answer("get of a head"),
        Effect.map(([row]) => row?.head)
      ),
    swap: (workspace, expected, next) =>
      (expected === undefined
        ? sql`insert into ${table} (workspace, head) values (${workspace}, ${next}) on conflict (workspace) do nothing returning workspace`
        : next === undefined
          ? sql`delete from ${table} where workspace = ${workspace} and head = ${expected} returning workspace`
          : sql`update ${table} set head = ${next} where workspace = ${workspace} and head = ${expected} returning workspace`
      ).pipe(
        answer(next === undefined ? "delete of a head" : "compareAndSet"),
        Effect.map((rows) => rows.length === 1),
        Effect.tap((isDone) => Effect.sync(() => isDone && wakes.wake(workspace)))
      ),
    list: Stream.paginate("", (last) =>
      sql<{
        workspace: string
      }>`select workspace from ${table} where workspace > ${last} order by workspace limit ${pageSize}`.pipe(
        answer("list of the heads"),
        Effect.map((rows) => {
          const page = rows.map(({ workspace }) => workspace)
          return [page, rows.length === pageSize ? Option.some(page.at(-1)!) : Option.none()] as const
        })
      )
    ),
    wakes: (workspace) => Stream.merge(wakes.stream(workspace), Stream.tick(pollTime))
  })
}

export const open = ({
  tablePrefix = "fs_algebra_",
  timeout = "1 minute"
}: SqlOptions): Effect.Effect<Stores, StoreError, SqlClient> =>
  Effect.gen(function* () {
    if (!/^[a-z_][a-z0-9_]{0,39}$/.test(tablePrefix)) {
      const detail = `the tablePrefix ${JSON.stringify(tablePrefix.slice(0, 60))} is invalid: give at most 40 lowercase letters, digits and "_", and no digit first`
      return yield* invalid(detail)
    }
    const sql = (yield* SqlClient).withoutTransforms()
    const isSupported = sql.onDialectOrElse({ pg: () => true, sqlite: () => true, orElse: () => false })
    if (!isSupported) return yield* invalid(`the SQL of the client "${sql.driver}" is not supported: use Postgres or SQLite`)
    const tables = { blobs: `${tablePrefix}blobs`, heads: `${tablePrefix}heads`, format: `${tablePrefix}format` }
    const limit = Option.getOrUndefined(Duration.fromInput(timeout))
    if (limit === undefined || Duration.toMillis(limit) <= 0) {
      return yield* invalid("the timeout is invalid: give a duration above 0")
    }
    // SQLite answers in this process, and has a limit of its own for the wait for a lock.
    const answer = makeAnswer(sql.onDialectOrElse({ pg: () => limit, orElse: () => undefined }))
    yield* prepare(sql, tables, answer)
    return { blobs: makeBlobs(sql, tables, answer), heads: makeHeads(sql, tables, answer) }
  })
