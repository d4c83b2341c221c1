import type { FsPath } from "../../model/FsPath.ts"
import type { DirectoryNode } from "../tree.ts"

const gitDirectory = ".git"

export const excludeGit = (isExcluded: boolean): ((path: FsPath) => boolean) | undefined =>
  isExcluded ? (path) => path === gitDirectory : undefined

export const dropGit = (tree: DirectoryNode): DirectoryNode => {
  if (!tree.entries.has(gitDirectory)) return tree
  const entries = new Map(tree.entries)
  entries.delete(gitDirectory)
  return { kind: "directory", entries, ...(tree.mode === undefined ? undefined : { mode: tree.mode }) }
}
