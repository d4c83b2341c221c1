/** Every tool there is, by kit, for whoever offers them. Names are unique in a list of one kit of file tools and what goes with it. */
import type { AnyDefinition } from "./definition.ts"
import { applyPatch } from "./tools/applyPatch.ts"
import { copy } from "./tools/copy.ts"
import { editFile } from "./tools/editFile.ts"
import { glob } from "./tools/glob.ts"
import { grep } from "./tools/grep.ts"
import { ls } from "./tools/ls.ts"
import { mkdir } from "./tools/mkdir.ts"
import { move } from "./tools/move.ts"
import { readFile } from "./tools/readFile.ts"
import { rm } from "./tools/rm.ts"
import { evaluate } from "./tools/sandbox/evaluate.ts"
import { shell } from "./tools/sandbox/shell.ts"
import { diff } from "./tools/snapshots/diff.ts"
import { restore } from "./tools/snapshots/restore.ts"
import { snapshot } from "./tools/snapshots/snapshot.ts"
import { snapshots } from "./tools/snapshots/snapshots.ts"
import { stat } from "./tools/stat.ts"
import { tree } from "./tools/tree.ts"
import { deleteFile } from "./tools/vfs/deleteFile.ts"
import { listDirectory } from "./tools/vfs/listDirectory.ts"
import { readFile as readWhole } from "./tools/vfs/readFile.ts"
import { writeFile as writeWhole } from "./tools/vfs/writeFile.ts"
import { writeFile } from "./tools/writeFile.ts"

export const seven: ReadonlyArray<AnyDefinition> = [ls, readFile, writeFile, editFile, glob, grep, rm]

export const extras: ReadonlyArray<AnyDefinition> = [move, copy, mkdir, stat, tree, applyPatch]

/** Only where Snapshots is provided. */
export const snapshotTools: ReadonlyArray<AnyDefinition> = [snapshot, snapshots, restore, diff]

/** Never in one list with the seven. */
export const four: ReadonlyArray<AnyDefinition> = [listDirectory, readWhole, writeWhole, deleteFile]

/** Only where Sandbox is provided. */
export const sandboxTools: ReadonlyArray<AnyDefinition> = [shell, evaluate]
