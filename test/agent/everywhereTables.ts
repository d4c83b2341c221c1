import { bad } from "./everywhere.bad.ts"
import { changing } from "./everywhere.changing.ts"
import { editing } from "./everywhere.editing.ts"
import { four } from "./everywhere.four.ts"
import { looking } from "./everywhere.looking.ts"
import { patching } from "./everywhere.patching.ts"
import { searching } from "./everywhere.searching.ts"
import { snapshots } from "./everywhere.snapshots.ts"
import type { Row } from "./everywhereRun.ts"

export const tables: Readonly<Record<string, ReadonlyArray<Row>>> = {
  looking,
  searching,
  editing,
  changing,
  patching,
  four,
  snapshots,
  bad
}
