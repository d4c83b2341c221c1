import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { exchange } from "../../src/history/exchange.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { file, goalOf, identities, link, look, lookIn, ordered, p, plant, plantIn, tree, trees } from "./exchanging.ts"

const runs = process.env["FS_ALGEBRA_SOAK"] === undefined ? 60 : 2000

describe("an exchange", () => {
  it.effect.prop(
    "in memory makes any tree into any other",
    [trees, trees],
    ([before, after]) =>
      Effect.gen(function* () {
        const port = yield* InMemory.make()
        yield* plantIn(port, before)
        yield* exchange(port, goalOf(before, after))
        assert.deepStrictEqual(yield* lookIn(port), ordered(after))
      }),
    { arbitrary: { runs } }
  )

  it.live.prop(
    "on a host makes any tree into any other, and leaves what is the same in both as it was",
    [trees, trees],
    ([before, after]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = join(yield* fastDirectory, "root")
          plant(root, before)
          const old = identities(root)
          const port = yield* PosixHost.make({ root })
          yield* exchange(port, goalOf(before, after))
          assert.deepStrictEqual(look(root), ordered(after))
          const now = identities(root)
          for (const path of common(before, after)) assert.strictEqual(now.get(path), old.get(path), path)
        })
      ),
    { arbitrary: { runs } }
  )
})
