import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Server } from "ssh2"
import { describeSftp, sftpServer, sshd } from "../backends/sftp/servers.ts"
import { directory, run, serve } from "./served.ts"

/** The command as sources, because a bundle has no pages of the debug view. */
const bin = fileURLToPath(new URL("../../src/cli/bin.ts", import.meta.url))

/** An address of a served directory, and what a login with the right key needs. */
const served = (files: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const server = yield* Effect.promise(sshd)
    const cwd = yield* directory(files)
    const [type, key] = readFileSync(join(server.directory, "hostkey.pub"), "utf8").split(" ")
    mkdirSync(join(cwd, "keys"))
    writeFileSync(join(cwd, "keys/known"), `[127.0.0.1]:${server.port} ${type} ${key}\n`)
    writeFileSync(join(cwd, "keys/key"), readFileSync(join(server.directory, "userkey")), { mode: 0o600 })
    const { username } = server.login
    const env = { FS_ALGEBRA_SSH_KEY: "keys/key", FS_ALGEBRA_KNOWN_HOSTS: join(cwd, "keys/known") }
    return { server, cwd, env, root: `sftp://${username}@127.0.0.1:${server.port}${cwd}/files` }
  })

/** An SSH server that accepts one user with a password, and starts Debian's sftp-server. */
const passwordServer = (hostKey: string, user: string, password: string) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Server>((resolve) => {
          const server = new Server({ hostKeys: [hostKey] }, (client) => {
            client.on("error", () => {})
            client.on("authentication", (login) =>
              login.method === "password" && login.username === user && login.password === password
                ? login.accept()
                : login.reject(["password"])
            )
            client.on("session", (accept) =>
              accept().on("subsystem", (accept) => {
                const channel = accept()
                const child = spawn(sftpServer, [], { stdio: ["pipe", "pipe", "ignore"] })
                channel.pipe(child.stdin).on("error", () => {})
                child.stdout.pipe(channel)
                channel.on("close", () => child.kill("SIGKILL"))
              })
            )
          })
          server.listen(0, "127.0.0.1", () => resolve(server))
        })
    ),
    (server) => Effect.sync(() => server.close())
  )

describeSftp("a root sftp://…", () => {
  it.live("is a directory of an SSH server in ls, write, grep, mcp, serve and debug", () =>
    Effect.gen(function* () {
      const { cwd, env, root } = yield* served({ "files/a b.txt": "one\n" })
      const listed = yield* run(["ls", "--root", root], { cwd, env })
      assert.strictEqual(listed.out, "a b.txt\n", listed.err)
      assert.strictEqual((yield* run(["write", "b.txt", "--text", "two", "--root", root], { cwd, env })).code, 0)
      assert.strictEqual(readFileSync(join(cwd, "files/b.txt"), "utf8"), "two")
      const spaced = yield* run(["grep", "one", "--root", `${root}/../fil%65s`], { cwd, env })
      assert.include(spaced.out, "a b.txt", spaced.err)

      const request = (id: number, method: string, params: object) =>
        `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`
      const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
      const input =
        request(1, "initialize", client) +
        `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n` +
        request(2, "tools/call", { name: "read_file", arguments: { path: "b.txt" } })
      const mcp = yield* run(["mcp", "--root", root, "--tools", "vfs"], { cwd, env, input })
      assert.include(mcp.out, "two", mcp.err)

      const { url } = yield* serve(["--root", root, "--listen", "unix:files.sock"], { cwd, env })
      assert.strictEqual((yield* run(["cat", "a b.txt", "--root", url], { cwd })).out, "one\n")

      const debug = spawn(process.execPath, [bin, "debug", "--json", "--root", root], {
        cwd,
        env: { ...env, PATH: process.env["PATH"] },
        stdio: ["ignore", "pipe", "inherit"]
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => debug.kill("SIGKILL")))
      const view = yield* Effect.promise(
        () => new Promise<string>((resolve) => debug.stdout.once("data", (line: Buffer) => resolve(String(line))))
      )
      const { url: page } = JSON.parse(view) as { readonly url: string }
      assert.strictEqual((yield* Effect.promise(() => fetch(page))).status, 200)
    }).pipe(Effect.scoped)
  )

  it.live("is refused unless the key of the server is known", () =>
    Effect.gen(function* () {
      const { cwd, env, root, server } = yield* served({ "files/a.txt": "one" })
      writeFileSync(join(cwd, "keys/none"), "")
      const unknown = yield* run(["ls", "--root", root], {
        cwd,
        env: { ...env, FS_ALGEBRA_KNOWN_HOSTS: join(cwd, "keys/none") }
      })
      assert.strictEqual(unknown.code, 9)
      assert.include(unknown.err, server.fingerprint)
      assert.include(unknown.err, "FS_ALGEBRA_KNOWN_HOSTS")

      const byDefault = { FS_ALGEBRA_SSH_KEY: env.FS_ALGEBRA_SSH_KEY }
      const withoutFile = yield* run(["ls", "--root", root], { cwd, env: byDefault })
      assert.strictEqual(withoutFile.code, 9)
      assert.include(withoutFile.err, join(cwd, ".home/.ssh/known_hosts"))
      mkdirSync(join(cwd, ".home/.ssh"), { recursive: true })
      writeFileSync(join(cwd, ".home/.ssh/known_hosts"), readFileSync(env.FS_ALGEBRA_KNOWN_HOSTS))
      assert.strictEqual((yield* run(["ls", "--root", root], { cwd, env: byDefault })).out, "a.txt\n")

      const named = { ...byDefault, FS_ALGEBRA_HOST_KEYS: `SHA256:${"A".repeat(43)}, ${server.fingerprint}` }
      assert.strictEqual((yield* run(["ls", "--root", root], { cwd, env: named })).out, "a.txt\n")
      const other = { ...byDefault, FS_ALGEBRA_HOST_KEYS: `SHA256:${"A".repeat(43)}` }
      const changed = yield* run(["ls", "--root", root], { cwd, env: other })
      assert.strictEqual(changed.code, 9)
      assert.include(changed.err, "not in hostKeys")
    }).pipe(Effect.scoped)
  )

  it.live("is refused with a wrong key, without a key, or with a key that others can read", () =>
    Effect.gen(function* () {
      const { cwd, env, root } = yield* served({ "files/a.txt": "one" })
      const keyless = yield* run(["ls", "--root", root], { cwd })
      assert.strictEqual(keyless.code, 2)
      assert.include(keyless.err, "FS_ALGEBRA_SSH_KEY")
      spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(cwd, "keys/stranger")])
      const at = (key: string) => run(["ls", "--root", root], { cwd, env: { ...env, FS_ALGEBRA_SSH_KEY: key } })
      const wrong = yield* at("keys/stranger")
      assert.strictEqual(wrong.code, 9)
      assert.include(wrong.err, "refuses the user")
      assert.strictEqual((yield* at("keys/stranger.pub")).code, 5, "ssh-keygen makes public keys readable for all")
      chmodSync(join(cwd, "keys/stranger.pub"), 0o600)
      const halfKey = yield* at("keys/stranger.pub")
      assert.strictEqual(halfKey.code, 2)
      assert.include(halfKey.err, "is not a private key")
      assert.strictEqual((yield* at("keys/none")).code, 3)
      chmodSync(join(cwd, "keys/key"), 0o644)
      const open = yield* at("keys/key")
      assert.strictEqual(open.code, 5)
      assert.include(open.err, "chmod 600")
      const token = yield* run(["ls", "--root", root, "--token-file", "keys/key"], { cwd, env })
      assert.strictEqual(token.code, 2)
      assert.include(token.err, "--token-file")
    }).pipe(Effect.scoped)
  )

  it.live("takes a password from the environment, and never from the address", () =>
    Effect.gen(function* () {
      const { cwd, server: sshd } = yield* served({ "files/a.txt": "one" })
      const hostKey = readFileSync(join(sshd.directory, "hostkey"), "utf8")
      const server = yield* passwordServer(hostKey, "me@work", "pass word")
      const { port } = server.address() as AddressInfo
      const root = `sftp://me%40work@127.0.0.1:${port}${cwd}/files`
      const known = { FS_ALGEBRA_HOST_KEYS: sshd.fingerprint }
      const right = yield* run(["ls", "--root", root], { cwd, env: { ...known, FS_ALGEBRA_SSH_PASSWORD: "pass word" } })
      assert.strictEqual(right.out, "a.txt\n", right.err)
      const wrong = yield* run(["ls", "--root", root], { cwd, env: { ...known, FS_ALGEBRA_SSH_PASSWORD: "secret" } })
      assert.strictEqual(wrong.code, 9)
      assert.include(wrong.err, "refuses the user")
      assert.notInclude(wrong.err, "secret")
      for (const secret of ["tulip", "tulip/a", "a@tulip", "a@b:tulip/"]) {
        for (const args of [["ls"], ["write", "a", "--text", "b"], ["exec", "true"], ["mcp", "--root", cwd]]) {
          const root = `sftp://me:${secret}@127.0.0.1:${port}/files`
          const inAddress = yield* run([...args, "--root", root], { cwd, env: known })
          assert.strictEqual(inAddress.code, 2)
          assert.notInclude(inAddress.out + inAddress.err, "tulip")
        }
      }
      const address = `sftp://me:pass@127.0.0.1:${port}/files`
      assert.include((yield* run(["ls", "--root", address], { cwd, env: known })).err, "FS_ALGEBRA_SSH_PASSWORD")
      const empty = yield* run(["ls", "--root", root], { cwd, env: { ...known, FS_ALGEBRA_SSH_PASSWORD: "" } })
      assert.strictEqual(empty.code, 2)
      assert.include(empty.err, "no key and no password")
    }).pipe(Effect.scoped)
  )
})
