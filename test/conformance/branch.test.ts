import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { laws, suite } from "../../src/testing/index.ts"
import { type Algebra, decorate, make } from "../../src/filesystem/Filesystem.ts"
import { subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Law, LawTimeout, verdict } from "../../src/testing/Law.ts"
import { overHost, overMemory, readOnlyBranch, thirteen } from "./branches.ts"
import { beyond, reasonFor } from "./branchThirteen.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"
const programs = isSoak ? 2000 : 30

/** A branch has no key for a name that no path can express, so it cannot move such an entry away before removing it. */
const excluded = "a recursive delete removes names that no path can express"

const kept = laws.filter(({ name }) => name !== excluded)

/** Returns one law in `every`, the same laws in each run. */
const some = (all: ReadonlyArray<Law>, every: number): ReadonlyArray<Law> => all.filter((_, index) => index % every === 0)

suite("Branch over memory", overMemory, { programs, laws: kept })
suite("Branch over a host", overHost, { programs, laws: isSoak ? kept : some(kept, 3) })

suite(
  "a subdirectory of a Branch",
  decorate((self: Algebra) => Effect.flatMap(self.mkdir("work/shop"), () => subdirectory("work/shop")(self)))(overMemory),
  { programs: 20, laws: some(kept, 3) }
)
suite("readOnly over a Branch", readOnlyBranch, { programs: 0, laws: some(kept, 2) })
suite("traced over a Branch", decorate(traced)(overMemory), { programs: 0, laws: some(kept, 8) })
suite(
  "a Branch below an overlay",
  decorate((lower: Algebra) => Effect.map(InMemory.make(), (upper) => overlay(make(upper))(lower)))(overMemory),
  { programs: 20, laws: some(kept, 4) }
)
suite(
  "a Branch above an overlay",
  decorate((upper: Algebra) => Effect.map(InMemory.make(), (lower) => overlay(upper)(make(lower))))(overMemory),
  { programs: 20, laws: some(kept, 4) }
)

suite("Branch with only the thirteen basic kinds of entry", thirteen, {
  programs: 0,
  laws: kept.filter((law) => reasonFor(law) === undefined)
})

describe("Branch with only the thirteen basic kinds of entry", () => {
  it("has at least one skipped law for each reason", () => {
    for (const [reason] of beyond)
      assert.isTrue(
        kept.some((law) => reasonFor(law) === reason),
        reason
      )
  })

  // Omit the port laws: some of them wait for a write to start, which never happens on a read-only port.
  const skipped = kept.filter((law) => law.kind !== "port" && reasonFor(law) !== undefined)

  it.live("holds none of the skipped laws that are not about the port, so each skip is necessary", () =>
    Effect.gen(function* () {
      for (const law of skipped) {
        const found = yield* Effect.provideService(
          Effect.provide(verdict(law), thirteen, { local: true }),
          LawTimeout,
          "10 seconds"
        )
        assert.notStrictEqual(found._tag, "Held", law.name)
      }
    })
  )
})
