import { describe } from "@effect/vitest"
import { laws, suite } from "../../../src/testing/index.ts"
import { lacking } from "../container/podman.ts"
import { filesystem } from "./laws.ts"
import { busybox, dash, missing, shared } from "./shells.ts"

// Where there is podman, all laws are held against the same shells in containers (test/conformance/containerExec.test.ts).
const isAll = lacking !== undefined || process.env["FS_ALGEBRA_SOAK"] === "1"
const options = { laws: laws.filter(({ kind }) => isAll || kind === "port"), programs: isAll ? 200 : 0 }

for (const [kind, bench] of [
  [dash, {}],
  [busybox, { wholeSeconds: true }]
] as const) {
  const lacks = missing(kind)
  if (lacks === undefined) suite(`a shell, ${kind.name}`, filesystem(shared(kind), bench), options)
  else describe.skip(lacks)
}
