import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { plant } from "../../src/testing/Files.ts"
import { policySuite, suite } from "../../src/testing/index.ts"
import { directory, linkedRoot, posixHost, programs } from "./filesystems.ts"

suite("PosixHost", posixHost, { programs })
suite("PosixHost at a root that is a link", linkedRoot, { programs: 0 })
policySuite("PosixHost", (options, files) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.flatMap(Filesystem, (fs) => plant(fs.port, files)).pipe(Effect.provide(PosixHost.layer({ root })), Effect.orDie)
      return PosixHost.layer({ root, ...options })
    })
  )
)
