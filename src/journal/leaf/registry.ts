/**
 * The leaves at a position of the journal, derived from the journal only, so that all leaves agree. The leaf with the longest matching
 * prefix owns a path. The first leaf answers for paths without an owner.
 */
import * as FsPath from "../../model/FsPath.ts"
import type { DaemonChanged } from "../entries/status.ts"

export interface AnnouncedLeaf {
  readonly daemon: string
  readonly instance: string
  readonly prefix: FsPath.FsPath
  readonly extended: boolean
  /** The time in milliseconds that the leaf waits for an owner of a path without one. */
  readonly grace: number
  readonly position: number
}

export const defaultGraceMillis = 5_000

export interface Registry {
  /** Processes an entry, and returns the leaf that it announces, if any. */
  readonly observe: (changed: DaemonChanged, position: number) => AnnouncedLeaf | undefined
  readonly ownerOf: (path: FsPath.FsPath) => AnnouncedLeaf | undefined
  readonly firstLeaf: () => AnnouncedLeaf | undefined
  /** The serving leaves, in the order of their announcement. */
  readonly running: () => ReadonlyArray<AnnouncedLeaf>
  /** The leaves that were announced and have not completed, superseded or not. */
  readonly unfinished: ReadonlyMap<string, AnnouncedLeaf>
  /** The leaves that have ended and were not replaced. */
  readonly down: () => ReadonlyArray<AnnouncedLeaf>
  /** Returns the names in a directory that lead to the prefixes of leaves, including ended ones. */
  readonly prefixNamesIn: (path: FsPath.FsPath) => ReadonlyArray<string>
  /** Tests whether the path is the prefix of a leaf, or leads to one. Such a directory always exists. The root does not count. */
  readonly isPrefixDirectory: (path: FsPath.FsPath) => boolean
  readonly copy: () => Registry
}

/** Tests whether one leaf replaces the other: both have the same name or the same prefix. */
export const supersedes = (
  self: Pick<AnnouncedLeaf, "daemon" | "prefix">,
  that: Pick<AnnouncedLeaf, "daemon" | "prefix">
): boolean => self.daemon === that.daemon || self.prefix === that.prefix

export const make = (from: {
  readonly running: Array<AnnouncedLeaf>
  readonly unfinished: Map<string, AnnouncedLeaf>
  readonly down: Array<AnnouncedLeaf>
}): Registry => {
  const { unfinished } = from
  let { down, running } = from
  const allLeaves = (): ReadonlyArray<AnnouncedLeaf> => [...running, ...down]
  return {
    observe: (changed, position) => {
      const prefix = changed.prefix === undefined ? undefined : FsPath.parse(changed.prefix, "branch")
      if (typeof prefix !== "string") return undefined
      const { daemon, instance } = changed
      if (changed.status !== "Running") {
        down = [...down, ...running.filter((other) => other.instance === instance)]
        running = running.filter((other) => other.instance !== instance)
        unfinished.delete(instance)
        return undefined
      }
      const announced = {
        daemon,
        instance,
        prefix,
        extended: changed.extended === true,
        grace: changed.grace ?? defaultGraceMillis,
        position
      }
      running = [...running.filter((other) => !supersedes(announced, other)), announced]
      down = down.filter((other) => !supersedes(announced, other))
      unfinished.set(instance, announced)
      return announced
    },
    ownerOf: (path) => {
      let found: AnnouncedLeaf | undefined
      for (const leaf of running) {
        if (FsPath.isWithin(leaf.prefix, path) && (found === undefined || FsPath.isWithin(found.prefix, leaf.prefix)))
          found = leaf
      }
      return found
    },
    firstLeaf: () => running[0],
    running: () => running,
    unfinished,
    down: () => down,
    prefixNamesIn: (path) => {
      const depth = FsPath.segments(path).length
      const below = allLeaves().flatMap(({ prefix }) =>
        prefix !== path && FsPath.isWithin(path, prefix) ? [FsPath.segments(prefix)[depth]!] : []
      )
      return [...new Set(below)].sort()
    },
    isPrefixDirectory: (path) => path !== FsPath.root && allLeaves().some(({ prefix }) => FsPath.isWithin(path, prefix)),
    copy: () => make({ running: [...running], unfinished: new Map(unfinished), down: [...down] })
  }
}

export const empty = (): Registry => make({ running: [], unfinished: new Map(), down: [] })
