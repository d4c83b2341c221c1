/** Absolute targets of links, re-rooted by their text alone: nothing is looked at, so nothing outside the root can be learnt. */
import { type FsPath, parent, segments } from "../model/FsPath.ts"
import type { Links } from "./Backend.ts"

const namesOf = (text: string): ReadonlyArray<string> => text.split("/").filter((name) => name !== "" && name !== ".")

/** Returns what `names` says beyond the names of the root; `undefined` where it begins otherwise. */
const below = (root: ReadonlyArray<string>, names: ReadonlyArray<string>): ReadonlyArray<string> | undefined =>
  root.every((name, at) => name === names[at]) ? names.slice(root.length) : undefined

const climbs = (names: ReadonlyArray<string>): boolean => {
  let depth = 0
  return names.some((name) => (depth += name === ".." ? -1 : 1) < 0)
}

/** Returns the shortest relative text from a directory to a place, both told from the root. */
const between = (from: ReadonlyArray<string>, to: ReadonlyArray<string>): string => {
  let shared = 0
  while (shared < from.length && shared < to.length && from[shared] === to[shared]) shared++
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/") || "."
}

/**
 * Re-roots absolute targets that begin with one of the names of the root: absolute paths with slashes. A name that holds ".." says by
 * its text alone not where it leads, so it counts for nothing.
 */
export const relativeTo =
  (roots: () => ReadonlyArray<string>): NonNullable<Links["relative"]> =>
  (path: FsPath, target) => {
    if (!target.startsWith("/")) return undefined
    const names = namesOf(target)
    for (const root of roots()) {
      if (!root.startsWith("/")) continue
      const own = namesOf(root)
      const rest = own.includes("..") ? undefined : below(own, names)
      if (rest !== undefined) return climbs(rest) ? undefined : between(segments(parent(path)), rest)
    }
    return undefined
  }

/**
 * Returns the text to go on with from a link at `path`: an absolute target that leads below the root becomes a relative one.
 */
export const relativeTarget = (links: Links | undefined, path: FsPath, target: string): string =>
  target.startsWith("/") ? (links?.relative?.(path, target) ?? target) : target
