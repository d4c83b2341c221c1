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
  "tools that list and read": looking,
  searches: searching,
  "writes and edits": editing,
  "tools that move and remove": changing,
  patches: patching,
  "the four tools": four,
  "snapshot tools": snapshots,
  "settings and invalid input": bad
}
