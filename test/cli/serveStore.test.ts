/** Tests `fs-algebra serve --store` without `--workspace`, which serves all workspaces of a store. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { commandLine } from "../bundled.ts"
import { directory, serve } from "./served.ts"
import { done, shell } from "./terminal.ts"

/** Runs a client in this process, which is faster than a process for each. */
const runIn = (directory: string, args: ReadonlyArray<string>, input?: string) =>
  Effect.flatMap(shell({}), ({ run }) => run(args, { directory, input }))

/** Makes a store with the workspaces `team` and `ä/b`, and starts the servers of all tests. */
const start = Effect.gen(function* () {
  const cwd = yield* directory({ "files/a.txt": "a" })
  for (const args of [
    ["workspaces", "create", "team", "ä/b", "--store", "store"],
    ["write", "name.md", "--text", "of team", "--store", "store", "--workspace", "team"],
    ["write", "hidden/x", "--text", "x", "--store", "store", "--workspace", "team"],
    ["write", "name.md", "--text", "of b", "--store", "store", "--workspace", "ä/b"]
  ]) {
    done(yield* runIn(cwd, args))
  }
  writeFileSync(join(cwd, "token"), "a-secret-token\n")
  chmodSync(join(cwd, "token"), 0o600)
  const ofStore = ["--store", "store", "--listen"]
  const confined = ["--read-only", "--deny", "hidden/**", "--token-file", "token"]
  const [http, unix, reader, ofRoot] = yield* Effect.all(
    [
      serve([...ofStore, "127.0.0.1:0"], { cwd }),
      serve([...ofStore, "unix:all.sock"], { cwd }),
      serve([...ofStore, "unix:reader.sock", ...confined], { cwd }),
      serve(["--root", "files", "--listen", "unix:files.sock"], { cwd })
    ],
    { concurrency: "unbounded" }
  )
  return {
    cwd,
    urls: { http: http.url, unix: unix.url, reader: reader.url, ofRoot: ofRoot.url },
    at: (args: ReadonlyArray<string>, input?: string) => runIn(cwd, args, input)
  }
})

const scope = Scope.makeUnsafe()
let started: Effect.Success<typeof start>
beforeAll(async () => {
  started = await Effect.runPromise(Scope.provide(start, scope))
}, 300_000)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const other = encodeURIComponent("ä/b")

describe("fs-algebra serve --store", () => {
  it.live("serves all workspaces over HTTP, WebSocket and a Unix socket, also one that is created later", () =>
    Effect.gen(function* () {
      const {
        at,
        urls: { http, unix }
      } = started
      for (const url of [http, http.replace("http:", "ws:"), unix, "unix:all.sock"]) {
        assert.strictEqual(done(yield* at(["cat", "name.md", "--root", `${url}?workspace=team`])), "of team")
        assert.strictEqual(done(yield* at(["cat", "name.md", "--root", `${url}?workspace=${other}`])), "of b")
      }
      done(yield* at(["write", "new.md", "--root", `${unix}?workspace=team`], "new"))
      const stored = ["--store", "store", "--workspace", "team"]
      assert.strictEqual(done(yield* at(["cat", "new.md", ...stored])), "new")
      done(yield* at(["workspaces", "fork", "team", "later", "--store", "store"]))
      assert.strictEqual(done(yield* at(["cat", "new.md", "--root", `${http}?workspace=later`])), "new")

      const refusals = [
        ["", "has named none"],
        ["?workspace=teem", 'there is no workspace \\"teem\\"'],
        ["?workspace=", "cannot be the name of a workspace"],
        ["?workspace=a%00b", "cannot be the name of a workspace"]
      ] as const
      for (const [choice, part] of refusals) {
        for (const url of [http, unix]) {
          const { code, err, out } = yield* at(["ls", "--json", "--root", `${url}${choice}`])
          assert.deepStrictEqual([code, out], [9, ""], err)
          assert.include(err, part)
          assert.include(err, "Unavailable")
        }
      }
      assert.strictEqual((yield* at(["ls", "--root", `${unix}?workspace=%zz`])).code, 2)

      done(yield* at(["workspaces", "delete", "later", "--store", "store"]))
      const gone = yield* at(["write", "x.md", "--root", `${http}?workspace=later`, "--text", "x"])
      assert.strictEqual(gone.code, 9, gone.err)
      assert.match(gone.err, /deleted|there is no workspace/)
      assert.strictEqual(done(yield* at(["cat", "name.md", "--root", `${http}?workspace=team`])), "of team")
    }).pipe(Effect.scoped)
  )

  it.live("requires the token for every workspace and every name, and enforces --read-only and --deny", () =>
    Effect.gen(function* () {
      const {
        at,
        urls: { reader: url }
      } = started
      for (const name of ["team", "teem", "", "a%00b"]) {
        const refused = yield* at(["ls", "--root", `${url}?workspace=${name}`])
        assert.strictEqual(refused.code, 9)
        assert.include(refused.err, "the token is missing or wrong")
        assert.notMatch(refused.err, /no workspace|cannot be the name/)
      }
      const root = ["--root", `${url}?workspace=team`, "--token-file", "token"]
      assert.strictEqual(done(yield* at(["cat", "name.md", ...root])), "of team")
      assert.strictEqual((yield* at(["write", "name.md", "--text", "x", ...root])).code, 5)
      assert.notStrictEqual((yield* at(["cat", "hidden/x", ...root])).code, 0)
      assert.notInclude(done(yield* at(["tree", ...root])), "x\n")
    }).pipe(Effect.scoped)
  )

  it.live("serves workspaces to agents over mcp", () =>
    Effect.gen(function* () {
      const {
        at,
        cwd,
        urls: { unix: url }
      } = started
      const connect = (workspace: string) =>
        Effect.acquireRelease(
          Effect.promise(async () => {
            const client = new Client({ name: "test", version: "1" })
            await client.connect(
              new StdioClientTransport({
                command: process.execPath,
                args: [commandLine(), "mcp", "--root", `${url}?workspace=${workspace}`],
                cwd,
                stderr: "ignore"
              })
            )
            return client
          }),
          (client) => Effect.promise(() => client.close())
        )
      const clients = yield* Effect.all([connect("team"), connect(other)], { concurrency: 2 })
      for (const [client, workspace, text] of [
        [clients[0], "team", "of team"],
        [clients[1], "ä/b", "of b"]
      ] as const) {
        const call = (name: string, args: Record<string, unknown>) =>
          Effect.promise(() => client.callTool({ name, arguments: args }))
        assert.include(JSON.stringify(yield* call("read_file", { path: "name.md" })), text)
        const written = yield* call("write_file", { path: "agent.md", content: "by an agent" })
        assert.isNotTrue(written.isError, JSON.stringify(written))
        const stored = ["--store", "store", "--workspace", workspace]
        assert.strictEqual(done(yield* at(["cat", "agent.md", ...stored])), "by an agent")
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses flags that need one root, and clients refuse a server of one root", () =>
    Effect.gen(function* () {
      const { at, urls } = started
      const listen = ["serve", "--listen", "unix:no.sock", "--store", "store"]
      for (const flags of [
        ["--root", "files"],
        ["--journal", "j"],
        ["--backend", "memory"],
        ["--hardlinks", "reject"]
      ]) {
        const refused = yield* at([...listen, ...flags])
        assert.strictEqual(refused.code, 2, refused.err)
        assert.include(refused.err, flags[0]!)
      }
      const stdio = yield* at(["serve", "--listen", "stdio", "--store", "store"])
      assert.deepStrictEqual([stdio.code, /--workspace/.test(stdio.err)], [2, true], stdio.err)
      const missing = yield* at(["serve", "--listen", "unix:no.sock", "--store", "nowhere"])
      assert.strictEqual(missing.code, 3, missing.err)
      const wrong = yield* at(["ls", "--root", `${urls.ofRoot}?workspace=team`])
      assert.strictEqual(wrong.code, 9)
      assert.include(wrong.err, "serves one root")
    }).pipe(Effect.scoped)
  )
})
