import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { AnyDefinition } from "../../src/agent/definition.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as Memory from "../../src/agent/memory.ts"
import type { ToolResult } from "../../src/agent/ToolResult.ts"
import { defaults, ToolSettings } from "../../src/agent/ToolSettings.ts"
import { evaluate, shell } from "../../src/agent/tools/sandbox.ts"
import { cutBytes, cutCharacters, cutMark, textOf } from "../../src/filesystem/sandbox/bounds.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { ExecResult, Sandbox } from "../../src/filesystem/Sandbox.ts"
import { Unavailable } from "../../src/model/FsError.ts"
import { canned, real } from "./sandboxes.ts"

interface Value {
  readonly exit_code: number
  readonly stdout: string
  readonly stderr: string
  readonly duration_ms: number
  readonly timed_out: boolean
  readonly truncated: boolean
}

const ask = (tool: AnyDefinition, input: unknown, sandbox: Layer.Layer<Sandbox>) =>
  invokeUnknown(tool, input, { memory: Memory.make() }).pipe(
    Effect.provide(Layer.merge(InMemory.layer(), sandbox))
  ) as Effect.Effect<ToolResult<Value>>

const answered = (tool: AnyDefinition, input: unknown, result: Partial<ExecResult>) => ask(tool, input, canned(result).layer)

const variables = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`V${i}`, "x"]))

const withinBounds: ReadonlyArray<readonly [claim: string, params: Record<string, unknown>]> = [
  ["4,096 characters of a command", { command: ["a".repeat(4000), "é".repeat(96)] }],
  ["4,096 characters outside of the basic plane, each of which counts as one", { command: ["😀".repeat(4096)] }],
  ["64 variables", { command: ["env"], env: variables(64) }],
  ["a name of 80 characters and a value of 512", { command: ["env"], env: { ["A".repeat(80)]: "v".repeat(512) } }],
  ["a directory of 16 levels", { command: ["pwd"], cwd: Array.from({ length: 16 }, (_, i) => `d${i}`).join("/") }],
  ["48,000 characters of input", { command: ["cat"], stdin: "😀".repeat(48_000) }]
]

const beyondBounds: ReadonlyArray<readonly [claim: string, argument: string, params: Record<string, unknown>]> = [
  ["a command without a program", "command", { command: [] }],
  ["an empty program", "command", { command: [""] }],
  ["a NUL in a command", "command", { command: ["echo", "a\0b"] }],
  ["half of a surrogate pair in a command", "command", { command: ["echo", "\ud800"] }],
  ["4,097 characters of a command", "command", { command: ["a".repeat(4000), "b".repeat(97)] }],
  ["65 variables", "env", { command: ["env"], env: variables(65) }],
  ["a name that begins with a digit", "env", { command: ["env"], env: { "1A": "x" } }],
  ["a name with a dash", "env", { command: ["env"], env: { "A-B": "x" } }],
  ["an empty name", "env", { command: ["env"], env: { "": "x" } }],
  ["a name of 81 characters", "env", { command: ["env"], env: { ["A".repeat(81)]: "x" } }],
  ["a value of 513 characters", "env", { command: ["env"], env: { A: "v".repeat(513) } }],
  ["a NUL in a value", "env", { command: ["env"], env: { A: "\0" } }],
  ["a directory of 17 levels", "cwd", { command: ["pwd"], cwd: Array.from({ length: 17 }, () => "d").join("/") }],
  ["a directory above the workspace", "cwd", { command: ["pwd"], cwd: "a/../.." }],
  ["a directory with a dot segment", "cwd", { command: ["pwd"], cwd: "./a" }],
  ["48,001 characters of input", "stdin", { command: ["cat"], stdin: "a".repeat(48_001) }]
]

describe("shell", () => {
  for (const [claim, params] of withinBounds) {
    it.effect(`accepts ${claim}`, () =>
      Effect.gen(function* () {
        const { asked, layer } = canned()
        const result = yield* ask(shell, params, layer)
        assert.isTrue(result.success, result.message)
        assert.deepStrictEqual(asked[0]!.command, params["command"] as Array<string>)
        assert.strictEqual(asked[0]!.options?.stdin, params["stdin"])
        assert.deepStrictEqual<unknown>(asked[0]!.options?.env, params["env"])
      })
    )
  }

  for (const [claim, argument, params] of beyondBounds) {
    it.effect(`refuses ${claim} before anything runs, and names ${argument} in the message`, () =>
      Effect.gen(function* () {
        const { asked, layer } = canned()
        const result = yield* ask(shell, params, layer)
        assert.isFalse(result.success)
        assert.notProperty(result, "value")
        assert.include(result.message, argument)
        assert.deepStrictEqual(asked, [])
      })
    )
  }

  const timeouts: ReadonlyArray<readonly [asked: number | undefined, seconds: number]> = [
    [undefined, 30],
    [0, 1],
    [-5, 1],
    [0.2, 1],
    [1.5, 1.5],
    [120, 120],
    [1e9, 120]
  ]
  for (const [seconds, expected] of timeouts) {
    it.effect(`turns a timeout of ${seconds} into ${expected} seconds`, () =>
      Effect.gen(function* () {
        const { asked, layer } = canned()
        yield* ask(shell, { command: ["true"], ...(seconds !== undefined && { timeout_seconds: seconds }) }, layer)
        assert.strictEqual(Duration.toSeconds(Duration.fromInputUnsafe(asked[0]!.options!.timeout!)), expected)
      })
    )
  }

  it.effect("accepts variables as a list or as an object", () =>
    Effect.gen(function* () {
      for (const env of [
        [
          { name: "A", value: "1" },
          { name: "B", value: "" }
        ],
        { A: "1", B: "" }
      ]) {
        const { asked, layer } = canned()
        yield* ask(shell, { command: ["env"], env }, layer)
        assert.deepStrictEqual<unknown>(asked[0]!.options?.env, { A: "1", B: "" })
      }
      for (const env of [["A=1"], "A=1", { A: 1 }, [{ name: "A" }], [{ name: "1A", value: "" }]]) {
        const { asked, layer } = canned()
        const result = yield* ask(shell, { command: ["env"], env }, layer)
        assert.isFalse(result.success)
        assert.include(result.message, "env")
        assert.deepStrictEqual(asked, [])
      }
    })
  )

  it.effect("refuses a timeout that is not a number", () =>
    Effect.gen(function* () {
      const { asked, layer } = canned()
      for (const timeout_seconds of [Number.NaN, "soon"]) {
        const result = yield* ask(shell, { command: ["true"], timeout_seconds }, layer)
        assert.isFalse(result.success)
        assert.include(result.message, "timeout_seconds")
      }
      assert.deepStrictEqual(asked, [])
    })
  )

  it.effect("returns the exit code and both streams of a program that fails", () =>
    Effect.gen(function* () {
      const { message, success, value } = yield* answered(
        shell,
        { command: ["false"] },
        { exitCode: 3, stdout: "a\n", stderr: "b" }
      )
      assert.isTrue(success)
      assert.strictEqual(message, "exit code 3 after 7 ms\nstdout:\na\nstderr:\nb")
      assert.deepStrictEqual(value, {
        exit_code: 3,
        stdout: "a\n",
        stderr: "b",
        duration_ms: 7,
        timed_out: false,
        truncated: false
      })
    })
  )

  it.effect("returns exit code 124 after a timeout, and the message says so", () =>
    Effect.gen(function* () {
      const { message, value } = yield* answered(shell, { command: ["sleep"] }, { exitCode: 124, timedOut: true })
      assert.include(message, "124")
      assert.include(message, "timed out after")
      assert.isTrue(value?.timed_out)
    })
  )

  it.effect("returns only the exit code if capture_output is off", () =>
    Effect.gen(function* () {
      const { message, value } = yield* answered(
        shell,
        { command: ["cat"], capture_output: false },
        { exitCode: 2, stdout: "x".repeat(100_000), stderr: "y", truncated: true }
      )
      assert.strictEqual(message, "exit code 2 after 7 ms")
      assert.deepStrictEqual([value?.stdout, value?.stderr, value?.truncated, value?.exit_code], ["", "", false, 2])
    })
  )

  it.effect("cuts each stream at 32 KiB between two characters, and marks the cut", () =>
    Effect.gen(function* () {
      const { value } = yield* answered(
        shell,
        { command: ["cat"] },
        { stdout: `a${"é".repeat(20_000)}`, stderr: "b".repeat(32_768) }
      )
      assert.isTrue(value?.truncated)
      // A half of 16,384 bytes ends in the middle of an é in the first stream.
      assert.strictEqual(value!.stdout, `a${"é".repeat(8191)}${cutMark}${"é".repeat(8192)}`)
      assert.strictEqual(value!.stderr, "b".repeat(32_768))
    })
  )

  it.effect("keeps the beginning and the end of a long stream", () =>
    Effect.gen(function* () {
      const stdout = `first\n${"x\n".repeat(30_000)}last\n`
      const { message, value } = yield* answered(shell, { command: ["make"] }, { stdout })
      assert.match(message, /the output is cut\nstdout:\nfirst\n/)
      assert.match(message, /\nlast$/)
      assert.strictEqual(value!.stdout.split(cutMark).length, 2)
    })
  )

  it.effect("reports that a process was refused, with a remedy", () =>
    Effect.gen(function* () {
      const { message } = yield* answered(shell, { command: ["make"] }, { exitCode: 2, processLimit: 256 })
      assert.match(message, /^exit code 2 .*a process was refused because only 256 are allowed \(run fewer processes at once/)
    })
  )

  it.effect("passes `detach` to the sandbox only if it is set", () =>
    Effect.gen(function* () {
      const { asked, layer } = canned()
      yield* ask(shell, { command: ["true"] }, layer)
      yield* ask(shell, { command: ["true"], detach: true }, layer)
      assert.deepStrictEqual(
        asked.map(({ options }) => options?.detach),
        [undefined, true]
      )
    })
  )

  it.effect("keeps the message within the budget for any streams", () =>
    Effect.gen(function* () {
      const streams = { stdout: "a\n".repeat(16_000), stderr: "b".repeat(32_000) }
      const usual = yield* answered(shell, { command: ["cat"] }, streams)
      assert.isAtMost(usual.message.length, 48_000)
      const small = yield* answered(shell, { command: ["cat"] }, streams).pipe(
        Effect.provideService(ToolSettings, { ...defaults, budget: 300 })
      )
      assert.isAtMost(small.message.length, 300)
      assert.include(small.message, cutMark)
      assert.strictEqual(small.value?.stdout, streams.stdout)
    })
  )

  it.effect("accepts a directory that begins with the mount point or with a slash", () =>
    Effect.gen(function* () {
      for (const cwd of ["/workspace/src", " /src ", "src"]) {
        const { asked, layer } = canned()
        yield* ask(shell, { command: ["pwd"], cwd }, layer).pipe(
          Effect.provideService(ToolSettings, { ...defaults, mountPoint: "/workspace" })
        )
        assert.strictEqual(asked[0]!.options?.cwd, "src")
      }
    })
  )

  it.effect("fails with advice if the sandbox is gone", () =>
    Effect.gen(function* () {
      const gone = new Unavailable({ operation: "exec", path: ".", detail: "the container has stopped" })
      const result = yield* ask(shell, { command: ["true"] }, canned(Effect.fail(gone)).layer)
      assert.isFalse(result.success)
      assert.include(result.message, "The command did not run: the container has stopped.")
      assert.include(result.message, "the file tools may still work")
      assert.notInclude(result.message, "filesystem")
    })
  )

  it.effect("includes the hint of the sandbox in its failure", () =>
    Effect.gen(function* () {
      const missing = new Unavailable({
        operation: "exec",
        path: ".",
        detail: "podman is not installed",
        hint: "Install podman."
      })
      const { message } = yield* ask(shell, { command: ["true"] }, canned(Effect.fail(missing)).layer)
      assert.include(message, "podman is not installed. Tell the user: Install podman.")
    })
  )

  it.effect("fails if there is no sandbox", () =>
    Effect.gen(function* () {
      const result = yield* invokeUnknown(shell, { command: ["true"] }, { memory: Memory.make() }).pipe(
        Effect.provide(InMemory.layer())
      ) as Effect.Effect<ToolResult<Value>>
      assert.isFalse(result.success)
      assert.include(result.message, "No sandbox available")
    })
  )
})

describe("eval", () => {
  it.effect("runs code for at most five seconds in the given language", () =>
    Effect.gen(function* () {
      const { asked, layer } = canned()
      yield* ask(evaluate, { code: "1\t+\r\n1", language: "python" }, layer)
      yield* ask(evaluate, { code: "😀".repeat(4096) }, layer)
      assert.strictEqual(asked[0]!.code, "1\t+\r\n1")
      assert.deepStrictEqual(
        asked.map(({ options }) => options?.language),
        ["python", undefined]
      )
      assert.strictEqual(Duration.toSeconds(Duration.fromInputUnsafe(asked[0]!.options!.timeout!)), 5)
    })
  )

  for (const [claim, code] of [
    ["4,097 characters", "a".repeat(4097)],
    ["an escape character", "print('\u001b[1m')"],
    ["a NUL", "a\0"],
    ["a delete character", "\u007f"],
    ["a form feed", "a\f"],
    ["a C1 control character", "\u0085"],
    ["half of a surrogate pair", "'\udc00'"]
  ] as const) {
    it.effect(`refuses code with ${claim} before anything runs`, () =>
      Effect.gen(function* () {
        const { asked, layer } = canned()
        const result = yield* ask(evaluate, { code }, layer)
        assert.isFalse(result.success)
        assert.include(result.message, "code")
        assert.deepStrictEqual(asked, [])
      })
    )
  }

  it.effect("cuts each stream at 4,096 characters and marks the cut", () =>
    Effect.gen(function* () {
      const { value } = yield* answered(evaluate, { code: "x" }, { stdout: "😀".repeat(4097), stderr: "e".repeat(4096) })
      assert.strictEqual(value?.stdout, "😀".repeat(2048) + cutMark + "😀".repeat(2048))
      assert.strictEqual(value?.stderr, "e".repeat(4096))
      assert.isTrue(value?.truncated)
    })
  )
})

describe("cutting a stream", () => {
  it("replaces invalid bytes and shortens the text", () => {
    const bytes = new Uint8Array(40_000).fill(0x80)
    assert.strictEqual(textOf(bytes, 100), "\ufffd".repeat(100))
    assert.strictEqual(textOf(new TextEncoder().encode("a😀"), 4), "a")
  })
  it("marks a text only once when it is cut again", () => {
    const once = cutBytes("x".repeat(40_000), 32_768)
    assert.deepStrictEqual(cutBytes(once.text, 32_768), { text: once.text, isCut: true })
    const few = cutCharacters("x".repeat(10), 4)
    assert.deepStrictEqual(cutCharacters(few.text, 4), { text: `xx${cutMark}xx`, isCut: true })
    assert.deepStrictEqual(cutBytes(once.text, 100), { text: "x".repeat(50) + cutMark + "x".repeat(50), isCut: true })
  })

  it("splits no character", () => {
    for (let max = 0; max < 16; max++) {
      const { text } = cutBytes("aé€😀é€😀", max)
      assert.isTrue(text.isWellFormed())
      assert.isFalse(text.includes("\ufffd"))
      assert.isAtMost(Buffer.byteLength(text) - cutMark.length, max)
    }
  })
})

describe("real programs in a sandbox", () => {
  const place = Effect.acquireRelease(
    Effect.sync(() => realpathSync(mkdtempSync(join(tmpdir(), "fs-algebra-sandbox-")))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

  it.live("see the files, their standard input and their variables, and write to the filesystem", () =>
    Effect.gen(function* () {
      const root = yield* place
      mkdirSync(join(root, "docs"))
      writeFileSync(join(root, "docs", "a.txt"), "from the file\n")
      const both = Layer.merge(PosixHost.layer({ root }), real(root))
      const run = (tool: AnyDefinition, input: unknown) =>
        invokeUnknown(tool, input, { memory: Memory.make() }).pipe(Effect.provide(both)) as Effect.Effect<ToolResult<Value>>
      const script = 'cat a.txt -; printf "%s" "$WORD" > b.txt; exit 5'
      const { value } = yield* run(shell, {
        command: ["sh", "-c", script],
        cwd: "docs",
        env: { WORD: "a b" },
        stdin: "from the input"
      })
      assert.strictEqual(value?.exit_code, 5)
      assert.strictEqual(value?.stdout, "from the file\nfrom the input")
      assert.strictEqual(readFileSync(join(root, "docs", "b.txt"), "utf8"), "a b")
      const nowhere = yield* run(shell, { command: ["pwd"], cwd: "nowhere" })
      assert.isFalse(nowhere.success)
      assert.notInclude(nowhere.message, root)
      const sum = yield* run(evaluate, { code: "console.log(6 * 7)" })
      assert.strictEqual(sum.value?.stdout, "42\n")
    })
  )
})

describe("shell accepts a command as", () => {
  const rows: ReadonlyArray<
    readonly [suite: string, args: object, command: ReadonlyArray<string>, seconds: number, cwd?: string]
  > = [
    ["a command line for sh", { command: "ls *.md | wc -l" }, ["sh", "-c", "ls *.md | wc -l"], 30],
    ["a command line that begins with a dash", { command: "-v" }, ["sh", "-c", " -v"], 30],
    ["a list of a program and its arguments", { command: ["ls", "-l"] }, ["ls", "-l"], 30],
    ["the arguments of Claude Code", { command: "make", description: "Builds", timeout: 60_000 }, ["sh", "-c", "make"], 60],
    [
      "the arguments of Codex",
      { command: ["make"], workdir: "src", timeout_ms: 5000, justification: "to see" },
      ["make"],
      5,
      "src"
    ],
    ["a program with a separate list of arguments", { command: "ls", args: ["-l", "a b"] }, ["ls", "-l", "a b"], 30]
  ]
  for (const [claim, args, command, seconds, cwd] of rows) {
    it.effect(claim, () =>
      Effect.gen(function* () {
        const { asked, layer } = canned()
        const { message, success } = yield* ask(shell, args, layer)
        assert.isTrue(success, message)
        const { options } = asked[0]!
        assert.deepStrictEqual([asked[0]!.command, options?.cwd], [command, cwd])
        assert.strictEqual(Duration.toSeconds(Duration.fromInputUnsafe(options!.timeout!)), seconds)
      })
    )
  }
})

describe("shell, given a blank command,", () => {
  it.effect("runs nothing and fails", () =>
    Effect.gen(function* () {
      const { asked, layer } = canned()
      const { message, success } = yield* ask(shell, { command: " " }, layer)
      assert.isFalse(success)
      assert.include(message, "must name a program")
      assert.deepStrictEqual(asked, [])
    })
  )
})

describe("eval", () => {
  it.effect("names the languages of the image if the requested language is missing", () =>
    Effect.gen(function* () {
      const missing = { exitCode: 127, stderr: "sh: node: not found\n", stdout: "/usr/bin/python3\n/bin/sh\n" }
      const { message } = yield* answered(evaluate, { code: "1", language: "javascript" }, missing)
      assert.match(message, /\nthe image has python and sh: set language to one of these$/)
      const { message: ended } = yield* answered(evaluate, { code: "1" }, { exitCode: 1 })
      assert.notInclude(ended, "the image has")
    })
  )

  it.effect("runs code of the language sh", () =>
    Effect.gen(function* () {
      const { asked, layer } = canned()
      yield* ask(evaluate, { code: "echo a", language: "sh" }, layer)
      assert.deepInclude(asked[0], { code: "echo a" })
      assert.strictEqual(asked[0]!.options?.language, "sh")
    })
  )
})
