/** Names are unique within one kit of file tools and its extras. */
import type { AnyDefinition } from "./definition.ts"
import { applyPatch } from "./tools/applyPatch.ts"
import { copy } from "./tools/copy.ts"
import { mkdir } from "./tools/mkdir.ts"
import { move } from "./tools/move.ts"
import { diff } from "./tools/snapshots/diff.ts"
import { restore } from "./tools/snapshots/restore.ts"
import { snapshot } from "./tools/snapshots/snapshot.ts"
import { snapshots } from "./tools/snapshots/snapshots.ts"
import { stat } from "./tools/stat.ts"
import { tree } from "./tools/tree.ts"

export { four, sandboxTools, seven } from "./kits.ts"

export const extras: ReadonlyArray<AnyDefinition> = [move, copy, mkdir, stat, tree, applyPatch]

export const snapshotTools: ReadonlyArray<AnyDefinition> = [snapshot, snapshots, restore, diff]
