import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Container from "../../src/backends/Container.ts"
import { plan } from "../../src/backends/container/options.ts"
import * as Strategies from "../../src/backends/container/strategies.ts"
import { Filesystem, layer } from "../../src/filesystem/Filesystem.ts"
import { Sandbox } from "../../src/filesystem/Sandbox.ts"
import { agreement, policySuite, suite } from "../../src/testing/index.ts"
import { plant } from "../../src/testing/Files.ts"
import { enforce } from "../../src/port/Rules.ts"
import { Bench } from "../../src/testing/Law.ts"
import { busyboxRoot, describePodman, services } from "../backends/container/podman.ts"
import { containerPrograms, directory, onDisk } from "./filesystems.ts"

describePodman("with podman", () => {
  const inDirectory = (make: (hostDirectory: string) => Layer.Layer<Filesystem, unknown>): Layer.Layer<Filesystem, unknown> =>
    Layer.unwrap(Effect.map(directory, (root) => Layer.merge(make(root), Layer.succeed(Bench, onDisk(root)))))
  /** Serves only the files, without an engine: asking the engine for its version before each law takes longer than the law. */
  const files = (hostDirectory: string) => {
    const options = { image: { rootfs: busyboxRoot() }, hostDirectory }
    const caller = { uid: process.getuid!(), gid: process.getgid!() }
    const planned = plan(options, caller)
    if ("_tag" in planned) throw new Error(planned._tag)
    return layer(Effect.map(Strategies.makeShared(planned, options, caller), ({ port }) => enforce(port)))
  }
  const overlay = (options: Partial<Container.ContainerOptions>) =>
    Container.layer({ image: { rootfs: busyboxRoot() }, ...options }).pipe(Layer.provide(services))

  suite("Container, overlay", inDirectory(files), { programs: 0 })
  it.live(
    `${containerPrograms} random programs on Container, overlay, agree with the model`,
    () =>
      agreement(
        inDirectory((hostDirectory) => overlay({ hostDirectory })),
        { runs: containerPrograms }
      ),
    600_000
  )
  policySuite("Container, overlay", ({ symlinks, ...options }, files) =>
    symlinks !== undefined
      ? undefined
      : inDirectory((hostDirectory) =>
          Layer.unwrap(
            Effect.as(
              Effect.provide(
                Effect.flatMap(Filesystem, (fs) => plant(fs.port, files)),
                overlay({ hostDirectory })
              ),
              overlay({ hostDirectory, ...options })
            )
          )
        )
  )

  it.live("the filesystem and the commands of Container, overlay, see the same files, byte for byte", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const services = yield* Layer.build(overlay({}))
        const fs = Context.get(services, Filesystem)
        const sandbox = Context.get(services, Sandbox)
        const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7919) & 0xff)
        yield* fs.writeBytes("a/b c/'é", bytes)
        yield* fs.writeBytes("plain", bytes)
        const copied = yield* sandbox.exec(["sh", "-c", "mkdir made && cp plain made/copy && sha256sum plain made/copy"])
        assert.strictEqual(copied.exitCode, 0, copied.stderr)
        const version = yield* fs.version("plain")
        assert.strictEqual(copied.stdout, `${version}  plain\n${version}  made/copy\n`)
        assert.strictEqual(yield* fs.version("made/copy"), version)
        yield* sandbox.exec(["sh", "-c", "echo x > note"])
        yield* fs.edit("note", { oldText: "x", newText: "y" })
        assert.strictEqual((yield* sandbox.exec(["cat", "note"])).stdout, "y\n")
        assert.strictEqual((yield* sandbox.exec(["sh", "-c", "echo z >> note; rm -r made; ls"])).stdout, "a\nnote\nplain\n")
        assert.strictEqual(yield* fs.readString("note"), "y\nz\n")
      })
    )
  )
})
