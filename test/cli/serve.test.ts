import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync, spawn } from "node:child_process"
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { commandLine } from "../bundled.ts"
import { directory, run, serve } from "./served.ts"
import { shell } from "./terminal.ts"

/** Runs a command without a process. */
const runHere = (args: ReadonlyArray<string>, cwd: string) =>
  Effect.flatMap(shell({}), (shell) => shell.run(args, { directory: cwd }))

const project = { "files/README.md": "# Title\nTODO: more\n", "files/src/main.ts": "export const a = 1\n" }

const unix = ["--root", "files", "--listen", "unix:files.sock"]

describe("fs-algebra serve", () => {
  it.live("prints one line with the URL for clients, and chooses a free port for port 0", () =>
    Effect.gen(function* () {
      const cwd = yield* directory(project)
      const { url } = yield* serve(["--root", "files", "--listen", "127.0.0.1:0"], { cwd })
      assert.match(url, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/)
      assert.strictEqual((yield* run(["cat", "README.md", "--root", url], { cwd })).out, project["files/README.md"])
      assert.strictEqual(
        (yield* run(["cat", "README.md", "--root", url.replace("http:", "ws:")], { cwd })).out,
        project["files/README.md"]
      )
      const child = spawn(process.execPath, [commandLine(), "serve", ...unix], { cwd })
      let err = ""
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) => {
            child.stderr.setEncoding("utf8").on("data", (text: string) => {
              err += text
              if (err.includes("\n")) resolve()
            })
          })
      )
      child.kill()
      assert.strictEqual(
        err,
        `Serving at unix:${cwd}/files.sock (Ctrl-C ends it). Clients: fs-algebra ls --root unix:${cwd}/files.sock\n`
      )
    }).pipe(Effect.scoped)
  )

  it.live("creates a private Unix socket, refuses a second server on it, and replaces the socket of a killed server", () =>
    Effect.gen(function* () {
      const cwd = yield* directory(project)
      const first = yield* serve(unix, { cwd })
      assert.strictEqual(first.url, `unix:${cwd}/files.sock`)
      assert.strictEqual(lstatSync(join(cwd, "files.sock")).mode & 0o777, 0o600)
      const second = yield* run(["serve", ...unix], { cwd })
      assert.strictEqual(second.code, 9)
      assert.include(second.err, "another server listens")
      first.child.kill("SIGKILL")
      yield* Effect.promise(() => first.ended)
      assert.isTrue(existsSync(join(cwd, "files.sock")))
      const third = yield* serve(unix, { cwd })
      assert.strictEqual((yield* run(["ls", "--root", third.url], { cwd })).out, "README.md\nsrc/\n")
    }).pipe(Effect.scoped)
  )

  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const) {
    it.live(`ends cleanly on ${signal}, and files that clients are writing keep their old content`, () =>
      Effect.gen(function* () {
        const cwd = yield* directory({ "files/a.txt": "old" })
        const { child, ended, url } = yield* serve(unix, { cwd })
        const staged = Effect.promise(async () => {
          while (readdirSync(join(cwd, "files")).length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
        })
        const client = spawn(process.execPath, [commandLine(), "write", "a.txt", "--root", url], { cwd })
        const clientEnded = new Promise<number | null>((resolve) => client.on("close", (code) => resolve(code)))
        client.stdin.on("error", () => {})
        client.stdin.write("x".repeat(3_000_000))
        yield* staged
        child.kill(signal)
        const { code: ending, err } = yield* Effect.promise(() => ended)
        assert.strictEqual(ending, code)
        assert.strictEqual(err, "")
        client.stdin.end()
        assert.strictEqual(yield* Effect.promise(() => clientEnded), 9)
        assert.deepStrictEqual(readdirSync(join(cwd, "files")), ["a.txt"])
        assert.strictEqual(readFileSync(join(cwd, "files/a.txt"), "utf8"), "old")
        assert.isFalse(existsSync(join(cwd, "files.sock")))
      }).pipe(Effect.scoped)
    )
  }

  it.live("requires the token from a file or the environment, and accepts no other machines without a token", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({ ...project, token: "a-secret-token\n", other: "another-token\n" })
      for (const name of ["token", "other"]) chmodSync(join(cwd, name), 0o600)
      const open = yield* run(["serve", "--root", "files", "--listen", "0.0.0.0:0"], { cwd })
      assert.strictEqual(open.code, 2)
      assert.include(open.err, "--token-file")
      const servers = [
        yield* serve(["--root", "files", "--listen", "0.0.0.0:0", "--token-file", "token"], { cwd }),
        yield* serve([...unix, "--token-file", "token"], { cwd }),
        yield* serve(["--root", "files", "--listen", "127.0.0.1:0"], { cwd, env: { FS_ALGEBRA_TOKEN: "a-secret-token" } })
      ]
      for (const { url: printed } of servers) {
        const url = printed.replace(/^http:\/\/.*:/, "http://127.0.0.1:")
        const list = (args: ReadonlyArray<string>, env = {}) => run(["ls", "--root", url, ...args], { cwd, env })
        assert.strictEqual((yield* list(["--token-file", "token"])).out, "README.md\nsrc/\n")
        // A shell gives the name of a pipe for <(COMMAND).
        const script = 'exec "$@" --token-file <(sleep 0.3; cat token)'
        const piped = ["-c", script, "bash", process.execPath, commandLine(), "ls", "--root", url]
        assert.strictEqual(execFileSync("bash", piped, { cwd, encoding: "utf8" }), "README.md\nsrc/\n")
        assert.strictEqual((yield* list([], { FS_ALGEBRA_TOKEN: "a-secret-token" })).out, "README.md\nsrc/\n")
        for (const refused of [yield* list([]), yield* list(["--token-file", "other"])]) {
          assert.strictEqual(refused.code, 9)
          assert.strictEqual(refused.out, "")
          assert.include(refused.err, "the token is missing or wrong")
          assert.include(refused.err, "FS_ALGEBRA_TOKEN")
          assert.notInclude(refused.err, "secret")
        }
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses a token file that others can read, that is missing, or that contains no valid token", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({ ...project, open: "secret\n", two: "a\nb\n", empty: "", long: "x".repeat(5000) })
      for (const name of ["two", "empty", "long"]) chmodSync(join(cwd, name), 0o600)
      chmodSync(join(cwd, "open"), 0o640)
      execFileSync("mkfifo", ["-m", "600", join(cwd, "pipe")])
      const cases = [
        ["open", 5, "chmod 600 open"],
        ["two", 2, "is not a token"],
        ["empty", 2, "is not a token"],
        ["long", 2, "is not a token"],
        ["missing", 3, "does not exist"],
        ["files", 7, "is a directory"],
        ["pipe", 7, "is a pipe without a writer"]
      ] as const
      for (const [file, code, said] of cases) {
        for (const args of [
          ["serve", ...unix, "--token-file", file],
          ["ls", "--root", "http://127.0.0.1:9", "--token-file", file]
        ]) {
          const ran = yield* runHere(args, cwd)
          assert.strictEqual(ran.code, code, ran.err)
          assert.include(ran.err, said)
        }
      }
      const variable = yield* run(["serve", ...unix], { cwd, env: { FS_ALGEBRA_TOKEN: "a b" } })
      assert.strictEqual(variable.code, 2)
      assert.include(variable.err, "FS_ALGEBRA_TOKEN")
      assert.isFalse(existsSync(join(cwd, "files.sock")))
    }).pipe(Effect.scoped)
  )

  it.live("refuses a socket in a directory that other users can write, and refuses invalid addresses", () =>
    Effect.gen(function* () {
      const cwd = yield* directory(project)
      mkdirSync(join(cwd, "shared"))
      chmodSync(join(cwd, "shared"), 0o1777)
      const taken = createServer()
      const port = yield* Effect.promise(
        () =>
          new Promise<number>((resolve) =>
            taken.listen(0, "127.0.0.1", () => resolve((taken.address() as { readonly port: number }).port))
          )
      )
      const cases = [
        ["unix:shared/a.sock", 5, "mkdir -m 700"],
        ["unix:missing/a.sock", 3, "is not a directory"],
        ["unix:files/README.md", 9, "not a socket"],
        ["unix:", 2, "unix:PATH"],
        ["8080", 2, "HOST:PORT"],
        ["localhost:99999", 2, "HOST:PORT"],
        [":80", 2, "HOST:PORT"],
        [`127.0.0.1:${port}`, 9, "EADDRINUSE"]
      ] as const
      for (const [address, code, said] of cases) {
        const ran = yield* runHere(["serve", "--root", "files", "--listen", address], cwd)
        assert.strictEqual(ran.code, code, `${address}\n${ran.err}`)
        assert.include(ran.err, said)
      }
      taken.close()
      assert.strictEqual(readFileSync(join(cwd, "files/README.md"), "utf8"), project["files/README.md"])
      assert.strictEqual((yield* runHere(["serve"], cwd)).code, 2)
    }).pipe(Effect.scoped)
  )

  it.live("applies --read-only, --no-delete, --deny and --backend memory", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({ ...project, "files/.env": "SECRET=1\n" })
      const on = (url: string, ...args: ReadonlyArray<string>) => run([...args, "--root", url], { cwd })
      const readOnly = yield* serve([...unix, "--read-only"], { cwd })
      assert.strictEqual((yield* on(readOnly.url, "write", "new.txt", "--text", "x")).code, 5)
      assert.strictEqual((yield* on(readOnly.url, "cat", "src/main.ts")).code, 0)

      const guarded = yield* serve(
        ["--root", "files", "--listen", "unix:guarded.sock", "--no-delete", "--deny", "**/.env", "--deny", ".env"],
        { cwd }
      )
      assert.strictEqual((yield* on(guarded.url, "rm", "README.md")).code, 5)
      assert.strictEqual((yield* on(guarded.url, "cat", ".env")).code, 5)
      assert.strictEqual((yield* on(guarded.url, "ls")).out, "README.md\nsrc/\n")
      assert.strictEqual((yield* on(guarded.url, "grep", "SECRET")).code, 1)
      assert.strictEqual((yield* on(guarded.url, "write", "new.txt", "--text", "x")).code, 0)
      assert.strictEqual((yield* run(["serve", ...unix, "--deny", "a/../b"], { cwd })).code, 2)

      const copy = yield* serve(["--root", "files", "--listen", "unix:copy.sock", "--backend", "memory"], { cwd })
      assert.strictEqual((yield* on(copy.url, "rm", "-r", "src")).code, 0)
      assert.strictEqual((yield* on(copy.url, "ls")).out, ".env\nREADME.md\nnew.txt\n")
      assert.isTrue(existsSync(join(cwd, "files/src/main.ts")))
    }).pipe(Effect.scoped)
  )

  it.live("records the changes of its clients with --journal, and can serve the files of another server", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({ ...project, token: "a-secret-token" })
      chmodSync(join(cwd, "token"), 0o600)
      const first = yield* serve([...unix, "--journal", "work.journal", "--token-file", "token"], { cwd })
      const env = { FS_ALGEBRA_TOKEN: "a-secret-token" }
      const second = yield* serve(["--root", first.url, "--listen", "127.0.0.1:0"], { cwd, env })
      const open = yield* run(["ls", "--root", second.url], { cwd })
      assert.strictEqual(open.code, 9, "a server of a server demands the same token")
      const written = yield* run(["write", "b.txt", "--text", "new", "--root", second.url], { cwd, env })
      assert.strictEqual(written.code, 0, written.err)
      assert.strictEqual(readFileSync(join(cwd, "files/b.txt"), "utf8"), "new")
      const shown = yield* run(["journal", "show", "work.journal", "--changes"], { cwd })
      assert.include(shown.out, "b.txt")
    }).pipe(Effect.scoped)
  )
})

describe("a root that is a server", () => {
  it.live("is accepted by every command that needs no directory of this machine", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({ ...project, "archive/a.md": "from an archive\n" })
      const { url } = yield* serve(unix, { cwd })
      const at = (...args: ReadonlyArray<string>) => run([...args, "--root", "unix:files.sock"], { cwd })
      const file = (path: string): string => readFileSync(join(cwd, "files", path), "utf8")
      const ok = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
        const ran = yield* at(...args)
        assert.strictEqual(ran.code, 0, `${args.join(" ")}\n${ran.err}`)
        return ran.out
      })
      assert.strictEqual(yield* ok("ls"), "README.md\nsrc/\n")
      assert.include(yield* ok("tree"), "1 directory, 2 files")
      assert.strictEqual(yield* ok("cat", "README.md"), project["files/README.md"])
      assert.include(yield* ok("stat", "README.md"), "version")
      assert.strictEqual(yield* ok("glob", "**/*.ts"), "src/main.ts\n")
      assert.strictEqual(yield* ok("grep", "TODO"), "README.md:2:TODO: more\n")
      assert.match(yield* ok("snapshot", "--tag", "before"), /^Took snapshot/)
      yield* ok("write", "new.txt", "--text", "one")
      assert.strictEqual(file("new.txt"), "one")
      yield* ok("edit", "new.txt", "--old", "one", "--new", "two")
      assert.strictEqual(file("new.txt"), "two")
      yield* ok("mkdir", "made")
      yield* ok("cp", "src", "made/")
      assert.strictEqual(file("made/src/main.ts"), project["files/src/main.ts"])
      yield* ok("mv", "made/src/main.ts", "moved.ts")
      yield* ok("rm", "-r", "made")
      assert.strictEqual((yield* ok("ls")).split("\n").length, 5)
      assert.include(yield* ok("snapshots"), "before")
      const { out: difference } = yield* at("diff", "--names")
      assert.include(difference, "new.txt")
      yield* ok("restore", "before")
      assert.strictEqual(yield* ok("ls"), "README.md\nsrc/\n")
      yield* ok("export", "all.zip")
      yield* ok("write", "extra.txt", "--text", "extra")
      yield* ok("import", "all.zip")
      assert.strictEqual(yield* ok("ls"), "README.md\nsrc/\n")
      yield* ok("write", "recorded.txt", "--text", "x", "--journal", "a.journal")
      assert.strictEqual(yield* ok("journal", "drift", "a.journal"), "")
      yield* ok("journal", "undo", "a.journal", "--to", "0")
      assert.strictEqual(yield* ok("ls"), "README.md\nsrc/\n")
      assert.include(yield* ok("tour"), "fs.grep")
      yield* ok("rm", "-r", "src", "--backend", "memory")
      assert.strictEqual(yield* ok("ls"), "README.md\nsrc/\n")

      const request = (id: number, method: string, params: object) =>
        `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`
      const session =
        request(1, "initialize", {
          protocolVersion: "2025-06-18",
          capabilities: {},
          clientInfo: { name: "test", version: "1" }
        }) +
        `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n` +
        request(2, "tools/call", { name: "read_file", arguments: { path: "src/main.ts" } })
      const served = yield* run(["mcp", "--root", url, "--tools", "vfs"], { cwd, input: session })
      assert.include(served.out, "export const a = 1", served.err)

      for (const refused of [
        ["exec", "--image", "x", "--", "true"],
        ["ls", "--backend", "container", "--image", "x"],
        ["ls", "--hardlinks", "reject"],
        ["serve", "--backend", "container", "--image", "x", "--listen", "127.0.0.1:0"]
      ]) {
        const ran = yield* runHere([refused[0]!, "--root", url, ...refused.slice(1)], cwd)
        assert.strictEqual(ran.code, 2, `${refused.join(" ")}\n${ran.err}`)
        assert.match(ran.err, /directory of this machine/)
      }
      const several = yield* run(["mcp", "files", url], { cwd })
      assert.strictEqual(several.code, 2, several.err)
      assert.include(several.err, "several roots")
    }).pipe(Effect.scoped)
  )

  it.live("is refused if its address is mistyped, unless the text names an existing directory", () =>
    Effect.gen(function* () {
      const cwd = yield* directory({
        ...project,
        "http:/a.txt": "in http:",
        "unix:b/b.txt": "in unix:b",
        "http:/host:80/c.txt": "in http:/host:80"
      })
      const cases = [
        ["http://", 2, "cannot be parsed"],
        ["http:/localhost:80", 2, "two slashes"],
        ["http:localhost:80", 2, "two slashes"],
        ["http://user:secret@localhost:80", 2, "FS_ALGEBRA_TOKEN"],
        ["http://localhost:80?token=secret", 2, "no query"],
        ["ftp://localhost/files", 2, "ftp:"],
        ["s3://", 2, "s3://BUCKET"],
        ["sftp://host", 2, "sftp://USER@HOST/PATH"],
        ["sftp://user:secret@host/a", 2, "no password"],
        ["ssh://host", 2, "ssh://USER@HOST/PATH"],
        ["unix:", 2, "unix:PATH"],
        ["http://127.0.0.1:9", 9, "fs-algebra serve"],
        ["ws://127.0.0.1:9", 9, "fs-algebra serve"],
        ["unix:nowhere.sock", 9, "fs-algebra serve"],
        ["unix:files/README.md", 9, "fs-algebra serve"]
      ] as const
      for (const [root, code, said] of cases) {
        const ran = yield* runHere(["ls", "--root", root], cwd)
        assert.strictEqual(ran.code, code, `${root}\n${ran.err}`)
        assert.include(ran.err, said)
        assert.notInclude(ran.err.replace(root, ""), "secret")
        assert.strictEqual(ran.out, "")
      }
      const withoutScheme = yield* run(["ls", "--root", "localhost:8080"], { cwd })
      assert.strictEqual(withoutScheme.code, 3)
      assert.include(withoutScheme.err, "http://localhost:8080")
      assert.strictEqual((yield* run(["ls", "--root", "http:"], { cwd })).out, "a.txt\nhost:80/\n")
      assert.strictEqual((yield* run(["ls", "--root", "./unix:b"], { cwd })).out, "b.txt\n")
      assert.strictEqual((yield* run(["ls", "--root", "./http://host:80"], { cwd })).out, "c.txt\n")
      assert.strictEqual((yield* run(["ls", "--root", "http:/host:80"], { cwd })).out, "c.txt\n")
      const token = yield* runHere(["ls", "--root", "files", "--token-file", "x"], cwd)
      assert.strictEqual(token.code, 2)
    }).pipe(Effect.scoped)
  )

  it.live(
    "treats absolute and missing paths as a directory does, and commands exit with code 9 after the server is killed",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory({ "files/a.txt": "old", "files/src/main.ts": "" })
        const { child, ended, url } = yield* serve(unix, { cwd })
        const absolute = yield* run(["cat", "/a.txt", "--root", url], { cwd })
        assert.strictEqual(absolute.code, 2)
        assert.include(absolute.err, "a.txt")
        const missing = yield* run(["cat", "src/man.ts", "--root", url], { cwd })
        assert.strictEqual(missing.code, 3)
        assert.include(missing.err, "Did you mean src/main.ts?")

        const client = spawn(process.execPath, [commandLine(), "write", "a.txt", "--root", url], { cwd })
        let err = ""
        client.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
        client.stdin.on("error", () => {})
        const clientEnded = new Promise<number | null>((resolve) => client.on("close", (code) => resolve(code)))
        client.stdin.write("x".repeat(3_000_000))
        yield* Effect.promise(async () => {
          while (readdirSync(join(cwd, "files")).length < 3) await new Promise((resolve) => setTimeout(resolve, 5))
        })
        child.kill("SIGKILL")
        yield* Effect.promise(() => ended)
        client.stdin.end()
        assert.strictEqual(yield* Effect.promise(() => clientEnded), 9)
        assert.match(err, /^error: .*a\.txt/)
        assert.match(err, /^hint: /m)
        assert.strictEqual(readFileSync(join(cwd, "files/a.txt"), "utf8"), "old")
        writeFileSync(join(cwd, "files/a.txt"), "new")
        const again = yield* serve(unix, { cwd })
        assert.strictEqual((yield* run(["cat", "a.txt", "--root", again.url], { cwd })).out, "new")
      }).pipe(Effect.scoped)
  )
})
