/** The work of an agent, end to end, on each kind of workspace. The dump of each workspace is resumed on every other kind. */
import { NodeServices } from "@effect/platform-node"
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describePodman, services } from "../backends/container/podman.ts"
import { begin, type Dumped, resume } from "./scenario.ts"
import { here, inContainers, type Kind } from "./workspaces.ts"

const dumps = new Map<Kind, Promise<Dumped>>()

/** Runs the first half of the scenario once per kind, and returns its dump. */
const dumpOf = (kind: Kind): Promise<Dumped> => {
  const known = dumps.get(kind)
  if (known !== undefined) return known
  const isHere = here.includes(kind)
  const made = Effect.runPromise(Effect.provide(begin(kind), isHere ? NodeServices.layer : services))
  dumps.set(kind, made)
  return made
}

/** Resumes the dumps of others on this kind. A workspace outside a session is filled again and again. */
const resumed = (kind: Kind, others: ReadonlyArray<Kind>) =>
  Effect.gen(function* () {
    const there = kind.isInSession ? undefined : yield* kind.open({})
    for (const other of others) yield* resume(kind, there, yield* Effect.promise(() => dumpOf(other)))
  }).pipe(Effect.scoped)

const others = (kind: Kind, kinds: ReadonlyArray<Kind>) => kinds.filter((other) => other !== kind)

describe("an agent", () => {
  for (const kind of here)
    it(`works, rolls back and dumps its session on ${kind.name}`, () => dumpOf(kind).then(() => undefined))
})

describe("a dump", () => {
  for (const kind of here) {
    it.live(`of ${here.map(({ name }) => name).join(", ")} is resumed on ${kind.name}, and the work continues`, () =>
      Effect.provide(resumed(kind, here), NodeServices.layer)
    )
  }
})

describePodman("with podman", () => {
  describe("an agent", () => {
    for (const kind of inContainers)
      it(`works, rolls back and dumps its session in ${kind.name}`, () => dumpOf(kind).then(() => undefined))
  })

  describe("a dump", () => {
    for (const kind of here) {
      it.live(`of either container is resumed on ${kind.name}`, () => Effect.provide(resumed(kind, inContainers), services))
    }
    for (const kind of inContainers) {
      it.live(`of every other kind is resumed in ${kind.name}`, () =>
        Effect.provide(resumed(kind, others(kind, [...here, ...inContainers])), services)
      )
    }
  })
})
