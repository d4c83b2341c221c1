/** Tests commands on workspaces of a NATS server, with and without credentials. */
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describeNats, startServer } from "../journal/nats.ts"
import { directory, run } from "./served.ts"

const streams = (url: string, options: object) =>
  Effect.promise(async () => {
    const nats = await connect({ servers: url, ...options })
    const names: Array<string> = []
    for await (const { config } of (await jetstreamManager(nats)).streams.list()) names.push(config.name)
    await nats.close()
    return names.sort()
  })

describeNats("workspaces on NATS", () => {
  it.live("take credentials from variables or a private file, and only create makes a store", () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(() => startServer({ more: `authorization { user: ann, password: "pass-7f31" }` }))
      const cwd = yield* directory({})
      writeFileSync(join(cwd, "secret"), "pass-7f31\n")
      chmodSync(join(cwd, "secret"), 0o600)
      const store = ["--store", `nats://${server.url}/work`]
      const user = { NATS_USER: "ann" }
      const env = { ...user, NATS_PASSWORD: "pass-7f31" }
      for (const wrong of [{}, { ...user, NATS_PASSWORD: "something-else" }]) {
        const refused = yield* run(["workspaces", "list", ...store], { cwd, env: wrong })
        assert.strictEqual(refused.code, 9, refused.err)
        assert.match(refused.err, /authorization/i)
        assert.notInclude(refused.err, "something-else")
      }
      for (const args of [
        ["workspaces", "list"],
        ["workspaces", "log", "team"],
        ["ls", "--workspace", "team"]
      ]) {
        const missing = yield* run([...args, ...store], { cwd, env })
        assert.deepStrictEqual([missing.code, /no stream .*no store/.test(missing.err)], [3, true], missing.err)
      }
      const account = { user: "ann", pass: "pass-7f31" }
      assert.deepStrictEqual(yield* streams(server.url, account), [])
      const created = yield* run(["workspaces", "create", "team", ...store], { cwd, env })
      assert.strictEqual(created.code, 0, created.err)
      assert.deepStrictEqual(yield* streams(server.url, account), ["KV_work-heads", "OBJ_work-blobs"])
      const team = [...store, "--workspace", "team", "--token-file", "secret"]
      const written = yield* run(["write", "a.md", ...team], { cwd, env: user, input: "a\n" })
      assert.strictEqual(written.code, 0, written.err)
      assert.strictEqual((yield* run(["cat", "a.md", ...team], { cwd, env: user })).out, "a\n")
      const logged = yield* run(["workspaces", "log", "team", ...store], { cwd, env })
      assert.match(logged.out, /^commit 2 .* write a\.md {2}[0-9a-f]{64}\ncommit 1 .*\n$/)
    })
  )

  it.live("take a token, refuse credentials in the address, and fail without a server", () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(() => startServer({ more: `authorization { token: "token-7f31" }` }))
      const cwd = yield* directory({})
      const at = (store: string, env = {}) => run(["workspaces", "create", "team", "--store", store], { cwd, env })
      for (const address of [
        `ann:word-7f31@${server.url}/work`,
        `word-7f31@${server.url}/work`,
        `${server.url}/work?x=@word-7f31`
      ]) {
        const refused = yield* at(`nats://${address}`)
        assert.strictEqual(refused.code, 2, refused.err)
        assert.include(refused.err, "NATS_TOKEN")
        assert.notInclude(refused.err, "word-7f31")
      }
      for (const address of [server.url, `${server.url}/a/b`, `${server.url}/a.b`, `${server.url}/`]) {
        assert.strictEqual((yield* at(`nats://${address}`)).code, 2)
      }
      const store = `nats://${server.url}/work`
      const created = yield* at(store, { NATS_TOKEN: "token-7f31" })
      assert.strictEqual(created.code, 0, created.err)
      yield* Effect.promise(server.kill)
      const gone = yield* at(store, { NATS_TOKEN: "token-7f31" })
      assert.strictEqual(gone.code, 9, gone.err)
      assert.match(gone.err, /cannot connect to/)
      assert.notInclude(gone.err, "token-7f31")
    })
  )
})
