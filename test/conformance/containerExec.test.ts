/** Runs the laws on a container with the exec strategy: a shell in a real container serves the files. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Container from "../../src/backends/Container.ts"
import { laws, policySuite, suite } from "../../src/testing/index.ts"
import { busyboxRoot, describePodman, gnuRoot, services } from "../backends/container/podman.ts"
import { apart } from "./containers.ts"
import { containerPrograms } from "./filesystems.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

/**
 * Starting a process in a container costs tens of milliseconds, and most laws start several. The laws of the service run on the same
 * shell functions without a container in test/backends/shell/laws.test.ts, and in the soak here too.
 */
const kept = laws.filter(({ kind }) => isSoak || kind !== "service")

describePodman("with podman", () => {
  const gnu = apart(gnuRoot)
  suite("Container, exec, with GNU tools", gnu.empty, { programs: containerPrograms, laws: kept })
  policySuite("Container, exec", gnu.with)
  it.live("Container.make with exec follows absolute links into its directory", () =>
    Effect.gen(function* () {
      const { filesystem: fs } = yield* Container.make({ image: { rootfs: busyboxRoot() }, strategy: "exec" })
      yield* fs.write("d/f", "inside")
      yield* fs.symlink("absolute", `${fs.root}/d/f`)
      assert.strictEqual(yield* fs.readString("absolute"), "inside")
    }).pipe(Effect.provide(services))
  )
  // The shell functions run with busybox on every law in test/backends/shell/laws.test.ts. The touch of busybox supports only whole seconds.
  suite("Container, exec, with busybox", apart(busyboxRoot, { wholeSeconds: true }).empty, {
    programs: containerPrograms,
    laws: isSoak ? kept : kept.filter((_, index) => index % 4 === 0)
  })
})
