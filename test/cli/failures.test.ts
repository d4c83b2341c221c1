import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { exitCodeOf, exitCodes } from "../../src/cli/exit.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as FsError from "../../src/model/FsError.ts"
import { shell, shellOver } from "./terminal.ts"

const at = { operation: "stat", path: "a/file" }

/** One error of every kind, with its documented exit code. */
const errors: ReadonlyArray<readonly [FsError.FsError, code: number]> = [
  [new FsError.InvalidArgument({ ...at, argument: "pattern", detail: "it is blank" }), 2],
  [new FsError.InvalidPath({ ...at, detail: "it climbs above the root" }), 2],
  [new FsError.NotFound(at), 3],
  [new FsError.AlreadyExists(at), 4],
  [new FsError.AccessDenied({ ...at, why: "permission" }), 5],
  [new FsError.Conflict({ ...at, expected: "a".repeat(64), actual: "b".repeat(64) }), 6],
  [new FsError.NotAFile(at), 7],
  [new FsError.NotADirectory(at), 7],
  [new FsError.DirectoryNotEmpty(at), 7],
  [new FsError.NotText({ ...at, encoding: "utf-8", offset: 3 }), 7],
  [new FsError.LimitExceeded({ ...at, limit: "maxReadBytes", allowed: 1, actual: 2 }), 8],
  [new FsError.PathTooLong({ ...at, detail: "it has 5000 characters" }), 8],
  [new FsError.DiskFull(at), 8],
  [new FsError.Timeout({ ...at, detail: "2000 ms" }), 9],
  [new FsError.Unavailable({ ...at, detail: "it stopped" }), 9],
  [new FsError.IoError({ ...at, code: "EIO", detail: "input/output error" }), 9],
  [new FsError.Unsupported({ ...at, feature: "links" }), 10]
]

describe("exit codes", () => {
  it("are in a table, where each type of error is in exactly one row", () => {
    const rows = exitCodes.flatMap(({ tags }) => tags)
    assert.sameMembers(
      rows,
      FsError.FsError.members.map((member) => member.fields._tag.ast.literal as FsError.FsError["_tag"])
    )
    assert.strictEqual(new Set(rows).size, rows.length)
    assert.sameMembers(
      errors.map(([error]) => error._tag),
      rows
    )
  })
  it.effect.each(errors)("are as in the table for %s", ([error, code]) =>
    Effect.gen(function* () {
      const { fs } = yield* shell({})
      const { run } = shellOver({ ...fs, stat: () => Effect.fail(error as FsError.StatError) })
      const ran = yield* run(["stat", "a/file"])
      assert.strictEqual(ran.code, code)
      assert.strictEqual(exitCodeOf(error._tag), code)
      assert.strictEqual(ran.out, "")
      const lines = ran.err.trimEnd().split("\n")
      assert.strictEqual(lines[0], `error: ${error.message}`)
      assert.match(lines[1]!, /^hint: {2}[A-Z].{15,}$/)
    })
  )
  it.effect.each(errors)("come with an error in JSON for %s", ([error]) =>
    Effect.gen(function* () {
      const { fs } = yield* shell({})
      const { run } = shellOver({ ...fs, stat: () => Effect.fail(error as FsError.StatError) })
      const ran = yield* run(["stat", "a/file", "--json"])
      assert.strictEqual(ran.out, "")
      const answer = JSON.parse(ran.err) as { error: unknown; hint: string }
      const decoded = Schema.decodeUnknownSync(Schema.toCodecJson(FsError.FsError))(answer.error)
      assert.strictEqual(decoded._tag, error._tag)
      assert.strictEqual(decoded.message, error.message)
      assert.isAbove(answer.hint.length, 15)
    })
  )
})

describe("the hint of an error", () => {
  it.effect("suggests the correct name after a typing mistake", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ "README.md": "", src: { "main.ts": "" } })
      const hint = (path: string) => Effect.map(run(["cat", path]), ({ err }) => err.split("\n")[1])
      assert.strictEqual(yield* hint("REAMDE.md"), "hint:  Did you mean README.md?")
      assert.strictEqual(yield* hint("readme.md"), "hint:  Did you mean README.md?")
      assert.strictEqual(yield* hint("src/mian.ts"), "hint:  Did you mean src/main.ts?")
    })
  )
  it.effect("suggests the same name in another directory", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ src: { deep: { "main.ts": "" } }, other: {} })
      assert.include((yield* run(["cat", "main.ts"])).err, "Did you mean src/deep/main.ts?")
      assert.include((yield* run(["cat", "nowhere/main.ts"])).err, "Did you mean src/deep/main.ts?")
    })
  )
  it.effect("suggests listing the directory if no name is similar", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ src: {} })
      assert.include((yield* run(["cat", "src/qqqq"])).err, "fs-algebra ls src")
    })
  )
  it.effect("suggests listing the nearest existing directory under the same --root", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ src: {} })
      const { err } = yield* run(["cat", "src/no/such/file", "--root", "/some where"])
      assert.include(err, "fs-algebra ls src --root '/some where'")
    })
  )
  it.effect("follows the error, which names the command in text and the operation in JSON", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({})
      assert.match((yield* run(["rm", "x"])).err, /^error: rm "x": /)
      assert.include((yield* run(["rm", "x", "--json"])).err, '"operation":"delete"')
    })
  )
  it.effect("quotes suggested commands for the shell, and escapes control characters", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ "it's here": { f: "" } })
      assert.include((yield* run(["rm", "it's here"])).err, String.raw`fs-algebra rm --recursive 'it'\''s here'`)
      const evil = yield* run(["cat", "x\u009b31m"])
      assert.notInclude(evil.err, "\u009b")
    })
  )
})

describe("wrong usage", () => {
  const usage = (...args: ReadonlyArray<string>) => Effect.flatMap(shell({ f: "" }), ({ run }) => run(args))
  it.effect.each([
    ["an unknown command", ["lst"], "ls"],
    ["an unknown flag", ["ls", "--lnog"], "--long"],
    ["a missing argument", ["grep"], "pattern"],
    ["a flag without its value", ["edit", "f", "--old"], "old"],
    ["an invalid number", ["tree", "--depth", "two"], "depth"],
    ["a negative number", ["tree", "--depth", "-1"], "below 0"],
    ["a reversed range", ["cat", "f", "--lines", "5:2"], "5:2"],
    ["an additional argument", ["edit", "f", "c", "--old", "a", "--new", "b"], "c"]
  ] as const)("by %s ends the command with exit code 2 and a message on standard error", ([, args, said]) =>
    Effect.gen(function* () {
      const ran = yield* usage(...args)
      assert.strictEqual(ran.code, 2, ran.err)
      assert.strictEqual(ran.out, "")
      assert.include(ran.err, said)
      assert.match(ran.err, /^hint: {2}See fs-algebra.* --help$/m)
    })
  )
  it.effect.each([
    ["mcp", "--rot", "--root"],
    ["ls", "--jsn", "--json"],
    ["mcp", "--read-onl", "--read-only"],
    ["grep", "--bakend", "--backend"]
  ])("of %s by the mistyped flag %s is reported with the similar flag %s", ([name, typed, meant]) =>
    Effect.gen(function* () {
      const ran = yield* usage(name!, typed!, "x")
      assert.strictEqual(ran.code, 2)
      assert.deepStrictEqual(
        [...ran.err.matchAll(/^ {4}(-\S+)$/gm)].map(([, flag]) => flag),
        [meant]
      )
    })
  )
  it.effect("is reported without a suggestion if no flag has a similar name", () =>
    Effect.gen(function* () {
      assert.notInclude((yield* usage("mcp", "--frobnicate")).err, "Did you mean")
    })
  )
  it.effect("is reported as JSON with --json", () =>
    Effect.gen(function* () {
      const ran = yield* usage("ls", "--lnog", "--json")
      assert.strictEqual(ran.code, 2)
      assert.deepInclude(JSON.parse(ran.err) as object, { error: { _tag: "UsageError" } })
    })
  )
})

describe("a command", () => {
  it.effect("ends quietly when the reader of its output has exited", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ a: "a", b: "b" })
      const ran = yield* run(["cat", "a", "b"], { closesAfter: 1 })
      assert.deepStrictEqual([ran.code, ran.out, ran.err], [0, "a", ""])
    })
  )
  it.effect.each([["--help"], ["ls", "--help"], ["mcp", "--help"], ["--version"], ["--completions", "bash"]])(
    "ends quietly when the reader of its output has exited before %s is printed",
    (args) =>
      Effect.gen(function* () {
        const { run } = yield* shell({})
        const ran = yield* run(args, { closesAfter: 0 })
        assert.deepStrictEqual([ran.code, ran.err], [0, ""])
      })
  )
  it.effect("that cannot open its root reports the path as the user typed it", () =>
    Effect.gen(function* () {
      const opened: Array<string> = []
      const { run } = yield* shell({})
      const ran = yield* run(["ls", "--root", "nope"], {
        directory: "/home/me",
        host: (root) => {
          opened.push(root)
          return Layer.effect(Filesystem, Effect.fail(new FsError.NotFound({ operation: "make", path: "." })))
        }
      })
      assert.deepStrictEqual(opened, ["/home/me/nope"])
      assert.strictEqual(ran.code, 3)
      assert.strictEqual(
        ran.err,
        'error: open "nope": there is no such file or directory\nhint:  Give a directory that exists: --root DIR.\n'
      )
    })
  )
  it.effect("exits with code 70 for a defect", () =>
    Effect.gen(function* () {
      const { fs } = yield* shell({})
      const ran = yield* shellOver({ ...fs, list: () => Effect.die(new Error("boom")) }).run(["ls"])
      assert.strictEqual(ran.code, 70)
      assert.include(ran.err, "boom")
    })
  )
})
