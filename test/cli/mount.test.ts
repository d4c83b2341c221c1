/** Tests the syntax, the effect and the error messages of `--mount`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { parseMountFlag } from "../../src/cli/mounts.ts"
import { exitCodeOf, usageErrorCode } from "../../src/cli/exit.ts"
import { machine } from "../workspace/mounting.ts"
import { shell } from "./terminal.ts"

const split = (text: string, platform?: NodeJS.Platform) => {
  const parsed = parseMountFlag(text, platform)
  return parsed && [parsed.source, parsed.target]
}

describe("--mount SOURCE[:TARGET]", () => {
  it("splits its value at the last colon", () => {
    assert.deepStrictEqual(split("src", "linux"), ["src", undefined])
    assert.deepStrictEqual(split("../src:lib/x", "linux"), ["../src", "lib/x"])
    assert.deepStrictEqual(split("12:30:log", "linux"), ["12:30", "log"])
    assert.deepStrictEqual(split("C:\\x", "linux"), ["C", "\\x"])
    assert.deepStrictEqual(split("src:/", "linux"), ["src", "/"])
  })

  it("accepts a Windows drive at the beginning of the source", () => {
    assert.deepStrictEqual(split("C:\\x", "win32"), ["C:\\x", undefined])
    assert.deepStrictEqual(split("C:\\x:target", "win32"), ["C:\\x", "target"])
    assert.deepStrictEqual(split("c:/x/y:a/b", "win32"), ["c:/x/y", "a/b"])
    assert.deepStrictEqual(split("src:lib", "win32"), ["src", "lib"])
  })

  it("refuses a blank source or target", () => {
    for (const text of ["", " ", ":x", "x:", "x: ", ":"])
      assert.isUndefined(parseMountFlag(text, "linux"), JSON.stringify(text))
  })
})

const project = { "README.md": "# Project\n", src: { "main.ts": "main\n" } }

const mounted = Effect.gen(function* () {
  const top = yield* machine({
    "here/docs/guide.md": "# Guide\n",
    "here/notes.md": "notes\n",
    "here/src/main.ts": "other main\n",
    "here/12:30": "colon\n",
    "here/link": ["docs"],
    "shared/lib.ts": "lib\n"
  })
  const { json, run } = yield* shell(project)
  const options = { directory: join(top, "here") }
  return {
    top,
    run: (...args: ReadonlyArray<string>) => run([...args, "--backend", "memory"], options),
    onDisk: (...args: ReadonlyArray<string>) => run(args, options),
    json: (...args: ReadonlyArray<string>) => json([...args, "--backend", "memory"], options)
  }
})

describe("--mount", () => {
  it.live("adds files to the copy in memory, and later mounts replace files of earlier mounts", () =>
    Effect.gen(function* () {
      const { run, top } = yield* mounted
      const listed = yield* run(
        "glob",
        "**",
        "--mount",
        "docs",
        "--mount=../shared",
        "--mount",
        `${join(top, "shared")}:vendor/x`,
        "--mount",
        "notes.md:docs",
        "--mount",
        "src/main.ts"
      )
      assert.deepStrictEqual(
        [listed.code, listed.err, listed.out.trim().split("\n")],
        [0, "", ["README.md", "docs/guide.md", "docs/notes.md", "shared/lib.ts", "src/main.ts", "vendor/x/lib.ts"]]
      )
      const cat = (...mounts: ReadonlyArray<string>) =>
        Effect.map(run("cat", "src/main.ts", ...mounts.flatMap((mount) => ["--mount", mount])), ({ out }) => out)
      assert.strictEqual(yield* cat(), "main\n")
      assert.strictEqual(yield* cat("src"), "other main\n")
      assert.strictEqual(yield* cat(".:/"), "other main\n")
      assert.strictEqual(yield* cat("src", "../shared/lib.ts:src"), "other main\n")
      assert.strictEqual((yield* run("cat", "x/12:30", "--mount", "12:30:x")).out, "colon\n")
      assert.strictEqual((yield* run("ls", "link", "--mount", "link")).out, "guide.md\n")
    })
  )

  it.live("reports the entries that it skips", () =>
    Effect.gen(function* () {
      const { run } = yield* mounted
      const ran = yield* run("ls", "m", "--mount", ".:m")
      assert.strictEqual(ran.code, 0)
      assert.strictEqual(ran.out, "12:30\ndocs/\nnotes.md\nsrc/\n")
      assert.match(ran.err, /left out of \., 1 entry:\n {2}link: it is a link/)
    })
  )

  it.live("is refused with a reason for backends without a copy, for `tour`, and without a target after the colon", () =>
    Effect.gen(function* () {
      const { onDisk, run } = yield* mounted
      for (const [args, why] of [
        [["ls"], /without a copy in memory/],
        [["ls", "--backend", "container", "--image", "x"], /without a copy in memory/],
        [["exec", "--image", "x", "--", "ls"], /container/],
        [["tour"], /directory as it is/],
        [["mcp"], /without a copy in memory/]
      ] as const) {
        const [command, ...rest] = args
        const ran = yield* onDisk(command, "--mount", "docs", ...rest)
        assert.strictEqual(ran.code, usageErrorCode, args.join(" "))
        assert.strictEqual(ran.out, "")
        assert.match(ran.err, /--backend memory/)
        assert.match(ran.err, why)
      }
      const chosen = yield* onDisk("tour", "--backend", "memory", "--mount", "docs")
      assert.strictEqual(chosen.code, usageErrorCode)
      assert.notMatch(chosen.err, /--backend memory/)
      assert.match(chosen.err, /tour.*leave out --mount/is)
      const json = yield* onDisk("ls", "--mount", "docs", "--json")
      assert.strictEqual((JSON.parse(json.err) as { error: { _tag: string } }).error._tag, "UsageError")
      const blank = yield* run("ls", "--mount", "docs:")
      assert.strictEqual(blank.code, usageErrorCode)
      assert.match(blank.err, /Expected: SOURCE or SOURCE:TARGET/)
    })
  )

  it.live("fails with the exit code of the error, and names the source as the user typed it", () =>
    Effect.gen(function* () {
      const { run, top } = yield* mounted
      execFileSync("mkfifo", [join(top, "pipe")])
      for (const [mount, code, said] of [
        ["../nope", exitCodeOf("NotFound"), /"\.\.\/nope" cannot be mounted/],
        ["docs:../x", usageErrorCode, /"docs" cannot be mounted: mountPath/],
        ["../pipe", exitCodeOf("AccessDenied"), /"\.\.\/pipe" cannot be mounted/],
        ["docs:README.md", exitCodeOf("NotADirectory"), /--mount "README\.md\/guide\.md"/],
        ["notes.md:README.md", exitCodeOf("NotADirectory"), /--mount "README\.md\/notes\.md"/]
      ] as const) {
        const ran = yield* run("ls", "--mount", mount)
        assert.deepStrictEqual([ran.code, ran.out], [code, ""], mount)
        assert.match(ran.err, said)
        assert.match(ran.err, /hint: {2}\S/)
      }
      const { err } = yield* run("ls", "--json", "--mount", "../nope")
      assert.deepInclude((JSON.parse(err) as { error: object }).error, { _tag: "MountError", reason: "missing" })
    })
  )

  it.live("is described in the help of grep", () =>
    Effect.gen(function* () {
      const { onDisk } = yield* mounted
      assert.match((yield* onDisk("grep", "--help")).out, /--mount SOURCE\[:TARGET\]/)
    })
  )
})
