import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Container from "../../../src/backends/Container.ts"
import { busyboxRoot, containers, describePodman, directory, services } from "./podman.ts"

const isRoot = process.getuid?.() === 0
if (!isRoot && process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error("some of these tests need root; run them as root")

const made = (options: Partial<Container.ContainerOptions> = {}) =>
  Container.make({ image: { rootfs: busyboxRoot() }, ...options })

type Body = () => Effect.Effect<unknown, unknown, Layer.Success<typeof services> | Scope.Scope>

const provided = (body: Body) => () => Effect.provide(Effect.scoped(Effect.suspend(body)), services)

const live = (name: string, body: Body) => it.live(name, provided(body))

const fresh = (name: string, ...files: ReadonlyArray<string>): string => {
  const at = join(directory(), name)
  Fs.mkdirSync(at)
  for (const file of files) {
    Fs.mkdirSync(join(at, file, ".."), { recursive: true })
    Fs.writeFileSync(join(at, file), "it")
  }
  return at
}

const sh = (script: string): ReadonlyArray<string> => ["sh", "-c", script]

describePodman("a hostile container", () => {
  live("cannot reach the target of a link that it puts in the place of a mount", () =>
    Effect.gen(function* () {
      const secret = fresh("secret", "key")
      const shared = fresh("shared", "data/key")
      const { sandbox } = yield* made({
        hostDirectory: shared,
        mounts: [{ source: join(shared, "data"), target: "/data" }],
        allowedRoots: [directory()]
      })
      const { exitCode, stderr } = yield* sandbox.exec(sh(`cat /data/key && mv data old && ln -s ${secret} data`))
      assert.strictEqual(exitCode, 0, stderr)
      execFileSync("podman", ["rm", "--force", "--time", "0", containers()[0]!])
      const { _tag } = yield* Effect.flip(sandbox.exec(["cat", "/data/key"]))
      assert.strictEqual(_tag, "Unavailable")
      assert.deepStrictEqual(containers(), [])
    })
  )

  live("cannot reach the target of a link that takes the place of its directory", () =>
    Effect.gen(function* () {
      const secret = fresh("elsewhere", "key")
      const shared = fresh("outer", "inner/file")
      const { filesystem, sandbox } = yield* made({ hostDirectory: join(shared, "inner") })
      Fs.renameSync(join(shared, "inner"), join(shared, "moved"))
      Fs.symlinkSync(secret, join(shared, "inner"))
      const { _tag } = yield* Effect.flip(sandbox.exec(["cat", "key"]))
      assert.strictEqual(_tag, "Unavailable")
      assert.strictEqual(yield* filesystem.readString("file"), "it")
    })
  )

  live("leaves nothing behind, however deep its directories are and whatever their permissions", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { sandbox } = yield* Scope.provide(made(), scope)
      const name = "d".repeat(200)
      // The tree is deeper than the longest path of the system.
      const { stdout } = yield* sandbox.exec(
        sh(`i=0; while [ $i -lt 30 ]; do mkdir -p ${name}/${name} || break
          mv ${name} next && mkdir ${name} && mv next ${name}/${name}; i=$((i+1)); done; echo $i; mkdir x && chmod 0 x`),
        { timeout: "60 seconds" }
      )
      assert.strictEqual(stdout, "30\n")
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(Fs.readdirSync(join(directory(), "cache/fs-algebra/overlays")), [])
    })
  )
})

describePodman("a container over a host directory", () => {
  live("is not made over the root directory of the host", () =>
    Effect.gen(function* () {
      const link = join(directory(), "whole")
      Fs.symlinkSync("/", link)
      for (const hostDirectory of ["/", "//.", link]) {
        assert.strictEqual((yield* Effect.flip(made({ hostDirectory })))._tag, "InvalidArgument")
      }
    })
  )

  live("is not made over a host directory whose resolved path an engine would read as mount options", () =>
    Effect.gen(function* () {
      const link = join(directory(), "harmless")
      Fs.symlinkSync(fresh('a,dst="b"'), link)
      assert.strictEqual((yield* Effect.flip(made({ hostDirectory: link })))._tag, "InvalidArgument")
    })
  )

  it.live.skipIf(!isRoot)(
    "leaves the owner of another user's directory unchanged (skipped without root)",
    provided(() =>
      Effect.gen(function* () {
        const theirs = fresh("theirs")
        const ours = fresh("ours")
        Fs.chownSync(theirs, 4321, 4321)
        yield* made({ hostDirectory: theirs })
        yield* made({ hostDirectory: ours })
        assert.strictEqual(Fs.statSync(theirs).uid, 4321)
        assert.strictEqual(Fs.statSync(ours).uid, 65534)
      })
    )
  )
})

describePodman("a command with an empty environment", () => {
  live("is killed after its timeout, and the container keeps running", () =>
    Effect.gen(function* () {
      const { filesystem, sandbox } = yield* made({ strategy: "exec" })
      yield* filesystem.write("kept.txt", "kept")
      const [before] = containers()
      const { exitCode, timedOut } = yield* sandbox.exec(["env", "-i", "/bin/sleep", "60"], { timeout: "1 second" })
      assert.deepStrictEqual([exitCode, timedOut], [124, true])
      assert.strictEqual(yield* filesystem.readString("kept.txt"), "kept")
      assert.deepStrictEqual(containers(), [before!])
    })
  )
})

describePodman("a closed container", () => {
  for (const strategy of ["overlay", "exec"] as const) {
    live(`${strategy}: makes calls fail with Unavailable immediately, and starts no other container`, () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { filesystem, sandbox } = yield* Scope.provide(made({ strategy }), scope)
        yield* sandbox.exec(["true"])
        yield* Scope.close(scope, Exit.void)
        for (let i = 0; i < 2; i++) {
          assert.strictEqual((yield* Effect.flip(sandbox.exec(["true"])))._tag, "Unavailable")
          assert.strictEqual((yield* Effect.flip(filesystem.list(".")))._tag, "Unavailable")
        }
        assert.deepStrictEqual(containers(), [])
      })
    )
  }
})
