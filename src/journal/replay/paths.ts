/** Paths as entries have them, also the temporary names under which a recorded filesystem prepared its changes. */
import * as FsPath from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Efferent } from "../FileSystemEntry.ts"
import { isStep } from "../record/ids.ts"

/** Without a leading slash, repeated ones and ".". */
export const toPath = (path: string): FsPath.FsPath =>
  FsPath.fromSegments(path.split("/").filter((segment) => segment !== "" && segment !== "."))

const mark = ".~"

/** The parts of an operation that `Hidden` looks at. */
interface Noted {
  readonly asked: Efferent
  readonly path: FsPath.FsPath
  readonly to: FsPath.FsPath | undefined
  readonly answered?: { readonly answer: { readonly _tag: string } }
}

/**
 * The temporary names of a journal, which changes, drift and undo do not show. A name is one if this installation made it, or if the
 * journal says that the recorded filesystem did, on whatever machine: its callers can create no name of that form. A file that a stranger
 * gave such a name is never made by a recorded step, so it is shown like any other.
 */
export class Hidden {
  readonly #made = new Set<string>()

  /** Takes operations in their order. */
  note({ answered, asked, path, to }: Noted): void {
    const target = to ?? path
    if (!target.includes(mark) || answered?.answer._tag === "FileFault" || !isStep(asked.correlationId)) return
    const name = FsPath.name(target)
    if (!TemporaryNames.hasForm(name) || !isMaking(asked)) return
    // An entry staged below a temporary name, or moved out of it, may be a file that a stranger gave such a name.
    const isStaged = this.has(FsPath.parent(target)) || (to !== undefined && this.has(path))
    if (!isStaged) this.#made.add(name)
  }

  /** Returns whether a path has, or leads through, such a name. */
  has(path: FsPath.FsPath): boolean {
    return path.includes(mark) && FsPath.segments(path).some((name) => this.hasName(name))
  }

  hasName(name: string): boolean {
    return this.#made.has(name) || TemporaryNames.isOurs(name)
  }
}

const isMaking = (asked: Efferent): boolean => {
  switch (asked._tag) {
    case "FileWrite":
    case "FileWriteChunk":
      return asked.createMode === "create"
    case "FileMakeDirectory":
    case "FileMakeLink":
    case "FileMove":
      return true
    default:
      return false
  }
}
