/** What answers tell of a file, as the port tells it. */
import type { FileEntry, FileStat } from "../../model/Entry.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { FileMetadata } from "../FileSystemEntry.ts"
import type { Child } from "../../port/Backend.ts"
import { here } from "./names.ts"

export const statOf = (path: FsPath, found: FileMetadata): FileStat => {
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

/** Of a file that was read, where the answer tells nothing but its size. */
export const sizedStat = (path: FsPath, sizeBytes: number): FileStat => ({
  path,
  kind: "file",
  isFile: true,
  isDirectory: false,
  sizeBytes
})

export const childOf = ({ addressable, kind, name, sizeBytes }: FileEntry): Child => ({
  name: here(name),
  kind,
  addressable,
  ...(sizeBytes !== undefined && { sizeBytes })
})
