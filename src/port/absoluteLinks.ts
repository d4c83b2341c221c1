/**
 * Converts absolute link targets below the root to relative ones.
 *
 * Only the text is examined and no file is read, so nothing about the outside can be learnt.
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

/** Returns the shortest relative path from a directory to a place. Both are given by their names from the root. */
const relativePathBetween = (from: ReadonlyArray<string>, to: ReadonlyArray<string>): string => {
  let shared = 0
  while (shared < from.length && shared < to.length && from[shared] === to[shared]) shared++
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/") || "."
}

/**
 * Converts absolute targets that begin with one of the paths of the root. All are absolute paths with slashes.
 *
 * A root path that contains ".." is ignored, because its text does not determine where it leads.
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
 * Returns the target with which the resolution of a link at `path` continues. An absolute target below the root becomes
 * a relative one.
 */
export const relativeTarget = (links: Links | undefined, path: FsPath, target: string): string =>
  target.startsWith("/") ? (links?.relative?.(path, target) ?? target) : target
