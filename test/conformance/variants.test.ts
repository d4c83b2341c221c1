/**
 * Runs the laws on variants of filesystems that other files test: with other options, below a combinator, or on another
 * backend. `npm test` omits this file.
 */
import { NodeFileSystem } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { decorate, Filesystem } from "../../src/filesystem/Filesystem.ts"
import { fromFileSystem } from "../../src/filesystem/Platform.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { faulty } from "../../src/testing/Faults.ts"
import { plant } from "../../src/testing/Files.ts"
import { laws, MockFilesystem, policySuite, suite } from "../../src/testing/index.ts"
import { simulated } from "../backends/windows/windowsHost.ts"
import { decorated, directory, inSession, nodeFileSystem, passThrough, posixHost, programs } from "./filesystems.ts"

for (const [name, layer] of passThrough) suite(`${name} over InMemory`, layer, { programs })
suite("faulty without a plan", decorated(faulty([])), { programs })
suite("MockFilesystem without answers", MockFilesystem.layer(), { programs })
suite("InMemory in a session, ignoring case", inSession({ caseInsensitive: true }), { programs })
suite("recorded PosixHost", Layer.provide(decorate(Journal.record())(posixHost), Journal.layerMemory), { programs })
suite(
  "WindowsHost without long paths, on a disk with the rules of older systems",
  simulated({ useLongPaths: false }, { deletes: "pending", hardlinks: false }),
  { programs: 0, laws: laws.filter(({ name }) => name !== "a name of 255 characters can be used") }
)
suite("fromFileSystem over Node", nodeFileSystem, { programs })
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
