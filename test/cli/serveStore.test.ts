/** `fs-algebra serve --store` without `--workspace`: one server for all workspaces of a store. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { commandLine } from "../bundled.ts"
import { directory, type Ended, run, serve } from "./served.ts"
import { shell } from "./terminal.ts"

const done = ({ code, err, out }: Pick<Ended, "code" | "err" | "out">): string => {
  assert.strictEqual(code, 0, err)
  return out
}

/** Makes a store with the workspaces `team` and `ä/b`, and returns its directory. */
const made = Effect.gen(function* () {
  const cwd = yield* directory({ "files/a.txt": "a" })
  const { run } = yield* shell({})
  for (const args of [
    ["workspaces", "create", "team", "ä/b", "--store", "store"],
    ["write", "name.md", "--text", "of team", "--store", "store", "--workspace", "team"],
    ["write", "name.md", "--text", "of b", "--store", "store", "--workspace", "ä/b"]
  ]) {
    const ran = yield* run(args, { directory: cwd })
    assert.strictEqual(ran.code, 0, ran.err)
  }
  return cwd
})

const other = encodeURIComponent("ä/b")

describe("fs-algebra serve --store", () => {
  it.live("serves all workspaces over HTTP, WebSocket and a Unix socket, also one that is created later", () =>
    Effect.gen(function* () {
      const cwd = yield* made
      const { run: runHere } = yield* shell({})
      /** Runs a client in this process, which is faster than a process for each. */
      const at = (args: ReadonlyArray<string>) => runHere(args, { directory: cwd })
      const http = yield* serve(["--store", "store", "--listen", "127.0.0.1:0"], { cwd })
      const unix = yield* serve(["--store", "store", "--listen", "unix:all.sock"], { cwd })
      for (const url of [http.url, http.url.replace("http:", "ws:"), unix.url, "unix:all.sock"]) {
        assert.strictEqual(done(yield* at(["cat", "name.md", "--root", `${url}?workspace=team`])), "of team")
        assert.strictEqual(done(yield* at(["cat", "name.md", "--root", `${url}?workspace=${other}`])), "of b")
      }
      done(yield* run(["write", "new.md", "--root", `${unix.url}?workspace=team`], { cwd, input: "new" }))
      const stored = ["--store", "store", "--workspace", "team"]
      assert.strictEqual(done(yield* at(["cat", "new.md", ...stored])), "new")
      done(yield* at(["workspaces", "fork", "team", "later", "--store", "store"]))
      assert.strictEqual(done(yield* at(["cat", "new.md", "--root", `${http.url}?workspace=later`])), "new")

      const refusals = [
        ["", "has named none"],
        ["?workspace=teem", 'there is no workspace \\"teem\\"'],
        ["?workspace=", "cannot be the name of a workspace"],
        ["?workspace=a%00b", "cannot be the name of a workspace"]
      ] as const
      for (const [choice, part] of refusals) {
        for (const { url } of [http, unix]) {
          const { code, err, out } = yield* at(["ls", "--json", "--root", `${url}${choice}`])
          assert.deepStrictEqual([code, out], [9, ""], err)
          assert.include(err, part)
          assert.include(err, "Unavailable")
        }
      }
      assert.strictEqual((yield* at(["ls", "--root", `${unix.url}?workspace=%zz`])).code, 2)

      done(yield* at(["workspaces", "delete", "later", "--store", "store"]))
      const gone = yield* at(["write", "x.md", "--root", `${http.url}?workspace=later`, "--text", "x"])
      assert.strictEqual(gone.code, 9, gone.err)
      assert.match(gone.err, /deleted|there is no workspace/)
      assert.strictEqual(done(yield* at(["cat", "name.md", "--root", `${http.url}?workspace=team`])), "of team")
    }).pipe(Effect.scoped)
  )

  it.live("requires the token for every workspace and every name, and holds --read-only and --deny", () =>
    Effect.gen(function* () {
      const cwd = yield* made
      const { run: runHere } = yield* shell({})
      const at = (args: ReadonlyArray<string>) => runHere(args, { directory: cwd })
      writeFileSync(join(cwd, "token"), "a-secret-token\n")
      chmodSync(join(cwd, "token"), 0o600)
      const flags = ["--store", "store", "--listen", "unix:all.sock", "--read-only", "--deny", "hidden/**"]
      done(yield* run(["write", "hidden/x", "--store", "store", "--workspace", "team"], { cwd, input: "x" }))
      const { url } = yield* serve([...flags, "--token-file", "token"], { cwd })
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
      const cwd = yield* made
      const { url } = yield* serve(["--store", "store", "--listen", "unix:all.sock"], { cwd })
      const { run: runHere } = yield* shell({})
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
      for (const [workspace, text] of [
        ["team", "of team"],
        [other, "of b"]
      ] as const) {
        const client = yield* connect(workspace)
        const call = (name: string, args: Record<string, unknown>) =>
          Effect.promise(() => client.callTool({ name, arguments: args }))
        assert.include(JSON.stringify(yield* call("read_file", { path: "name.md" })), text)
        const written = yield* call("write_file", { path: "agent.md", content: "by an agent" })
        assert.isNotTrue(written.isError, JSON.stringify(written))
        const stored = ["--store", "store", "--workspace", decodeURIComponent(workspace)]
        assert.strictEqual(done(yield* runHere(["cat", "agent.md", ...stored], { directory: cwd })), "by an agent")
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses flags that need one root, and clients refuse a server of one root", () =>
    Effect.gen(function* () {
      const cwd = yield* made
      const { run: runHere } = yield* shell({})
      const listen = ["serve", "--listen", "unix:no.sock", "--store", "store"]
      for (const flags of [
        ["--root", "files"],
        ["--journal", "j"],
        ["--backend", "memory"],
        ["--hardlinks", "reject"]
      ]) {
        const refused = yield* runHere([...listen, ...flags], { directory: cwd })
        assert.strictEqual(refused.code, 2, refused.err)
        assert.include(refused.err, flags[0]!)
      }
      const stdio = yield* runHere(["serve", "--listen", "stdio", "--store", "store"], { directory: cwd })
      assert.deepStrictEqual([stdio.code, /--workspace/.test(stdio.err)], [2, true], stdio.err)
      const missing = yield* runHere(["serve", "--listen", "unix:no.sock", "--store", "nowhere"], { directory: cwd })
      assert.strictEqual(missing.code, 3, missing.err)
      const { url } = yield* serve(["--root", "files", "--listen", "unix:files.sock"], { cwd })
      const wrong = yield* run(["ls", "--root", `${url}?workspace=team`], { cwd })
      assert.strictEqual(wrong.code, 9)
      assert.include(wrong.err, "serves one root")
    }).pipe(Effect.scoped)
  )
})
