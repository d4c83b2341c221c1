import { describe } from "@effect/vitest"
import { laws, suite } from "../../../src/testing/index.ts"
import { lacking } from "../container/podman.ts"
import { filesystem } from "./laws.ts"
import { busybox, dash, missing, shared } from "./shells.ts"

/**
 * The same shell functions run in a container in test/conformance/containerExec.test.ts, with the laws of the port. The laws of the service
 * run here, with busybox, because it starts the fastest processes.
 */
const isAll = lacking !== undefined || process.env["FS_ALGEBRA_SOAK"] === "1"
const portLaws = laws.filter(({ kind }) => kind === "port")

for (const [kind, bench, kept] of [
  [dash, {}, isAll ? laws : portLaws],
  [busybox, { wholeSeconds: true }, laws]
] as const) {
  const lacks = missing(kind)
  if (lacks === undefined)
    suite(`a shell, ${kind.name}`, filesystem(shared(kind), bench), { laws: kept, programs: isAll ? 200 : 0 })
  else describe.skip(lacks)
}
