/** The laws where no disk is shared: a shell in a real container answers for the files. */
import { laws, policySuite, suite } from "../../src/testing/index.ts"
import { busyboxRoot, describePodman, gnuRoot } from "../backends/container/podman.ts"
import { apart } from "./containers.ts"
import { containerPrograms } from "./filesystems.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

describePodman("with podman", () => {
  const gnu = apart(gnuRoot)
  suite("Container, exec, with the tools of GNU", gnu.empty, { programs: containerPrograms })
  policySuite("Container, exec", gnu.with)
  // Its touch knows whole seconds only. What the engine derives is the same on every port: of that the soak has all.
  suite("Container, exec, with busybox", apart(busyboxRoot, { wholeSeconds: true }).empty, {
    programs: containerPrograms,
    laws: laws.filter(({ kind }) => isSoak || kind !== "service")
  })
})
