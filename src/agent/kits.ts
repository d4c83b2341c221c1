/**
 * The kits that load quickly: the seven-tool kit, the four-tool kit and the sandbox tools. `tools.ts` has the other tools, such
 * as those for patches and snapshots, which take longer to load.
 */
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

/** The four-tool kit. Some of its tools have the same names as tools of the seven-tool kit, so no list contains both kits. */
export const four: ReadonlyArray<AnyDefinition> = [listDirectory, readWhole, writeWhole, deleteFile]

export const sandboxTools: ReadonlyArray<AnyDefinition> = [shell, evaluate]
