/** The laws where no disk is shared: a shell in a real container answers for the files. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { laws, policySuite, suite } from "../../src/testing/index.ts"
import { busyboxRoot, describePodman, gnuRoot } from "../backends/container/podman.ts"
import { apart } from "./containers.ts"
import { containerPrograms } from "./filesystems.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

describePodman("with podman", () => {
  const gnu = apart(gnuRoot)
  suite("Container, exec, with the tools of GNU", gnu.empty, { programs: containerPrograms })
  policySuite("Container, exec", gnu.with)
  it.live("Container, exec, follows absolute links into its directory", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      yield* fs.write("d/f", "inside")
      yield* fs.symlink("absolute", `${fs.root}/d/f`)
      assert.strictEqual(yield* fs.readString("absolute"), "inside")
    }).pipe(Effect.provide(gnu.empty))
  )
  // Its touch knows whole seconds only. What the engine derives is the same on every port: of that the soak has all.
  suite("Container, exec, with busybox", apart(busyboxRoot, { wholeSeconds: true }).empty, {
    programs: containerPrograms,
    laws: laws.filter(({ kind }) => isSoak || kind !== "service")
  })
})
