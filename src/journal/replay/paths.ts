/** Paths as entries have them, which may be those of writes in progress too, since a port has no others. */
import * as FsPath from "../../model/FsPath.ts"

/** Without a leading slash, repeated ones and ".". */
export const toPath = (path: string): FsPath.FsPath =>
  FsPath.fromSegments(path.split("/").filter((segment) => segment !== "" && segment !== "."))

/** It is, or lies in, what only a write in progress knows. */
export const isHidden = (path: FsPath.FsPath): boolean =>
  path.includes("~") && FsPath.segments(path).some(FsPath.isTemporaryName)
