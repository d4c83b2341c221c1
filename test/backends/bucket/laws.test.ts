/** Runs the laws and random programs on a bucket of two servers. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { policySuite, suite } from "../../../src/testing/index.ts"
import { Filesystem } from "../../../src/filesystem/Filesystem.ts"
import { layer } from "../../../src/filesystem/Filesystem.ts"
import { plant } from "../../../src/testing/Files.ts"
import { runs } from "../../runs.ts"
import { describeMoto, describeRadosgw, freshPrefix, layerOn, moto, openAt, radosgw } from "./servers.ts"

const programs = runs(100)

describeMoto("on moto", () => {
  suite("Bucket", layerOn(moto), { programs, links: "downwards" })
  policySuite("Bucket", ({ symlinks, ...options }, files) =>
    symlinks !== undefined
      ? undefined
      : Layer.unwrap(
          Effect.gen(function* () {
            const server = yield* Effect.promise(moto)
            const prefix = freshPrefix()
            yield* Effect.flatMap(Filesystem, (fs) => plant(fs.port, files)).pipe(
              Effect.provide(layer(openAt(server, { prefix }))),
              Effect.orDie
            )
            return layer(openAt(server, { prefix, ...options }))
          })
        )
  )
})

describeRadosgw("on radosgw", () => {
  suite("Bucket", layerOn(radosgw), { programs, links: "downwards" })
})
