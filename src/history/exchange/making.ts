/** Creates staged entries: many at once if the port supports it, and one by one otherwise or if the port declines. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Fault, located } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, NewEntry } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"

export interface PendingEntry<E> {
  readonly entry: NewEntry
  readonly path: FsPath
  readonly createAlone: Effect.Effect<void, E>
  readonly onCreated: Effect.Effect<void>
}

export interface EntryCreator<E> {
  readonly add: (making: PendingEntry<E>) => Effect.Effect<void, E | Fault>
  /** Creates the added entries that do not exist yet. Callers must flush before they use an added entry. */
  readonly flush: Effect.Effect<void, E | Fault>
}

const maxPendingEntries = 1024
const maxPendingBytes = 1024 * 1024

export const make = <E>(port: Backend): EntryCreator<E> => {
  const perform = performing(port, "MakeMany")
  if (perform === undefined) return { add: ({ createAlone }) => createAlone, flush: Effect.void }
  let pendingEntries: Array<PendingEntry<E>> = []
  let bytes = 0
  const flush = Effect.suspend(() => {
    const all = pendingEntries
    const [first] = all
    if (first === undefined) return Effect.void
    pendingEntries = []
    bytes = 0
    const creation = perform({ _tag: "MakeMany", entries: all.map(({ entry }) => entry) })
    return Effect.flatMap(
      Effect.mapError(creation, (fault) => located(fault, first.path)),
      (answer) => {
        const isCreated = Option.getOrElse(answer, () => [])
        return Effect.forEach(
          all,
          ({ createAlone, onCreated }, index): Effect.Effect<void, E> => (isCreated[index] === true ? onCreated : createAlone),
          { discard: true }
        )
      }
    )
  })
  return {
    add: (making) =>
      Effect.suspend(() => {
        pendingEntries.push(making)
        bytes += making.entry.bytes?.length ?? 0
        return pendingEntries.length < maxPendingEntries && bytes < maxPendingBytes ? Effect.void : flush
      }),
    flush
  }
}
