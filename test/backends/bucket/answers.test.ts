/** Tests Bucket with answers that are cut, shortened or slow, at each request of every operation. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isDeepStrictEqual } from "node:util"
import type { Timings } from "../../../src/backends/bucket/client.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { isSoak } from "../../runs.ts"
import { type Case, cases, plantTree, sizes, type Tree, treeOf, partsBelow } from "./operations.ts"
import { type Fate, proxyTo, type Request } from "./proxy.ts"
import { describeRadosgw, freshPrefix, openAt, radosgw } from "./servers.ts"

const timings = { attempts: 4, requestMillis: 30_000, pauseMillis: 1 }

/** Runs an operation on a fresh tree. `fateOf` decides about its requests, which are numbered from 1. */
const run = (one: Case, fateOf: (nth: number, request: Request) => Fate, tuning: Partial<Timings> = {}) =>
  Effect.gen(function* () {
    const server = yield* Effect.promise(radosgw)
    const prefix = freshPrefix()
    yield* Effect.promise(() => plantTree(server, prefix))
    const before = yield* Effect.promise(() => treeOf(server, prefix))
    const proxy = yield* proxyTo(server.endpoint)
    const place = { ...server, endpoint: proxy.endpoint }
    const fs = make(yield* openAt(place, { prefix, metadata: true }, { timings: { ...timings, ...tuning }, sizes }))
    let requests = 0
    proxy.fate = (request) => fateOf(++requests, request)
    const result = yield* Effect.result(one.run(fs))
    proxy.fate = () => "pass"
    const found = yield* Effect.promise(() => treeOf(server, prefix))
    const parts = yield* Effect.promise(() => partsBelow(server, prefix))
    yield* fs.write("later.txt", "later\n")
    assert.strictEqual(yield* fs.readString("later.txt"), "later\n")
    return { before, found, requests, result, parts }
  }).pipe(Effect.scoped)

const known = new Map<Case, { readonly after: Tree; readonly requests: number }>()

/** Returns the tree that an operation leaves, and the number of its requests. */
const undisturbed = (one: Case) =>
  Effect.gen(function* () {
    if (!known.has(one)) {
      const { found, requests } = yield* run(one, () => "pass")
      known.set(one, { after: found, requests })
    }
    return known.get(one)!
  })

const forEachCase = (check: (one: Case) => Effect.Effect<unknown, unknown>) =>
  Effect.forEach(cases, check, { concurrency: 6, discard: true })

/** Gives the first attempt of each request the fate. Further attempts pass. */
const eachOnce = (fate: Fate) => {
  const seen = new Set<string>()
  return (_: number, { headers, method, url }: Request): Fate => {
    const key = `${method} ${url} ${headers["x-amz-meta-fs-algebra-write"] ?? ""} ${headers["range"] ?? ""}`
    return seen.has(key) ? "pass" : (seen.add(key), fate)
  }
}

describeRadosgw("every operation of Bucket", () => {
  for (const [fate, what] of [
    ["headless", "ends within its head"],
    ["cut", "ends within its body"]
  ] as const) {
    it.live(
      `takes effect once if the first answer to each request ${what}`,
      () =>
        forEachCase((one) =>
          Effect.gen(function* () {
            const { after } = yield* undisturbed(one)
            const { found, result, parts } = yield* run(one, eachOnce(fate))
            const where = `${one.name}: ${JSON.stringify(result).slice(0, 300)}`
            assert.isTrue(Result.isSuccess(result), where)
            if (one.answer !== undefined) assert.deepStrictEqual(Result.getOrUndefined(result), one.answer, where)
            assert.deepStrictEqual(found, after, where)
            assert.deepStrictEqual(parts, [], where)
          })
        ),
      120_000
    )
  }

  it.live(
    "succeeds if all answers arrive in small pieces",
    () =>
      forEachCase((one) =>
        Effect.gen(function* () {
          const { after } = yield* undisturbed(one)
          const { found, result } = yield* run(one, () => "trickle")
          assert.isTrue(Result.isSuccess(result), one.name)
          if (one.answer !== undefined) assert.deepStrictEqual(Result.getOrUndefined(result), one.answer)
          assert.deepStrictEqual(found, after, one.name)
        })
      ),
    120_000
  )

  for (const [fate, what, tags, tuning] of [
    ["short", "has half of its body and says that this is all", ["IoError", "Unavailable"], {}],
    ["stall", "stops in the middle until the timeout", ["Timeout"], { attempts: 1, requestMillis: 1000 }]
  ] as const) {
    it.live(
      `returns no wrong result and leaves the old, the new or a documented partial tree if one answer ${what}`,
      () =>
        forEachCase((one) =>
          Effect.gen(function* () {
            const { after, requests } = yield* undisturbed(one)
            const chosen = Array.from({ length: requests }, (_, index) => index + 1)
            let failed = 0
            yield* Effect.forEach(
              chosen.filter((nth) => isSoak || nth < 4 || nth % 5 === 0),
              (nth) =>
                Effect.gen(function* () {
                  const { before, found, result } = yield* run(one, (at) => (at === nth ? fate : "pass"), tuning)
                  const where = `${one.name}, request ${nth}: ${JSON.stringify(result).slice(0, 300)}`
                  if (Result.isSuccess(result)) {
                    if (one.answer !== undefined) assert.deepStrictEqual(result.success, one.answer, where)
                    return assert.deepStrictEqual(found, after, where)
                  }
                  failed++
                  const { _tag } = result.failure as { readonly _tag: string }
                  assert.isTrue((tags as ReadonlyArray<string>).includes(_tag), where)
                  const allowed = [after, ...(one.between?.(before, after) ?? [])]
                  if (!allowed.some((tree) => isDeepStrictEqual(tree, found))) assert.deepStrictEqual(found, before, where)
                }),
              { concurrency: 6, discard: true }
            )
            // A shortened answer without a body loses nothing.
            if (fate === "stall") assert.isAbove(failed, 0, one.name)
          })
        ),
      120_000
    )
  }
})
