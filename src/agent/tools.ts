/** All tools of this package. Names are unique within a kit, but tools of two kits may have the same name. */
import type { AnyDefinition } from "./definition.ts"
import { applyPatch } from "./tools/applyPatch.ts"
import { copy, mkdir, move } from "./tools/transfer.ts"
import { diff } from "./tools/diff.ts"
import { restore, snapshot, snapshots } from "./tools/snapshots.ts"
import { stat } from "./tools/ls.ts"
import { tree } from "./tools/tree.ts"

export { four, sandboxTools, seven } from "./kits.ts"

export const extras: ReadonlyArray<AnyDefinition> = [move, copy, mkdir, stat, tree, applyPatch]

export const snapshotTools: ReadonlyArray<AnyDefinition> = [snapshot, snapshots, restore, diff]
