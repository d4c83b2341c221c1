/** Opens the stores of workspaces that `--store` names. */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { Snapshots } from "../history/snapshots/tag.ts"
import type { BlobStore } from "../repository/BlobStore.ts"
import { StoreError } from "../repository/errors.ts"
import type { HeadStore } from "../repository/HeadStore.ts"
import { Complaint, exitCodeOf, systemErrorCode, usage, usageErrorCode } from "./exit.ts"
import { readTokenFile } from "./token.ts"
import { Screen } from "./screen.ts"
import { configured, currentUser, readNatsCredentials, readS3Variables } from "./variables.ts"
import { type WorkspaceRoot, WorkspaceSnapshots } from "./workspaceRoot.ts"

const postgresPassword = Config.option(Config.Redacted("PGPASSWORD"))

type Services = BlobStore | HeadStore

/**
 * An opener of stores. The opener or its layer fails with `missing` if there is no store, unless `create` is true or a bucket
 * is the store.
 */
interface Opener {
  (create: boolean): Effect.Effect<Layer.Layer<Services, StoreError>, Complaint | StoreError>
}

interface Given {
  /** The address after the scheme, or the whole address of a URL. */
  readonly text: string
  readonly directory: string
  readonly tokenFile: string | undefined
}

interface Kind {
  readonly form: string
  /** Checks the address, without looking at the store. */
  readonly open: (given: Given) => Effect.Effect<Opener, Complaint, Screen>
}

const loadStores = Effect.promise(() => import("../repository/Stores.ts"))

const noStore = (what: string): StoreError => new StoreError({ reason: "missing", detail: `${what}, so there is no store` })

const unusable = (error: unknown): StoreError =>
  new StoreError({
    reason: "unavailable",
    detail: `the store cannot be opened (${(error as NodeJS.ErrnoException).code ?? String(error)})`
  })

const isFile = (path: string): Effect.Effect<boolean, StoreError> =>
  Effect.try({ try: () => statSync(path, { throwIfNoEntry: false })?.isFile() === true, catch: unusable })

const withoutTokenFile = (tokenFile: string | undefined): Effect.Effect<void, Complaint> =>
  tokenFile === undefined
    ? Effect.void
    : Effect.fail(
        usage(
          "--token-file applies to a server, and to a store in Postgres or on NATS",
          "Leave out --token-file. The keys of a bucket are in the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
      )

const withPath = (form: string, text: string): Effect.Effect<void, Complaint> =>
  text.trim() === "" ? Effect.fail(usage("the address of the store has no path", `Give --store ${form}.`)) : Effect.void

const directoryKind: Kind = {
  form: "dir:PATH",
  open: ({ directory, text, tokenFile }) =>
    Effect.gen(function* () {
      yield* withPath("dir:PATH", text)
      yield* withoutTokenFile(tokenFile)
      const path = resolve(directory, text)
      return (create) =>
        Effect.gen(function* () {
          if (!create && !(yield* isFile(join(path, "format.json")))) {
            return yield* noStore("the directory does not exist, or has no format.json")
          }
          return (yield* loadStores).layerDirectory({ directory: path })
        })
    })
}

const sqliteHeader = "SQLite format 3\0"

/** Returns the first bytes of a file as text. */
const headerOf = (file: string): Effect.Effect<string, StoreError> =>
  Effect.try({
    try: () => {
      const descriptor = openSync(file, "r")
      try {
        const bytes = new Uint8Array(sqliteHeader.length)
        return new TextDecoder().decode(bytes.subarray(0, readSync(descriptor, bytes)))
      } finally {
        closeSync(descriptor)
      }
    },
    catch: unusable
  })

const lockedMillis = 5000

/** Tests whether an error of SQLite says that the file is malformed, or no database. */
const isSqliteDamage = (error: unknown): boolean => {
  const { errcode = 0 } = error as { readonly errcode?: number }
  return [11, 26].includes(errcode & 0xff)
}

/** Tells what a file contains: the tables of a store, something else, or nothing yet. Does not change the file. */
const contentOf = (file: string): Effect.Effect<"store" | "other" | "empty", StoreError> =>
  Effect.gen(function* () {
    const header = yield* headerOf(file)
    if (header !== sqliteHeader) return header === "" ? "empty" : "other"
    const { DatabaseSync } = yield* Effect.promise(() => import("node:sqlite"))
    return yield* Effect.try({
      try: () => {
        // SQLite would create files beside the database, and leave them if the database is damaged. Without these files, no
        // program is writing to the database.
        const isInUse = ["-wal", "-journal"].some((end) => existsSync(file + end))
        const url = pathToFileURL(file)
        if (!isInUse) url.searchParams.set("immutable", "1")
        const database = new DatabaseSync(url, { readOnly: true, timeout: lockedMillis })
        try {
          const names = database.prepare("select name from sqlite_master where name not like 'sqlite~_%' escape '~'").all()
          if (names.some(({ name }) => name === "fs_algebra_format")) return "store"
          // Another program may be creating the tables of the store.
          return names.every(({ name }) => String(name).startsWith("fs_algebra_")) ? "empty" : "other"
        } finally {
          database.close()
        }
      },
      catch: (error) =>
        new StoreError({
          reason: isSqliteDamage(error) ? "corrupt" : "unavailable",
          detail: `the SQLite database cannot be read: ${String(error)}`
        })
    })
  })

/** Creates the file if it does not exist. SQLite would create a file that other users can read. */
const createFile = (file: string): Effect.Effect<void, StoreError> =>
  Effect.try({
    try: () => {
      try {
        closeSync(openSync(file, "wx", 0o600))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
      }
    },
    catch: unusable
  })

const sqliteKind: Kind = {
  form: "sqlite:FILE",
  open: ({ directory, text, tokenFile }) =>
    Effect.gen(function* () {
      yield* withPath("sqlite:FILE", text)
      yield* withoutTokenFile(tokenFile)
      if (text === ":memory:" || text.startsWith("file:")) {
        return yield* usage(
          text === ":memory:"
            ? "a store in memory would be lost at the end of the command"
            : "URI filenames of SQLite (file:…) are not supported",
          `Give --store sqlite:FILE; for a file with this name, sqlite:./${text}.`
        )
      }
      const file = resolve(directory, text)
      return (create) =>
        Effect.gen(function* () {
          if (!create && !((yield* isFile(file)) && (yield* contentOf(file)) === "store")) {
            return yield* noStore("the file does not exist, or is no database with the tables of a store")
          }
          if (create) {
            yield* createFile(file)
            // An open of a FIFO would wait for its writer.
            if (!(yield* isFile(file))) {
              return yield* new StoreError({ reason: "invalid", detail: "the path is not that of a regular file" })
            }
            if ((yield* contentOf(file)) === "other") {
              return yield* new StoreError({
                reason: "invalid",
                detail: "the file is no database of SQLite, or a database with other tables"
              })
            }
          }
          const { layerSql, sqliteClient } = yield* loadStores
          return Layer.provide(layerSql(), sqliteClient({ file }))
        })
    })
}

const ofPostgres = ({ message, reason }: SqlError): StoreError => {
  const cause = (reason as { readonly cause?: unknown }).cause
  const said = cause instanceof Error && cause.message !== message ? `${message}: ${cause.message}` : message
  return new StoreError({
    reason: "unavailable",
    detail: `cannot connect to the database, or read from it: ${said.slice(0, 300)}`
  })
}

const hasTables = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly found: unknown }>`select to_regclass('"fs_algebra_format"')::text as found`
  if (typeof row?.found !== "string") return yield* noStore("the database has no tables of a store")
}).pipe(Effect.mapError((error) => (error instanceof StoreError ? error : ofPostgres(error))))

const maxConnections = 8

const postgresKind: Kind = {
  form: "postgres://USER@HOST/DATABASE",
  open: ({ text, tokenFile }) =>
    Effect.gen(function* () {
      const form = "Give --store postgres://USER@HOST:PORT/DATABASE."
      if (!URL.canParse(text)) return yield* usage("the address of the store cannot be parsed", form)
      const url = new URL(text)
      if (url.password !== "" || url.searchParams.has("password")) {
        return yield* usage(
          "the address of a store must not contain a password, because other users can see the command line",
          "Give the password in the variable PGPASSWORD, or in the private file of --token-file FILE."
        )
      }
      if (url.username === "" && !url.searchParams.has("user")) {
        return yield* usage("the address of the store names no user of the database", form)
      }
      const password = tokenFile === undefined ? yield* configured(postgresPassword) : yield* readTokenFile(tokenFile)
      return (create) =>
        Effect.gen(function* () {
          const { layer } = yield* Effect.promise(() => import("@effect/sql-pg/PgClient"))
          const { layerSql } = yield* loadStores
          const client = Layer.catch(
            layer({ url: Redacted.make(text), maxConnections, ...(password !== undefined && { password }) }),
            (error) => Layer.effectContext(Effect.fail(ofPostgres(error)))
          )
          const stores = create ? layerSql() : Layer.provideMerge(layerSql(), Layer.effectDiscard(hasTables))
          return Layer.provide(stores, client)
        })
    })
}

const bucketKind: Kind = {
  form: "s3://BUCKET/PREFIX",
  open: ({ text, tokenFile }) =>
    Effect.gen(function* () {
      yield* withoutTokenFile(tokenFile)
      const [bucket = "", ...rest] = text.slice("s3://".length).split("/")
      if (bucket === "" || /[@?#]/.test(bucket)) {
        return yield* usage("the address of a bucket has no valid name", "Give --store s3://BUCKET or s3://BUCKET/PREFIX.")
      }
      const { endpoint, region } = yield* readS3Variables
      const prefix = rest.join("/")
      return () => Effect.map(loadStores, ({ layerBucket }) => layerBucket({ bucket, prefix, endpoint, region }))
    })
}

/** The longest wait for a server. A command that nobody answers should end within seconds. */
const natsTimeout = "10 seconds"

const jetStreamKind: Kind = {
  form: "nats://HOST:PORT/NAME",
  open: ({ text, tokenFile }) =>
    Effect.gen(function* () {
      if (text.includes("@")) {
        return yield* usage(
          "the address of a store must not contain credentials, because other users can see the command line",
          "Give them in the variables NATS_USER and NATS_PASSWORD, in NATS_TOKEN, or in the private file of --token-file FILE."
        )
      }
      const { jetStreamUrl, layerJetStream } = yield* loadStores
      const options = yield* Effect.mapError(jetStreamUrl(text), ({ detail }) =>
        usage(detail, "Give --store nats://HOST:PORT/NAME.")
      )
      const secret = tokenFile === undefined ? undefined : yield* readTokenFile(tokenFile)
      const authentication = yield* readNatsCredentials(secret)
      return (create) =>
        Effect.succeed(
          layerJetStream({
            ...options,
            mustExist: !create,
            timeout: natsTimeout,
            ...(authentication !== undefined && { authentication })
          })
        )
    })
}

/** The kinds of stores by the scheme of their addresses. */
const kinds: ReadonlyMap<string, Kind> = new Map([
  ["dir", directoryKind],
  ["sqlite", sqliteKind],
  ["postgres", postgresKind],
  ["postgresql", postgresKind],
  ["s3", bucketKind],
  ["nats", jetStreamKind]
])

const forms = [...new Set(kinds.values())].map(({ form }) => form).join(", ")

/** Tests whether an address with this scheme is a URL. Otherwise the text after the scheme is a path. */
const isUrl = (scheme: string): boolean => scheme !== "dir" && scheme !== "sqlite"

const hints: Readonly<Record<StoreError["reason"], readonly [code: number, hint: string]>> = {
  unavailable: [
    systemErrorCode,
    "Check the address, the permissions and the credentials, and that the server of the store runs. Then try again."
  ],
  missing: [
    exitCodeOf("NotFound"),
    "Check the address and the name. fs-algebra workspaces list shows the workspaces, and workspaces create makes a store. If a blob is missing, restore it from a backup."
  ],
  corrupt: [exitCodeOf("NotAFile"), "Restore the store from a backup, or copy what other workspaces still have."],
  full: [exitCodeOf("DiskFull"), "Free some space, for example with fs-algebra workspaces gc, then try again."],
  invalid: [usageErrorCode, "Give another name or another store; --help shows the forms."]
}

export const storeComplaint =
  (store: string) =>
  ({ _tag, detail, reason }: StoreError): Complaint => {
    const [code, hint] = hints[reason]
    return new Complaint({
      error: { _tag, reason, detail, store },
      message: `store ${JSON.stringify(store)}: ${detail}`,
      hint,
      code
    })
  }

export const withStoreComplaints =
  (store: string) =>
  <A, E extends { readonly _tag: string }, R>(
    self: Effect.Effect<A, E, R>
  ): Effect.Effect<A, Exclude<E, StoreError> | Complaint, R> =>
    Effect.mapError(self, (error) =>
      error._tag === "StoreError" ? storeComplaint(store)(error as unknown as StoreError) : (error as Exclude<E, StoreError>)
    )

const openerOf = (text: string, tokenFile: string | undefined): Effect.Effect<Opener, Complaint, Screen> =>
  Effect.gen(function* () {
    const { directory } = yield* Screen
    const scheme = /^([a-z][a-z\d+.-]+):/i.exec(text)?.[1]?.toLowerCase()
    if (scheme === undefined) return yield* directoryKind.open({ text, directory, tokenFile })
    const kind = kinds.get(scheme)
    if (kind === undefined || (isUrl(scheme) && !text.slice(scheme.length).startsWith("://"))) {
      return yield* usage(
        // The rest may have a password, and the message may be in a log.
        `the store ${JSON.stringify(`${scheme}:…`)} has no known kind of address`,
        `Give one of ${forms}, or a path; for a directory whose name has a colon, dir:PATH.`
      )
    }
    return yield* kind.open({ text: isUrl(scheme) ? text : text.slice(scheme.length + 1), directory, tokenFile })
  })

export interface OpenStores {
  (
    text: string,
    tokenFile: string | undefined,
    create: boolean
  ): Effect.Effect<Layer.Layer<Services, Complaint>, Complaint, Screen>
}

/** Opens stores by their addresses, as a reference that tests replace. */
export const StoreOpener: Context.Reference<OpenStores> = Context.Reference<OpenStores>("fs-algebra/cli/Stores", {
  defaultValue: () => (text, tokenFile, create) =>
    Effect.gen(function* () {
      const opener = yield* openerOf(text, tokenFile)
      const opened = yield* Effect.mapError(opener(create), (error) =>
        error._tag === "StoreError" ? storeComplaint(text)(error) : error
      )
      return Layer.catch(opened, (error) => Layer.effectContext(Effect.fail(storeComplaint(text)(error))))
    })
})

/** Opens the stores of an address. Fails if there is no store, unless `create` is true or a bucket is the store. */
export const openStores = (
  text: string,
  tokenFile: string | undefined,
  create = false
): Effect.Effect<Layer.Layer<Services, Complaint>, Complaint, Screen> =>
  Effect.flatMap(StoreOpener, (open) => open(text, tokenFile, create))

/** Returns the author of the commits of this command: the name of the user. */
export const author = (): string => currentUser() ?? "fs-algebra"

/** Opens a workspace that exists, with its snapshots. */
export const openWorkspace = (
  { store, workspace }: WorkspaceRoot,
  tokenFile: string | undefined
): Effect.Effect<Layer.Layer<Filesystem | WorkspaceSnapshots, Complaint>, Complaint, Screen> =>
  Effect.gen(function* () {
    const stores = yield* openStores(store, tokenFile)
    const { open } = yield* Effect.promise(() => import("../repository/open.ts"))
    const opened = Layer.effectContext(
      Effect.map(withStoreComplaints(store)(open({ workspace, author: author(), mustExist: true })), (context) =>
        Context.add(
          Context.make(Filesystem, Context.get(context, Filesystem)),
          WorkspaceSnapshots,
          Context.get(context, Snapshots)
        )
      )
    )
    return Layer.provide(opened, stores)
  })
