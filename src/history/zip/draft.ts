/**
 * The tree of an archive during the reading of its names.
 *
 * Each name is entered under its own spelling and under its collision key. So the second of two names that some disk
 * cannot distinguish is detected, and so is an entry below something that is not a directory.
 */
import { type FsPath, segments } from "../../model/FsPath.ts"
import type { DirectoryNode, FileNode, LinkNode, Node } from "../tree.ts"
import { collisionKey, refuse } from "./names.ts"

interface MutableDirectory extends DirectoryNode {
  mode?: number | undefined
  readonly entries: Map<string, Node>
}

interface DraftDirectory {
  readonly node: MutableDirectory
  readonly places: Map<string, DraftDirectory>
  readonly names: Map<string, string>
  isNamed: boolean
}

const makeDraftDirectory = (): DraftDirectory => ({
  node: { kind: "directory", entries: new Map() },
  places: new Map(),
  names: new Map(),
  isNamed: false
})

const enterName = ({ names }: DraftDirectory, segment: string, entry: string): void => {
  const key = collisionKey(segment)
  const other = names.get(key)
  if (other === segment)
    throw refuse("duplicate", "it stands in the archive twice, or below something that is no directory", entry)
  if (other !== undefined) {
    throw refuse(
      "duplicate",
      `where case and normal form do not distinguish names it is the same as ${JSON.stringify(other)}`,
      entry
    )
  }
  names.set(key, segment)
}

export class Draft {
  readonly #top = makeDraftDirectory()

  get tree(): DirectoryNode {
    return this.#top.node
  }

  add(path: FsPath, node: FileNode | LinkNode, entry: string): void {
    const names = segments(path)
    const holder = this.#directory(names.slice(0, -1), entry)
    const last = names.at(-1)!
    enterName(holder, last, entry)
    holder.node.entries.set(last, node)
  }

  addDirectory(path: FsPath, mode: number | undefined, entry: string): void {
    const made = this.#directory(segments(path), entry)
    if (made.isNamed) throw refuse("duplicate", "it stands in the archive twice", entry)
    made.isNamed = true
    if (mode !== undefined) made.node.mode = mode
  }

  #directory(names: ReadonlyArray<string>, entry: string): DraftDirectory {
    let here = this.#top
    for (const name of names) {
      let next = here.places.get(name)
      if (next === undefined) {
        enterName(here, name, entry)
        next = makeDraftDirectory()
        here.places.set(name, next)
        here.node.entries.set(name, next.node)
      }
      here = next
    }
    return here
  }
}
