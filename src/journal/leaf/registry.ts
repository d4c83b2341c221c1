/**
 * Which leaves there are at a position of the journal, as it says itself, so that all of them know the same at the same position: whose
 * an intent is (the longest prefix), and who speaks where it is nobody's (the first of them).
 */
import * as FsPath from "../../model/FsPath.ts"
import type { DaemonChanged } from "../entries/daemon.ts"

export interface Announced {
  readonly daemon: string
  readonly instance: string
  readonly prefix: FsPath.FsPath
  readonly extended: boolean
  /** How long it waits for an owner of a path that has none, in milliseconds. */
  readonly grace: number
  readonly position: number
}

/** The grace of a leaf that does not say its own, in milliseconds. */
export const defaultGrace = 5_000

export interface Registry {
  /** Answers the leaf that an entry announces. */
  readonly see: (changed: DaemonChanged, position: number) => Announced | undefined
  /** Who serves the path. */
  readonly ownerOf: (path: FsPath.FsPath) => Announced | undefined
  /** Who answers for what nobody serves. */
  readonly first: () => Announced | undefined
  /** Those that serve their paths, the first of them first. */
  readonly running: () => ReadonlyArray<Announced>
  /** Announced, and not yet completed, superseded or not. */
  readonly unfinished: ReadonlyMap<string, Announced>
  /** Those that have ended and were not replaced. */
  readonly down: () => ReadonlyArray<Announced>
  /** The names in a directory that lead to the prefixes of leaves, of those that are down too. */
  readonly namesIn: (path: FsPath.FsPath) => ReadonlyArray<string>
  /** Whether the path is the prefix of a leaf, or holds one: such a directory is always there. The root is none. */
  readonly isPinned: (path: FsPath.FsPath) => boolean
  readonly copy: () => Registry
}

/** One takes the place of the other. */
export const supersedes = (self: Pick<Announced, "daemon" | "prefix">, that: Pick<Announced, "daemon" | "prefix">): boolean =>
  self.daemon === that.daemon || self.prefix === that.prefix

export const make = (from: {
  readonly running: Array<Announced>
  readonly unfinished: Map<string, Announced>
  readonly down: Array<Announced>
}): Registry => {
  const { unfinished } = from
  let { down, running } = from
  const known = (): ReadonlyArray<Announced> => [...running, ...down]
  return {
    see: (changed, position) => {
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
        grace: changed.grace ?? defaultGrace,
        position
      }
      running = [...running.filter((other) => !supersedes(announced, other)), announced]
      down = down.filter((other) => !supersedes(announced, other))
      unfinished.set(instance, announced)
      return announced
    },
    ownerOf: (path) => {
      let found: Announced | undefined
      for (const leaf of running) {
        if (FsPath.isWithin(leaf.prefix, path) && (found === undefined || FsPath.isWithin(found.prefix, leaf.prefix)))
          found = leaf
      }
      return found
    },
    first: () => running[0],
    running: () => running,
    unfinished,
    down: () => down,
    namesIn: (path) => {
      const depth = FsPath.segments(path).length
      const below = known().flatMap(({ prefix }) =>
        prefix !== path && FsPath.isWithin(path, prefix) ? [FsPath.segments(prefix)[depth]!] : []
      )
      return [...new Set(below)].sort()
    },
    isPinned: (path) => path !== FsPath.root && known().some(({ prefix }) => FsPath.isWithin(path, prefix)),
    copy: () => make({ running: [...running], unfinished: new Map(unfinished), down: [...down] })
  }
}

export const empty = (): Registry => make({ running: [], unfinished: new Map(), down: [] })
