import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { exitCodes } from "../../src/cli/exit.ts"
import { command } from "../../src/cli/main.ts"
import { shell, words } from "./terminal.ts"

const names = command.subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))

const print = (...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const ran = yield* (yield* shell({})).run(args)
    assert.strictEqual(ran.code, 0, ran.err)
    assert.strictEqual(ran.err, "")
    return ran.out
  })

describe("help", () => {
  it.effect.each(names)("of %s has a description and its flags, on lines of at most 130 characters", (name) =>
    Effect.gen(function* () {
      const text = yield* print(name, "--help")
      assert.match(text, /^DESCRIPTION\n {2}[A-Z]/m)
      assert.match(text, /--root DIR/)
      for (const line of text.split("\n")) assert.isAtMost(line.length, 130, line)
    })
  )
  it.effect.each(names)("of %s has examples, and all of them are valid usage", (name) =>
    Effect.gen(function* () {
      const text = yield* print(name, "--help")
      const examples = text
        .slice(text.indexOf("EXAMPLES"))
        .split("\n")
        .filter((line) => line.startsWith(`  fs-algebra ${name}`))
      assert.isAbove(examples.length, 0)
      for (const example of examples) {
        const ran = yield* (yield* shell({ "README.md": "text" })).run(words(example.trim()).slice(1), {
          input: "",
          endsAt: /^(?:The debug view is|Serving(?: the workspaces of the store)?) at /
        })
        assert.notMatch(ran.err, /^usage:/m, example)
        assert.notStrictEqual(ran.code, 70, ran.err)
      }
    })
  )
  it.effect("of the program lists all commands and the exit codes", () =>
    Effect.gen(function* () {
      const text = yield* print("--help")
      for (const name of names) assert.match(text, new RegExp(`^ {2}${name} {2,}\\S`, "m"))
      for (const { code, meaning } of exitCodes)
        assert.match(text, new RegExp(`^ +${code} {2}${meaning.replace(/[()]/g, "\\$&")}$`, "m"))
    })
  )
  it.effect("has colours only on a terminal that supports them", () =>
    Effect.gen(function* () {
      assert.notInclude(yield* print("--help"), "\u001b")
      const ran = yield* (yield* shell({})).run(["--help"], { colors: true, isTerminal: true })
      assert.include(ran.out, "\u001b[1m")
    })
  )
})

describe("the program", () => {
  it("has exactly these commands", () => {
    assert.sameMembers(names, [
      "ls",
      "tree",
      "cat",
      "stat",
      "write",
      "edit",
      "rm",
      "mkdir",
      "cp",
      "mv",
      "glob",
      "grep",
      "exec",
      "serve",
      "debug",
      "mcp",
      "tour",
      "snapshot",
      "snapshots",
      "diff",
      "restore",
      "export",
      "import",
      "journal",
      "workspaces"
    ])
  })
  it.effect("prints its version with --version", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* print("--version"), "fs-algebra v1.2.3\n")
    })
  )
  it.effect.each(["bash", "zsh", "fish", "powershell"])("prints completions for %s with all commands, and with flags", (name) =>
    Effect.gen(function* () {
      const script = yield* print("--completions", name)
      for (const word of [...names, "gitignore", "if-match", "root"]) assert.include(script, word)
    })
  )
})
