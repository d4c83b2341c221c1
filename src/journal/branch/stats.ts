import type { FileEntry, FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { FileMetadata } from "../FileSystemEntry.ts"
import { invalidTargetReason } from "../entries/links.ts"

// Maps the names of temporary files. No leaf accepts these names from a caller. So a temporary file of a branch has
// another name on the side of the leaf, and is hidden on this side. Other names are unchanged.

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

export type Metadata = Omit<FileMetadata, "_tag" | "correlationId" | "way">

/** Returns the metadata of the link itself. A leaf of an older version describes the link's target even with `links: "leave"`. */
export const describeLinkItself = (found: Metadata): Metadata =>
  found.isSymlink === true && found.kind !== "symlink" ? { ...found, kind: "symlink", isDirectory: false } : found

const unknownTarget: Fault = {
  _tag: "IoError",
  code: "ENOTSUP",
  detail:
    "it is a link, and the leaf that serves it does not say where it leads; run a leaf of this version there, with `extended`"
}
const notALink: Fault = { _tag: "InvalidArgument", argument: "path", detail: "it is not a symbolic link" }

const checkTarget = (text: string): string | Fault => {
  const invalidReason = invalidTargetReason(text)
  return invalidReason === undefined
    ? text
    : { _tag: "IoError", detail: `the leaf answered a text that no link can have: ${invalidReason}` }
}

export const targetOf = (found: Metadata): string | Fault =>
  describeLinkItself(found).kind !== "symlink"
    ? notALink
    : found.target === undefined
      ? unknownTarget
      : checkTarget(found.target)

export const resolutionTargetOf = (found: Metadata): string | Fault => {
  const target = targetOf(found)
  return typeof target === "string" && found.relativeTarget !== undefined ? checkTarget(found.relativeTarget) : target
}

export const statOf = (path: FsPath, found: Metadata): FileStat => {
  const { created, isDirectory, isSymlink, modified, permissions, size } = found
  const kind = found.kind ?? (isDirectory ? "directory" : "file")
  return {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: size,
    ...(created !== undefined && { createdAt: created }),
    ...(modified !== undefined && { modifiedAt: modified }),
    ...(permissions !== undefined && { mode: permissions }),
    ...(isSymlink === true && { isSymlink })
  }
}

export const sizedStat = (path: FsPath, sizeBytes: number): FileStat => ({
  path,
  kind: "file",
  isFile: true,
  isDirectory: false,
  sizeBytes
})

export const childOf = ({ addressable, kind, name, sizeBytes }: FileEntry): Child => ({
  name: fromLeafPath(name),
  kind,
  addressable,
  ...(sizeBytes !== undefined && { sizeBytes })
})
