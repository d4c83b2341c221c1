import type { FsPath } from "../../model/FsPath.ts"
import type { DirectoryNode } from "../tree.ts"

const git = ".git"

export const excluding = (isExcluded: boolean): ((path: FsPath) => boolean) | undefined =>
  isExcluded ? (path) => path === git : undefined

export const dropGit = (tree: DirectoryNode): DirectoryNode => {
  if (!tree.entries.has(git)) return tree
  const entries = new Map(tree.entries)
  entries.delete(git)
  return { kind: "directory", entries, ...(tree.mode === undefined ? undefined : { mode: tree.mode }) }
}
