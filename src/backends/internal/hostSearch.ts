/**
 * Searches files of open directories in the workers.
 *
 * A part of the files is searched at a time, so that neither descriptors nor results pile up. Files that a worker did
 * not reach are requested again.
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Query, SkipReason } from "../../model/search.ts"
import type { DirectoryFiles, BatchSearchResult, Searched, Visit } from "../../port/explorer.ts"
import type { Searched as Answer, WorkerPool } from "../../runtime/crew.ts"
import { awaitJob, unpacked } from "../../runtime/matching.ts"
import { releaseReserves, isFault } from "./attempt.ts"
import type { HostDirectory } from "./confined.ts"
import { fromErrno, isExhausted } from "./errno.ts"

export interface LendDirectory<V extends Visit> {
  (visit: V): { readonly place: HostDirectory; readonly returnLoan: () => void } | Fault
}

/** Directories lent to one job of a worker. Each may need a descriptor. */
const maxBorrowed = 64
/** Attempts for a file, and the milliseconds between them, when the process has no descriptors left. */
const maxAttempts = 80
const retryDelayMillis = 25

interface SearchPart {
  readonly end: number
  readonly bases: ReadonlyArray<string>
  readonly counts: ReadonlyArray<number>
  readonly names: ReadonlyArray<string>
  readonly places: ReadonlyArray<number>
  readonly skippedFiles: ReadonlyMap<number, SkipReason>
  readonly returnLoan: () => void
}

interface Item<V extends Visit> {
  readonly visit: V
  readonly segment: string
}

const itemsOf = <V extends Visit>(files: ReadonlyArray<DirectoryFiles<V>>): ReadonlyArray<Item<V>> =>
  files.flatMap(({ segments, visit }) => segments.map((segment) => ({ visit, segment })))

const lendOrFault = <V extends Visit>(lend: LendDirectory<V>, visit: V): ReturnType<LendDirectory<V>> => {
  try {
    return lend(visit)
  } catch (error) {
    return fromErrno(error)
  }
}

/** Borrows directories for as many files as possible: for none if no descriptor is left for the first. */
const borrow = <V extends Visit>(lend: LendDirectory<V>, items: ReadonlyArray<Item<V>>, start: number): SearchPart => {
  const bases: Array<string> = []
  const counts: Array<number> = []
  const names: Array<string> = []
  const places: Array<number> = []
  const skippedFiles = new Map<number, SkipReason>()
  const returns: Array<() => void> = []
  let visit: V | undefined
  let skipReason: SkipReason | undefined
  let end = start
  for (; end < items.length; end++) {
    const item = items[end]!
    if (item.visit !== visit) {
      if (bases.length === maxBorrowed) break
      const lent = lendOrFault(lend, item.visit)
      if (isFault(lent) && isExhausted(lent)) break
      visit = item.visit
      skipReason = undefined
      if (isFault(lent)) skipReason = lent._tag === "NotFound" || lent._tag === "NotADirectory" ? "gone" : "unreadable"
      else {
        returns.push(lent.returnLoan)
        bases.push(lent.place.directory as string)
        counts.push(0)
      }
    }
    if (skipReason !== undefined) skippedFiles.set(end, skipReason)
    else {
      counts[counts.length - 1]!++
      names.push(item.segment)
      places.push(end)
    }
  }
  return { end, bases, counts, names, places, skippedFiles, returnLoan: () => returns.forEach((returnLoan) => returnLoan()) }
}

interface Search<V extends Visit> {
  readonly crew: WorkerPool
  readonly lend: LendDirectory<V>
  readonly refuseHardlinks: boolean
  readonly closed: () => Fault | undefined
  readonly query: Query
  readonly items: ReadonlyArray<Item<V>>
  readonly pathOf: (file: number) => FsPath
}

const searchPart = <V extends Visit>(
  self: Search<V>,
  part: SearchPart,
  start: number,
  from: number
): Effect.Effect<BatchSearchResult, Fault> => {
  const { bases, counts, end, skippedFiles, names, places } = part
  const { crew, pathOf, query, refuseHardlinks } = self
  const inFileOrder = (all: ReadonlyArray<Searched>, until: number): ReadonlyArray<Searched> => {
    const out: Array<Searched> = []
    let next = 0
    for (let file = start; file < until; file++) {
      const found = skippedFiles.get(file)
      out.push(found === undefined ? all[next++]! : { found })
    }
    return out
  }
  if (names.length === 0) return Effect.succeed(inFileOrder([], end))
  const batch = { bases, counts, names: names.join("/"), from: places[0] === start ? from : 1, refuseHardlinks }
  const answer = awaitJob<Answer>((done, over) => crew.search(query, batch, query.patternBudgetMillis, done, over))
  return Effect.flatMap(answer, (answer): Effect.Effect<BatchSearchResult, Fault> => {
    if (!("_tag" in answer)) {
      // With a path, a match is exactly the result that a caller gets.
      const all = unpacked(answer, (file) => pathOf(places[file]!)) as Effect.Effect<ReadonlyArray<Searched>>
      return Effect.map(all, (all) => inFileOrder(all, all.length === names.length ? end : places[all.length]!))
    }
    const fault = self.closed()
    return fault === undefined ? Effect.succeed({ ...answer, index: places[answer.index]! }) : Effect.fail(fault)
  })
}

const searchAll = Effect.fnUntraced(function* <V extends Visit>(
  self: Search<V>,
  from: number
): Effect.fn.Return<BatchSearchResult, Fault> {
  const out: Array<Searched> = []
  let emptyRounds = 0
  while (out.length < self.items.length) {
    const start = out.length
    const some = yield* Effect.acquireUseRelease(
      Effect.sync(() => borrow(self.lend, self.items, start)),
      (part) => searchPart(self, part, start, start === 0 ? from : 1),
      ({ returnLoan }) => Effect.sync(returnLoan)
    )
    if ("_tag" in some) return some
    for (const searched of some) out.push(searched)
    emptyRounds = some.length > 0 ? 0 : emptyRounds + 1
    if (emptyRounds === 0) continue
    releaseReserves()
    if (emptyRounds > maxAttempts) out.push({ found: "unreadable" })
    else yield* Effect.sleep(retryDelayMillis)
  }
  return out
})

export const make =
  <V extends Visit>(crew: WorkerPool, lend: LendDirectory<V>, refuseHardlinks: boolean, closed: () => Fault | undefined) =>
  (
    query: Query,
    files: ReadonlyArray<DirectoryFiles<V>>,
    from: number,
    pathOf: (file: number) => FsPath
  ): Effect.Effect<BatchSearchResult, Fault> =>
    searchAll({ crew, lend, refuseHardlinks, closed, query, items: itemsOf(files), pathOf }, from)
