/**
 * Tests docker with a script of that name, which records its arguments and runs commands in a shell of this machine.
 * The script isolates nothing; it only kills processes that carry the given mark.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { delimiter, join, relative } from "node:path"
import * as Container from "../../../src/backends/Container.ts"
import * as PosixHost from "../../../src/backends/PosixHost.ts"
import { within } from "../../scratch.ts"

const player = (place: string): string => `#!/bin/sh
place=${place}
printf '%s\\0' "$@" >"$place/calls/$(date +%s%N).$$"
case $1 in
  --version)
    echo 'Docker version 28.2.2, build e6534b4'
    ;;
  ps)
    ;;
  rm)
    [ ! -e "$place/unreachable" ] || { echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1; }
    [ -e "$place/running/$4" ] || { echo "Error response from daemon: No such container: $4" >&2; exit 1; }
    [ ! -e "$place/improper" ] || { rm "$place/improper"; echo 'Error: container state improper' >&2; exit 2; }
    read -r client workdir made <"$place/running/$4"
    kill -9 "$client"
    rm -rf "$place/running/$4" $made
    ;;
  run)
    shift
    made=
    while :; do
      case $1 in
        --rm | --interactive) shift ;;
        --name) name=$2; shift 2 ;;
        --workdir) workdir=$2; shift 2 ;;
        --tmpfs) case $2 in /tmp:*) ;; *) made=\${2%%:*}; mkdir "$made" ;; esac; shift 2 ;;
        --*) shift 2 ;;
        *) break ;;
      esac
    done
    [ "$1" != unreachable ] || { echo 'docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 125; }
    [ "$1" != absent ] || { echo 'docker: Error response from daemon: pull access denied for absent' >&2; exit 125; }
    echo "$$ $workdir $made" >"$place/running/$name"
    echo ready
    while read -r nonce mark since; do
      [ ! -e "$place/slow" ] || sleep 1.5
      count=0
      for process in $(grep -lszx "FS_ALGEBRA_EXEC=$mark" /proc/[0-9]*/environ | cut -d / -f 3); do
        kill -9 "$process" 2>/dev/null && count=$((count + 1))
      done
      echo "$nonce $count"
    done
    rm -rf "$place/running/$name" $made
    ;;
  exec)
    shift
    input=/dev/null
    while :; do
      case $1 in
        --interactive) input=; shift ;;
        --env) export "$2"; shift 2 ;;
        *) break ;;
      esac
    done
    [ -e "$place/running/$1" ] || { echo "Error response from daemon: No such container: $1" >&2; exit 1; }
    read -r client workdir made <"$place/running/$1"
    cd "$workdir"
    shift
    [ -z "$input" ] || exec <"$input"
    exec "$@"
    ;;
esac
`

interface Docker {
  readonly place: string
  readonly calls: () => ReadonlyArray<ReadonlyArray<string>>
  readonly running: () => ReadonlyArray<string>
}

/** A place outside /tmp, because a container has its own /tmp. */
const docker: Effect.Effect<Docker, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(within("/var/tmp"), "docker-"))),
    (place) => Effect.sync(() => Fs.rmSync(place, { recursive: true, force: true }))
  ),
  (place) => {
    for (const name of ["bin", "calls", "running", "shared"]) Fs.mkdirSync(join(place, name))
    Fs.writeFileSync(join(place, "bin/docker"), player(place), { mode: 0o755 })
    return {
      place,
      calls: () =>
        Fs.readdirSync(join(place, "calls"))
          .sort()
          .map((name) =>
            Fs.readFileSync(join(place, "calls", name), "utf8")
              .split("\0")
              .slice(0, -1)
          ),
      running: () => Fs.readdirSync(join(place, "running"))
    }
  }
)

/** Provides a PATH that begins with `directory` or, with `alone`, is only `directory`. */
const finding = (directory: string, alone = false) =>
  Layer.merge(
    NodeServices.layer,
    ConfigProvider.layer(
      ConfigProvider.fromEnv({ env: { PATH: alone ? directory : `${directory}${delimiter}${process.env["PATH"]}` } })
    )
  )

const live = (
  name: string,
  use: (self: Docker) => Effect.Effect<unknown, unknown, ChildProcessSpawner.ChildProcessSpawner | Scope.Scope>
) =>
  it.live(name, () =>
    Effect.scoped(Effect.flatMap(docker, (self) => Effect.provide(Effect.scoped(use(self)), finding(join(self.place, "bin")))))
  )

const flag = (call: ReadonlyArray<string>, name: string): string | undefined => call[call.indexOf(name) + 1]

describe("a container engine", () => {
  for (const strategy of ["overlay", "exec"] as const) {
    live(`${strategy}: receives every command from the start to the removal of a container`, (self) =>
      Effect.gen(function* () {
        const shared = strategy === "overlay"
        const workdir = join(self.place, shared ? "shared" : "inside")
        const used = Effect.gen(function* () {
          const { filesystem: fs, sandbox } = yield* Container.make({
            engine: "docker",
            image: "alpine:3.20",
            strategy,
            workdir,
            ...(shared && { hostDirectory: workdir })
          })
          yield* fs.write("d/a.txt", "1")
          assert.strictEqual(self.running().length, shared ? 0 : 1)
          const result = yield* sandbox.exec(["sh", "-c", "cat a.txt; cat; echo 2 > b.txt; exit 3"], { cwd: "d", stdin: "in" })
          assert.deepInclude(result, { exitCode: 3, stdout: "1in", stderr: "", timedOut: false })
          assert.strictEqual(yield* fs.readString("d/b.txt"), "2\n")
          const late = yield* sandbox.exec(["sh", "-c", "setsid sleep 908 & echo said; sleep 909"], { timeout: "1 second" })
          assert.deepInclude(late, { exitCode: 124, timedOut: true, stdout: "said\n" })
          yield* Effect.sync(() => assert.strictEqual(self.running().length, 1))
        })
        yield* Effect.scoped(used)
        assert.deepStrictEqual(self.running(), [])
        assert.strictEqual(Fs.existsSync(workdir), shared)
        const calls = self.calls()
        assert.deepStrictEqual(calls[0], ["--version"])
        const run = calls.find(([verb]) => verb === "run")!
        assert.match(flag(run, "--name")!, /^fs-algebra-[0-9a-f]{24}$/)
        assert.strictEqual(flag(run, "--cap-drop"), "ALL")
        assert.isTrue(
          shared
            ? flag(run, "--mount") === `type=bind,src=${workdir},dst=${workdir}`
            : run.some((word) => word.startsWith(`${workdir}:rw,exec,size=536870912,`))
        )
        for (const [verb, ...rest] of calls) {
          if (verb === "exec") assert.include(rest, flag(run, "--name"))
          else if (verb === "rm") assert.deepStrictEqual(rest, ["--force", "--volumes", flag(run, "--name")])
          else assert.include(["--version", "ps", "run"], verb)
        }
      })
    )
  }

  live("makes a filesystem that resolves absolute links below the working directory, as programs inside do", (self) =>
    Effect.gen(function* () {
      const hostDirectory = join(self.place, "shared")
      const { filesystem: fs } = yield* Container.make({ engine: "docker", image: "alpine", workdir: "/work", hostDirectory })
      yield* fs.write("d/f", "inside")
      Fs.symlinkSync("/work/d/f", join(hostDirectory, "made-inside"))
      Fs.symlinkSync(join(hostDirectory, "d/f"), join(hostDirectory, "made-outside"))
      assert.strictEqual(yield* fs.readString("made-inside"), "inside")
      yield* fs.symlink("d/l", "/work/d")
      assert.strictEqual(yield* fs.readString("d/l/f"), "inside")
      assert.strictEqual(Fs.readlinkSync(join(hostDirectory, "d/l")), "/work/d")
      assert.strictEqual((yield* Effect.flip(fs.readString("made-outside")))._tag, "AccessDenied")
    })
  )

  live("that is nerdctl may be given by its path outside of the PATH, and gets an explicit log driver", (self) =>
    Effect.gen(function* () {
      const program = join(self.place, "bin/nerdctl")
      Fs.renameSync(join(self.place, "bin/docker"), program)
      const options = { image: "alpine", hostDirectory: join(self.place, "shared"), workdir: join(self.place, "shared") }
      const { sandbox } = yield* Container.make({ ...options, engine: program })
      assert.strictEqual((yield* sandbox.exec(["echo", "ran"])).stdout, "ran\n")
      const run = self.calls().find(([verb]) => verb === "run")!
      assert.strictEqual(flag(run, "--log-driver"), "json-file")
      assert.strictEqual(flag(run, "--cap-drop"), "ALL")
      assert.isFalse(run.includes("--userns"))
    })
  )

  live("fails with its path and starts nothing if there is no program at this path", (self) =>
    Effect.gen(function* () {
      const { place } = self
      Fs.writeFileSync(join(place, "shared/docker"), "#!/bin/sh\n", { mode: 0o755 })
      Fs.writeFileSync(join(place, "calls/podman"), "no program", { mode: 0o644 })
      for (const engine of [join(place, "none/docker"), join(place, "calls/podman"), join(place, "shared/docker")]) {
        const error = yield* Effect.flip(
          Effect.scoped(Container.make({ engine, image: "alpine", hostDirectory: join(place, "shared") }))
        )
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(
          error.message,
          `cannot run ${JSON.stringify(engine)}: it is missing, not executable by this user, or inside the root of an open filesystem`
        )
        assert.include("hint" in error ? error.hint : "", "absolute path of podman, docker or nerdctl")
      }
      Fs.rmSync(join(place, "calls/podman"))
      assert.deepStrictEqual(self.calls(), [])
    })
  )

  live("that answers late is waited for, and the container is kept", (self) =>
    Effect.gen(function* () {
      Fs.writeFileSync(join(self.place, "slow"), "")
      const shared = join(self.place, "shared")
      const { sandbox } = yield* Container.make({ engine: "docker", image: "alpine", hostDirectory: shared, workdir: shared })
      const late = yield* sandbox.exec(["sleep", "909"], { timeout: "1 second" })
      assert.deepInclude(late, { exitCode: 124, timedOut: true })
      const running = self.running()
      assert.strictEqual(running.length, 1)
      assert.strictEqual((yield* sandbox.exec(["sh", "-c", "exit 126"])).exitCode, 126)
      assert.deepStrictEqual(self.running(), running)
    })
  )

  live("that fails to remove a container gets a second request", (self) =>
    Effect.gen(function* () {
      const options = { engine: "docker", image: "alpine", start: "eager", hostDirectory: join(self.place, "shared") } as const
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Container.make(options)
          const [client] = Fs.readFileSync(join(self.place, "running", self.running()[0]!), "utf8").split(" ")
          process.kill(Number(client), "SIGSTOP")
          Fs.writeFileSync(join(self.place, "improper"), "")
        })
      )
      assert.isFalse(Fs.existsSync(join(self.place, "improper")))
      assert.deepStrictEqual(self.running(), [])
    })
  )

  live("whose service does not respond gets one request, and the error says how to start the service", (self) =>
    Effect.gen(function* () {
      Fs.writeFileSync(join(self.place, "unreachable"), "")
      const options = {
        engine: "docker",
        image: "unreachable",
        start: "eager",
        hostDirectory: join(self.place, "shared")
      } as const
      const error = yield* Effect.flip(Effect.scoped(Container.make(options)))
      assert.deepInclude(error, { _tag: "Unavailable", operation: "Container" })
      assert.include("hint" in error ? error.hint : "", "Start the service of the engine")
      assert.strictEqual(self.calls().filter(([verb]) => verb === "rm").length, 1)
    })
  )

  live("that refuses a container is quoted in the error", (self) =>
    Effect.gen(function* () {
      const options = { engine: "docker", image: "absent", start: "eager", hostDirectory: join(self.place, "shared") } as const
      const error = yield* Effect.flip(Effect.scoped(Container.make(options)))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(
        error.message,
        "docker did not start a container: docker: Error response from daemon: pull access denied for absent"
      )
      const { sandbox } = yield* Container.make({ ...options, start: "lazy" })
      assert.strictEqual((yield* Effect.flip(sandbox.exec(["true"])))._tag, "Unavailable")
    })
  )

  live("that is not installed fails when the container is made", (self) =>
    Effect.gen(function* () {
      const options = { engine: "docker", image: "alpine", hostDirectory: join(self.place, "shared") } as const
      const error = yield* Effect.flip(
        Effect.provide(Effect.scoped(Container.make(options)), finding(join(self.place, "calls"), true))
      )
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "docker is not installed, or not in the PATH")
    })
  )

  for (const [where, entry] of [
    ["is in the shared directory", (place: string) => join(place, "shared/tools")],
    ["is in the shared directory, through a link", (place: string) => join(place, "by-link")],
    ["is behind a link in the shared directory", (place: string) => join(place, "shared/back")],
    ["is in a writable mount", (place: string) => join(place, "mounted")],
    ["is in the root of an open filesystem", (place: string) => join(place, "open")],
    ["is in the working directory, through a relative entry", (place: string) => relative(process.cwd(), join(place, "trap"))],
    ["is in the working directory, through an empty entry", () => ""],
    ["is in the working directory, through a dot", () => "."]
  ] as const) {
    live(`that ${where} is not run`, (self) =>
      Effect.gen(function* () {
        const { place } = self
        for (const name of ["shared/tools", "mounted", "open", "trap"]) {
          Fs.mkdirSync(join(place, name))
          Fs.writeFileSync(join(place, name, "docker"), `#!/bin/sh\ntouch ${place}/executed\n`, { mode: 0o755 })
        }
        Fs.symlinkSync("shared/tools", join(place, "by-link"))
        Fs.symlinkSync(join(place, "trap"), join(place, "shared/back"))
        const path = `${entry(place)}${delimiter}${place}/bin`
        const before = process.cwd()
        yield* PosixHost.make({ root: join(place, "open") })
        const made = Container.make({
          engine: "docker",
          image: "alpine",
          hostDirectory: join(place, "shared"),
          mounts: [{ source: join(place, "mounted"), target: "/mounted", readOnly: false }],
          allowedRoots: [place]
        })
        yield* Effect.ensuring(
          Effect.andThen(
            Effect.sync(() => entry(place).length < 2 && process.chdir(join(place, "trap"))),
            Effect.provide(Effect.scoped(made), finding(`${path}${delimiter}/usr/bin${delimiter}/bin`, true))
          ),
          Effect.sync(() => process.chdir(before))
        )
        assert.isFalse(Fs.existsSync(join(place, "executed")))
        assert.notDeepEqual(self.calls(), [])
      })
    )
  }

  live("that exists only in the shared directory counts as not installed", (self) =>
    Effect.gen(function* () {
      const hostDirectory = join(self.place, "shared")
      Fs.writeFileSync(join(hostDirectory, "docker"), `#!/bin/sh\ntouch ${self.place}/executed\n`, { mode: 0o755 })
      const error = yield* Effect.flip(
        Effect.provide(
          Effect.scoped(Container.make({ engine: "docker", image: "alpine", hostDirectory })),
          finding(hostDirectory, true)
        )
      )
      assert.include(error.message, "entries inside the root of an open filesystem are ignored")
      assert.isFalse(Fs.existsSync(join(self.place, "executed")))
    })
  )

  live("counts as missing if the PATH names a file instead of a directory", (self) =>
    Effect.gen(function* () {
      const stray = join(self.place, "stray")
      Fs.writeFileSync(stray, "")
      const options = { engine: "docker", image: "alpine", hostDirectory: join(self.place, "shared") } as const
      const error = yield* Effect.flip(Effect.provide(Effect.scoped(Container.make(options)), finding(stray, true)))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "docker is not installed, or not in the PATH")
    })
  )

  live("that does not report a version makes the container fail with Unavailable", (self) =>
    Effect.gen(function* () {
      const options = { engine: "docker", image: "alpine", hostDirectory: join(self.place, "shared") } as const
      Fs.writeFileSync(join(self.place, "bin/docker"), "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
      const error = yield* Effect.flip(Effect.scoped(Container.make(options)))
      assert.include(error.message, "docker does not answer: Cannot connect to the Docker daemon")
    })
  )
})
