/**
 * Maps the names of temporary files. No leaf accepts these names from a caller. So a temporary file of a branch has another
 * name on the side of the leaf, and is hidden on this side. Other names are unchanged.
 */
import { type FsPath } from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

const ours = ".~fsa-"
const theirs = ".~branch-"

const swapped = (name: string): string => (TemporaryNames.isOurs(name) ? theirs + name.slice(ours.length) : name)

const back = (name: string): string => {
  const shown = name.startsWith(theirs) ? ours + name.slice(theirs.length) : name
  return TemporaryNames.isOurs(shown) ? shown : name
}

export const atLeaf = (path: FsPath): FsPath =>
  path.includes(ours) ? (path.split("/").map(swapped).join("/") as FsPath) : path

export const here = <Path extends string>(path: Path): Path =>
  path.includes(theirs) ? (path.split("/").map(back).join("/") as Path) : path
