/**
 * Maps the names of temporary files, which no leaf takes from a caller: an entry that a branch puts aside has another name at the leaf,
 * and is hidden here. Names that are not ours are a stranger's and stay as they are.
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

/** A path as the leaf is asked for it. */
export const atLeaf = (path: FsPath): FsPath =>
  path.includes(ours) ? (path.split("/").map(swapped).join("/") as FsPath) : path

/** The same as it is called here; a name too. */
export const here = <Path extends string>(path: Path): Path =>
  path.includes(theirs) ? (path.split("/").map(back).join("/") as Path) : path
