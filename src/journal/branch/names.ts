/**
 * Maps the names of temporary files. No leaf accepts these names from a caller. So a temporary file of a branch has another
 * name on the side of the leaf, and is hidden on this side. Other names are unchanged.
 */
import { type FsPath } from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

const temporaryPrefix = ".~fsa-"
const leafTemporaryPrefix = ".~branch-"

const toLeafName = (name: string): string =>
  TemporaryNames.isOwnName(name) ? leafTemporaryPrefix + name.slice(temporaryPrefix.length) : name

const fromLeafName = (name: string): string => {
  const callerName = name.startsWith(leafTemporaryPrefix) ? temporaryPrefix + name.slice(leafTemporaryPrefix.length) : name
  return TemporaryNames.isOwnName(callerName) ? callerName : name
}

export const toLeafPath = (path: FsPath): FsPath =>
  path.includes(temporaryPrefix) ? (path.split("/").map(toLeafName).join("/") as FsPath) : path

export const fromLeafPath = <Path extends string>(path: Path): Path =>
  path.includes(leafTemporaryPrefix) ? (path.split("/").map(fromLeafName).join("/") as Path) : path
