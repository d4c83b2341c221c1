import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { shell } from "./terminal.ts"

describe("mcp", () => {
  const files = {
    "a.txt": "a\n",
    ".env": "TOKEN=1\n",
    "key.pem": "TOKEN=2\n",
    logs: { "x.log": "x\n", ".env.local": "TOKEN=3\n", deep: { "key.pem": "TOKEN=4\n" } }
  }

  interface Answered {
    readonly id: unknown
    readonly result?: any
    readonly error?: { readonly code: number }
  }

  /** Starts the server, sends the requests and closes its input. */
  const asked = Effect.fnUntraced(function* (args: ReadonlyArray<string>, ...calls: ReadonlyArray<readonly [string, object]>) {
    const { run } = yield* shell(files)
    const clientInfo = { name: "t", version: "1" }
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo }
    const messages = [
      { id: "init", method: "initialize", params },
      { id: "list", method: "tools/list" },
      ...calls.map(([name, input], id) => ({ id, method: "tools/call", params: { name, arguments: input } }))
    ]
    const input = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("")
    const { code, err, out } = yield* run(["mcp", ...args], { input, directory: "/projects/one", stateDirectory: "/nowhere" })
    const answers = out
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Answered)
    const byId = new Map(answers.map((answer) => [answer.id, answer]))
    const tools: ReadonlyArray<string> = byId.get("list")?.result?.tools.map(({ name }: { name: string }) => name) ?? []
    return { code, err, tools, init: byId.get("init")?.result, answers: calls.map((_, id) => byId.get(id)!) }
  })

  it.live("names itself fs-algebra, serves the files, and ends when its input ends", () =>
    Effect.gen(function* () {
      const { answers, code, err, init } = yield* asked([], ["read_file", { path: "a.txt" }])
      assert.deepStrictEqual([code, err], [0, ""])
      assert.strictEqual(init.serverInfo.name, "fs-algebra")
      assert.match(answers[0]!.result.content[0].text, /^ +1 \| a$/m)
      assert.isUndefined(answers[0]!.result.structuredContent)
    })
  )

  it.live("says on a terminal that the server waits for a client", () =>
    Effect.gen(function* () {
      const { run } = yield* shell(files)
      const on = (isTerminal: boolean) =>
        run(["mcp"], { isInteractive: true, isTerminal, directory: "/projects/one", stateDirectory: "/nowhere" })
      const { code, err, out } = yield* on(true)
      assert.deepStrictEqual([code, out], [0, ""])
      assert.match(err, /waits for a client.*Ctrl-C/)
      // A client reads the output.
      assert.strictEqual((yield* on(false)).err, "")
    })
  )

  it.live("limits the tools with --tools and --read-only", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* asked(["--tools", "ls, grep"])).tools, ["ls", "grep"])
      assert.deepStrictEqual((yield* asked(["--tools", "vfs", "--read-only"])).tools, ["list_directory", "read_file"])
      const { answers } = yield* asked(["--read-only"], ["write_file", { path: "b.txt", content: "b" }])
      assert.strictEqual(answers[0]!.error?.code, -32_602)
    })
  )

  it.live("enforces --deny and --read-before-write", () =>
    Effect.gen(function* () {
      const { answers } = yield* asked(
        ["--deny", ".env", "--deny", "logs/**", "--read-before-write"],
        ["read_file", { path: ".env" }],
        ["ls", {}],
        ["edit_file", { path: "a.txt", old_string: "a", new_string: "b" }]
      )
      assert.isTrue(answers[0]!.result.isError)
      assert.notInclude(JSON.stringify(answers[0]), "TOKEN")
      assert.include(JSON.stringify(answers[0]), "a policy forbids it")
      assert.notInclude(JSON.stringify(answers[1]), ".env")
      assert.isTrue(answers[2]!.result.isError)
      assert.include(JSON.stringify(answers[2]), "read_file")
    })
  )

  const secrets = [".env", "key.pem", "logs/.env.local", "logs/deep/key.pem"]
  const reads = secrets.map((path) => ["read_file", { path }] as const)

  it.live("with --deny applies each alternative of ** in braces, at the root too", () =>
    Effect.gen(function* () {
      for (const deny of [
        "{**/.env*,**/*.pem}",
        "{**/.env*,*.pem}",
        "{{**/.env,**/.env.*},**/*.pem}",
        "**/{.env*,*.pem}",
        "@(**/.env*|**/*.pem)"
      ]) {
        const { answers, code } = yield* asked(["--deny", deny], ...reads, [
          "grep",
          { pattern: "TOKEN", include_ignored: true }
        ])
        assert.strictEqual(code, 0, deny)
        for (const answer of answers.slice(0, -1)) assert.isTrue(answer.result.isError, deny)
        assert.notInclude(JSON.stringify(answers), "TOKEN=", deny)
      }
    })
  )

  it.live("with --allow applies each alternative of ** in braces, at the root too", () =>
    Effect.gen(function* () {
      const flags = ["--structured", "--allow", "{**/a.txt,**/x.log}"]
      const { answers } = yield* asked(flags, ["glob", { pattern: "**" }])
      assert.deepStrictEqual(
        answers[0]!.result.structuredContent.matches.map(({ path }: { path: string }) => path),
        ["a.txt", "logs/x.log"]
      )
    })
  )

  it.live("accepts globs that begin with the mount point", () =>
    Effect.gen(function* () {
      const args = ["--mount-point", "/workspace", "--deny", "/workspace/.env"]
      const { answers } = yield* asked(args, ["read_file", { path: ".env" }], ["read_file", { path: "a.txt" }])
      assert.isTrue(answers[0]!.result.isError)
      assert.isFalse(answers[1]!.result.isError)
      const all = yield* asked(["--mount-point", "/workspace", "--deny", "/workspace/"], ["read_file", { path: "a.txt" }])
      assert.isTrue(all.answers[0]!.result.isError)
    })
  )

  it.live("with --no-delete has no removing tool, and refuses removals by other tools", () =>
    Effect.gen(function* () {
      const patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"
      const { answers, init, tools } = yield* asked(
        ["--no-delete", "--backend", "memory"],
        ["apply_patch", { patch }],
        ["write_file", { path: "new.txt", content: "new" }],
        ["rm", { path: "a.txt" }],
        ["read_file", { path: "a.txt" }]
      )
      assert.notInclude(init.instructions, "Delete")
      assert.include(init.instructions, "Do not copy whole repositories")
      assert.include((yield* asked([])).init.instructions, "Delete files that you have created")
      for (const name of ["rm", "move"]) assert.notInclude(tools, name)
      assert.includeMembers(tools as Array<string>, ["write_file", "edit_file", "copy", "restore"])
      assert.isTrue(answers[0]!.result.isError)
      assert.isFalse(answers[1]!.result.isError)
      assert.strictEqual(answers[2]!.error?.code, -32_602)
      assert.isFalse(answers[3]!.result.isError)
      assert.deepStrictEqual((yield* asked(["--tools", "vfs", "--no-delete"])).tools, [
        "list_directory",
        "read_file",
        "write_file"
      ])
    })
  )

  it.live("with --no-delete says which files a restore has kept", () =>
    Effect.gen(function* () {
      const { answers } = yield* asked(
        ["--no-delete", "--backend", "memory"],
        ["snapshot", { tag: "before" }],
        ["write_file", { path: "new.txt", content: "new" }],
        ["restore", { snapshot_id: "before" }],
        ["read_file", { path: "new.txt" }]
      )
      const said = JSON.stringify(answers[2]!.result)
      assert.notInclude(said, "all files are already")
      assert.include(said, "new.txt")
      assert.include(said, "not permitted")
      assert.isFalse(answers[3]!.result.isError)
    })
  )

  it.live("takes a checkpoint before the first change, unless --no-snapshots is given", () =>
    Effect.gen(function* () {
      const write = ["write_file", { path: "new.txt", content: "new" }] as const
      const kept = yield* asked(["--backend", "memory"], write)
      assert.match(JSON.stringify(kept.answers[0]), /Checkpoint [0-9a-f]{8} contains all files .* restore with .*snapshot_id/)
      const without = yield* asked(["--backend", "memory", "--no-snapshots"], write)
      assert.notInclude(JSON.stringify(without.answers[0]), "heckpoint")
      assert.notInclude(without.tools, "snapshot")
      // Without the restore tool, a checkpoint is useless.
      const unreachable = yield* asked(["--backend", "memory", "--tools", "seven"], write)
      assert.notInclude(JSON.stringify(unreachable.answers[0]), "heckpoint")
    })
  )

  it.live("with --snapshots adds the snapshot tools to any chosen tools, and fails if snapshots cannot be kept", () =>
    Effect.gen(function* () {
      const snapshots = ["snapshot", "snapshots", "restore", "diff"]
      const vfs = yield* asked(["--tools", "vfs", "--snapshots", "--backend", "memory"])
      assert.deepStrictEqual(vfs.tools, ["list_directory", "read_file", "write_file", "delete_file", ...snapshots])
      assert.deepStrictEqual(
        (yield* asked(["--tools", "ls,diff", "--snapshots", "--read-only", "--backend", "memory"])).tools,
        ["ls", "diff", "snapshots"]
      )
      const { run } = yield* shell(files)
      const ended = yield* run(["mcp", "--root", ".", "--snapshots"], { input: "", directory: "/projects/one" })
      assert.strictEqual(ended.code, 2)
      assert.include(ended.err, "no home directory to keep snapshots in")
    })
  )

  it.live("accepts paths below --mount-point", () =>
    Effect.gen(function* () {
      const { answers } = yield* asked(["--mount-point", "/workspace"], ["read_file", { path: "/workspace/a.txt" }])
      assert.isFalse(answers[0]!.result.isError)
    })
  )

  it.live("reports invalid options with a hint before it answers any request", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, code: number, said: string]> = [
        [["--tools", "ls,nope"], 2, '"nope"'],
        [["--read-only", "--tools", "ls,write_file"], 2, "--read-only"],
        [["--no-delete", "--tools", "ls,rm"], 2, "--no-delete"],
        [["--no-snapshots", "--tools", "ls,snapshot"], 2, "--no-snapshots"],
        [["--tools", "ls,shell"], 2, "--backend container"],
        [["--limits", "few"], 2, "limits"],
        [["--http", "70000"], 2, "70000"],
        [["--http", "0", "--host", "0.0.0.0"], 2, "host"],
        [["--deny", "[z-a"], 2, "deny"],
        [["--deny", ".env,*.pem"], 2, "deny"],
        [["--deny", "logs//x.log"], 2, "empty segment"],
        [["--deny", "./logs/."], 2, "segment"],
        [["--deny", "logs/**.log"], 2, "next to other characters"],
        [["--deny", "logs\\x.log"], 2, "directories are separated"],
        [["--deny", "{*.pem,logs/*}"], 2, "anchors"],
        [["--deny", "{.env"], 2, "not closed"],
        [["--deny", ""], 2, "blank"],
        [["--deny", "../x"], 2, '".."'],
        [["--allow", "[[:constructor:]]"], 2, "no class"],
        [["--allow", "**", "--allow", "!.env"], 2, "cannot re-include"],
        [["--deny", "{1..2000}"], 2, "1024"]
      ]
      for (const [args, code, said] of wrong) {
        const ended = yield* asked(args)
        assert.strictEqual(ended.code, code, args.join(" "))
        assert.include(ended.err, said)
        assert.match(ended.err, /^hint: /m)
        assert.isUndefined(ended.init)
      }
    })
  )
})
