import { NodeFileSystem } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { fromFileSystem } from "../../src/filesystem/Platform.ts"
import { plant } from "../../src/testing/Files.ts"
import { laws, policySuite, suite } from "../../src/testing/index.ts"
import { directory, nodeFileSystem, programs, thereAndBack } from "./filesystems.ts"

suite("fromFileSystem over Node", nodeFileSystem, { programs })
/** A confined FileSystem allows no link to the outside, so this law cannot be set up. */
const confined = laws.filter(({ name }) => name !== "copy of a tree keeps links that lead out")

suite("fromFileSystem over toFileSystem over InMemory", thereAndBack, { programs, laws: confined, links: "downwards" })
policySuite("fromFileSystem over Node", ({ symlinks, ...options }, files) =>
  symlinks === undefined
    ? Layer.unwrap(
        Effect.gen(function* () {
          const root = yield* directory
          const layer = Layer.provide(fromFileSystem({ root }), NodeFileSystem.layer)
          yield* Effect.flatMap(Filesystem, (fs) => plant(fs.port, files)).pipe(Effect.provide(layer), Effect.orDie)
          return Layer.provide(fromFileSystem({ root, ...options }), NodeFileSystem.layer)
        })
      )
    : undefined
)
