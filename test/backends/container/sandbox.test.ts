import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Container from "../../../src/backends/Container.ts"
import type { ExecOptions } from "../../../src/filesystem/Sandbox.ts"
import { cutMark } from "../../../src/filesystem/sandbox/bounds.ts"
import { busyboxRoot, containers, describePodman, directory, gnuRoot, services } from "./podman.ts"

const made = (options: Partial<Container.ContainerOptions> = {}) =>
  Container.make({ image: { rootfs: busyboxRoot() }, ...options })

type Use = (container: Container.Container) => Effect.Effect<unknown, unknown, Layer.Success<typeof services> | Scope.Scope>

/** The container of all tests without options: a start takes longer than a test. */
let shared: Container.Container

const sharing = Scope.makeUnsafe()

/** Defines a test in the shared container or, with options, in one of its own. */
const live = (name: string, use: Use, options?: () => Partial<Container.ContainerOptions>) =>
  it.live(name, () => {
    const container = options === undefined ? Effect.succeed(shared) : Effect.suspend(() => made(options()))
    return Effect.provide(Effect.scoped(Effect.flatMap(container, use)), services)
  })

const sh = (script: string): ReadonlyArray<string> => ["sh", "-c", script]

const until = (isSo: Effect.Effect<boolean, unknown>): Effect.Effect<void, unknown> =>
  Effect.flatMap(isSo, (so) => (so ? Effect.void : Effect.andThen(Effect.sleep(30), until(isSo))))

/** Returns the names of the programs in the container besides ours, read from /proc, which every image has. */
const programs = ({ sandbox }: Container.Container) =>
  Effect.map(
    sandbox.exec(sh("for p in /proc/[0-9]*; do read -r line <$p/stat && echo ${p#/proc/} ${line#*\\(}; done 2>/dev/null")),
    ({ stdout }) =>
      stdout
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("1 "))
        .map((line) => line.split(" ")[1]!.replace(")", ""))
  )

const roots: ReadonlyArray<readonly [name: string, root: () => string]> = [
  ["busybox", busyboxRoot],
  ["dash and GNU", gnuRoot]
]

describePodman("a command in a container", () => {
  beforeAll(async () => {
    shared = await Effect.runPromise(Effect.provide(Scope.provide(made(), sharing), services))
  })
  afterAll(() => Effect.runPromise(Scope.close(sharing, Exit.void)))

  live("runs with every restriction of the profile", ({ sandbox }) =>
    Effect.gen(function* () {
      const inside = Effect.fnUntraced(function* (script: string) {
        const { exitCode, stderr, stdout } = yield* sandbox.exec(sh(script))
        assert.strictEqual(exitCode, 0, stderr)
        return stdout.trim()
      })
      assert.strictEqual(yield* inside("id -u; id -g"), "65534\n65534")
      assert.strictEqual(yield* inside("ls /sys/class/net"), "lo")
      const status = yield* inside("cat /proc/self/status")
      for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) {
        assert.match(status, new RegExp(`^${set}:\\s+0+$`, "m"))
      }
      assert.match(status, /^NoNewPrivs:\s+1$/m)
      const group = (first: string, second: string) =>
        inside(`if [ -e /sys/fs/cgroup/${first} ]; then cat /sys/fs/cgroup/${first}; else cat /sys/fs/cgroup/${second}; fi`)
      assert.strictEqual(yield* group("memory.max", "memory/memory.limit_in_bytes"), "1073741824")
      assert.strictEqual(yield* group("pids.max", "pids/pids.max"), "256")
      const cpu = yield* group("cpu.max", "cpu/cpu.cfs_quota_us")
      assert.strictEqual(cpu.split(" ")[0], "100000")
      assert.strictEqual(yield* inside("df -k /tmp | tail -n 1 | { read -r a b c; echo $b; }"), "262144")
      assert.strictEqual(yield* inside("pwd; echo $HOME; echo x >/tmp/x; cat /tmp/x"), "/workspace\n/tmp\nx")
      assert.notStrictEqual((yield* sandbox.exec(sh("echo x > /etc/x"))).exitCode, 0)
    })
  )

  live(
    "gets the configured limits, variables and mounts",
    ({ sandbox }) =>
      Effect.gen(function* () {
        const { stdout } = yield* sandbox.exec(
          sh("id -u; echo $GIVEN; cat /data/seen; echo no > /data/seen || echo kept; pwd"),
          {
            env: { GIVEN: 'it\'s "so"\n$HOME' }
          }
        )
        assert.strictEqual(stdout, '1234\nit\'s "so" $HOME\nseen\nkept\n/srv/work\n')
        const limits = yield* sandbox.exec(sh("cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null"))
        assert.strictEqual(limits.stdout.trim(), "50")
      }),
    () => {
      const source = join(directory(), "data")
      Fs.mkdirSync(source, { recursive: true })
      Fs.writeFileSync(join(source, "seen"), "seen\n")
      return {
        user: "1234:1234",
        pids: 50,
        workdir: "/srv/work",
        mounts: [{ source, target: "/data" }],
        allowedRoots: [directory()]
      }
    }
  )

  live(
    "cannot change read-only files",
    ({ filesystem: fs, sandbox }) =>
      Effect.gen(function* () {
        assert.notStrictEqual((yield* sandbox.exec(sh("echo x > x"))).exitCode, 0)
        assert.isFalse(yield* fs.exists("x"))
      }),
    () => ({ readOnly: true })
  )

  for (const [name, root] of roots) {
    live(
      `${name}: gets its input unchanged, and its output and exit code are returned unchanged`,
      ({ filesystem: fs, sandbox }) =>
        Effect.gen(function* () {
          yield* fs.mkdir("a b/'c'")
          const both = yield* sandbox.exec(sh("cat; echo err >&2; pwd; exit 7"), { stdin: "in\r\n", cwd: "a b/'c'" })
          assert.deepInclude(both, {
            exitCode: 7,
            stdout: "in\r\n/workspace/a b/'c'\n",
            stderr: "err\n",
            timedOut: false,
            truncated: false
          })
          assert.isAtLeast(both.durationMillis, 0)
          const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
          assert.deepStrictEqual((yield* sandbox.exec(["cat"], { stdin: bytes })).stdoutBytes, bytes)
          assert.deepInclude(yield* sandbox.exec(["cat"]), { exitCode: 0, stdout: "" })
          assert.deepInclude(yield* sandbox.exec(["printf", "%s|", "a b", "", "$x", "*"]), { stdout: "a b||$x|*|" })
          assert.strictEqual((yield* sandbox.exec(["no-such-program"])).exitCode, 127)
          assert.strictEqual((yield* sandbox.exec(["--help"])).exitCode, 127)
          assert.strictEqual((yield* sandbox.exec(["/etc"])).exitCode, 126)
          assert.strictEqual((yield* sandbox.exec(sh("kill -9 $$"))).exitCode, 137)
          assert.strictEqual((yield* sandbox.exec(sh("exit 125"))).exitCode, 125)
        }),
      () => ({ image: { rootfs: root() } })
    )

    live(
      `${name}: is killed after its timeout with every process it started, and its output is returned`,
      (container) =>
        Effect.gen(function* () {
          const before = yield* programs(container)
          const script = "echo said; setsid sleep 901 & (env -i setsid sleep 902 &); sleep 903 & sleep 904"
          const ended = yield* container.sandbox.exec(sh(script), { timeout: "1 second" })
          assert.deepInclude(ended, { exitCode: 124, timedOut: true, stdout: "said\n" })
          assert.deepStrictEqual(yield* programs(container), before)
        }),
      () => ({ image: { rootfs: root() } })
    )
  }

  live("has its leftover processes killed at its end, but no process of another command", (container) =>
    Effect.gen(function* () {
      const { filesystem: fs, sandbox } = container
      const other = yield* Effect.forkScoped(
        sandbox.exec(sh("env -i sleep 911 & echo > waits; while [ ! -e over ]; do sleep 0.1; done; kill $! && echo well"))
      )
      yield* until(fs.exists("waits"))
      yield* sandbox.exec(sh("setsid sleep 912 & (sleep 913 &); trap '' TERM HUP; nohup sleep 914 >/dev/null 2>&1 & echo"))
      const left = yield* sandbox.exec(sh("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done"))
      assert.include(left.stdout, "sleep 911")
      assert.notMatch(left.stdout, /sleep 91[234]/)
      yield* fs.write("over", "")
      assert.strictEqual((yield* Fiber.join(other)).stdout, "well\n")
      yield* sandbox.exec(sh("env -i setsid sleep 915 & echo"))
      assert.notInclude(yield* programs(container), "sleep")
    })
  )

  live(
    "has its output passed on as it is written, but not the output of processes that outlive it",
    ({ filesystem: fs, sandbox }) =>
      Effect.gen(function* () {
        const received = { stdout: 0, stderr: "" }
        const result = yield* sandbox.exec(
          sh("echo early >&2; while [ ! -e seen ]; do sleep 0.1; done; head -c 3000000 /dev/zero; (sleep 0.2; echo late) &"),
          {
            // The command waits for the file that is created at its first line.
            onOutput: (bytes, stream) => {
              if (stream === "stdout") received.stdout += bytes.length
              else received.stderr += Buffer.from(bytes).toString()
              return stream === "stderr" ? Effect.orDie(fs.write("seen", "")) : Effect.void
            }
          }
        )
        assert.deepStrictEqual(received, { stdout: 3_000_000, stderr: "early\n" })
        assert.isTrue(result.truncated)
      })
  )

  live("reads its input from a stream, which is not read after the end of the command", ({ sandbox }) =>
    Effect.gen(function* () {
      const part = new Uint8Array(100_000).fill(0x61)
      const counted = yield* sandbox.exec(["wc", "-c"], { stdin: Stream.fromIterable(Array.from({ length: 30 }, () => part)) })
      assert.strictEqual(counted.stdout.trim(), "3000000")
      const endless = yield* sandbox.exec(["head", "-c", "3"], { stdin: Stream.forever(Stream.make(part)) })
      assert.deepInclude(endless, { exitCode: 0, stdout: "aaa" })
      const silent = yield* sandbox.exec(sh("echo said; kill -9 $$"), { stdin: Stream.never })
      assert.deepInclude(silent, { exitCode: 137, stdout: "said\n" })
    })
  )

  live(
    "that cannot start a process because of the process limit reports the limit",
    ({ sandbox }) =>
      Effect.gen(function* () {
        assert.isUndefined((yield* sandbox.exec(["true"])).processLimit)
        const full = yield* sandbox.exec(sh("i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i + 1)); done; wait"), {
          timeout: "10 seconds"
        })
        assert.strictEqual(full.processLimit, 40)
        assert.isUndefined((yield* sandbox.exec(["true"])).processLimit)
      }),
    () => ({ pids: 40 })
  )

  live("that is interrupted is killed with every process it started, but with no process of another command", (container) =>
    Effect.gen(function* () {
      const { filesystem: fs, sandbox } = container
      yield* sandbox.exec(sh("setsid sleep 905 & echo"), { detach: true })
      const other = yield* Effect.forkScoped(
        sandbox.exec(sh("echo > other; while [ ! -e end ]; do sleep 0.1; done; echo well"))
      )
      yield* until(fs.exists("other"))
      const running = yield* Effect.forkChild(sandbox.exec(sh("setsid sleep 906 & echo > going; sleep 907")))
      yield* until(fs.exists("going"))
      yield* Fiber.interrupt(running)
      yield* fs.write("end", "")
      assert.strictEqual((yield* Fiber.join(other)).stdout, "well\n")
      const left = yield* sandbox.exec(sh("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done"))
      assert.include(left.stdout, "sleep 905")
      assert.notMatch(left.stdout, /sleep 90[67]/)
    })
  )

  live(
    "that fills the process limit is killed after its timeout, and the container keeps running",
    (container) =>
      Effect.gen(function* () {
        const before = containers()
        const bomb = yield* container.sandbox.exec(sh("b() { b | b & }; b; sleep 100"), { timeout: "1 second" })
        assert.isTrue(bomb.timedOut)
        assert.strictEqual((yield* container.sandbox.exec(["echo", "well"])).stdout, "well\n")
        assert.deepStrictEqual(containers(), before)
      }),
    () => ({ start: "eager" as const, pids: 40 })
  )

  live(
    "that kills every process it can reach does not end the container, and is still killed after its timeout",
    (container) =>
      Effect.gen(function* () {
        const before = containers()
        yield* container.sandbox.exec(sh("kill -9 -1"))
        const ended = yield* container.sandbox.exec(sh("sleep 100"), { timeout: "1 second" })
        assert.isTrue(ended.timedOut)
        assert.deepStrictEqual(containers(), before)
      }),
    () => ({ start: "eager" as const })
  )

  live("cannot forge the output of the container's first process, which supervises it", ({ sandbox }) =>
    Effect.gen(function* () {
      const script = 'echo "$FS_ALGEBRA_EXEC stays" >&2; echo ready > /proc/1/fd/1; echo "x 0" > /proc/1/fd/1; exit 3'
      const { exitCode, stderr } = yield* sandbox.exec(sh(script))
      assert.strictEqual(exitCode, 3)
      assert.match(stderr, /^[0-9a-f]+ stays\n$/)
    })
  )

  for (const [name, root] of roots) {
    live(
      `${name}: loses no output when it leaves input unread`,
      ({ sandbox }) =>
        Effect.gen(function* () {
          const input = "é".repeat(48_000)
          const runs = Array.from({ length: 10 }, () => sandbox.exec(sh("echo said; echo told >&2"), { stdin: input }))
          for (const { exitCode, stderr, stdout } of yield* Effect.all(runs)) {
            assert.deepStrictEqual([exitCode, stdout, stderr], [0, "said\n", "told\n"])
          }
          const slow = yield* sandbox.exec(sh("sleep 100"), { stdin: input, timeout: "1 second" })
          assert.strictEqual(slow.exitCode, 124)
          assert.strictEqual((yield* sandbox.exec(["wc", "-c"], { stdin: input })).stdout.trim(), "96000")
          assert.strictEqual((yield* sandbox.exec(["no-such-program"], { stdin: "x" })).exitCode, 127)
        }),
      () => ({ image: { rootfs: root() } })
    )
  }

  live("returns the first and the last 16 KiB of each stream, cut between characters", ({ sandbox }) =>
    Effect.gen(function* () {
      // Two-byte characters follow 16,383 single bytes, so each of the two cuts would fall within a character.
      const script = "head -c 16383 /dev/zero | tr '\\0' a; yes é | tr -d '\\n' | head -c 5000000; echo; echo end >&2"
      const { exitCode, stderr, stdout, stdoutBytes, truncated } = yield* sandbox.exec(sh(script))
      assert.deepInclude({ exitCode, stderr, truncated }, { exitCode: 0, stderr: "end\n", truncated: true })
      assert.isTrue(stdout === `${"a".repeat(16383)}${cutMark}${"é".repeat(8191)}\n`)
      assert.strictEqual(stdoutBytes.length, 16384)
      const exact = yield* sandbox.exec(sh("head -c 32768 /dev/zero | tr '\\0' a"))
      assert.isTrue(exact.stdout === "a".repeat(32768) && !exact.truncated)
    })
  )

  const wrong: ReadonlyArray<readonly [argument: string, command: ReadonlyArray<string>, options?: ExecOptions]> = [
    ["command", []],
    ["command", [""]],
    ["command", ["a\0"]],
    ["command", ["\ud800"]],
    ["command", ["x".repeat(4097)]],
    ["env", ["true"], { env: { "A=B": "" } }],
    ["env", ["true"], { env: { A: "x".repeat(513) } }],
    ["env", ["true"], { env: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`V${i}`, ""])) }],
    ["cwd", ["true"], { cwd: "a/../b" }],
    ["cwd", ["true"], { cwd: Array.from({ length: 17 }, () => "d").join("/") }],
    ["stdin", ["true"], { stdin: "x".repeat(48_001) }],
    ["stdin", ["true"], { stdin: new Uint8Array(48_001) }],
    ["timeout", ["true"], { timeout: Number.NaN }]
  ]
  live(
    "that is invalid or too large is refused before anything runs",
    ({ filesystem: fs, sandbox }) =>
      Effect.gen(function* () {
        const before = containers()
        for (const [argument, command, options] of wrong) {
          assert.deepInclude(yield* Effect.flip(sandbox.exec(command, options)), {
            _tag: "InvalidArgument",
            operation: "exec",
            argument
          })
        }
        assert.deepInclude(yield* Effect.flip(sandbox.eval("x".repeat(4097))), {
          _tag: "InvalidArgument",
          operation: "eval",
          argument: "code"
        })
        assert.deepInclude(yield* Effect.flip(sandbox.eval("\u0007")), { _tag: "InvalidArgument", argument: "code" })
        yield* fs.write("file", "")
        yield* fs.symlink("in", "file")
        assert.deepInclude(yield* Effect.flip(sandbox.exec(["true"], { cwd: "none" })), { _tag: "NotFound", path: "none" })
        assert.deepInclude(yield* Effect.flip(sandbox.exec(["true"], { cwd: "file" })), { _tag: "NotADirectory", path: "file" })
        assert.deepStrictEqual(containers(), before)
      }),
    () => ({})
  )

  live("cannot run in a directory outside the workspace through a link", ({ sandbox }) =>
    Effect.gen(function* () {
      yield* sandbox.exec(sh("ln -s /etc out; mkdir real; ln -s real in; mkdir shut; chmod 0 shut"))
      assert.deepInclude(yield* Effect.flip(sandbox.exec(["pwd"], { cwd: "out" })), { _tag: "AccessDenied", why: "escape" })
      assert.strictEqual((yield* sandbox.exec(["pwd"], { cwd: "in" })).exitCode, 0)
      assert.deepInclude(yield* Effect.flip(sandbox.exec(["pwd"], { cwd: "shut" })), {
        _tag: "AccessDenied",
        why: "permission"
      })
    })
  )

  live(
    "may be a few lines of code for eval, which returns at most 4,096 characters of each stream",
    ({ sandbox }) =>
      Effect.gen(function* () {
        assert.deepInclude(yield* sandbox.eval("-e 2>/dev/null; echo $((6 * 7))"), { exitCode: 0, stdout: "42\n" })
        const long = yield* sandbox.eval("yes 𝄞 | tr -d '\\n' | head -c 40000")
        assert.isTrue(long.truncated && long.stdout === "𝄞".repeat(2048) + cutMark + "𝄞".repeat(2048))
        assert.strictEqual((yield* sandbox.eval("1", { language: "javascript" })).exitCode, 127)
        assert.strictEqual((yield* sandbox.eval("1", { language: "python" })).exitCode, 127)
      }),
    () => ({ evalLanguage: "sh" as const })
  )

  for (const strategy of ["overlay", "exec"] as const) {
    live(
      `${strategy}: can change and remove files of the filesystem, and the filesystem can change and remove files of the command`,
      ({ filesystem: fs, sandbox }) =>
        Effect.gen(function* () {
          yield* fs.write("d/ours.txt", "1")
          const { exitCode, stderr } = yield* sandbox.exec(
            sh(
              "echo 2 >> d/ours.txt && mkdir d/theirs && echo 3 > d/theirs/x && umask 077 && echo 4 > d/secret && mv d/ours.txt d/theirs"
            )
          )
          assert.strictEqual(exitCode, 0, stderr)
          assert.strictEqual(yield* fs.readString("d/theirs/ours.txt"), "12\n")
          assert.strictEqual(yield* fs.readString("d/secret"), "4\n")
          yield* fs.edit("d/theirs/x", [{ oldText: "3", newText: "5" }])
          yield* fs.copy("d/theirs", "copy")
          assert.strictEqual((yield* sandbox.exec(sh("cat copy/x; rm -r d copy && ls"))).stdout, "5\n")
          assert.deepStrictEqual(yield* fs.list(), [])
        }),
      () => ({ strategy })
    )
  }
})
