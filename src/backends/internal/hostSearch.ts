/** Files of directories that are at hand, searched by the workers. */
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Query, Unsearched } from "../../model/search.ts"
import type { Files, Findings, Searched, Visit } from "../../port/explorer.ts"
import type { Searched as Answer, Crew } from "../../runtime/crew.ts"
import { asked, unpacked } from "../../runtime/matching.ts"
import { attempt } from "./attempt.ts"
import type { Place } from "./confined.ts"

/** A directory lent for as long as the files in it are searched; or why there is none. */
export interface Lend<V extends Visit> {
  (visit: V): { readonly place: Place; readonly giveBack: () => void } | Fault
}

interface Lent {
  readonly bases: Array<string>
  readonly counts: Array<number>
  readonly names: Array<string>
  /** Which of all files each of these is. */
  readonly places: Array<number>
  /** Of every file why it cannot be searched, where it cannot. */
  readonly lost: Array<Unsearched | undefined>
  readonly giveBack: Array<() => void>
}

const borrowAll = <V extends Visit>(lend: Lend<V>, files: ReadonlyArray<Files<V>>): Effect.Effect<Lent> => {
  const lent: Lent = { bases: [], counts: [], names: [], places: [], lost: [], giveBack: [] }
  const borrow = ({ segments, visit }: Files<V>): Effect.Effect<void> =>
    Effect.match(
      attempt(() => lend(visit)),
      {
        onSuccess: ({ giveBack, place }) => {
          lent.giveBack.push(giveBack)
          lent.bases.push(place.directory as string)
          lent.counts.push(segments.length)
          for (const segment of segments) {
            lent.names.push(segment)
            lent.places.push(lent.lost.length)
            lent.lost.push(undefined)
          }
        },
        onFailure: ({ _tag }) => {
          const why = _tag === "NotFound" || _tag === "NotADirectory" ? "gone" : "unreadable"
          for (const _ of segments) lent.lost.push(why)
        }
      }
    )
  return Effect.as(Effect.forEach(files, borrow, { discard: true }), lent)
}

const inPlace = (all: ReadonlyArray<Searched>, { lost }: Lent): ReadonlyArray<Searched> => {
  let next = 0
  return lost.map((why) => (why === undefined ? all[next++]! : { found: why }))
}

/** `closed` says why no file can be searched any more. */
export const make =
  <V extends Visit>(crew: Crew, lend: Lend<V>, refuseHardlinks: boolean, closed: () => Fault | undefined) =>
  (
    query: Query,
    files: ReadonlyArray<Files<V>>,
    from: number,
    pathOf: (file: number) => FsPath
  ): Effect.Effect<Findings, Fault> =>
    Effect.acquireUseRelease(
      borrowAll(lend, files),
      (lent) => {
        const { bases, counts, lost, names, places } = lent
        if (names.length === 0) return Effect.succeed<Findings>(lost.map((why) => ({ found: why! })))
        const batch = { bases, counts, names: names.join("/"), from: lost[0] === undefined ? from : 1, refuseHardlinks }
        const answer = asked<Answer>((done, over) => crew.search(query, batch, query.budget, done, over))
        return Effect.flatMap(answer, (answer): Effect.Effect<Findings, Fault> => {
          if (!("_tag" in answer)) {
            // With a path, a match is all that a caller gets.
            const all = unpacked(answer, (file) => pathOf(places[file]!)) as Effect.Effect<ReadonlyArray<Searched>>
            return Effect.map(all, (all) => inPlace(all, lent))
          }
          const fault = closed()
          return fault === undefined ? Effect.succeed({ ...answer, index: places[answer.index]! }) : Effect.fail(fault)
        })
      },
      ({ giveBack }) => Effect.sync(() => giveBack.forEach((give) => give()))
    )
