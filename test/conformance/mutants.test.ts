import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import { decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { ioError } from "../../src/model/Fault.ts"
import { type Ability, Bench, type Law, LawTimeout, verdict } from "../../src/testing/Law.ts"
import { laws } from "../../src/testing/Laws.ts"
import { type PolicyLaw, policyLaws } from "../../src/testing/Policies.ts"
import { simulated } from "../backends/windows/windowsHost.ts"
import { caseless, inMemory, posixHost, posixHostWith } from "./filesystems.ts"
import type { Mutant } from "./mutants/mutant.ts"
import { nameMutants } from "./mutants/names.ts"
import { portChangeMutants } from "./mutants/portChanges.ts"
import { portMutants } from "./mutants/ports.ts"
import { readingMutants } from "./mutants/reading.ts"
import { searchMutants } from "./mutants/searches.ts"
import { wholeChangeMutants } from "./mutants/wholeChanges.ts"
import { writingMutants } from "./mutants/writing.ts"
import { vfsState } from "../workspace/vfsStates.ts"
import { nested } from "./nested.ts"

const mutants: ReadonlyArray<Mutant> = [
  ...portMutants,
  ...portChangeMutants,
  ...nameMutants,
  ...searchMutants,
  ...readingMutants,
  ...writingMutants,
  ...wholeChangeMutants
]

type Base = Layer.Layer<Filesystem, unknown>

const bare: Base = Layer.effect(
  Filesystem,
  Effect.map(InMemory.make(), (port) => make({ ...port, links: undefined, attributes: undefined, watch: undefined }))
)

/** A filesystem that cannot rename, and whose port reports this. */
const renameless: Base = Layer.effect(
  Filesystem,
  Effect.map(InMemory.make(), (port) =>
    make({
      ...port,
      info: { ...port.info, rename: "copy" },
      rename: () => Effect.fail(ioError("it must be copied", "EXDEV"))
    })
  )
)

const bases: ReadonlyArray<readonly [Ability, Base]> = [
  ["case insensitive", caseless],
  ["others", posixHost],
  ["absolute links", posixHost],
  ["absolute texts", posixHost],
  ["unaddressable names", posixHost],
  ["a place on a machine", posixHost],
  ["no links", bare],
  ["no attributes", bare],
  ["no watch", bare],
  ["no rename", renameless],
  ["no names ending in dots or spaces", simulated()],
  ["directories go with their content", vfsState]
]

interface Subject {
  readonly law: Law
  readonly base: Base
  readonly own: ReadonlyArray<Mutant>
}

const ofPolicy = ({ files, law, options }: PolicyLaw): Subject => {
  const layer = (options: PolicyLaw["options"]): Base =>
    options.symlinks === undefined ? InMemory.layer({ ...options, tree: nested(files) }) : posixHostWith({ ...options }, files)
  const without = Effect.runSync(Effect.map(InMemory.make({ tree: nested(files) }), make))
  return { law, base: layer(options), own: [{ name: "options are ignored", of: () => without }] }
}

const subjects: ReadonlyArray<Subject> = [
  ...laws.map((law) => ({
    law,
    base: bases.find(([ability]) => law.needs.includes(ability))?.[1] ?? inMemory,
    own: []
  })),
  ...policyLaws.map(ofPolicy)
]

/** Builds the mutant of a filesystem, and of the ports that a law derives from it. */
const mutated = (base: Base, { of }: Mutant): Base =>
  Layer.provideMerge(
    Layer.effect(
      Bench,
      Effect.map(Bench, (bench) => ({ ...bench, derive: (port) => of(make(port)) }))
    ),
    decorate(of)(base)
  ) as Base

/** Tests whether the mutant breaks the law. On a slow machine a timeout counts only for mutants that hang. */
const breaks = ({ base, law }: Subject, mutant: Mutant): Effect.Effect<boolean, unknown> =>
  verdict(law).pipe(
    Effect.provideService(LawTimeout, "1 second"),
    Effect.provide(mutated(base, mutant), { local: true }),
    Effect.map((found) => found._tag === "Broken" && (mutant.hangs === true || found.error.expected !== "an end"))
  )

const words = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[a-z]{3,}?(?=s?\b)/g))

/** Sorts the candidates that share most words with the text to the front. */
const likeliest = <A>(about: string, all: ReadonlyArray<A>, nameOf: (one: A) => string): ReadonlyArray<A> => {
  const spoken = words(about)
  const likeness = (one: A): number => [...words(nameOf(one))].filter((word) => spoken.has(word)).length
  return all
    .map((one) => [likeness(one), one] as const)
    .sort(([a], [b]) => b - a)
    .map(([, one]) => one)
}

const some = <A>(all: ReadonlyArray<A>, holds: (one: A) => Effect.Effect<boolean, unknown>) =>
  Effect.gen(function* () {
    for (const one of all) if (yield* holds(one)) return true
    return false
  })

const without = <A>(all: ReadonlyArray<A>, holds: (one: A) => Effect.Effect<boolean, unknown>) =>
  Effect.filter(all, (one) => Effect.map(holds(one), (held) => !held))

describe("mutants", () => {
  it("have unique names", () => {
    const names = mutants.map(({ name }) => name)
    assert.deepStrictEqual(names, [...new Set(names)])
  })

  it.live(
    "include, for each law, a mutant that breaks the law",
    () =>
      Effect.gen(function* () {
        const unbroken = yield* without(subjects, (subject) =>
          some([...subject.own, ...likeliest(subject.law.name, mutants, ({ name }) => name)], (mutant) =>
            breaks(subject, mutant)
          )
        )
        assert.deepStrictEqual(
          unbroken.map(({ law }) => law.name),
          []
        )
      }),
    600_000
  )

  if (process.env["FS_ALGEBRA_SOAK"] === "1") {
    it.live(
      "are each found by a law",
      () =>
        Effect.gen(function* () {
          const uncaught = yield* without(mutants, (mutant) =>
            some(
              likeliest(mutant.name, subjects, ({ law }) => law.name),
              (subject) => breaks(subject, mutant)
            )
          )
          assert.deepStrictEqual(
            uncaught.map(({ name }) => name),
            []
          )
        }),
      600_000
    )

    it.live(
      "each break at most an eighth of the laws",
      () =>
        Effect.gen(function* () {
          const broad: Array<string> = []
          for (const mutant of mutants) {
            let count = 0
            for (const subject of subjects) if (yield* breaks(subject, mutant)) count++
            if (count > subjects.length / 8) broad.push(`${mutant.name}: ${count}`)
          }
          assert.deepStrictEqual(broad, [])
        }),
      7_200_000
    )
  }
})
