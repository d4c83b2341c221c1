/**
 * Names of writes in progress, which no leaf takes from a caller: what is put aside through a branch bears another there, and is hidden
 * here as it is everywhere.
 */
import { type FsPath, isTemporaryName } from "../../model/FsPath.ts"

const ours = ".~fsa-"
const theirs = ".~branch-"

const swapped = (name: string): string => (isTemporaryName(name) ? theirs + name.slice(ours.length) : name)

const back = (name: string): string => {
  const shown = name.startsWith(theirs) ? ours + name.slice(theirs.length) : name
  return isTemporaryName(shown) ? shown : name
}

/** A path as the leaf is asked for it. */
export const atLeaf = (path: FsPath): FsPath =>
  path.includes(ours) ? (path.split("/").map(swapped).join("/") as FsPath) : path

/** The same as it is called here; a name too. */
export const here = <Path extends string>(path: Path): Path =>
  path.includes(theirs) ? (path.split("/").map(back).join("/") as Path) : path
