/** Runs the laws and random programs on buckets of two servers. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { laws, policySuite, suite } from "../../../src/testing/index.ts"
import { Filesystem } from "../../../src/filesystem/Filesystem.ts"
import { layer } from "../../../src/filesystem/Filesystem.ts"
import { plant } from "../../../src/testing/Files.ts"
import { isSoak, runs } from "../../runs.ts"
import { describeMoto, describeRadosgw, freshPrefix, layerOn, moto, openAt, radosgw } from "./servers.ts"

/** A program takes about a second on a server. */
const programs = isSoak ? 1000 : runs(20)

/** Returns one law in `every`. A law takes half a second on a server, so only the soak runs all laws. */
const some = (every: number) => laws.filter((_, index) => isSoak || index % every === 0)

/** The laws that only a bucket with metadata must keep. */
const ofMetadata = laws.filter(({ needs }) => needs.some((ability) => ability === "links" || ability === "attributes"))

describeMoto("on moto", () => {
  suite("Bucket", layerOn(moto), { laws: some(24), programs, links: "downwards" })
  suite("Bucket with metadata", layerOn(moto, { metadata: true }), {
    laws: ofMetadata.filter((_, index) => isSoak || index % 8 === 0),
    programs: runs(12),
    links: "downwards"
  })
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
  suite("Bucket", layerOn(radosgw), { laws: some(10), programs, links: "downwards" })
})
