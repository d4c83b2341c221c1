/** Runs the table of tool calls on a bucket of two servers. The metadata keeps links and modes, which many rows need. */
import * as Effect from "effect/Effect"
import { make } from "../../src/filesystem/Filesystem.ts"
import { plant } from "../../src/testing/Files.ts"
import { describeMoto, describeRadosgw, freshPrefix, moto, openAt, radosgw, type Server } from "../backends/bucket/servers.ts"
import type { Ground } from "./everywhereRun.ts"
import { runTables } from "./everywhereTables.ts"

const bucketOn = (name: string, started: () => Promise<Server>): Ground => ({
  name: `a bucket on ${name}`,
  birthless: true,
  hasTimelessRoot: true,
  make: (files) =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(started)
      const port = yield* openAt(server, { prefix: freshPrefix(), metadata: true })
      return yield* Effect.as(plant(port, files), make(port))
    }).pipe(Effect.orDie)
})

describeMoto("with moto", () => runTables(bucketOn("moto", moto), 24))
describeRadosgw("with radosgw", () => runTables(bucketOn("radosgw", radosgw), 24))
