/** Runs the laws and random programs on SFTP servers. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Filesystem, layer } from "../../../src/filesystem/Filesystem.ts"
import { laws, policySuite, suite } from "../../../src/testing/index.ts"
import { plant } from "../../../src/testing/Files.ts"
import { directory } from "../../conformance/filesystems.ts"
import { isSoak, runs } from "../../runs.ts"
import { channel, describeSftp, freshOn, openPiped } from "./servers.ts"

describeSftp("over a pipe", () => {
  suite("Sftp", freshOn(openPiped), { programs: runs(100) })
  policySuite("Sftp", ({ symlinks, ...options }, files) =>
    symlinks !== undefined
      ? undefined
      : Layer.unwrap(
          Effect.gen(function* () {
            const root = yield* directory
            yield* Effect.flatMap(Filesystem, (fs) => plant(fs.port, files)).pipe(
              Effect.provide(layer(openPiped(root))),
              Effect.orDie
            )
            return layer(openPiped(root, options))
          })
        )
  )
})

// The server's code is the same as over the pipe. So one law in ten suffices to show that encryption and flow control change
// nothing.
describeSftp("through sshd", () => {
  suite(
    "Sftp",
    freshOn((root) => openPiped(root, {}, {}, channel)),
    {
      laws: laws.filter((_, index) => isSoak || index % 10 === 0),
      programs: runs(20)
    }
  )
})
