/** Leaves over buckets of S3 servers. */
import { assert, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import {
  credentials,
  describeMoto,
  describeRadosgw,
  freshPrefix,
  keysBelow,
  moto,
  putForeign,
  radosgw
} from "../backends/bucket/servers.ts"
import { asked, read, remove, write } from "./leafBench.ts"
import { plainAnswers, plainRequests, through, workDone, workThroughBranch } from "./leafElsewhere.ts"

for (const [name, describeServer, start] of [
  ["moto", describeMoto, moto],
  ["radosgw", describeRadosgw, radosgw]
] as const) {
  describeServer(`s3FS on ${name}`, () => {
    const ground = Effect.map(Effect.promise(start), (server) => ({ server, keyPrefix: freshPrefix() }))

    it.live("answers every operation of a Branch, and stores ordinary objects", () =>
      Effect.gen(function* () {
        const { keyPrefix, server } = yield* ground
        const leaf = Leaf.s3FS({ ...server, keyPrefix, metadata: true }, { credentials, extended: true })
        assert.deepStrictEqual(yield* through(leaf, workThroughBranch), workDone)
        const keys = yield* Effect.promise(() => keysBelow(server, keyPrefix))
        assert.deepStrictEqual(
          keys.filter((key) => !key.endsWith("/")),
          ["docs/plan.md", "docs/ü notes.txt", "large.bin", "moved.md"]
        )
      })
    )

    it.live("answers the plain requests of a journal with the same kinds of faults as every leaf", () =>
      Effect.gen(function* () {
        const { keyPrefix, server } = yield* ground
        const leaf = Leaf.s3FS({ ...server, keyPrefix, streamingThreshold: 4096, chunkSize: 1000 }, { credentials })
        assert.deepStrictEqual(yield* through(leaf, plainRequests), plainAnswers)
      })
    )

    it.live("without permissions stores and deletes nothing, not even to test the store", () =>
      Effect.gen(function* () {
        const { keyPrefix, server } = yield* ground
        yield* Effect.promise(() => putForeign(server, `${keyPrefix}a`, "theirs"))
        const readable = Leaf.s3FS({ ...server, keyPrefix, allowWrite: false, allowDelete: false }, { credentials })
        const kinds = yield* through(
          readable,
          Effect.flatMap(asked, ({ ask }) =>
            Effect.forEach([write("b", "x"), remove("a"), read("a")], (request) =>
              Effect.map(ask(request), (answer) => (answer._tag === "FileFault" ? answer.faultKind : answer._tag))
            )
          )
        )
        assert.deepStrictEqual(kinds, ["AccessDenied", "AccessDenied", "FileContent"])
        assert.deepStrictEqual(yield* Effect.promise(() => keysBelow(server, keyPrefix)), ["a"])
      })
    )

    it.live("takes its keys from the configuration, and fails with Unavailable for a bucket that does not exist", () =>
      Effect.gen(function* () {
        const { keyPrefix, server } = yield* ground
        const env = { AWS_ACCESS_KEY_ID: "TESTKEY", AWS_SECRET_ACCESS_KEY: "TESTSECRET" }
        const configured = Layer.provide(
          Leaf.s3FS({ ...server, keyPrefix }),
          ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
        )
        yield* through(
          configured,
          Effect.flatMap(asked, ({ ask }) => ask(write("a", "x")))
        )
        assert.deepStrictEqual(yield* Effect.promise(() => keysBelow(server, keyPrefix)), ["a"])
        const missing = Leaf.s3FS({ ...server, bucket: "no-such-bucket" }, { credentials })
        const error = yield* Effect.flip(Effect.scoped(Layer.build(Layer.provide(missing, Journal.layerMemory))))
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, "no-such-bucket")
      })
    )
  })
}
