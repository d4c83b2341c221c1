import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { agreement } from "../../src/testing/Agreement.ts"
import { adversarial } from "../../src/testing/Faults.ts"
import { decorate } from "../../src/filesystem/Filesystem.ts"
for (const [name, layer] of [["plain", InMemory.layer()], ["insensitive", InMemory.layer({ caseInsensitive: true })], ["adv", decorate(adversarial)(InMemory.layer())]] as const)
it.live(name, () => Effect.gen(function* () {
  const t = performance.now()
  for (let i = 0; i < 5; i++) yield* Effect.catchTag(agreement(layer, { runs: 2000, seed: i }), "Disagreement", (e) => Effect.sync(() => console.log(e.message)))
  console.log(performance.now() - t)
}), 600000)
