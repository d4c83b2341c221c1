import type { FileEntry, FileStat } from "../../model/Entry.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Fault } from "../../model/FsError.ts"
import { invalidTargetReason } from "../entries/links.ts"
import type { FileMetadata } from "../FileSystemEntry.ts"
import type { Child } from "../../port/Backend.ts"
import { fromLeafPath } from "./names.ts"

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
