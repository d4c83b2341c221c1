/** A process that extends a chain of commits until it is killed. */
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { flushCompileCache } from "node:module"
import { createInterface } from "node:readline"
import * as BlobStore from "../../../src/repository/BlobStore.ts"
import * as HeadStore from "../../../src/repository/HeadStore.ts"
import type { Link, Orders } from "./chain.ts"
import { layerOf } from "./places.ts"

const workspace = "shared/Ä chain"

const say = (text: string): Effect.Effect<void> =>
  Effect.callback<void>((resume) => void process.stdout.write(`${text}\n`, () => resume(Effect.void)))

const extend = ({ fibers, name, place }: Orders) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(layerOf(place))
    const blobs = Context.get(context, BlobStore.BlobStore)
    const heads = Context.get(context, HeadStore.HeadStore)
    const commit = (author: string, weight: string) =>
      Effect.gen(function* () {
        const before = yield* heads.get(workspace)
        const link: Link = { before: before?.root ?? null, author, weight }
        const root = yield* blobs.put(new TextEncoder().encode(JSON.stringify(link)))
        const sequence = (before?.sequence ?? 0) + 1
        const next = { root, sequence, author, message: "", committedAt: yield* DateTime.now }
        if (yield* heads.compareAndSet(workspace, before, next)) yield* say(`${sequence} ${author}`)
      })
    const forever = (fiber: number) =>
      Effect.gen(function* () {
        for (let n = 0; ; n++) {
          // After a failure it is unknown whether the commit was made, so the next commit has another author.
          yield* Effect.catchIf(
            commit(`${name}:${fiber}:${n}`, "x".repeat((n % 7) * 10_000)),
            ({ reason }) => reason === "unavailable",
            () => Effect.sleep("20 millis")
          )
        }
      })
    yield* Effect.forEach(
      Array.from({ length: fibers }, (_, n) => n),
      forever,
      { concurrency: "unbounded", discard: true }
    )
  })

const lines = createInterface({ input: process.stdin }).on("close", () => process.exit())
lines.once("line", (line) => void Effect.runPromise(Effect.scoped(Effect.orDie(extend(JSON.parse(line) as Orders)))))
flushCompileCache()
process.stdout.write("!")
