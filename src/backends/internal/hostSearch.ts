/**
 * Searches files of open directories in the workers.
 *
 * A part of the files is searched at a time, so that neither descriptors nor results pile up. Files that a worker did
 * not reach are requested again.
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Query, Unsearched } from "../../model/search.ts"
import type { Files, Findings, Searched, Visit } from "../../port/explorer.ts"
import type { Searched as Answer, Crew } from "../../runtime/crew.ts"
import { asked, unpacked } from "../../runtime/matching.ts"
import { giveReserves, isFault } from "./attempt.ts"
import type { Place } from "./confined.ts"
import { fromErrno, isExhausted } from "./errno.ts"

export interface Lend<V extends Visit> {
  (visit: V): { readonly place: Place; readonly giveBack: () => void } | Fault
}

/** Directories lent to one job of a worker. Each may need a descriptor. */
const maxLent = 64
/** Attempts for a file, and the milliseconds between them, when the process has no descriptors left. */
const tries = 80
const pause = 25

interface Part {
  readonly end: number
  readonly bases: ReadonlyArray<string>
  readonly counts: ReadonlyArray<number>
  readonly names: ReadonlyArray<string>
  readonly places: ReadonlyArray<number>
  readonly lost: ReadonlyMap<number, Unsearched>
  readonly giveBack: () => void
}

interface Item<V extends Visit> {
  readonly visit: V
  readonly segment: string
}

const itemsOf = <V extends Visit>(files: ReadonlyArray<Files<V>>): ReadonlyArray<Item<V>> =>
  files.flatMap(({ segments, visit }) => segments.map((segment) => ({ visit, segment })))

const lendOrFault = <V extends Visit>(lend: Lend<V>, visit: V): ReturnType<Lend<V>> => {
  try {
    return lend(visit)
  } catch (error) {
    return fromErrno(error)
  }
}

/** Borrows directories for as many files as possible: for none if no descriptor is left for the first. */
const borrow = <V extends Visit>(lend: Lend<V>, items: ReadonlyArray<Item<V>>, start: number): Part => {
  const bases: Array<string> = []
  const counts: Array<number> = []
  const names: Array<string> = []
  const places: Array<number> = []
  const lost = new Map<number, Unsearched>()
  const returns: Array<() => void> = []
  let visit: V | undefined
  let why: Unsearched | undefined
  let end = start
  for (; end < items.length; end++) {
    const item = items[end]!
    if (item.visit !== visit) {
      if (bases.length === maxLent) break
      const lent = lendOrFault(lend, item.visit)
      if (isFault(lent) && isExhausted(lent)) break
      visit = item.visit
      why = undefined
      if (isFault(lent)) why = lent._tag === "NotFound" || lent._tag === "NotADirectory" ? "gone" : "unreadable"
      else {
        returns.push(lent.giveBack)
        bases.push(lent.place.directory as string)
        counts.push(0)
      }
    }
    if (why !== undefined) lost.set(end, why)
    else {
      counts[counts.length - 1]!++
      names.push(item.segment)
      places.push(end)
    }
  }
  return { end, bases, counts, names, places, lost, giveBack: () => returns.forEach((giveBack) => giveBack()) }
}

interface Search<V extends Visit> {
  readonly crew: Crew
  readonly lend: Lend<V>
  readonly refuseHardlinks: boolean
  readonly closed: () => Fault | undefined
  readonly query: Query
  readonly items: ReadonlyArray<Item<V>>
  readonly pathOf: (file: number) => FsPath
}

const searchPart = <V extends Visit>(
  self: Search<V>,
  part: Part,
  start: number,
  from: number
): Effect.Effect<Findings, Fault> => {
  const { bases, counts, end, lost, names, places } = part
  const { crew, pathOf, query, refuseHardlinks } = self
  const inPlace = (all: ReadonlyArray<Searched>, until: number): ReadonlyArray<Searched> => {
    const out: Array<Searched> = []
    let next = 0
    for (let file = start; file < until; file++) {
      const found = lost.get(file)
      out.push(found === undefined ? all[next++]! : { found })
    }
    return out
  }
  if (names.length === 0) return Effect.succeed(inPlace([], end))
  const batch = { bases, counts, names: names.join("/"), from: places[0] === start ? from : 1, refuseHardlinks }
  const answer = asked<Answer>((done, over) => crew.search(query, batch, query.budget, done, over))
  return Effect.flatMap(answer, (answer): Effect.Effect<Findings, Fault> => {
    if (!("_tag" in answer)) {
      // With a path, a match is exactly the result that a caller gets.
      const all = unpacked(answer, (file) => pathOf(places[file]!)) as Effect.Effect<ReadonlyArray<Searched>>
      return Effect.map(all, (all) => inPlace(all, all.length === names.length ? end : places[all.length]!))
    }
    const fault = self.closed()
    return fault === undefined ? Effect.succeed({ ...answer, index: places[answer.index]! }) : Effect.fail(fault)
  })
}

const searchAll = Effect.fnUntraced(function* <V extends Visit>(
  self: Search<V>,
  from: number
): Effect.fn.Return<Findings, Fault> {
  const out: Array<Searched> = []
  let stuck = 0
  while (out.length < self.items.length) {
    const start = out.length
    const some = yield* Effect.acquireUseRelease(
      Effect.sync(() => borrow(self.lend, self.items, start)),
      (part) => searchPart(self, part, start, start === 0 ? from : 1),
      ({ giveBack }) => Effect.sync(giveBack)
    )
    if ("_tag" in some) return some
    for (const searched of some) out.push(searched)
    stuck = some.length > 0 ? 0 : stuck + 1
    if (stuck === 0) continue
    giveReserves()
    if (stuck > tries) out.push({ found: "unreadable" })
    else yield* Effect.sleep(pause)
  }
  return out
})

export const make =
  <V extends Visit>(crew: Crew, lend: Lend<V>, refuseHardlinks: boolean, closed: () => Fault | undefined) =>
  (
    query: Query,
    files: ReadonlyArray<Files<V>>,
    from: number,
    pathOf: (file: number) => FsPath
  ): Effect.Effect<Findings, Fault> =>
    searchAll({ crew, lend, refuseHardlinks, closed, query, items: itemsOf(files), pathOf }, from)
