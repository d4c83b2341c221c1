import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { ErrorCode, ListRootsRequestSchema, McpError, type Root } from "@modelcontextprotocol/sdk/types.js"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { bin, call } from "../agent/mcpSessions.ts"

/** A temporary machine with a home directory and projects. */
const machine = Effect.acquireRelease(
  Effect.sync(() => {
    const top = Fs.mkdtempSync(join(Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-roots-"))
    const add = (name: string): string => {
      Fs.mkdirSync(join(top, name, "src"), { recursive: true })
      Fs.writeFileSync(join(top, name, "src", "who.txt"), `${name}\n`)
      return join(top, name)
    }
    const home = add("home")
    const env = { PATH: process.env["PATH"] ?? "", HOME: home, XDG_STATE_HOME: join(top, "state") }
    return { top, home, env, add }
  }),
  ({ top }) => Effect.sync(() => Fs.rmSync(top, { recursive: true, force: true }))
)

interface Options {
  readonly cwd: string
  readonly env: Record<string, string>
  readonly args?: ReadonlyArray<string>
  /** `undefined` means that the client does not have the roots capability. */
  readonly roots?: (() => ReadonlyArray<Root>) | undefined
}

/** Connects a client of the official SDK, and records standard error and the number of root requests. */
const connected = ({ args = [], cwd, env, roots }: Options) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const capabilities = roots === undefined ? {} : { roots: { listChanged: true } }
      const client = new Client({ name: "test", version: "1" }, { capabilities })
      const said = { err: "", asked: 0 }
      if (roots !== undefined) {
        client.setRequestHandler(ListRootsRequestSchema, () => {
          said.asked++
          return { roots: [...roots()] }
        })
      }
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [bin, "mcp", ...args],
        cwd,
        env,
        stderr: "pipe"
      })
      transport.stderr?.on("data", (text: Buffer) => void (said.err += text.toString()))
      await client.connect(transport)
      return { client, said }
    }),
    ({ client }) => Effect.promise(() => client.close())
  )

const root = (path: string, name?: string): Root => ({ uri: pathToFileURL(path).href, ...(name !== undefined && { name }) })

const ls = (client: Client, path = ".") => Effect.promise(() => call(client, "ls", { path }))
const read = (client: Client, path: string) => Effect.promise(() => call(client, "read_file", { path }))

const names = (text: string): ReadonlyArray<string> => [...text.matchAll(/^(\S+)\/(?:\s|$)/gm)].map(([, name]) => name!)

describe("roots that the client lists, without --root", () => {
  it.live("replace the current directory of the server if there is one root", () =>
    Effect.gen(function* () {
      const { add, env, home } = yield* machine
      const app = add("app")
      const { client, said } = yield* connected({ cwd: home, env, roots: () => [root(app)] })
      assert.include((yield* read(client, "src/who.txt")).text, "app")
      assert.include((yield* read(client, `${app}/src/who.txt`)).text, "app")
      assert.isTrue((yield* read(client, "../home/src/who.txt")).isError)
      assert.deepStrictEqual([said.err, said.asked], ["", 1])
    })
  )

  it.live("are served side by side under their names, and equal names get a number", () =>
    Effect.gen(function* () {
      const { add, env, home, top } = yield* machine
      const roots = [root(add("a/app"), "not/a name"), root(add("b/app")), root(add("lib")), root(add("lib"))]
      const { client, said } = yield* connected({ cwd: home, env, roots: () => roots })
      assert.deepStrictEqual(names((yield* ls(client)).text), ["app", "app-2", "lib"])
      assert.include((yield* read(client, "app-2/src/who.txt")).text, "b/app")
      assert.include((yield* read(client, join(top, "b/app/src/who.txt"))).text, "b/app")
      const stray = yield* Effect.promise(() => call(client, "write_file", { path: "notes.txt", content: "x" }))
      assert.isTrue(stray.isError)
      assert.include(stray.text, "app, app-2, lib")
      assert.isFalse((yield* Effect.promise(() => call(client, "write_file", { path: "lib/new.txt", content: "x" }))).isError)
      assert.strictEqual(Fs.readFileSync(join(top, "lib/new.txt"), "utf8"), "x")
      assert.strictEqual(said.err, "")
    })
  )

  it.live("are skipped with a reason if they are /, a home directory or its parent, missing, files, or other URIs", () =>
    Effect.gen(function* () {
      const { add, env, home, top } = yield* machine
      const app = add("app")
      const outside = { uri: "https://example.com/project" }
      const broken = { uri: "file://elsewhere/project" }
      const wrong = ["/", home, top, join(top, "missing"), join(app, "src/who.txt")].map((path) => root(path))
      const { client, said } = yield* connected({ cwd: home, env, roots: () => [...wrong, outside, broken, root(app)] })
      assert.include((yield* read(client, "src/who.txt")).text, "app")
      const lines = said.err.trimEnd().split("\n")
      assert.lengthOf(lines, 7)
      for (const [index, why] of [
        "the whole machine",
        "a home directory",
        "contains a home directory",
        "no such directory",
        "not a directory",
        "not a file of this machine",
        "not name a path of this machine"
      ].entries()) {
        assert.include(lines[index], why)
      }
    })
  )

  it.live("make every call fail with the reason if all roots are refused", () =>
    Effect.gen(function* () {
      const { add, env } = yield* machine
      const cwd = add("cwd")
      for (const roots of [[], [root("/")]]) {
        const { client } = yield* connected({ cwd, env, roots: () => roots })
        const { isError, text } = yield* ls(client)
        assert.isTrue(isError)
        assert.include(text, roots.length === 0 ? "the client lists no roots" : "the whole machine")
        assert.include(text, "--root")
        const snapshot = yield* Effect.promise(() => call(client, "snapshot", {}))
        assert.isTrue(snapshot.isError)
      }
    })
  )

  it.live("are limited to 32, and a root inside of another root is served as part of it", () =>
    Effect.gen(function* () {
      const { add, env, home } = yield* machine
      const many = Array.from({ length: 100 }, (_, i) => root(add(`p${i}`)))
      const { client, said } = yield* connected({ cwd: home, env, roots: () => [root(join(add("p0"), "src")), ...many] })
      assert.lengthOf(names((yield* ls(client)).text), 31)
      assert.match(said.err, /^note: {2}this root of the client is not served: 69 more: at most 32 roots are served\n$/)
    })
  )

  it.live("replace the earlier roots for files, snapshots and resources when they change", () =>
    Effect.gen(function* () {
      const { add, env, home } = yield* machine
      const [app, lib] = [add("app"), add("lib")]
      let listed = [root(app)]
      const { client, said } = yield* connected({ cwd: home, env, roots: () => listed })
      assert.include((yield* read(client, "src/who.txt")).text, "app")
      yield* Effect.promise(() => call(client, "snapshot", { tag: "of app" }))
      const change = (roots: Array<Root>) =>
        Effect.promise(async () => {
          listed = roots
          const before = said.asked
          await client.sendRootsListChanged()
          while (said.asked === before) await new Promise((resolve) => setTimeout(resolve, 10))
        })
      /** Repeats the call until it works on the new roots; calls made before the change still work on the old ones. */
      const until = (isDone: (text: string) => boolean) =>
        Effect.gen(function* () {
          for (;;) {
            const { text } = yield* read(client, "src/who.txt")
            if (isDone(text)) return
          }
        })
      yield* change([root(lib)])
      yield* until((text) => text.includes("lib"))
      assert.isTrue((yield* read(client, `${app}/src/who.txt`)).isError)
      assert.notInclude((yield* Effect.promise(() => call(client, "snapshots", {}))).text, "of app")
      const { contents } = yield* Effect.promise(() => client.readResource({ uri: "workspace:///src/who.txt" }))
      assert.deepInclude(contents[0], { text: "lib\n" })
      yield* change([])
      yield* until((text) => text.includes("lists no roots"))
      assert.strictEqual(Fs.readFileSync(join(app, "src/who.txt"), "utf8"), "app\n")
      yield* change([root(app)])
      yield* until((text) => text.includes("app"))
      assert.include((yield* Effect.promise(() => call(client, "snapshots", {}))).text, "of app")
    })
  )

  it.live("are replaced by the current directory of the server if the client cannot list roots", () =>
    Effect.gen(function* () {
      const { add, env } = yield* machine
      const cwd = add("cwd")
      const failing = (): never => {
        throw new McpError(ErrorCode.InternalError, "no")
      }
      for (const roots of [failing, undefined]) {
        const { client } = yield* connected({ cwd, env, roots })
        assert.include((yield* read(client, "src/who.txt")).text, "cwd")
      }
    })
  )
})

describe("roots on the command line", () => {
  it.live("are the only roots, and the client is not asked for roots", () =>
    Effect.gen(function* () {
      const { add, env, home } = yield* machine
      const [app, lib] = [add("app"), add("lib")]
      for (const args of [["--root", app], [app]]) {
        const { client, said } = yield* connected({ cwd: home, env, args, roots: () => [root(lib), root("/")] })
        yield* Effect.promise(() => client.sendRootsListChanged())
        assert.include((yield* read(client, "src/who.txt")).text, "app")
        assert.strictEqual(said.asked, 0)
      }
    })
  )

  it.live("may be several, with globs relative to each root, and share one store of snapshots", () =>
    Effect.gen(function* () {
      const { add, env, home, top } = yield* machine
      const [app, lib] = [add("app"), add("lib")]
      Fs.writeFileSync(join(lib, "src", ".env"), "TOKEN")
      const { client } = yield* connected({ cwd: home, env, args: [app, "../lib", "--deny", "src/.env", "--no-delete"] })
      assert.deepStrictEqual(names((yield* ls(client)).text), ["app", "lib"])
      assert.isTrue((yield* read(client, "lib/src/.env")).isError)
      const taken = yield* Effect.promise(() => call(client, "snapshot", { tag: "before" }))
      assert.isFalse(taken.isError, taken.text)
      Fs.writeFileSync(join(app, "src/who.txt"), "changed\n")
      Fs.writeFileSync(join(lib, "src/who.txt"), "changed\n")
      const restored = yield* Effect.promise(() => call(client, "restore", { snapshot_id: "before" }))
      assert.isFalse(restored.isError, restored.text)
      assert.deepStrictEqual(
        ["app", "lib"].map((name) => Fs.readFileSync(join(top, name, "src/who.txt"), "utf8")),
        ["app\n", "lib\n"]
      )
    })
  )
})

describe("the directory of the compile cache", () => {
  // Node runs the code in the cache without a check. An agent that may write there could run its own code at the next start.
  it.live("is refused as a root unless --any-root is given, and so are its parents and subdirectories", () =>
    Effect.gen(function* () {
      const { add, env, home, top } = yield* machine
      const app = add("app")
      const state = join(app, ".state")
      const within = { ...env, XDG_STATE_HOME: state }
      const ran = (...args: ReadonlyArray<string>) =>
        spawnSync(process.execPath, [bin, "mcp", ...args], { cwd: top, env: within, input: "", encoding: "utf8" })
      for (const place of [app, state, join(state, "fs-algebra"), join(state, "fs-algebra/compile-cache")]) {
        const { status, stderr, stdout } = ran("--root", place)
        assert.deepStrictEqual([status, stdout], [5, ""], stderr)
        assert.include(stderr, "a directory with code that fs-algebra runs")
      }
      assert.strictEqual(ran("--root", app, "--any-root").status, 0)
      const { client, said } = yield* connected({ cwd: home, env: within, roots: () => [root(state), root(add("lib"))] })
      assert.include((yield* read(client, "src/who.txt")).text, "lib")
      assert.include(said.err, "a directory with code that fs-algebra runs")
    })
  )

  it.live("must not be reached through a link in a root, because an agent could replace the link", () =>
    Effect.gen(function* () {
      const { add, env, top } = yield* machine
      const [app, hop] = [add("app"), add("hop")]
      Fs.mkdirSync(join(top, "elsewhere"))
      Fs.symlinkSync(join(top, "elsewhere"), join(app, "st"))
      Fs.symlinkSync(join(hop, "back"), join(top, "st"))
      Fs.symlinkSync(join(top, "elsewhere"), join(hop, "back"))
      for (const [place, state] of [
        [app, join(app, "st")],
        [hop, join(top, "st")]
      ] as const) {
        const { status, stderr, stdout } = spawnSync(process.execPath, [bin, "mcp", "--root", place], {
          cwd: top,
          env: { ...env, XDG_STATE_HOME: state },
          input: "",
          encoding: "utf8"
        })
        assert.deepStrictEqual([status, stdout], [5, ""], stderr)
        assert.include(stderr, "a directory with code that fs-algebra runs")
      }
    })
  )

  it.live("is the directory of NODE_COMPILE_CACHE if Node already uses that directory", () =>
    Effect.gen(function* () {
      const { add, env, home, top } = yield* machine
      const app = add("app")
      Fs.mkdirSync(join(app, "cache"))
      Fs.mkdirSync(join(top, "elsewhere"))
      Fs.symlinkSync(join(top, "elsewhere"), join(app, "link"))
      for (const cache of [join(app, "cache"), join(app, "link")]) {
        const within = { ...env, NODE_COMPILE_CACHE: cache }
        const ran = (...args: ReadonlyArray<string>) =>
          spawnSync(process.execPath, [bin, "mcp", ...args], { cwd: top, env: within, input: "", encoding: "utf8" })
        const { status, stderr, stdout } = ran("--root", app)
        assert.deepStrictEqual([status, stdout], [5, ""], stderr)
        assert.include(stderr, "a directory with code that fs-algebra runs")
        assert.strictEqual(ran("--root", app, "--any-root").status, 0)
        assert.strictEqual(ran("--root", add("lib")).status, 0)
        const { client, said } = yield* connected({ cwd: home, env: within, roots: () => [root(app), root(add("lib"))] })
        assert.include((yield* read(client, "src/who.txt")).text, "lib")
        assert.include(said.err, "a directory with code that fs-algebra runs")
      }
    })
  )
})

describe("home directories and the whole machine", () => {
  const ran = (cwd: string, env: Record<string, string>, ...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [bin, "mcp", ...args], { cwd, env, input: "", encoding: "utf8" })

  it.live("are refused before the server answers, with a hint, unless --any-root is given", () =>
    Effect.gen(function* () {
      const { add, env, home, top } = yield* machine
      add("app")
      for (const [cwd, args, why] of [
        ["/", ["--root", "."], "the whole machine"],
        [home, ["."], "a home directory"],
        [home, ["--root", top], "a directory that contains a home directory"],
        [top, ["app", "home"], "a home directory"],
        ["/", ["--http", "0"], "the whole machine"],
        ["/", ["--backend", "memory", "--root", "/"], "the whole machine"],
        ["/", ["--root", "/", "--tools", "ls,grep", "--read-only"], "the whole machine"]
      ] as const) {
        const { status, stderr, stdout } = ran(cwd, env, ...args)
        assert.deepStrictEqual([status, stdout], [5, ""], stderr)
        assert.include(stderr, why)
        assert.include(stderr, "--any-root")
      }
      assert.strictEqual(ran(home, env, "--root", ".", "--any-root").status, 0)
    })
  )

  it.live("are refused as current directory if the client has no roots", () =>
    Effect.gen(function* () {
      const { env, home } = yield* machine
      const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
      const input = [
        { id: 1, method: "initialize", params },
        { id: 2, method: "tools/call", params: { name: "ls", arguments: {} } }
      ]
        .map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
        .join("")
      const { status, stderr, stdout } = spawnSync(process.execPath, [bin, "mcp"], { cwd: home, env, input, encoding: "utf8" })
      assert.strictEqual(status, 5, stderr)
      assert.include(stderr, "the current directory is a home directory")
      assert.notInclude(stdout, '"id":2')
    })
  )
})
