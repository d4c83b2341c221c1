/**
 * Repository on a store in Postgres: a server of this machine that confirms a commit only when it is on the disk. Needs Debian's
 * postgresql-15 and root, and has no cases without them. BENCH_FILES is the number of files in the large workspace.
 */
import { PgClient } from "@effect/sql-pg"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { lacking, startProcess } from "../../test/repository/stores/postgresProcess.ts"
import { content, fibers, writes } from "../batchedWrites.ts"
import type { Case } from "../harness.ts"
import { check, effects } from "../harness.ts"

const files = Number(process.env["BENCH_FILES"] ?? 20_000)

const started = async () => {
  const top = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  chmodSync(top, 0o755)
  const server = await startProcess(top, { isDurable: true })
  const scope = Scope.makeUnsafe()
  const client = PgClient.layer({ url: Redacted.make(server.url), maxConnections: 4 })
  const stores = await Effect.runPromise(Layer.buildWithScope(Stores.layerSql().pipe(Layer.provide(client)), scope))
  const open = async (workspace: string): Promise<Algebra> => {
    const layer = Layer.fresh(Layer.provide(Repository.layer({ workspace }), Layer.succeedContext(stores)))
    return Context.get(await Effect.runPromise(Layer.buildWithScope(layer, scope)), Filesystem)
  }
  return {
    stores,
    open,
    url: server.url,
    top,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await server.crash()
      rmSync(top, { recursive: true })
    }
  }
}

/** Runs pgbench with the same number of clients: each transaction replaces one row of 240 bytes. */
const pgbench = (url: string, top: string) => {
  const script = join(top, "replace.sql")
  writeFileSync(script, `update bench set content = '${content}' where id = :client_id;\n`)
  const psql = spawnSync("psql", [url, "-qc", "create table bench (id int primary key, content text)"], { encoding: "utf8" })
  check(psql.status === 0)
  const filled = `insert into bench select n, '${content}' from generate_series(0, ${fibers - 1}) n`
  check(spawnSync("psql", [url, "-qc", filled], { encoding: "utf8" }).status === 0)
  return (count: number) => {
    const ran = spawnSync("pgbench", ["-n", "-f", script, "-c", `${fibers}`, "-t", `${count / fibers}`, url], {
      encoding: "utf8"
    })
    check(ran.status === 0)
  }
}

const all: ReadonlyArray<Case> = [
  {
    name: "postgres: write of 250 bytes, batched, 50 fibers over 50 files",
    target: "≤ 500 µs (2,000 a second; baseline: pgbench, an update of a row by each of 50 clients)",
    bound: 500,
    figure: "µs",
    count: 2_000,
    samples: 9,
    make: async () => {
      const { close, open, top, url } = await started()
      const fs = await open("w")
      await writes(fs)(fibers)
      check((await Effect.runPromise(fs.readString("f7.txt"))).endsWith(content))
      return { ours: { name: "repository", run: writes(fs) }, baseline: { name: "pgbench", run: pgbench(url, top) }, close }
    }
  },
  {
    name: `postgres: fork of ${files} files`,
    target: "≤ 10,000 µs, whatever the size (baseline: the same of 10 files)",
    bound: 10_000,
    figure: "µs",
    count: 20,
    samples: 15,
    make: async () => {
      const { close, open, stores } = await started()
      const fill = async (workspace: string, count: number) => {
        const fs = await open(workspace)
        const all = Effect.forEach(
          Array.from({ length: count }, (_, i) => i),
          (i) => fs.write(`d${i % 200}/${i}.txt`, `${i} ${content}`, { createParents: true }),
          { concurrency: fibers, discard: true }
        )
        await Effect.runPromise(Effect.provideService(Repository.transaction(all), Filesystem, fs))
      }
      await fill("large", files)
      await fill("small", 10)
      let serial = 0
      const fork = (from: string) =>
        effects(Effect.suspend(() => Effect.provideContext(Repository.fork(from, `fork ${serial++}`), stores)))
      return { ours: { name: "large", run: fork("large") }, baseline: { name: "small", run: fork("small") }, close }
    }
  }
]

export const cases: ReadonlyArray<Case> = lacking === undefined && spawnSync("pgbench", ["--version"]).status === 0 ? all : []
