import * as FsPath from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Efferent } from "../FileSystemEntry.ts"
import { isStep } from "../record/steps.ts"

/** Normalizes a path: removes empty segments and ".". */
export const normalizePath = (path: string): FsPath.FsPath =>
  FsPath.fromSegments(path.split("/").filter((segment) => segment !== "" && segment !== "."))

const temporaryMark = ".~"

interface ObservedOperation {
  readonly asked: Efferent
  readonly path: FsPath.FsPath
  readonly to: FsPath.FsPath | undefined
  readonly answered?: { readonly answer: { readonly _tag: string } }
}

/**
 * The temporary names in a journal, which `changes`, `drift` and `undo` do not show. A name is temporary if this installation
 * made the name, or if a recorded step on any machine created it. Callers of a recorded filesystem cannot create such names. A
 * file of another program with a similar name is shown.
 */
export class HiddenNames {
  readonly #made = new Set<string>()

  /** Observes an operation. The operations must arrive in the order of the journal. */
  observe({ answered, asked, path, to }: ObservedOperation): void {
    const target = to ?? path
    if (!target.includes(temporaryMark) || answered?.answer._tag === "FileFault" || !isStep(asked.correlationId)) return
    const name = FsPath.name(target)
    if (!TemporaryNames.hasForm(name) || !isCreation(asked)) return
    // Skip a name below a temporary directory, or of an entry moved from a temporary name. Such an entry may be a file of
    // another program.
    const isStaged = this.has(FsPath.parent(target)) || (to !== undefined && this.has(path))
    if (!isStaged) this.#made.add(name)
  }

  has(path: FsPath.FsPath): boolean {
    return path.includes(temporaryMark) && FsPath.segments(path).some((name) => this.hasName(name))
  }

  hasName(name: string): boolean {
    return this.#made.has(name) || TemporaryNames.isOwnName(name)
  }
}

const isCreation = (asked: Efferent): boolean => {
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
