/** Tests commands on workspaces in Postgres, with and without a password. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describePostgres, server } from "../repository/stores/postgres.ts"
import { directory, run, type Where } from "./served.ts"

const password = "pass-7f31"

const query = (url: string, ...statements: ReadonlyArray<string>): string =>
  execFileSync("psql", [url, "-tA", ...statements.flatMap((statement) => ["-c", statement])], { encoding: "utf8" }).trim()

/** Makes a database with an owner who needs a password over TCP. Returns its address without the password. */
const withPassword = (url: string): string => {
  const file = query(url, "show hba_file")
  query(url, `create role ann login password '${password}'`, "create database work owner ann")
  query(
    url,
    `copy (values ('host work ann 127.0.0.1/32 scram-sha-256'), ('local all postgres trust'), ('host all postgres 127.0.0.1/32 trust')) to '${file}'`,
    "select pg_reload_conf()"
  )
  const address = new URL(url)
  address.username = "ann"
  address.pathname = "/work"
  return address.href
}

describePostgres("workspaces in Postgres", () => {
  it.live("need the password from the variable or from a private file, and never print it", () =>
    Effect.gen(function* () {
      const store = withPassword((yield* Effect.promise(server)).url)
      const cwd = yield* directory({})
      writeFileSync(join(cwd, "secret"), `${password}\n`)
      chmodSync(join(cwd, "secret"), 0o600)
      writeFileSync(join(cwd, "wrong"), "something-else\n")
      chmodSync(join(cwd, "wrong"), 0o600)
      const at = (args: ReadonlyArray<string>, where: Partial<Where> = {}) =>
        run([...args, "--store", store], { cwd, ...where })
      const env = { PGPASSWORD: password }

      for (const where of [{}, { env: { PGPASSWORD: "something-else" } }]) {
        const refused = yield* at(["workspaces", "list"], where)
        assert.strictEqual(refused.code, 9, refused.err)
        assert.notInclude(refused.err, "something-else")
      }
      const missing = yield* at(["workspaces", "list"], { env })
      assert.deepStrictEqual([missing.code, /no tables/.test(missing.err)], [3, true], missing.err)
      assert.strictEqual((yield* at(["workspaces", "create", "team"], { env })).code, 0)
      const file = ["--token-file", "secret"]
      const team = ["--workspace", "team"]
      const written = yield* at(["write", "a.md", ...team, ...file], { input: "a\n" })
      assert.strictEqual(written.code, 0, written.err)
      assert.strictEqual((yield* at(["cat", "a.md", ...team], { env })).out, "a\n")
      // The file takes precedence over the variable.
      assert.strictEqual((yield* at(["cat", "a.md", ...team, "--token-file", "wrong"], { env })).code, 9)
      assert.strictEqual((yield* at(["workspaces", "fork", "team", "trial"], { env })).code, 0)
      const verified = yield* at(["workspaces", "verify", ...file])
      assert.match(verified.out, /^team is undamaged: .*\ntrial is undamaged: /)
      assert.strictEqual((yield* at(["workspaces", "gc", ...file])).code, 0)
    })
  )

  it.live("fail if no server listens, and change nothing in a database without a store", () =>
    Effect.gen(function* () {
      const { url } = yield* Effect.promise(server)
      const cwd = yield* directory({})
      query(url, "create database other")
      const other = new URL(url)
      other.pathname = "/other"
      const empty = yield* run(["ls", "--store", other.href, "--workspace", "team"], { cwd })
      assert.strictEqual(empty.code, 3, empty.err)
      assert.strictEqual(query(other.href, "select count(*) from pg_tables where tablename like 'fs_algebra%'"), "0")
      other.port = "1"
      const gone = yield* run(["workspaces", "list", "--store", other.href], { cwd })
      assert.strictEqual(gone.code, 9, gone.err)
      assert.include(gone.err, "ECONNREFUSED")
    })
  )
})
