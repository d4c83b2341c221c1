/** Kills processes at each call of a store, and looks at what they leave. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import { start } from "../durability/children.ts"
import { isSoak } from "../runs.ts"
import { inMemory } from "../scratch.ts"
import { type Moment, moments, names, perform, prepare } from "./killedOperations.ts"
import type { Place } from "./stores/chain.ts"
import { layerOf } from "./stores/places.ts"
import { contentsOf, open, type StoreServices } from "./tapped.ts"

export interface Orders {
  readonly place: Place
  readonly workspace: string
  readonly operation: string
  readonly nth: number
  readonly moment: Moment
}

const cache = join(inMemory(), "compiled-killed")

/** Runs the process to its end. Returns whether it has answered, and whether it was killed. */
const runChild = (orders: Orders, isBundled: boolean) =>
  Effect.promise(async () => {
    const child = start("../repository/killedWriter.ts", cache, isBundled)
    child.say(orders)
    const { errors, signal } = await child.ended
    const isAnswered = child.said().includes("done")
    assert.isTrue(isAnswered || signal === "SIGKILL", errors)
    return { isAnswered, isKilled: signal === "SIGKILL" }
  })

/** Reads the files and snapshots of a workspace as another program would, or returns "absent". */
const look = (stores: StoreServices, workspace: string) =>
  Effect.gen(function* () {
    if ((yield* Context.get(stores, HeadStore).get(workspace)) === undefined) return "absent"
    const { fs, snapshots } = yield* open(stores, { workspace })
    const files = yield* contentsOf(fs)
    const taken = (yield* snapshots.list).map(({ tag }) => tag ?? "").sort()
    yield* Effect.provide(Repository.verify(workspace), stores)
    return JSON.stringify([files, taken])
  }).pipe(Effect.scoped)

let count = 0

/** Declares the tests of a store. Outside the soak, a third of the operations runs, and one process in `share` is killed. */
export const killedAtEachCall = (
  name: string,
  makePlace: () => Promise<Place>,
  { isBundled = true, share = 40 }: { readonly isBundled?: boolean; readonly share?: number } = {}
): void => {
  describe(`a process on a store ${name} that is killed at any call leaves the old tree or the new one:`, () => {
    let place: Place
    beforeAll(async () => {
      place = await makePlace()
    })

    let turn = 0
    for (const operation of names.filter((_, i) => isSoak || i % 3 === 0)) {
      it.live(
        operation,
        () =>
          Effect.gen(function* () {
            const stores = (yield* Layer.build(Layer.fresh(layerOf(place)))) as StoreServices
            const heads = Context.get(stores, HeadStore)
            const fresh = Effect.gen(function* () {
              const workspace = `killed ${count++}`
              if (operation !== names[0]) yield* Effect.scoped(Effect.flatMap(open(stores, { workspace }), prepare))
              return workspace
            })
            const both = (workspace: string) => Effect.all([look(stores, workspace), look(stores, `${workspace} fork`)])
            /** Removes the workspaces, so that a garbage collection in the next process has only few blobs to look at. */
            const remove = (workspace: string) =>
              Effect.forEach(
                [workspace, `${workspace} fork`],
                (name) =>
                  Effect.flatMap(heads.get(name), (head) => (head === undefined ? Effect.void : heads.delete(name, head))),
                { discard: true }
              )
            const whole = yield* fresh
            const old = yield* both(whole)
            const calls = yield* Effect.scoped(perform(operation, stores, whole, -1, "after", Effect.void))
            const changed = yield* both(whole)
            assert.isAbove(calls, 1)
            yield* remove(whole)
            yield* Effect.provide(Repository.collect({ grace: "0 millis" }), stores)

            let killed = 0
            for (let nth = 1; nth <= calls; nth++) {
              for (const moment of moments) {
                if (!isSoak && turn++ % share !== 0) continue
                const workspace = yield* fresh
                const { isAnswered, isKilled } = yield* runChild({ place, workspace, operation, nth, moment }, isBundled)
                if (isKilled) killed++
                const found = yield* both(workspace)
                const at = `killed ${moment} call ${nth} of ${calls}`
                found.forEach((tree, i) => {
                  if (isAnswered || tree !== old[i]) assert.strictEqual(tree, changed[i], at)
                })
                // Another program goes on, and a garbage collection loses nothing.
                yield* Effect.scoped(
                  Effect.flatMap(open(stores, { workspace }), ({ fs }) => fs.write("later", "1", { mode: "create" }))
                )
                yield* Effect.provide(Repository.collect({ grace: "0 millis" }), stores)
                const after = yield* look(stores, workspace)
                assert.include(after, '"later":"1"', at)
                yield* remove(workspace)
              }
            }
            if (isSoak) {
              console.log(`${name}, ${operation}: ${killed} processes were killed at ${calls} calls`)
              assert.isAbove(killed, calls)
            }
          }).pipe(Effect.scoped),
        1_800_000
      )
    }
  })
}
