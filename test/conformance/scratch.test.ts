import { appendFileSync, writeFileSync } from "node:fs"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { laws } from "../../src/testing/Laws.ts"
import { verdict } from "../../src/testing/Law.ts"
it.live("all", () => Effect.gen(function* () {
  const out = "/tmp/kit/out.txt"
  writeFileSync(out, "")
  const log = (x: string) => appendFileSync(out, x + "\n")
  const names = new Set<string>()
  let held = 0, na = 0, broken = 0
  const slow: Array<[number, string]> = []
  const only = process.env["ONLY"]
  for (const law of laws) {
    if (only && !law.name.includes(only)) continue
    if (names.has(law.name)) log("DUPLICATE" + law.name)
    names.add(law.name)
    const t = performance.now()
    writeFileSync("/tmp/kit/now.txt", law.name)
    const v = yield* Effect.provide(verdict(law), InMemory.layer(process.env["CI"] ? { caseInsensitive: true } : undefined))
    slow.push([performance.now() - t, law.name])
    if (v._tag === "Held") held++
    else if (v._tag === "NotApplicable") { na++ }
    else { broken++; log(v.error.message) }
  }
  log(JSON.stringify({ total: laws.length, held, na, broken }))
  for (const s of slow.sort((a, b) => b[0] - a[0]).slice(0, 12)) log(s.join(" "))
}), 600000)
