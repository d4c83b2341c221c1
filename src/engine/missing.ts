/**
 * Handles entries that a walk listed but can no longer find.
 *
 * A removed file is no error. A file that was moved, alone or with a directory above it, must not be missed silently.
 */
import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import { type FsPath, isTemporaryName } from "../model/FsPath.ts"
import { type Child, keyOf } from "../port/Backend.ts"

/** The state of a missing entry. "moved" also means that a directory above the entry was moved or replaced. */
export type EntryFate = "removed" | "there" | "moved"

interface Relisted {
  readonly kinds: ReadonlyMap<string, Kind>
  readonly newKinds: ReadonlySet<Kind>
}

const relistedOf = (listed: ReadonlyArray<Child> | undefined, children: ReadonlyArray<Child>): Relisted => {
  const kinds = new Map(children.map((child) => [keyOf(child), child.kind]))
  const newKinds = new Set<Kind>()
  if (listed !== undefined) {
    const before = new Set(listed.map(keyOf))
    for (const child of children) {
      if (!before.has(keyOf(child)) && !isTemporaryName(child.name)) newKinds.add(child.kind)
    }
  }
  return { kinds, newKinds }
}

const fateOf = ({ kinds, newKinds }: Relisted, segment: string, kind: Kind): EntryFate =>
  kinds.get(segment) === kind ? "there" : newKinds.has(kind) ? "moved" : "removed"

/**
 * The maximum number of names in the repeated listings of one directory. Beyond this number, the last listing decides.
 */
const maxCost = 1_000_000

/** The fixed cost of a listing, as a number of names. Some backends start a process for each listing. */
const listingCost = 5_000

/** The repeated listings of one directory. Their cost is bounded, because a search may miss each of a million files. */
export class Relistings {
  #cost = 0
  #last: Relisted | undefined
  fate: EntryFate | undefined

  /** Returns the fate of a child, or `undefined` if the caller must list the directory again and call `take`. */
  begin(segment: string, kind: Kind): EntryFate | undefined {
    const isSpent = this.#cost >= maxCost
    if (this.#last !== undefined && (isSpent || !this.#last.kinds.has(segment))) return fateOf(this.#last, segment, kind)
    if (isSpent) return this.fate ?? "moved"
    this.#cost += listingCost
    return undefined
  }

  take(listed: ReadonlyArray<Child> | undefined, children: ReadonlyArray<Child>, segment: string, kind: Kind): EntryFate {
    this.#cost += children.length
    return fateOf((this.#last = relistedOf(listed, children)), segment, kind)
  }
}

export const maxAttempts = 3

interface Outcome {
  readonly path: FsPath
  readonly found: ReadonlyArray<unknown> | string
}

interface Unreadable {
  readonly path: FsPath
  readonly found: "unreadable"
}

type OutcomesOrFault<O> = ReadonlyArray<O> | { readonly done: ReadonlyArray<O>; readonly fault: Fault }

export interface MissingFileSearch<F, O> {
  readonly search: (files: ReadonlyArray<F>) => Effect.Effect<OutcomesOrFault<O>, Fault>
  readonly determineFate: (file: F) => Effect.Effect<EntryFate, Fault>
  readonly fileAt: (index: number) => F
}

/**
 * Searches files with the outcome "gone" again. A file that is still missing, but was not removed, gets the outcome
 * "unreadable".
 */
export const retryMissing = Effect.fnUntraced(function* <F, O extends Outcome>(
  { determineFate, fileAt, search }: MissingFileSearch<F, O>,
  answer: OutcomesOrFault<O>
): Effect.fn.Return<OutcomesOrFault<O | Unreadable>, Fault> {
  const first = "done" in answer ? answer.done : answer
  if (!first.some(({ found }) => found === "gone")) return answer
  let missing = first.flatMap(({ found }, index) => (found === "gone" ? [index] : []))
  const moved = new Set<number>()
  const out: Array<O> = [...first]
  for (let left = maxAttempts; left > 0 && missing.length > 0; left--) {
    const foundAgain = yield* search(missing.map(fileAt))
    if ("done" in foundAgain) return { done: out.slice(0, missing[0]), fault: foundAgain.fault }
    for (const [i, index] of missing.entries()) out[index] = foundAgain[i]!
    missing = missing.filter((index) => out[index]!.found === "gone")
    moved.clear()
    for (const index of missing) if ((yield* determineFate(fileAt(index))) !== "removed") moved.add(index)
    yield* Effect.yieldNow
  }
  const all = out.map((outcome, index) => (moved.has(index) ? { path: outcome.path, found: "unreadable" as const } : outcome))
  return "done" in answer ? { done: all, fault: answer.fault } : all
})

export const searchSingle = <O extends Outcome>(
  base: { readonly path: FsPath },
  stat: Effect.Effect<unknown, Fault>,
  search: Effect.Effect<OutcomesOrFault<O>, Fault>,
  left = maxAttempts
): Effect.Effect<OutcomesOrFault<O | Unreadable>, Fault> =>
  Effect.flatMap(search, (answer) => {
    if ("done" in answer || answer[0]?.found !== "gone") return Effect.succeed(answer)
    return Effect.flatMap(stat, (now): Effect.Effect<OutcomesOrFault<O | Unreadable>, Fault> => {
      if (now === undefined) return Effect.succeed(answer)
      return left === 0
        ? Effect.succeed([{ path: base.path, found: "unreadable" }])
        : searchSingle(base, stat, search, left - 1)
    })
  })
