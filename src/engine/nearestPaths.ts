import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { runInSlices, unitsPerItem, type Steps } from "../runtime/steps.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { resolve } from "./resolve.ts"

export const maxNearest = 3

const maxNameLength = 256

/** Computes the edit distance of two words: insertions, deletions, substitutions and swaps of neighbours. */
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

/** Returns the edit distance of names that are similar enough to be confused, and Infinity for others. */
export const nameDistance = (name: string, candidate: string): number => {
  const a = FsPath.fold(name)
  const b = FsPath.fold(candidate)
  if (a === "" || a.length > maxNameLength || b.length > maxNameLength) return Number.POSITIVE_INFINITY
  const maxDistance = Math.max(1, Math.floor(a.length / 3))
  if (b.startsWith(a)) return b.length - a.length
  if (Math.abs(a.length - b.length) > maxDistance) return Number.POSITIVE_INFINITY
  const distance = editDistance(a, b)
  return distance <= maxDistance ? distance : Number.POSITIVE_INFINITY
}

export const similarNames = function* (
  name: string,
  entries: ReadonlyArray<{ readonly name: string; readonly addressable: boolean }>
): Steps<ReadonlyArray<string>> {
  const found: Array<{ readonly name: string; readonly distance: number }> = []
  for (const entry of entries) {
    yield unitsPerItem + 8 * name.length * entry.name.length
    // An entry with the missing name itself is a dangling symlink, so do not suggest it.
    if (!entry.addressable || entry.name === name) continue
    const distance = nameDistance(name, entry.name)
    if (distance < Number.POSITIVE_INFINITY) found.push({ name: entry.name, distance })
  }
  return found
    .sort((a, b) => a.distance - b.distance || FsPath.compare(a.name, b.name))
    .slice(0, maxNearest)
    .map((candidate) => candidate.name)
}

/**
 * Finds existing paths of these kinds that are similar to a missing path.
 *
 * Starts at the deepest existing directory above the missing path, and finds the similar names in it. Each result is the
 * missing path with such a name in place of the wrong one. If that does not exist, the result ends with the name.
 */
export const nearestPaths = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  kinds: ReadonlyArray<Kind>
): Effect.fn.Return<ReadonlyArray<FsPath.FsPath>, Fault> {
  const names = FsPath.segments(path)
  for (let depth = names.length - 1; depth >= 0; depth--) {
    const above = FsPath.fromSegments(names.slice(0, depth))
    const { path: at, stat } = yield* resolve(port, above)
    if (stat === undefined) continue
    if (stat.kind !== "directory") return []
    const children = (yield* port.list(at)).filter(
      ({ kind, name }) => (kind === "symlink" || kinds.includes(kind)) && !TemporaryNames.isInProgress(name)
    )
    const rest = FsPath.fromSegments(names.slice(depth + 1))
    const nearest: Array<FsPath.FsPath> = []
    for (const name of yield* runInSlices(() => similarNames(names[depth]!, children))) {
      const candidate = FsPath.join(above, name)
      const whole = FsPath.below(candidate, rest)
      const found = yield* Effect.option(resolve(port, whole))
      const isThere = found._tag === "Some" && found.value.stat !== undefined && kinds.includes(found.value.stat.kind)
      nearest.push(isThere ? whole : candidate)
    }
    return nearest
  }
  return []
})
