/** The tools for patches and snapshots are not in these kits, because they take longer to load. */
import type { AnyDefinition } from "./definition.ts"
import { editFile } from "./tools/editFile.ts"
import { glob } from "./tools/glob.ts"
import { grep } from "./tools/grep.ts"
import { ls } from "./tools/ls.ts"
import { readFile } from "./tools/readFile.ts"
import { rm } from "./tools/rm.ts"
import { evaluate, shell } from "./tools/sandbox.ts"
import { deleteFile, listDirectory, readFile as readWhole, writeFile as writeWhole } from "./tools/vfs.ts"
import { writeFile } from "./tools/writeFile.ts"

export const seven: ReadonlyArray<AnyDefinition> = [ls, readFile, writeFile, editFile, glob, grep, rm]

/** The four-tool kit. It shares names with the seven, so one list never holds both. */
export const four: ReadonlyArray<AnyDefinition> = [listDirectory, readWhole, writeWhole, deleteFile]

export const sandboxTools: ReadonlyArray<AnyDefinition> = [shell, evaluate]
