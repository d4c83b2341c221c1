import * as Effect from "effect/Effect"
import { laws, suite } from "../../src/testing/index.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, decorate, layer } from "../../src/filesystem/Filesystem.ts"
import { subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { wholly } from "../engine/wholly.ts"
import { declined } from "../../src/port/Request.ts"
import { programs } from "./filesystems.ts"

/** Returns one law in `every`, and all laws about changes in one step. */
const some = (every: number) => laws.filter(({ name }, index) => index % every === 0 || name.includes("in one step"))

/** A filesystem without links, because a change in one step does not resolve them. */
const whole = layer(Effect.map(InMemory.make(), (port) => wholly({ ...port, links: undefined })))

suite("changes in one step", whole, { programs })
suite(
  "changes in one step, some of them declined",
  layer(
    Effect.map(InMemory.make(), (port) => {
      const declining = (path: string): boolean => path.length % 2 === 0
      return wholly({ ...port, links: undefined }, ({ Edit, MakeDirectory, Move, Remove, Write }) => ({
        Write: (request) => (declining(request.path) ? declined : Write(request)),
        Edit: (request) => (declining(request.path) ? declined : Edit(request)),
        Remove: (request) => (declining(request.path) ? declined : Remove(request)),
        MakeDirectory: (request) => (declining(request.path) ? declined : MakeDirectory(request)),
        Move: (request) => (declining(request.path) ? declined : Move(request))
      }))
    })
  ),
  { programs: 20, laws: some(4) }
)
suite(
  "a subdirectory of changes in one step",
  decorate((self: Algebra) => Effect.flatMap(self.mkdir("work/shop"), () => subdirectory("work/shop")(self)))(whole),
  { programs: 20, laws: some(4) }
)
suite("traced changes in one step", decorate(traced)(whole), { programs: 0, laws: some(4) })
