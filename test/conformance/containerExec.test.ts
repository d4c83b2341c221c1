/** The laws where no disk is shared: a shell in a real container answers for the files. */
import { policySuite, suite } from "../../src/testing/index.ts"
import { busyboxRoot, describePodman, gnuRoot } from "../backends/container/podman.ts"
import { apart } from "./containers.ts"
import { containerPrograms } from "./filesystems.ts"

describePodman("with podman", () => {
  const gnu = apart(gnuRoot)
  suite("Container, exec, with the tools of GNU", gnu.empty, { programs: containerPrograms })
  policySuite("Container, exec", gnu.with)
  // Its touch knows whole seconds only.
  suite("Container, exec, with busybox", apart(busyboxRoot, { wholeSeconds: true }).empty, { programs: containerPrograms })
})
