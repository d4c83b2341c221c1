/** Tests `exec` and `--backend container` with an engine that records its calls. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { ContainerOptions } from "../../src/backends/Container.ts"
import type { OpenContainer } from "../../src/cli/container.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { type ExecOptions, type ExecResult, Sandbox } from "../../src/filesystem/Sandbox.ts"
import { Unavailable } from "../../src/model/FsError.ts"
import { directory } from "../conformance/filesystems.ts"
import { type RunOptions, type Shell, shell } from "./terminal.ts"

const encoder = new TextEncoder()

const ended = (result: Partial<ExecResult>): ExecResult => ({
  exitCode: 0,
  stdout: "",
  stderr: "",
  stdoutBytes: encoder.encode(result.stdout ?? ""),
  durationMillis: 12,
  timedOut: false,
  truncated: false,
  ...result
})

interface Asked {
  readonly command: ReadonlyArray<string>
  readonly options: ExecOptions | undefined
  /** The whole standard input. */
  readonly input: string | undefined
}

/** Builds an engine whose commands all end with the given result. */
const engineOf = ({ fs }: Shell, result: Partial<ExecResult> = {}) => {
  const opened: Array<ContainerOptions> = []
  const asked: Array<Asked> = []
  const sandbox: typeof Sandbox.Service = {
    exec: (command, options) =>
      Effect.gen(function* () {
        const { onOutput = () => Effect.void, stdin } = options ?? {}
        const input = Stream.isStream(stdin) ? Buffer.concat(yield* Stream.runCollect(stdin)) : stdin
        asked.push({ command, options, input: input?.toString() })
        const out = ended(result)
        for (const line of out.stdout.split(/(?<=\n)/)) yield* onOutput(encoder.encode(line), "stdout")
        if (out.stderr !== "") yield* onOutput(encoder.encode(out.stderr), "stderr")
        return out
      }),
    eval: () => Effect.die("nobody asked for eval")
  }
  const engine: OpenContainer = (options) => {
    opened.push(options)
    return Layer.succeedContext(Context.make(Filesystem, fs).pipe(Context.add(Sandbox, sandbox)))
  }
  return { asked, engine, opened }
}

/** Runs the command line in an existing directory, because a container mounts one. */
const inDirectory = (
  args: ReadonlyArray<string>,
  { options, result }: { readonly options?: RunOptions; readonly result?: Partial<ExecResult> } = {}
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const directoryOfTest = yield* directory
      const terminal = yield* shell({ "a.txt": "text" })
      const { engine, ...seen } = engineOf(terminal, result)
      const ran = yield* terminal.run(args, { directory: directoryOfTest, engine, ...options })
      return { ...ran, ...seen, directory: directoryOfTest }
    })
  )

describe("exec", () => {
  it.effect("mounts the directory in the container, and passes the words after -- to the command", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--image", "debian", "--", "make", "-j", "--root", "x"])
      assert.strictEqual(ran.code, 0, ran.err)
      assert.deepStrictEqual(
        ran.asked.map(({ command }) => command),
        [["make", "-j", "--root", "x"]]
      )
      const [options] = ran.opened
      assert.strictEqual(options?.image, "debian")
      assert.strictEqual(options?.engine, "podman")
      assert.strictEqual(options?.hostDirectory, ran.directory)
    })
  )
  it.effect("resolves --rootfs against the current directory, and uses the engine of --engine", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--rootfs", "alpine", "--engine", "docker", "--", "ls"])
      assert.deepStrictEqual(ran.opened[0]?.image, { rootfs: join(ran.directory, "alpine") })
      assert.strictEqual(ran.opened[0]?.engine, "docker")
    })
  )
  it.effect("resolves the path of an engine against the current directory", () =>
    Effect.gen(function* () {
      const engineOf = (engine: string) =>
        Effect.map(inDirectory(["exec", "--image", "debian", "--engine", engine, "--", "ls"]), (ran) => [
          ran.opened[0]?.engine,
          ran.directory
        ])
      assert.strictEqual((yield* engineOf("nerdctl"))[0], "nerdctl")
      assert.strictEqual((yield* engineOf("/opt/bin/podman"))[0], "/opt/bin/podman")
      const [engine, directory] = yield* engineOf("bin/nerdctl")
      assert.strictEqual(engine, join(directory!, "bin/nerdctl"))
    })
  )
  it.effect("refuses an unknown engine before it starts anything, and names the known engines", () =>
    Effect.gen(function* () {
      for (const engine of ["runc", "/usr/bin/true", "podman --remote"]) {
        const ran = yield* inDirectory(["exec", "--image", "debian", "--engine", engine, "--", "ls"])
        assert.strictEqual(ran.code, 2, ran.err)
        assert.match(ran.err, /podman, docker or nerdctl/)
        assert.deepStrictEqual(ran.opened, [])
      }
    })
  )
  it.effect.skipIf(process.geteuid?.() !== 0)("runs as the owner of the directory if root starts it (needs root)", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* directory
        Fs.chownSync(root, 1234, 5678)
        const ran = yield* inDirectory(["exec", "--image", "debian", "--root", root, "--", "ls"])
        assert.strictEqual(ran.opened[0]?.user, "1234:5678")
      })
    )
  )
  it.effect("prints both output streams of the command, and exits with the command's exit code", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--image", "debian", "--", "x"], {
        result: { exitCode: 3, stdout: "out without an end", stderr: "err\n" }
      })
      assert.strictEqual(ran.out, "out without an end")
      assert.strictEqual(ran.err, "err\n")
      assert.strictEqual(ran.code, 3)
    })
  )
  it.effect("reports a timeout and a refused process on standard error", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--image", "debian", "--", "x"], {
        result: { exitCode: 124, stderr: "half a line", timedOut: true, truncated: true, processLimit: 256 }
      })
      assert.match(ran.err, /^half a line\nnote: .*limit is 256 processes.*--pids\nnote: .*--timeout/)
      assert.strictEqual(ran.code, 124)
    })
  )
  it.effect("has no time limit and no output limit by default", () =>
    Effect.gen(function* () {
      const stdout = "line\n".repeat(20_000)
      const ran = yield* inDirectory(["exec", "--image", "debian", "--", "x"], { result: { stdout } })
      assert.strictEqual(ran.asked[0]?.options?.timeout, Infinity)
      assert.strictEqual(ran.out, stdout)
      const long = yield* inDirectory(["exec", "--image", "debian", "--timeout", "3600", "--", "x"])
      assert.strictEqual(long.asked[0]?.options?.timeout, 3_600_000)
    })
  )
  it.effect("ends when the reader of its output exits", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--image", "debian", "--", "x"], {
        options: { closesAfter: 1 },
        result: { exitCode: 3, stdout: "1\n2\n3\n" }
      })
      assert.deepStrictEqual([ran.code, ran.out], [0, "1\n"])
    })
  )
  it.effect("limits processes with --pids", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--image", "debian", "--pids", "1000", "--", "x"])
      assert.strictEqual(ran.opened[0]?.pids, 1000)
    })
  )
  it.effect("accepts an absolute path in the root for --cwd, and refuses a path outside", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = yield* directory
        const run = (cwd: string) => inDirectory(["exec", "--image", "i", "--root", root, "--cwd", cwd, "--", "x"])
        assert.strictEqual((yield* run(`${root}/src`)).asked[0]?.options?.cwd, "src")
        assert.strictEqual((yield* run(root)).asked[0]?.options?.cwd, ".")
        const outside = yield* run("/elsewhere")
        assert.deepStrictEqual([outside.code, outside.asked], [2, []])
        assert.include(outside.err, `outside the root "${root}"`)
      })
    )
  )
  it.effect("passes the given directory, variables, timeout and standard input to the container", () =>
    Effect.gen(function* () {
      const args = [
        "exec",
        "--image",
        "i",
        "--cwd",
        "src",
        "--env",
        "A=1",
        "--env",
        "B=x=y",
        "--env",
        "__proto__=z",
        "--timeout",
        "5",
        "--stdin",
        "--",
        "x"
      ]
      const { asked } = yield* inDirectory(args, { options: { input: "typed" } })
      const options = asked[0]?.options
      assert.strictEqual(options?.cwd, "src")
      assert.deepStrictEqual(Object.entries(options?.env ?? {}), [
        ["A", "1"],
        ["B", "x=y"],
        ["__proto__", "z"]
      ])
      assert.strictEqual(Duration.toMillis(Duration.fromInputUnsafe(options?.timeout ?? 0)), 5000)
      assert.strictEqual(asked[0]?.input, "typed")
    })
  )
  it.effect("passes on standard input of any length", () =>
    Effect.gen(function* () {
      const input = "x".repeat(1_000_000)
      const { asked } = yield* inDirectory(["exec", "--image", "i", "--stdin", "--", "x"], { options: { input } })
      assert.isTrue(asked[0]?.input === input)
    })
  )
  it.effect("does not read standard input without --stdin", () =>
    Effect.gen(function* () {
      const { asked } = yield* inDirectory(["exec", "--image", "i", "--", "x"], { options: { input: "typed" } })
      assert.isUndefined(asked[0]?.options?.stdin)
    })
  )
  it.effect("prints one JSON document with --json, and exits with the exit code of the command", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--json", "--image", "i", "--", "x"], { result: { exitCode: 1, stdout: "o" } })
      assert.deepStrictEqual(JSON.parse(ran.out), {
        exitCode: 1,
        stdout: "o",
        stderr: "",
        durationMillis: 12,
        timedOut: false,
        truncated: false
      })
      assert.strictEqual(ran.code, 1)
    })
  )
  it.effect.each([
    ["without an image", ["exec", "--", "x"], /--image IMAGE/],
    ["with two images", ["exec", "--image", "a", "--rootfs", "b", "--", "x"], /--image IMAGE/],
    ["without a command", ["exec", "--image", "a"], /command/],
    ["with an invalid variable", ["exec", "--image", "a", "--env", "A", "--", "x"], /NAME=VALUE/],
    ["with a limit of 0 processes", ["exec", "--image", "a", "--pids", "0", "--", "x"], /at least 1/],
    ["with a timeout of 0", ["exec", "--image", "a", "--timeout", "0", "--", "x"], /less than 1/]
  ] as const)("reports wrong usage %s, and runs no command", ([, args, message]) =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(args)
      assert.strictEqual(ran.code, 2, ran.err)
      assert.match(ran.err, message)
      assert.strictEqual(ran.out, "")
      assert.deepStrictEqual(ran.asked, [])
    })
  )
  it.effect("ends with NotFound for a missing root, and names the root as given", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["exec", "--image", "a", "--root", "nowhere", "--", "x"])
      assert.strictEqual(ran.code, 3, ran.err)
      assert.match(ran.err, /nowhere/)
      assert.notInclude(ran.err, ran.directory)
    })
  )
  it.effect("reports a missing engine", () =>
    Effect.gen(function* () {
      const engine: OpenContainer = () =>
        Layer.effectContext(
          Effect.fail(
            new Unavailable({ operation: "Container", path: ".", detail: "podman is not installed", hint: "Install podman." })
          )
        )
      const ran = yield* inDirectory(["exec", "--image", "a", "--", "x"], { options: { engine } })
      assert.strictEqual(ran.code, 9, ran.err)
      assert.match(ran.err, /^error: exec "\.": podman is not installed\nhint: {2}Install podman\.\n$/)
    })
  )
})

describe("--backend container", () => {
  it.effect("runs a filesystem command on the files of the directory", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["cat", "a.txt", "--backend", "container", "--image", "a"])
      assert.strictEqual(ran.code, 0, ran.err)
      assert.match(ran.out, /text/)
      assert.strictEqual(ran.opened[0]?.hostDirectory, ran.directory)
    })
  )
  it.effect("reports wrong usage without an image", () =>
    Effect.gen(function* () {
      const ran = yield* inDirectory(["ls", "--backend", "container"])
      assert.strictEqual(ran.code, 2, ran.err)
      assert.match(ran.err, /--rootfs DIR/)
    })
  )
})
