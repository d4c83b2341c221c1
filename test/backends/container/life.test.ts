import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Container from "../../../src/backends/Container.ts"
import { Filesystem } from "../../../src/filesystem/Filesystem.ts"
import { Sandbox } from "../../../src/filesystem/Sandbox.ts"
import * as Identity from "../../../src/runtime/processIdentity.ts"
import { busyboxRoot, containers, describePodman, directory, gnuRoot, services } from "./podman.ts"

const strategies = ["overlay", "exec"] as const

const made = (options: Partial<Container.ContainerOptions> = {}) =>
  Container.make({ image: { rootfs: busyboxRoot() }, ...options })

const overlays = () => {
  const place = join(directory(), "cache/fs-algebra/overlays")
  return Fs.existsSync(place) ? Fs.readdirSync(place) : []
}

/** Returns the names of the volumes of one container, because others run at the same time. */
const volumesOf = (name: string) =>
  execFileSync("podman", ["inspect", "--format", "{{range .Mounts}}{{println .Name}}{{end}}", name], { encoding: "utf8" })
    .split("\n")
    .filter((volume) => volume !== "")

const isThere = (volume: string) => spawnSync("podman", ["volume", "exists", volume]).status === 0

const nothing = () => {
  assert.deepStrictEqual(containers(), [])
  assert.deepStrictEqual(overlays(), [])
}

const live = (name: string, body: () => Effect.Effect<unknown, unknown, Layer.Success<typeof services> | Scope.Scope>) =>
  it.live(name, () => Effect.provide(Effect.scoped(Effect.suspend(body)), services))

const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (isSo() ? Effect.void : Effect.andThen(Effect.sleep(50), until(isSo))))

describePodman("the life of a container", () => {
  live("with an overlay, files work before the container starts, while it runs, and after it ends", () =>
    Effect.gen(function* () {
      const { filesystem: fs, sandbox } = yield* made()
      yield* fs.write("before.txt", "1")
      assert.deepStrictEqual(containers(), [])
      assert.strictEqual((yield* sandbox.exec(["cat", "before.txt"])).stdout, "1")
      const [first] = containers()
      yield* sandbox.exec(["sh", "-c", "echo 2 > inside.txt"])
      assert.deepStrictEqual(containers(), [first!])
      assert.strictEqual(yield* fs.readString("inside.txt"), "2\n")
      execFileSync("podman", ["rm", "--force", first!])
      assert.strictEqual(yield* fs.readString("inside.txt"), "2\n")
      yield* fs.write("after.txt", "3")
    })
  )

  live("a dead container is replaced at the next command, with the same files", () =>
    Effect.gen(function* () {
      const { filesystem: fs, sandbox } = yield* made({ start: "eager" })
      const [first] = containers()
      yield* fs.write("kept.txt", "kept")
      execFileSync("podman", ["kill", first!])
      yield* until(() => containers().length === 0)
      assert.strictEqual((yield* sandbox.exec(["cat", "kept.txt"])).stdout, "kept")
      const [second] = containers()
      assert.notStrictEqual(second, first)
    })
  )

  live(
    "with the exec strategy, one command and one read fail after the end of the container; then an empty container works",
    () =>
      Effect.gen(function* () {
        const { filesystem: fs, sandbox } = yield* made({ strategy: "exec" })
        yield* fs.write("lost.txt", "x")
        assert.strictEqual((yield* sandbox.exec(["cat", "lost.txt"])).stdout, "x")
        const [first] = containers()
        execFileSync("podman", ["kill", first!])
        yield* until(() => containers().length === 0)
        assert.strictEqual((yield* Effect.flip(sandbox.exec(["ls"])))._tag, "Unavailable")
        assert.strictEqual((yield* Effect.flip(fs.readString("lost.txt")))._tag, "Unavailable")
        assert.strictEqual((yield* sandbox.exec(["ls", "-A"])).stdout, "")
        assert.deepStrictEqual(yield* fs.list(), [])
        assert.isFalse(yield* fs.exists("lost.txt"))
        yield* fs.write("new.txt", "y")
        assert.strictEqual((yield* sandbox.exec(["cat", "new.txt"])).stdout, "y")
      })
  )

  live("a command whose container ends fails with Unavailable", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* made({ start: "eager" })
      const running = yield* Effect.forkScoped(Effect.flip(sandbox.exec(["sh", "-c", "echo > going; sleep 100"])), {
        startImmediately: true
      })
      const at = join(directory(), "cache/fs-algebra/overlays")
      yield* until(() => overlays().some((name) => Fs.existsSync(join(at, name, "going"))))
      execFileSync("podman", ["kill", containers()[0]!])
      assert.strictEqual((yield* Fiber.join(running))._tag, "Unavailable")
    })
  )

  for (const strategy of strategies) {
    live(`${strategy}: closing the scope removes everything, whatever runs inside`, () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { filesystem: fs, sandbox } = yield* Scope.provide(made({ strategy }), scope)
        yield* fs.write("a/b.txt", "x")
        yield* sandbox.exec([
          "sh",
          "-c",
          "mkdir locked && echo > locked/in && chmod 0 locked; setsid sleep 1000 & trap '' TERM"
        ])
        const [name] = containers()
        const volumes = volumesOf(name!)
        assert.strictEqual(volumes.filter(isThere).length, strategy === "exec" ? 1 : 0)
        yield* Scope.close(scope, Exit.void)
        nothing()
        assert.deepStrictEqual(volumes.filter(isThere), [])
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Effect.flip(fs.stat("a")))._tag, "Unavailable")
      })
    )

    live(`${strategy}: an interrupted start leaves nothing behind`, () =>
      Effect.gen(function* () {
        for (const millis of [40, 150, 300]) {
          const fiber = yield* Effect.forkChild(Effect.scoped(Effect.andThen(made({ strategy, start: "eager" }), Effect.never)))
          yield* Effect.sleep(millis)
          yield* Fiber.interrupt(fiber)
          nothing()
        }
      })
    )

    live(
      `${strategy}: after the process is killed, its container ends by itself, and the next process removes its directory`,
      () =>
        Effect.gen(function* () {
          const cache = join(directory(), "cache")
          const child = spawn(
            process.execPath,
            [fileURLToPath(new URL("holder.ts", import.meta.url)), busyboxRoot(), strategy, cache],
            { stdio: ["ignore", "pipe", "inherit"] }
          )
          const [said] = yield* Effect.promise(() => once(child.stdout, "data") as Promise<[Buffer]>)
          const owner = said.toString().trim()
          const [name] = containers(owner)
          const volumes = volumesOf(name!)
          child.kill("SIGKILL")
          yield* until(() => containers(owner).length === 0 && !volumes.some(isThere))
          yield* made()
          yield* until(() => !overlays().some((name) => name.startsWith(owner)))
        })
    )
  }

  live("a paused container is removed when its scope closes", () =>
    Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* made({ start: "eager" })
          execFileSync("podman", ["pause", containers()[0]!])
        })
      )
      nothing()
    })
  )

  live("containers of a dead process are removed when the next container is made", () =>
    Effect.gen(function* () {
      const owner = "x-zzzzz-1"
      const dead = yield* Effect.promise(async () => {
        const child = spawn(
          process.execPath,
          [
            "--input-type=module",
            "-e",
            `import(${JSON.stringify(new URL("../../../src/runtime/processIdentity.ts", import.meta.url).href)}).then((identity) => process.stdout.write(identity.self()))`
          ],
          { stdio: ["ignore", "pipe", "inherit"] }
        )
        const [said] = (await once(child.stdout, "data")) as [Buffer]
        await once(child, "exit")
        return said.toString()
      })
      const create = (name: string, whose: string, ...more: ReadonlyArray<string>) =>
        execFileSync("podman", [
          "create",
          "--name",
          name,
          "--label",
          "fs-algebra=1",
          "--label",
          `fs-algebra.owner=${whose}`,
          ...more,
          "--rootfs",
          `${busyboxRoot()}:O`,
          "true"
        ])
      create("fs-algebra-00dead", dead)
      create("fs-algebra-00beef", owner)
      yield* Effect.addFinalizer(() => Effect.sync(() => execFileSync("podman", ["rm", "--force", "fs-algebra-00beef"])))
      // An image may bring labels with any text. Containers are checked one after the other, so this one comes before a dead
      // one.
      const forged = `x fs-algebra.owner:${dead}\nfs-algebra-00beef fs-algebra.owner:${dead} `
      create("fs-algebra-00bead", Identity.self(), "--label", `zz=${forged}`)
      create("fs-algebra-01dead", dead)
      yield* Effect.addFinalizer(() => Effect.sync(() => execFileSync("podman", ["rm", "--force", "fs-algebra-00bead"])))
      yield* made()
      yield* until(() => containers(dead).length === 0)
      assert.include(containers(Identity.self()), "fs-algebra-00bead")
      assert.deepStrictEqual(containers(owner), ["fs-algebra-00beef"])
    })
  )

  live("a failed start reports the message of the engine", () =>
    Effect.gen(function* () {
      const missing = yield* Effect.flip(Effect.scoped(made({ image: { rootfs: "/nowhere/at/all" }, start: "eager" })))
      assert.strictEqual(missing._tag, "Unavailable")
      assert.include(missing.message, 'podman did not start a container: there is no directory "/nowhere/at/all"')
      assert.notInclude(missing.message, "backend")
      const empty = Fs.mkdtempSync(join(directory(), "empty-"))
      const shellless = yield* Effect.flip(Effect.scoped(made({ image: { rootfs: empty }, start: "eager" })))
      assert.include(shellless.message, "there is no /bin/sh")
      const unknown = yield* Effect.flip(Effect.scoped(made({ image: "localhost/fs-algebra-no-such-image", start: "eager" })))
      assert.deepInclude(unknown, { _tag: "Unavailable" })
      assert.include("hint" in unknown ? unknown.hint : "", "podman pull IMAGE")
      const bad = yield* Effect.flip(Effect.scoped(made({ runArguments: ["--no-such-option"], start: "eager" })))
      assert.include(bad.message, "unknown flag: --no-such-option")
      nothing()
    })
  )

  live("a lazy container reports a failed start at the first command, and its files work", () =>
    Effect.gen(function* () {
      const { filesystem: fs, sandbox } = yield* made({ runArguments: ["--no-such-option"] })
      yield* fs.write("a.txt", "x")
      assert.strictEqual((yield* Effect.flip(sandbox.exec(["true"])))._tag, "Unavailable")
      assert.strictEqual(yield* fs.readString("a.txt"), "x")
    })
  )

  live("concurrent commands before the start share one container", () =>
    Effect.gen(function* () {
      const { sandbox } = yield* made()
      const results = yield* Effect.forEach(["a", "b", "c"], (word) => sandbox.exec(["echo", word]), { concurrency: 3 })
      assert.deepStrictEqual(
        results.map(({ stdout }) => stdout),
        ["a\n", "b\n", "c\n"]
      )
      assert.strictEqual(containers().length, 1)
    })
  )

  live("a directory that the caller provides is changed in place and kept", () =>
    Effect.gen(function* () {
      const hostDirectory = join(directory(), "mine")
      Fs.mkdirSync(hostDirectory)
      const use = Effect.gen(function* () {
        const fs = yield* Filesystem
        const sandbox = yield* Sandbox
        yield* fs.write("ours.txt", "x")
        yield* sandbox.exec(["sh", "-c", "echo y >> ours.txt; echo z > theirs.txt"])
      })
      yield* Effect.provide(use, Container.layer({ image: { rootfs: gnuRoot() }, hostDirectory }))
      assert.strictEqual(Fs.readFileSync(join(hostDirectory, "ours.txt"), "utf8"), "xy\n")
      assert.strictEqual(Fs.readFileSync(join(hostDirectory, "theirs.txt"), "utf8"), "z\n")
      nothing()
    })
  )

  live("a missing host directory makes the start fail with NotFound, and a file in its place with NotADirectory", () =>
    Effect.gen(function* () {
      const file = join(directory(), "file")
      Fs.writeFileSync(file, "")
      assert.strictEqual((yield* Effect.flip(made({ hostDirectory: join(directory(), "absent") })))._tag, "NotFound")
      assert.strictEqual((yield* Effect.flip(made({ hostDirectory: file })))._tag, "NotADirectory")
    })
  )

  live("an image whose workspace directory belongs to root works", () =>
    Effect.gen(function* () {
      const root = join(directory(), "owning")
      Fs.cpSync(busyboxRoot(), root, { recursive: true, verbatimSymlinks: true })
      Fs.mkdirSync(join(root, "workspace"), { mode: 0o755 })
      const { filesystem: fs, sandbox } = yield* made({ image: { rootfs: root }, strategy: "exec" })
      yield* fs.write("a.txt", "x")
      assert.strictEqual((yield* sandbox.exec(["cat", "a.txt"])).stdout, "x")
    })
  )
})
