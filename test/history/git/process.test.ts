import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Git, make, type Options } from "../../../src/history/git/process.ts"
import { directory, hasGit } from "./support.ts"

const withPath = <A, E, R>(path: string, effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { PATH: path } }))

/** Writes a program with the name git into a new directory, and returns the directory. */
const pretend = (base: string, name: string, script: string): string => {
  const at = join(base, name)
  Fs.mkdirSync(at)
  Fs.writeFileSync(join(at, "git"), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return at
}

/** Returns a script that prints a version, and runs `otherwise` for every other command. */
const answering = (otherwise: string, version = "2.39.5"): string =>
  `for last; do :; done\nif [ "$last" = version ]; then echo "git version ${version}"; else ${otherwise}; fi`

const pretended = (script: string, use: (git: Git, base: string) => Effect.Effect<unknown, unknown>, options: Options = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const base = yield* directory
      const path = `${pretend(base, "bin", script)}:/usr/bin:/bin`
      yield* Effect.flatMap(withPath(path, make(base, options)), (git) => use(git, base))
    })
  )

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe("the git program", () => {
  it.effect("is the first program named git in the PATH", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const none = join(base, "none")
      Fs.mkdirSync(join(none, "git"), { recursive: true })
      const first = pretend(base, "first", answering("true", "2.41.0"))
      const second = pretend(base, "second", answering("true"))
      const git = yield* withPath(`${base}:${none}:${first}:${second}`, make(base))
      assert.deepStrictEqual([git.program, git.version], [join(first, "git"), "2.41.0"])
    })
  )

  for (const [what, entry] of [
    ["relative", "bin"],
    ["empty", ""],
    ["a dot", "."]
  ]) {
    it.effect(`is never a program from a PATH entry that is ${what}, whatever the working directory is`, () =>
      Effect.gen(function* () {
        const base = yield* directory
        const trap = pretend(base, "bin", `touch ${base}/executed`)
        Fs.copyFileSync(join(trap, "git"), join(base, "git"))
        const before = process.cwd()
        process.chdir(base)
        const fault = yield* Effect.ensuring(
          Effect.flip(withPath(`${entry}:${base}/empty`, make(base))),
          Effect.sync(() => process.chdir(before))
        )
        assert.strictEqual(fault.reason, "gitMissing")
        assert.isFalse(Fs.existsSync(join(base, "executed")))
      })
    )
  }

  it.effect("is never a program in a directory to avoid, not even through a link", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const workspace = join(base, "workspace")
      Fs.mkdirSync(workspace)
      const trap = pretend(workspace, "bin", `touch ${base}/executed`)
      Fs.symlinkSync(trap, join(base, "linked"))
      Fs.mkdirSync(join(base, "links"))
      Fs.symlinkSync(join(trap, "git"), join(base, "links", "git"))
      const good = pretend(base, "good", answering("echo $PATH"))
      const path = `${trap}:${base}/linked:${base}/links:${good}`
      const git = yield* withPath(path, make(base, { avoid: [workspace] }))
      assert.strictEqual(git.program, join(good, "git"))
      const { stdout } = yield* git.run(["anything"])
      assert.strictEqual(stdout.toString(), `${base}/links:${good}\n`)
      assert.isFalse(Fs.existsSync(join(base, "executed")))
    })
  )

  it.effect("is required, and its absence is reported with the way to install it", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const fault = yield* Effect.flip(withPath(base, make(base)))
      assert.strictEqual(fault.reason, "gitMissing")
      assert.include(fault.detail, "apt-get install git")
    })
  )

  it.effect("is refused, with its version in the error, when it is too old", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const at = pretend(base, "bin", answering("true", "2.24.9"))
      const fault = yield* Effect.flip(withPath(at, make(base)))
      assert.deepStrictEqual([fault.reason, fault.detail.includes("2.24.9")], ["gitMissing", true])
      yield* withPath(at, make(base, { minimumVersion: [2, 24] }))
      assert.strictEqual((yield* Effect.flip(withPath(at, make(base, { minimumVersion: [3, 0] })))).reason, "gitMissing")
    })
  )

  it.effect("is refused, with its output in the error, when it is another program", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const fault = yield* Effect.flip(withPath(pretend(base, "bin", "echo hub 3"), make(base)))
      assert.deepStrictEqual([fault.reason, fault.detail.includes("hub 3")], ["gitMissing", true])
    })
  )
})

describe("a run of git", () => {
  it.effect("has no environment variables but PATH, LC_ALL and the settings of git", () =>
    pretended(answering("exec env"), (git) =>
      Effect.gen(function* () {
        process.env["GIT_TRACE"] = "/nonexistent/trace"
        process.env["FS_ALGEBRA_SECRET"] = "secret"
        const { stdout } = yield* Effect.ensuring(
          git.run(["anything"]),
          Effect.sync(() => {
            delete process.env["GIT_TRACE"]
            delete process.env["FS_ALGEBRA_SECRET"]
          })
        )
        const names = stdout
          .toString()
          .trim()
          .split("\n")
          .map((line) => line.split("=")[0]!)
          // The shell adds these variables.
          .filter((name) => !["PWD", "OLDPWD", "SHLVL", "_"].includes(name))
        assert.deepStrictEqual(names.sort(), [
          "GIT_ALLOW_PROTOCOL",
          "GIT_ATTR_NOSYSTEM",
          "GIT_CONFIG_GLOBAL",
          "GIT_CONFIG_NOSYSTEM",
          "GIT_CONFIG_SYSTEM",
          "GIT_NO_LAZY_FETCH",
          "GIT_NO_REPLACE_OBJECTS",
          "GIT_OPTIONAL_LOCKS",
          "GIT_TERMINAL_PROMPT",
          "LC_ALL",
          "PATH"
        ])
      })
    )
  )

  it.effect("has the git directory as its working directory, safe settings and unchanged arguments", () =>
    pretended(answering('pwd; for each; do echo "<$each>"; done'), (git, base) =>
      Effect.gen(function* () {
        const { stdout } = yield* git.run(["show-ref", "$(touch x)", "a b", "*", "; exit 3"])
        const lines = stdout.toString().trim().split("\n")
        assert.strictEqual(lines[0], base)
        assert.deepStrictEqual(lines.slice(-6), [
          `<--git-dir=${base}>`,
          "<show-ref>",
          "<$(touch x)>",
          "<a b>",
          "<*>",
          "<; exit 3>"
        ])
        for (const setting of ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "commit.gpgsign=false"]) {
          const at = lines.indexOf(`<${setting}>`)
          assert.strictEqual(lines[at - 1], "<-c>", setting)
        }
      })
    )
  )

  it.effect("reports a failure in git's words, on one line", () =>
    pretended(answering("printf 'fatal: it is\\033[31m so\\nhint: no\\n' >&2; exit 128"), (git) =>
      Effect.gen(function* () {
        const fault = yield* Effect.flip(git.run(["rev-parse"]))
        assert.deepStrictEqual(
          [fault.reason, fault.detail],
          ["io", "git rev-parse exited with code 128: fatal: it is [31m so hint: no"]
        )
      })
    )
  )

  for (const [words, reason] of [
    ["error: file write error: No space left on device", "io"],
    ["fatal: Unable to create '/s/packed-refs.lock': File exists.", "unavailable"],
    ["error: packed object 1234 (stored in x.pack) is corrupt", "corrupt"],
    ["fatal: missing blob object '1234'", "corrupt"]
  ] as const) {
    it.effect(`fails as ${reason} for "${words}"`, () =>
      pretended(answering(`echo "${words}" >&2; exit 128`), (git) =>
        Effect.gen(function* () {
          const fault = yield* Effect.flip(git.run(["rev-parse"]))
          assert.strictEqual(fault.reason, reason)
          assert.include(fault.detail, words)
        })
      )
    )
  }

  it.effect("reports the signal that killed git", () =>
    pretended(answering("kill -KILL $$"), (git) =>
      Effect.gen(function* () {
        const fault = yield* Effect.flip(git.run(["rev-list"]))
        assert.deepStrictEqual([fault.reason, fault.detail], ["io", "git rev-list was killed by SIGKILL"])
      })
    )
  )

  it.effect("transfers many megabytes, from a buffer or a stream", () =>
    pretended(answering("exec cat"), (git) =>
      Effect.gen(function* () {
        const bytes = Buffer.alloc(30_000_000, "0123456789\n")
        assert.isTrue((yield* git.run(["cat"], { input: bytes })).stdout.equals(bytes))
        const parts = async function* () {
          for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
        }
        let size = 0
        yield* git.run(["cat"], { input: parts(), onOutput: (part) => void (size += part.length) })
        assert.strictEqual(size, bytes.length)
      })
    )
  )

  it.effect("succeeds if git does not read its input", () =>
    pretended(answering("exit 0"), (git) => git.run(["x"], { input: Buffer.alloc(5_000_000) }))
  )

  it.effect("fails if its input fails, instead of treating the failure as the end of the input", () =>
    pretended(answering("cat > /dev/null; exit 0"), (git) =>
      Effect.gen(function* () {
        const parts = async function* () {
          yield Buffer.from("a\n")
          throw new Error("no more")
        }
        const fault = yield* Effect.flip(git.run(["pack-objects"], { input: parts() }))
        assert.strictEqual(fault.reason, "io")
      })
    )
  )

  for (const [which, script] of [
    ["", ""],
    [" and ignores the signal", "trap '' TERM; "]
  ]) {
    it.effect(`that is interrupted${which} has ended when the interruption ends`, () =>
      pretended(answering(`${script}echo $$; exec sleep 1000`), (git) =>
        Effect.gen(function* () {
          const started = yield* Deferred.make<number>()
          const context = yield* Effect.context<never>()
          const onOutput = (bytes: Buffer): void =>
            void Effect.runForkWith(context)(Deferred.succeed(started, Number(bytes.toString())))
          const fiber = yield* Effect.forkChild(git.run(["gc"], { onOutput }))
          const pid = yield* Deferred.await(started)
          assert.isTrue(isAlive(pid))
          yield* Fiber.interrupt(fiber)
          assert.isFalse(isAlive(pid))
        })
      )
    )
  }

  it.effect("distinguishes a missing store from a missing git", () =>
    pretended(answering("true"), (git, base) =>
      Effect.gen(function* () {
        Fs.renameSync(join(base, "bin", "git"), join(base, "bin", "gone"))
        assert.strictEqual((yield* Effect.flip(git.run(["x"]))).reason, "gitMissing")
        Fs.renameSync(join(base, "bin"), `${base}-bin`)
        execFileSync("rm", ["-rf", base, `${base}-bin`])
        assert.strictEqual((yield* Effect.flip(git.run(["x"]))).reason, "unavailable")
      })
    )
  )
})

describe.runIf(hasGit)("the real git", () => {
  it.effect("is found, and its errors are reported", () =>
    Effect.gen(function* () {
      const base = yield* directory
      const git = yield* make(base)
      assert.strictEqual(execFileSync(git.program, ["version"], { encoding: "utf8" }).split(" ")[2]?.trim(), git.version)
      const fault = yield* Effect.flip(git.run(["rev-parse", "HEAD"]))
      assert.include(fault.detail, "not a git repository")
    })
  )
})
