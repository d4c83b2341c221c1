/**
 * For a path that is not there: up to three that are and look like it, first of the same name elsewhere, then of nearly the same name in
 * the same directory.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as FsPath from "../model/FsPath.ts"

const wanted = 3
const longestName = 256

/** How many letters have to be added, taken away, changed or swapped with their neighbour to make one word of the other. */
export const editDistance = (self: string, that: string): number => {
  let before: ReadonlyArray<number> = []
  let previous = Array.from({ length: that.length + 1 }, (_, j) => j)
  for (let i = 1; i <= self.length; i++) {
    const row = [i]
    for (let j = 1; j <= that.length; j++) {
      const change = self[i - 1] === that[j - 1] ? 0 : 1
      let cost = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + change)
      if (i > 1 && j > 1 && self[i - 1] === that[j - 2] && self[i - 2] === that[j - 1])
        cost = Math.min(cost, before[j - 2]! + 1)
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[that.length]!
}

/** The distance where a person would take the one for the other, and infinity elsewhere. */
export const looksLike = (name: string, candidate: string): number => {
  const a = FsPath.fold(name)
  const b = FsPath.fold(candidate)
  if (a === "" || a.length > longestName || b.length > longestName) return Number.POSITIVE_INFINITY
  const distance = editDistance(a, b)
  return distance <= Math.max(1, Math.floor(a.length / 3)) || b.startsWith(a) ? distance : Number.POSITIVE_INFINITY
}

const inSameDirectory = (fs: Algebra, path: FsPath.FsPath) => {
  const parent = FsPath.parent(path)
  const name = FsPath.name(path)
  return Effect.map(fs.list(parent), (entries) =>
    entries
      // A link that leads nowhere stands there itself.
      .filter((entry) => entry.addressable && entry.path !== path)
      .map((entry) => ({ path: entry.path, distance: looksLike(name, entry.name) }))
      .filter((candidate) => candidate.distance < Number.POSITIVE_INFINITY)
      .sort((a, b) => a.distance - b.distance)
      .slice(0, wanted)
      .map((candidate) => candidate.path)
  )
}

/** Looking through everything is worth a moment, not more. */
const elsewhere = (fs: Algebra, path: FsPath.FsPath) => {
  const name = FsPath.name(path)
  if (/[\\*?[\]{}()!+@|]/.test(name)) return Effect.succeed([])
  return fs.globStream(name, { kinds: ["file", "directory"], gitignore: true }).pipe(
    Stream.take(wanted),
    Stream.map((match) => match.path),
    Stream.runCollect,
    Effect.timeoutOption("500 millis"),
    Effect.map(Option.getOrElse((): ReadonlyArray<FsPath.FsPath> => []))
  )
}

export const nearby = (fs: Algebra, input: string): Effect.Effect<ReadonlyArray<FsPath.FsPath>> => {
  const path = FsPath.parse(input)
  if (typeof path !== "string" || path === FsPath.root) return Effect.succeed([])
  const none = () => Effect.succeed<ReadonlyArray<FsPath.FsPath>>([])
  return Effect.flatMap(Effect.catch(elsewhere(fs, path), none), (far) =>
    Effect.map(far.length < wanted ? Effect.catch(inSameDirectory(fs, path), none) : none(), (near) =>
      [...new Set([...far, ...near])].slice(0, wanted)
    )
  )
}

/** The directory that is furthest down the path. */
export const existingDirectory = (fs: Algebra, input: string): Effect.Effect<FsPath.FsPath> => {
  const path = FsPath.parse(input)
  if (typeof path !== "string") return Effect.succeed(FsPath.root)
  const parent = FsPath.parent(path)
  return parent === FsPath.root
    ? Effect.succeed(parent)
    : Effect.matchEffect(fs.stat(parent), {
        onFailure: () => existingDirectory(fs, parent),
        onSuccess: ({ isDirectory }) => (isDirectory ? Effect.succeed(parent) : existingDirectory(fs, parent))
      })
}
