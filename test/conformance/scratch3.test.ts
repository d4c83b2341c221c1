import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { writeFileSync } from "node:fs"
import { decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Ability, type Law, Patience, verdict } from "../../src/testing/Law.ts"
import { laws } from "../../src/testing/Laws.ts"
import { caseless, inMemory, posixHost } from "./filesystems.ts"
import { nameMutants } from "./mutants/names.ts"
import { portMutants } from "./mutants/ports.ts"
import { serviceMutants } from "./mutants/service.ts"
const mutants = [...portMutants, ...nameMutants, ...serviceMutants]
const bare = Layer.effect(Filesystem, Effect.map(InMemory.make(), (port) => make({ ...port, links: undefined, attributes: undefined, watch: undefined })))
const bases: any = [["case insensitive", caseless],["others", posixHost],["unaddressable names", posixHost],["no links", bare],["no attributes", bare],["no watch", bare]]
const baseOf = (law: Law) => bases.find(([a]: any) => law.needs.includes(a as Ability))?.[1] ?? inMemory
const part = Number(process.env["PART"]), parts = 2
it.live("matrix", () => Effect.gen(function* () {
  const out: any = {}
  for (const [i, m] of mutants.entries()) {
    if (i % parts !== part) continue
    const t = performance.now()
    const broken: string[] = []
    for (const law of laws) {
      const v = yield* verdict(law).pipe(Effect.provideService(Patience, "200 millis"), Effect.provide(decorate(m.of)(baseOf(law)), { local: true }))
      if ((v as any)._tag === "Broken") broken.push(law.name)
    }
    out[m.name] = { broken, ms: Math.round(performance.now() - t) }
    writeFileSync(`/tmp/kit/matrix${part}.json`, JSON.stringify(out))
  }
}), 6000000)
