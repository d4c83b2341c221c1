/** Runs the table of tool calls on SFTP servers, on remote filesystems, and on workspaces in several stores. */
import { afterAll, beforeAll } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { chmodSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { Snapshots } from "../../src/history/snapshots/tag.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Remote from "../../src/remote/Remote.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import type { StoreServices } from "../../src/testing/StoreLaws.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import { channel, describeSftp, openPiped } from "../backends/sftp/servers.ts"
import { bundled, commandLine } from "../bundled.ts"
import { directory } from "../conformance/filesystems.ts"
import { clean, scratch } from "../durability/children.ts"
import { describeNats, type Server, startServer } from "../journal/nats.ts"
import { anyPort } from "../remote/transports.ts"
import { postgresClient } from "../repository/stores/places.ts"
import { describePostgres, server } from "../repository/stores/postgres.ts"
import { type Ground, memoryOf, type Place } from "./everywhereRun.ts"
import { runTables } from "./everywhereTables.ts"

afterAll(clean)

/** A fresh directory with the usual mode. Temporary directories are closed to others. */
const root = Effect.tap(directory, (path) => Effect.sync(() => chmodSync(path, 0o755)))

const planted = (files: Files, port: Backend): Effect.Effect<Algebra> => Effect.orDie(Effect.as(plant(port, files), make(port)))

const sftpOver = (name: string, open: (root: string) => Effect.Effect<Backend, unknown, Scope.Scope>): Ground => ({
  name,
  birthless: true,
  make: (files) => Effect.orDie(Effect.flatMap(Effect.flatMap(root, open), (port) => planted(files, port)))
})

describeSftp("with the servers of OpenSSH", () => {
  runTables(
    sftpOver("an SFTP server over a pipe", (root) => openPiped(root)),
    12
  )
  runTables(
    sftpOver("an SFTP server through sshd", (root) => openPiped(root, {}, {}, channel)),
    24
  )
})

const builtFrom = (layer: Layer.Layer<Filesystem, unknown>): Place<Algebra> =>
  Effect.orDie(Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, Filesystem)))

const remoteOver = (scheme: string): Ground => ({
  name: `a remote filesystem over ${scheme}`,
  make: (files) =>
    Effect.gen(function* () {
      const address = yield* anyPort
      const listening = yield* Effect.provideService(Remote.listen(address), Filesystem, yield* memoryOf(files))
      return yield* builtFrom(Remote.layerUrl(`${scheme}://${listening}`))
    }).pipe(Effect.orDie)
})

/** A server that another thread or process runs, so that the files are made through it. */
const apart = (name: string, served: Place<Algebra>): Ground => ({
  name,
  make: (files) => Effect.orDie(Effect.tap(served, (fs) => plant(fs.port, files)))
})

runTables(remoteOver("http"), 24)
runTables(remoteOver("ws"), 24)

const worker = bundled(new URL("../remote/workerServer.ts", import.meta.url))
runTables(apart("a remote filesystem in a worker thread", builtFrom(Remote.layerWorker(() => new Worker(worker)))), 48)

const program = commandLine()
const overStreams = Effect.flatMap(root, (root) =>
  builtFrom(Remote.layerCommand([process.execPath, program, "serve", "--listen", "stdio", "--root", root]))
)
runTables(apart("a remote filesystem over standard streams", overStreams), 48)

const histories = new WeakMap<Algebra, Context.Context<Snapshots>>()
let workspaces = 0

const repositoryOver = (name: string, stores: () => Layer.Layer<StoreServices, unknown>): Ground => ({
  name: `a repository ${name}`,
  historyOf: (fs) => histories.get(fs)!,
  make: (files) =>
    Effect.gen(function* () {
      const layer = Repository.layer({ workspace: `table ${workspaces++}` })
      const context = yield* Layer.build(Layer.fresh(Layer.provide(layer, Layer.fresh(stores()))))
      const fs = Context.get(context, Filesystem)
      yield* plant(fs.port, files)
      histories.set(fs, Context.make(Snapshots, Context.get(context, Snapshots)))
      return fs
    }).pipe(Effect.orDie)
})

const sqlite = () => Layer.provide(Stores.layerSql(), Stores.sqliteClient({ file: join(scratch(), "store.db") }))

runTables(
  repositoryOver("in memory", () => Stores.layerMemory),
  4
)
runTables(
  repositoryOver("in a directory", () => Stores.layerDirectory({ directory: join(scratch(), "store") })),
  24
)
runTables(repositoryOver("in SQLite", sqlite), 24)

describePostgres("with Postgres", () => {
  let url: string
  beforeAll(async () => {
    url = (await server()).url
  })
  runTables(
    repositoryOver("in Postgres", () => Layer.provide(Stores.layerSql(), postgresClient(url))),
    24
  )
})

describeNats("with NATS", () => {
  let nats: Server
  beforeAll(async () => {
    nats = await startServer()
  })
  runTables(
    repositoryOver("on JetStream", () => Stores.layerJetStream({ servers: [nats.url], name: "table" })),
    24
  )
})
