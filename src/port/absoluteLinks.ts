/**
 * Converts absolute link targets below the root to relative targets.
 *
 * The conversion uses only the text of a target and reads no file, so it reveals nothing about files outside the root.
 */
import { type FsPath, parent, segments } from "../model/FsPath.ts"
import type { Links } from "./Backend.ts"

const segmentsOf = (text: string): ReadonlyArray<string> => text.split("/").filter((name) => name !== "" && name !== ".")

const dropRoot = (root: ReadonlyArray<string>, names: ReadonlyArray<string>): ReadonlyArray<string> | undefined =>
  root.every((name, at) => name === names[at]) ? names.slice(root.length) : undefined

const leavesRoot = (names: ReadonlyArray<string>): boolean => {
  let depth = 0
  return names.some((name) => (depth += name === ".." ? -1 : 1) < 0)
}

/** Returns the shortest relative path from a directory to another path. Both paths are lists of segments from the root. */
const relativePathBetween = (from: ReadonlyArray<string>, to: ReadonlyArray<string>): string => {
  let shared = 0
  while (shared < from.length && shared < to.length && from[shared] === to[shared]) shared++
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/") || "."
}

/**
 * Returns a function that converts absolute targets below the root. `roots` returns all absolute paths of the root,
 * with slashes.
 *
 * A root path that contains ".." is ignored, because a symlink can change where ".." leads.
 */
export const makeRelativeTargets =
  (roots: () => ReadonlyArray<string>): NonNullable<Links["relative"]> =>
  (path: FsPath, target) => {
    if (!target.startsWith("/")) return undefined
    const names = segmentsOf(target)
    for (const root of roots()) {
      if (!root.startsWith("/")) continue
      const rootNames = segmentsOf(root)
      const rest = rootNames.includes("..") ? undefined : dropRoot(rootNames, names)
      if (rest !== undefined) return leavesRoot(rest) ? undefined : relativePathBetween(segments(parent(path)), rest)
    }
    return undefined
  }

/**
 * Returns the target that a resolution of the symlink at `path` must follow. An absolute target below the root becomes
 * a relative target.
 */
export const relativeTarget = (links: Links | undefined, path: FsPath, target: string): string =>
  target.startsWith("/") ? (links?.relative?.(path, target) ?? target) : target
