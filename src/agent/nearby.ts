/**
 * For a path that is not there: up to three that are and look like it, first of the same name elsewhere, then of nearly the same name in
 * the same directory.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FileEntry } from "../model/Entry.ts"
import * as FsPath from "../model/FsPath.ts"
import { inSlices, perItem, type Steps } from "../runtime/steps.ts"

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
  const most = Math.max(1, Math.floor(a.length / 3))
  if (b.startsWith(a)) return b.length - a.length
  // No distance is less than the difference in length.
  if (Math.abs(a.length - b.length) > most) return Number.POSITIVE_INFINITY
  const distance = editDistance(a, b)
  return distance <= most ? distance : Number.POSITIVE_INFINITY
}

/** Finds the entries of a directory that look like a name, nearest first. Comparing takes the product of both lengths. */
export const alike = function* (path: FsPath.FsPath, entries: ReadonlyArray<FileEntry>): Steps<ReadonlyArray<FsPath.FsPath>> {
  const name = FsPath.name(path)
  const found: Array<{ readonly path: FsPath.FsPath; readonly distance: number }> = []
  for (const entry of entries) {
    yield perItem + 8 * name.length * entry.name.length
    // A link that leads nowhere stands there itself.
    if (!entry.addressable || entry.path === path) continue
    const distance = looksLike(name, entry.name)
    if (distance < Number.POSITIVE_INFINITY) found.push({ path: entry.path, distance })
  }
  return found
    .sort((a, b) => a.distance - b.distance)
    .slice(0, wanted)
    .map((candidate) => candidate.path)
}

const inSameDirectory = (fs: Algebra, path: FsPath.FsPath) =>
  Effect.flatMap(fs.list(FsPath.parent(path)), (entries) => inSlices(() => alike(path, entries)))

/** Looking through everything is worth a moment, not more. */
const elsewhere = (fs: Algebra, path: FsPath.FsPath) => {
  const name = FsPath.name(path)
  if (/[\\*?[\]{}()!+@|]/.test(name)) return Effect.succeed([])
  return fs.globStream(name, { kinds: ["file", "directory"], gitignore: true }).pipe(
    Stream.take(wanted),
    Stream.map((match) => match.path),
    Stream.runCollect,
    Effect.timeoutOption("1 second"),
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
