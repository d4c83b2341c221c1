/** Makes what is staged: many entries at once where the port can, one by one elsewhere and wherever it declines. */
import * as Effect from "effect/Effect"
import { type Fault, located } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, NewEntry } from "../../port/Backend.ts"

/** A new entry, and two ways to its end. */
export interface Making<E> {
  readonly entry: NewEntry
  /** The name that the entry will have, for faults. */
  readonly path: FsPath
  /** Makes the entry by plain operations. */
  readonly alone: Effect.Effect<void, E>
  /** Runs when the port has made the entry, with its mode. */
  readonly made: Effect.Effect<void>
}

export interface Maker<E> {
  /** Makes the entry now or at the latest with `flush`. */
  readonly add: (making: Making<E>) => Effect.Effect<void, E | Fault>
  /** Makes what was added and is not made yet. Anything that relies on those entries comes after it. */
  readonly flush: Effect.Effect<void, E | Fault>
}

/** Entries, and bytes of their contents, that are held before they are made. */
const maxEntries = 1024
const maxBytes = 1024 * 1024

export const make = <E>(port: Backend): Maker<E> => {
  const makeMany = port.accelerations?.makeMany
  if (makeMany === undefined) return { add: ({ alone }) => alone, flush: Effect.void }
  let held: Array<Making<E>> = []
  let bytes = 0
  const flush = Effect.suspend(() => {
    const all = held
    const [first] = all
    if (first === undefined) return Effect.void
    held = []
    bytes = 0
    const asked = Effect.mapError(makeMany(all.map(({ entry }) => entry)), (fault) => located(fault, first.path))
    return Effect.flatMap(asked, (isMade) =>
      Effect.forEach(all, ({ alone, made }, index): Effect.Effect<void, E> => (isMade[index] === true ? made : alone), {
        discard: true
      })
    )
  })
  return {
    add: (making) =>
      Effect.suspend(() => {
        held.push(making)
        bytes += making.entry.bytes?.length ?? 0
        return held.length < maxEntries && bytes < maxBytes ? Effect.void : flush
      }),
    flush
  }
}
