import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Ability, type Law, Patience, verdict } from "../../src/testing/Law.ts"
import { laws } from "../../src/testing/Laws.ts"
import { caseless, inMemory, posixHost } from "./filesystems.ts"
import { nameMutants } from "./mutants/names.ts"
import type { Mutant } from "./mutants/mutant.ts"
import { portMutants } from "./mutants/ports.ts"
import { serviceMutants } from "./mutants/service.ts"

const mutants: ReadonlyArray<Mutant> = [...portMutants, ...nameMutants, ...serviceMutants]

/** Without anything that a backend may lack. */
const bare = Layer.effect(
  Filesystem,
  Effect.map(InMemory.make(), (port) => make({ ...port, links: undefined, attributes: undefined, watch: undefined }))
)

const bases: ReadonlyArray<readonly [Ability, Layer.Layer<Filesystem, unknown>]> = [
  ["case insensitive", caseless],
  ["others", posixHost],
  ["unaddressable names", posixHost],
  ["no links", bare],
  ["no attributes", bare],
  ["no watch", bare]
]

/** A filesystem that keeps the law. */
const baseOf = (law: Law): Layer.Layer<Filesystem, unknown> =>
  bases.find(([ability]) => law.needs.includes(ability))?.[1] ?? inMemory

const breaks = (mutant: Mutant, law: Law): Effect.Effect<boolean, unknown> =>
  verdict(law).pipe(
    Effect.provideService(Patience, "1 second"),
    Effect.provide(decorate(mutant.of)(baseOf(law)), { local: true }),
    Effect.map(({ _tag }) => _tag === "Broken")
  )

describe("mutants", () => {
  it("have names of their own", () => {
    const names = mutants.map(({ name }) => name)
    assert.deepStrictEqual(names, [...new Set(names)])
  })

  it.live("break every law", () =>
    Effect.gen(function* () {
      const unbroken: Array<string> = []
      let recent = [...mutants]
      for (const law of laws) {
        let found: Mutant | undefined
        for (const mutant of recent) {
          if (!(yield* breaks(mutant, law))) continue
          found = mutant
          break
        }
        if (found === undefined) unbroken.push(law.name)
        else recent = [found, ...recent.filter((mutant) => mutant !== found)]
      }
      assert.deepStrictEqual(unbroken, [])
    })
  , 600_000)
})
