import { afterAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import type { BlobStore } from "../../src/repository/BlobStore.ts"
import type { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { suite } from "../../src/testing/index.ts"
import { isSoak, randomPrograms, runs } from "../runs.ts"
import { clean, scratch } from "../durability/children.ts"

const over = <E>(stores: Layer.Layer<BlobStore | HeadStore, E>) =>
  Layer.provide(Repository.layer({ workspace: "laws" }), Layer.orDie(stores))

const programs = randomPrograms(runs(60), 2000)

suite("Repository over memory", over(Stores.layerMemory), programs)

afterAll(clean)

// The laws of a filesystem do not depend on the store, which has laws of its own. So only the soak runs them on others, too.
if (isSoak) {
  const directory = Layer.unwrap(Effect.sync(() => Stores.layerDirectory({ directory: join(scratch(), "store") })))
  suite("Repository over a directory", over(directory), programs)
  const sqlite = Layer.unwrap(
    Effect.sync(() => Layer.provide(Stores.layerSql(), Stores.sqliteClient({ file: join(scratch(), "store.db") })))
  )
  suite("Repository over SQLite", over(sqlite), programs)
}
