import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { isSoak } from "../runs.ts"
import { bad } from "./everywhere.bad.ts"
import { changing } from "./everywhere.changing.ts"
import { editing } from "./everywhere.editing.ts"
import { four } from "./everywhere.four.ts"
import { looking } from "./everywhere.looking.ts"
import { patching } from "./everywhere.patching.ts"
import { searching } from "./everywhere.searching.ts"
import { snapshots } from "./everywhere.snapshots.ts"
import { faultsOn, type Ground, type Row } from "./everywhereRun.ts"

export const tables: Readonly<Record<string, ReadonlyArray<Row>>> = {
  "tools that list and read": looking,
  searches: searching,
  "writes and edits": editing,
  "tools that move and remove": changing,
  patches: patching,
  "the four tools": four,
  "snapshot tools": snapshots,
  "settings and invalid input": bad
}

/** Declares a test for each row of all tables on a filesystem, or for one row in `share` outside the soak. */
export const runTables = (ground: Ground, share: number): void => {
  describe(`tools on ${ground.name} give the same results as in memory:`, () => {
    Object.values(tables)
      .flat()
      .filter((_, index) => isSoak || index % share === share - 1)
      .forEach((row) => {
        it.live(row.name, () => Effect.map(faultsOn(ground, row), (faults) => assert.deepStrictEqual(faults, [])))
      })
  })
}
