/** Creates staged entries: many at once if the port supports it, and one by one otherwise or if the port declines. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Fault, located } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, NewEntry } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"

export interface Making<E> {
  readonly entry: NewEntry
  readonly path: FsPath
  readonly alone: Effect.Effect<void, E>
  readonly made: Effect.Effect<void>
}

export interface Maker<E> {
  readonly add: (making: Making<E>) => Effect.Effect<void, E | Fault>
  /** Creates the added entries that do not exist yet. Callers must flush before they use an added entry. */
  readonly flush: Effect.Effect<void, E | Fault>
}

const maxEntries = 1024
const maxBytes = 1024 * 1024

export const make = <E>(port: Backend): Maker<E> => {
  const perform = performing(port, "MakeMany")
  if (perform === undefined) return { add: ({ alone }) => alone, flush: Effect.void }
  let held: Array<Making<E>> = []
  let bytes = 0
  const flush = Effect.suspend(() => {
    const all = held
    const [first] = all
    if (first === undefined) return Effect.void
    held = []
    bytes = 0
    const asked = perform({ _tag: "MakeMany", entries: all.map(({ entry }) => entry) })
    return Effect.flatMap(
      Effect.mapError(asked, (fault) => located(fault, first.path)),
      (answer) => {
        const isMade = Option.getOrElse(answer, () => [])
        return Effect.forEach(
          all,
          ({ alone, made }, index): Effect.Effect<void, E> => (isMade[index] === true ? made : alone),
          { discard: true }
        )
      }
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
