/** A program that runs every operation on a store and prints the visible results. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { collect } from "../../../src/history/git/collect.ts"
import { open } from "../../../src/history/git/store.ts"
import { commit } from "./commits.ts"

const [, , directory = ""] = process.argv

const ids = ["1", "2", "3"].map((digit) => `${digit.repeat(8)}-0000-4000-8000-000000000000`)

const run = Effect.gen(function* () {
  const store = yield* open(directory)
  for (const [i, id] of ids.entries()) {
    const tree = {
      "a.txt": `${i}\r\n`.repeat(1000),
      ".gitattributes": "* text=auto filter=evil diff=evil\n",
      "sub/.gitignore": "*\n"
    }
    yield* store.withoutRemoval(Effect.flatMap(commit(store, tree, i), (made) => store.snapshots.put(id, made)))
  }
  yield* store.snapshots.remove(ids[1]!)
  const outcome = yield* collect(store, { maxPacks: 1, maxWaste: 0 })
  const list = yield* store.snapshots.list
  const trees = yield* Effect.forEach(list, (each) => store.reader.object(each.commit))
  const [blob] = yield* Stream.runCollect(
    store.reader.stream((yield* store.git.run(["rev-parse", `${list[0]!.commit}:a.txt`])).stdout.toString().trim())
  )
  const { objects, packs, snapshots } = yield* store.stats
  return {
    outcome: outcome.outcome,
    list,
    trees: trees.map(({ body }) => body.toString()),
    blob: Buffer.from(blob!).toString(),
    objects,
    packs,
    snapshots
  }
})

process.stdout.write(JSON.stringify(await Effect.runPromise(Effect.scoped(run))))
