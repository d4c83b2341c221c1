/** Tests that common mistakes of new users are reported precisely and with a hint. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OpenContainer } from "../../src/cli/container.ts"
import { Unavailable } from "../../src/model/FsError.ts"
import { shell } from "./terminal.ts"

const tree = { "a.txt": "one\n", src: { "main.ts": "import x\n" } }

const ran = (args: ReadonlyArray<string>, options?: { readonly engine?: OpenContainer }) =>
  Effect.flatMap(shell(tree), ({ run }) => run(args, options))

describe("a search below a missing directory", () => {
  it.effect.each([
    [["grep", "import", "scr"]],
    [["grep", "import", "scr", "--count"]],
    [["glob", "*.ts", "--path", "scr"]],
    [["glob", "*.ts", "--path", "scr", "--max", "3"]]
  ])("by %s fails and suggests a similar name", ([args]) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* ran(args)
      assert.strictEqual(code, 3, err)
      assert.strictEqual(out, "")
      assert.match(err, /"scr": there is no such file or directory\nhint: +Did you mean src\?/)
    })
  )
  it.effect("has a different exit code from a search without matches", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["grep", "nothing", "src"])
      assert.deepStrictEqual([code, err], [1, ""])
    })
  )
})

describe("an invalid value of a flag", () => {
  it.effect.each([
    [["tree", "--depth", "-1"], "error: Invalid value for flag --depth: -1 is below 0"],
    [["mcp", "--http", "99999"], "error: Invalid value for flag --http: 99999 is not a port number"],
    [
      ["cat", "a.txt", "--lines", "5:2"],
      'error: Invalid value for flag --lines: "5:2" is not A:B, A: or :B, with A at least 1 and B not below A'
    ]
  ] as const)("%s is reported once", ([args, line]) =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(args)
      assert.strictEqual(code, 2)
      assert.strictEqual(err.split("\n")[0], line)
    })
  )
})

describe("the hint of an error", () => {
  it.effect("for a file in place of a directory does not suggest omitting a flag that was not given", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["mkdir", "a.txt"])
      assert.strictEqual(code, 4)
      assert.notMatch(err, /Leave out/)
      assert.match(err, /fs-algebra stat a\.txt/)
    })
  )
  it.effect("for a missing image suggests the command that downloads it", () =>
    Effect.gen(function* () {
      const engine: OpenContainer = () =>
        Layer.effectContext(Effect.fail(new Unavailable({ operation: "exec", path: ".", detail: "there is no such image" })))
      const { code, err } = yield* ran(["exec", "--image", "x", "--", "ls"], { engine })
      assert.strictEqual(code, 9)
      assert.match(err, /podman pull/)
    })
  )
})

describe("--max 0", () => {
  it.effect.each([[["glob", "*", "--max", "0"]], [["grep", "one", "--max", "0"]]])(
    "makes %s print no match and report that there are more",
    ([args]) =>
      Effect.gen(function* () {
        const { err, out } = yield* ran(args)
        assert.strictEqual(out, "")
        assert.strictEqual(err, "more: there are more results than --max allows\n")
      })
  )
})

describe("a flag without effect:", () => {
  it.effect("--host without --http is refused", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* ran(["mcp", "--host", "::1"])
      assert.deepStrictEqual([code, out], [2, ""])
      assert.match(err, /--host requires --http/)
    })
  )
  it.effect.each([[["ls", "--image", "debian"]], [["cat", "a.txt", "--rootfs", "alpine", "--backend", "memory"]]])(
    "%s is refused",
    ([args]) =>
      Effect.gen(function* () {
        const { code, err, out } = yield* ran(args)
        assert.deepStrictEqual([code, out], [2, ""])
        assert.match(err, /--(image|rootfs) works only with --backend container/)
      })
  )
  it.effect("exec --timeout 0 is refused", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["exec", "--image", "x", "--timeout", "0", "--", "ls"])
      assert.strictEqual(code, 2)
      assert.match(err, /--timeout: 0 is less than 1/)
    })
  )
})

describe("export", () => {
  it.effect("into a missing directory reports the path of the archive on the machine", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["export", "/nowhere/at/all/x.zip"])
      assert.strictEqual(code, 3, err)
      assert.match(err, /"\/nowhere\/at\/all\/x\.zip" lies in a directory that does not exist/)
      assert.notMatch(err, /fs-algebra stat/)
    })
  )
  it.effect.each(["x.tgz", "x.tar.gz"])("to %s is refused, because export does not compress", (name) =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["export", `/nowhere/${name}`])
      assert.strictEqual(code, 2, err)
      assert.match(err, /gzip/)
    })
  )
})
