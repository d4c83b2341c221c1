/** What somebody types who has just installed it: each mistake is told as what it is, with what to do next. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OpenContainer } from "../../src/cli/container.ts"
import { Unavailable } from "../../src/model/FsError.ts"
import { shell } from "./terminal.ts"

const tree = { "a.txt": "one\n", src: { "main.ts": "import x\n" } }

const ran = (args: ReadonlyArray<string>, options?: { readonly engine?: OpenContainer }) =>
  Effect.flatMap(shell(tree), ({ run }) => run(args, options))

describe("a search below what is not there", () => {
  it.effect.each([
    [["grep", "import", "scr"]],
    [["grep", "import", "scr", "--count"]],
    [["glob", "*.ts", "--path", "scr"]],
    [["glob", "*.ts", "--path", "scr", "--max", "3"]]
  ])("%s says so, and what is like it", ([args]) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* ran(args)
      assert.strictEqual(code, 3, err)
      assert.strictEqual(out, "")
      assert.match(err, /"scr": there is no such file or directory\nhint: +Did you mean src\?/)
    })
  )
  it.effect("is no failure where only nothing matches", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["grep", "nothing", "src"])
      assert.deepStrictEqual([code, err], [1, ""])
    })
  )
})

describe("a value that a flag refuses", () => {
  it.effect.each([
    [["tree", "--depth", "-1"], "error: Invalid value for flag --depth: -1 is below 0"],
    [["mcp", "--http", "99999"], "error: Invalid value for flag --http: 99999 is no port"],
    [
      ["cat", "a.txt", "--lines", "5:2"],
      'error: Invalid value for flag --lines: "5:2" is not A:B, A: or :B, with A at least 1 and B not below A'
    ]
  ] as const)("%s is told once", ([args, line]) =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(args)
      assert.strictEqual(code, 2)
      assert.strictEqual(err.split("\n")[0], line)
    })
  )
})

describe("advice", () => {
  it.effect("on a directory where a file is does not name a flag that was not given as the remedy", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["mkdir", "a.txt"])
      assert.strictEqual(code, 4)
      assert.notMatch(err, /Leave out/)
      assert.match(err, /fs-algebra stat a\.txt/)
    })
  )
  it.effect("on an image that is not there is how to get one", () =>
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
    "%s says that there is something, and no more",
    ([args]) =>
      Effect.gen(function* () {
        const { err, out } = yield* ran(args)
        assert.strictEqual(out, "")
        assert.strictEqual(err, "more: there is more than --max allows\n")
      })
  )
})

describe("a flag that would do nothing", () => {
  it.effect("--host without --http is refused", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* ran(["mcp", "--host", "::1"])
      assert.deepStrictEqual([code, out], [2, ""])
      assert.match(err, /--host goes only with --http/)
    })
  )
  it.effect.each([[["ls", "--image", "debian"]], [["cat", "a.txt", "--rootfs", "alpine", "--backend", "memory"]]])(
    "%s is refused",
    ([args]) =>
      Effect.gen(function* () {
        const { code, err, out } = yield* ran(args)
        assert.deepStrictEqual([code, out], [2, ""])
        assert.match(err, /--(image|rootfs) goes only with --backend container/)
      })
  )
  it.effect("exec --timeout 0 is refused, since nothing runs in no time", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["exec", "--image", "x", "--timeout", "0", "--", "ls"])
      assert.strictEqual(code, 2)
      assert.match(err, /--timeout: 0 is less than 1/)
    })
  )
})

describe("export", () => {
  it.effect("into a directory that is not there says which file of the machine", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["export", "/nowhere/at/all/x.zip"])
      assert.strictEqual(code, 3, err)
      assert.match(err, /"\/nowhere\/at\/all\/x\.zip" lies in a directory that is not there/)
      assert.notMatch(err, /fs-algebra stat/)
    })
  )
  it.effect.each(["x.tgz", "x.tar.gz"])("to %s is refused: what it writes is not compressed", (name) =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["export", `/nowhere/${name}`])
      assert.strictEqual(code, 2, err)
      assert.match(err, /gzip/)
    })
  )
})
