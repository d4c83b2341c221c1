/** Tests Bucket on a server that is killed and restarted in the middle of every operation. */
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { isDeepStrictEqual } from "node:util"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { isSoak } from "../../runs.ts"
import { type Case, cases, plantTree, sizes, type Tree, treeOf, partsBelow } from "./operations.ts"
import { type Gate, proxyTo } from "./proxy.ts"
import { aws, describeRadosgw, freshPrefix, isBack, killRadosgw, openAt, radosgw, urlOf } from "./servers.ts"

const stages = ["answer", "work", "request"] as const

/** A client that repeats lost requests until the server is back, and one that repeats no request. */
const clients = {
  patient: { attempts: 14, pauseMillis: 20 },
  impatient: { attempts: 1, pauseMillis: 20 }
}

interface Outcomes {
  failed: number
  acknowledged: number
}

describeRadosgw("Bucket on a server that is killed and restarted", () => {
  /** Starts the operations with both clients, kills the server at the n-th request of each, and checks what each has left. */
  const round = (nth: number, stage: Gate["stage"], outcomes: Outcomes) =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(radosgw)
      const all = Object.entries(clients).flatMap(([client, timings], which) =>
        cases.map((one, index) => ({ client, one, timings, isChosen: isSoak || (nth + index) % 2 === which }))
      )
      const started = all.filter(({ isChosen, one }) => isChosen && nth <= undisturbed.get(one)!.requests)
      let left = started.length
      const everyoneIsThere = yield* Deferred.make<void>()
      const arrive = Effect.suspend(() => (--left === 0 ? Deferred.succeed(everyoneIsThere, undefined) : Effect.void))
      const isKilled = yield* Deferred.make<void>()
      const running = yield* Effect.forEach(
        started,
        ({ client, one, timings }) =>
          Effect.gen(function* () {
            const prefix = freshPrefix()
            yield* Effect.promise(() => plantTree(server, prefix))
            const before = yield* Effect.promise(() => treeOf(server, prefix))
            const proxy = yield* proxyTo(server.endpoint)
            const place = { ...server, endpoint: proxy.endpoint }
            const fs = make(yield* openAt(place, { prefix, metadata: true }, { timings, sizes }))
            let count = 0
            let hasArrived = false
            const arriveOnce = Effect.suspend(() => (hasArrived ? Effect.void : ((hasArrived = true), arrive)))
            proxy.gate = () => {
              if (++count !== nth) return undefined
              return {
                stage,
                opens: () => Effect.runPromise(Effect.andThen(arriveOnce, Deferred.await(isKilled)))
              }
            }
            const fiber = yield* Effect.forkScoped(Effect.ensuring(Effect.result(one.run(fs)), arriveOnce))
            return { client, one, prefix, before, fs, fiber }
          }),
        { concurrency: 8 }
      )
      // These writes are acknowledged before the kill.
      const log = freshPrefix()
      const acknowledged: Array<number> = []
      const someAcknowledged = yield* Deferred.make<void>()
      const writer = make(yield* openAt(server, { prefix: log }, { timings: clients.impatient }))
      const writing = yield* Effect.forkChild(
        Effect.ignore(
          Effect.forEach(
            Array.from({ length: 10_000 }, (_, index) => index),
            (index) =>
              Effect.tap(writer.write(`${index}`, `${index}`), () =>
                acknowledged.push(index) === 5 ? Deferred.succeed(someAcknowledged, undefined) : Effect.void
              )
          )
        )
      )
      yield* Deferred.await(everyoneIsThere)
      yield* Deferred.await(someAcknowledged)
      if (stage === "work") {
        // The requests arrive, and the kill comes while the server handles some of them.
        yield* Deferred.succeed(isKilled, undefined)
        yield* Effect.sleep(Math.floor(Math.random() * 10))
        killRadosgw(server)
      } else {
        killRadosgw(server)
        yield* Deferred.succeed(isKilled, undefined)
      }
      const results = yield* Effect.forEach(running, ({ fiber }) => Fiber.join(fiber))
      yield* Fiber.join(writing)
      yield* Effect.promise(() => isBack(server))

      for (const index of acknowledged) {
        const answer = yield* Effect.promise(() => aws.fetch(urlOf(server, `${log}${index}`)))
        assert.strictEqual(yield* Effect.promise(() => answer.text()), `${index}`)
      }
      yield* Effect.forEach(
        running,
        ({ before, client, fs, one, prefix }, index) =>
          Effect.gen(function* () {
            const result = results[index]!
            const where = `${client} ${one.name}, ${stage} ${nth}: ${JSON.stringify(result).slice(0, 300)}`
            const { after } = undisturbed.get(one)!
            const found = yield* Effect.promise(() => treeOf(server, prefix))
            if (Result.isSuccess(result)) {
              outcomes.acknowledged++
              assert.deepStrictEqual(found, after, where)
              assert.deepStrictEqual(yield* Effect.promise(() => partsBelow(server, prefix)), [], where)
            } else {
              outcomes.failed++
              assert.strictEqual(client, "impatient", where)
              assert.strictEqual((result.failure as { readonly _tag: string })._tag, "Unavailable", where)
              const allowed = [after, ...(one.between?.(before, after) ?? [])]
              if (!allowed.some((tree) => isDeepStrictEqual(tree, found))) assert.deepStrictEqual(found, before, where)
            }
            // The same client works again, at the latest when its connections to the killed server are closed.
            yield* Effect.retry(fs.write("later.txt", "later\n"), { times: 5 })
            assert.strictEqual(yield* fs.readString("later.txt"), "later\n", where)
          }),
        { concurrency: 4, discard: true }
      )
    }).pipe(Effect.scoped)

  /** The number of requests of each operation, and the tree that it leaves. */
  const undisturbed = new Map<Case, { readonly after: Tree; readonly requests: number }>()

  it.live(
    "leaves the old, the new or a documented partial tree after each operation, and loses no acknowledged write",
    () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(radosgw)
        yield* Effect.forEach(
          cases,
          (one) =>
            Effect.gen(function* () {
              const prefix = freshPrefix()
              yield* Effect.promise(() => plantTree(server, prefix))
              const proxy = yield* proxyTo(server.endpoint)
              const fs = make(yield* openAt({ ...server, endpoint: proxy.endpoint }, { prefix, metadata: true }, { sizes }))
              let requests = 0
              proxy.fate = () => (requests++, "pass")
              yield* one.run(fs)
              undisturbed.set(one, { after: yield* Effect.promise(() => treeOf(server, prefix)), requests })
            }).pipe(Effect.scoped),
          { concurrency: 4, discard: true }
        )
        const outcomes = { failed: 0, acknowledged: 0 }
        const most = Math.max(...[...undisturbed.values()].map(({ requests }) => requests))
        assert.isAbove(most, 5)
        let rounds = 0
        // The soak stops each request of each operation at each stage. Few operations have more than 8 requests.
        for (let nth = 1; nth <= most; nth += isSoak || nth < 8 ? 1 : 3) {
          rounds++
          for (const stage of isSoak ? stages : [stages[rounds % stages.length]!]) yield* round(nth, stage, outcomes)
        }
        assert.isAbove(outcomes.failed, 0)
        assert.isAbove(outcomes.acknowledged, 0)
      }),
    600_000
  )
})
