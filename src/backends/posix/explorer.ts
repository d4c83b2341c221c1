/**
 * Explores host directories for a walk.
 *
 * A directory is opened through the descriptor of its parent as long as the walk holds the parent open. So no other
 * process can lead the walk to another directory.
 *
 * This thread reads the first directories, because a worker takes longer to start. In a large tree, search processes
 * visit the other directories (`trees.ts`). Without search processes, worker threads list many directories at a time
 * while the walk processes earlier ones. If the contents are searched too, the worker threads only search files, and
 * this thread lists the directories. Search processes neither report stamps nor ignore case.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, isTemporaryName, root } from "../../model/FsPath.ts"
import type { Query, SkipReason } from "../../model/search.ts"
import { type Child, keyOf } from "../../port/Backend.ts"
import {
  type BatchSearchResult,
  type DirectoryFiles,
  type DirectoryReading,
  type Explore,
  type Explorer,
  inWalkOrder,
  type Searched,
  type Visit
} from "../../port/explorer.ts"
import type { BatchResult as Answer, WorkerPool } from "../../runtime/workerPool.ts"
import type { Listing } from "../../runtime/lister.ts"
import type { SearchProcesses } from "../../runtime/searchProcesses.ts"
import { awaitJob, matchedOf, unpacked } from "../../runtime/matching.ts"
import { Fs } from "../../runtime/node.ts"
import { children, isSmall, listSync, readStamps, readStampsSync, removeLeftover, stampsOfListing } from "./entries.ts"
import { attempt, isExhausted, onExhausted, releaseReserves } from "./errors.ts"
import { faultOf } from "../../runtime/host.ts"
import { is as isFault, notFound } from "../../model/Fault.ts"
import { makeTreeSearcher } from "./trees.ts"
import { childOf, type Confined, type HostDirectory, isPlainText, maxAttempts, withPlace } from "./place.ts"

// Searches files of open directories in worker threads.
//
// Only a part of the files is searched at a time, to limit the open descriptors and the results in memory. A file that a
// worker did not reach is requested again.

interface LendDirectory<V extends Visit> {
  (visit: V): { readonly place: HostDirectory; readonly returnLoan: () => void } | Fault
}

/** The maximum number of directories in one search job. Each directory may need a descriptor. */
const maxBorrowed = 64
/** The maximum number of retries while no descriptor is free for a search, and the pause before each retry. */
const maxSearchRetries = 80
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
  files.flatMap(({ children, visit }) => children.map((child) => ({ visit, segment: keyOf(child) })))

const lendOrFault = <V extends Visit>(lend: LendDirectory<V>, visit: V): ReturnType<LendDirectory<V>> => {
  try {
    return lend(visit)
  } catch (error) {
    return faultOf(error)
  }
}

/** Borrows the directories of the files from `start` on. Stops after `maxBorrowed` directories, or when no descriptor is free. */
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
  readonly workers: WorkerPool
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
  const { workers, pathOf, query, refuseHardlinks } = self
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
  const answer = awaitJob<Answer>((done, over) => workers.search(query, batch, query.patternBudgetMillis, done, over))
  return Effect.flatMap(answer, (answer): Effect.Effect<BatchSearchResult, Fault> => {
    if (!("_tag" in answer)) {
      // Pass the path, so that `unpacked` creates each match in the form that the search returns.
      return Effect.map(unpacked(answer, (file) => pathOf(places[file]!))(), (all) =>
        inFileOrder(matchedOf(all, answer), all.length === names.length ? end : places[all.length]!)
      )
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
    if (emptyRounds > maxSearchRetries) out.push({ found: "unreadable" })
    else yield* Effect.sleep(retryDelayMillis)
  }
  return out
})

const make =
  <V extends Visit>(workers: WorkerPool, lend: LendDirectory<V>, refuseHardlinks: boolean, closed: () => Fault | undefined) =>
  (
    query: Query,
    files: ReadonlyArray<DirectoryFiles<V>>,
    from: number,
    pathOf: (file: number) => FsPath
  ): Effect.Effect<BatchSearchResult, Fault> =>
    searchAll({ workers, lend, refuseHardlinks, closed, query, items: itemsOf(files), pathOf }, from)

/**
 * The number of directories that this thread reads before workers take over. Reading these directories takes about 2 ms;
 * starting a worker takes 40 ms.
 */
const firstDirectories = 128
const directoriesPerJob = 64
const maxRequested = 320
/** The number of directories that this thread reads at a time, and the number that it reads between two yields. */
const directoriesPerBatch = 16
const directoriesPerYield = 128
/** The maximum number of directories that all walks together keep open, unless a quarter of the descriptors are fewer. */
const maxHeld = 1536
let heldCount = 0

const quarterOfDescriptorLimit = (): number => {
  const limit = /^Max open files\s+(\d+)/m.exec(Fs.readFileSync("/proc/self/limits", "latin1"))
  return limit === null ? maxHeld : Number(limit[1]) >> 2
}
let heldLimit = 0
const mayHold = (): boolean => {
  if (heldLimit === 0) heldLimit = Math.min(maxHeld, quarterOfDescriptorLimit())
  return heldCount < heldLimit
}

interface HeldDirectory {
  readonly place: HostDirectory
  lent: number
  /** True after the walk has left the directory. If so, the last user of the directory releases it. */
  isAbandoned: boolean
}

interface BorrowedDirectory {
  readonly place: HostDirectory
  readonly returnLoan: () => void
}

const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

const childrenOf = ({ kinds: codes, names }: Listing, caseSensitive: boolean): ReadonlyArray<Child> => {
  if (codes.length === 0) return []
  const all = names.split("/")
  if (caseSensitive && isPlainText(names))
    return all.map((name, index) => ({ name, kind: kinds[codes[index]!]!, addressable: true }))
  // A name that no path can express is escaped, which may change its position in the order.
  return inWalkOrder(
    all.map((name, index) => childOf(name, kinds[codes[index]!]!)),
    caseSensitive
  )
}

/**
 * Tests whether all names of a listing are ordinary. Otherwise this thread lists the directory again.
 *
 * A name may be invalid text. A name like that of a temporary file may belong to a file of a running process, to a
 * leftover, or to an ordinary file.
 */
const isPlain = (answer: Listing | string): answer is Listing =>
  typeof answer !== "string" &&
  !answer.mayBeLossy &&
  !(answer.names.includes(".~") && answer.names.split("/").some(isTemporaryName))

type Reading = Omit<DirectoryReading<Visit>, "visit" | "children"> & { readonly children: ReadonlyArray<Child> }

interface Means {
  readonly workers: WorkerPool | undefined
  /** Returns the processes that search subtrees, or `undefined` if no process can be started. */
  readonly processes?: (() => SearchProcesses | undefined) | undefined
  readonly sweeps: boolean
  readonly refuseHardlinks: boolean
  /** True if children are returned as `StampedChild`, in any order. */
  readonly stamps?: boolean | undefined
}

const makeHostExplorer = <V extends Visit>(
  confined: Confined,
  { processes, workers, refuseHardlinks, stamps = false, sweeps }: Means,
  pathOf: (visit: V) => FsPath,
  searches: boolean
) => {
  const { caseSensitive } = confined
  const readsLocally = workers === undefined || searches
  const held = new Map<Visit, HeldDirectory>()
  const withdrawals = new Set<() => void>()
  let localQueue: Array<V> = []
  let done: Array<DirectoryReading<V>> = []
  /** The directories whose fast listing failed or contained unusual names, so that they are listed again. */
  let relistQueue: Array<V> = []
  let requestedCount = 0
  let readLocally = 0
  let wake: (() => void) | undefined
  let onIdle: (() => void) | undefined

  const closed = (): Fault | undefined => withPlace(confined.directory(root), () => undefined)

  const releaseHeld = (visit: Visit, heldDirectory: HeldDirectory): void => {
    held.delete(visit)
    heldCount--
    if (heldDirectory.lent === 0) heldDirectory.place.release()
    else heldDirectory.isAbandoned = true
  }

  const returnLoan = (heldDirectory: HeldDirectory): void => {
    if (--heldDirectory.lent === 0 && heldDirectory.isAbandoned) heldDirectory.place.release()
  }

  /** Unregisters the handler that releases unused directories when the process has no descriptors left. */
  const stopReleasing = onExhausted(() => {
    for (const [visit, heldDirectory] of held) {
      if (heldDirectory.lent === 0) releaseHeld(visit, heldDirectory)
    }
  })

  const openVisit = (visit: V): HostDirectory | Fault => {
    const above = visit.above && held.get(visit.above)?.place
    return above === undefined ? confined.directory(pathOf(visit)) : above.openChild(visit.segment)
  }

  const holdDirectory = (visit: V, place: HostDirectory): HeldDirectory => {
    const heldDirectory = { place, lent: 0, isAbandoned: false }
    held.set(visit, heldDirectory)
    heldCount++
    return heldDirectory
  }

  /**
   * Opens a directory until its caller calls `returnLoan`.
   *
   * A held directory stays open until the walk leaves it. With `isRead`, the directory is held if possible, because its
   * subdirectories are then opened through it.
   */
  const lendDirectory = (visit: V, isRead = false): BorrowedDirectory | Fault => {
    let heldDirectory = held.get(visit)
    if (heldDirectory === undefined) {
      const place = openVisit(visit)
      if (isFault(place)) return place
      if (!isRead || !mayHold()) return { place, returnLoan: () => place.release() }
      heldDirectory = holdDirectory(visit, place)
    }
    const lent = heldDirectory
    lent.lent++
    return { place: lent.place, returnLoan: () => returnLoan(lent) }
  }

  const borrow = (visit: V, isRead = false): BorrowedDirectory | undefined => {
    try {
      const lent = lendDirectory(visit, isRead)
      return isFault(lent) ? undefined : lent
    } catch {
      return undefined
    }
  }

  const readNow = (visit: V): Reading | undefined => {
    const borrowed = borrow(visit, true)
    if (borrowed === undefined) return undefined
    try {
      if (!isSmall(borrowed.place)) return undefined
      if (stamps) return readStampsSync(borrowed.place)
      const children = listSync(borrowed.place)
      return children.some(({ name }) => isTemporaryName(name)) ? undefined : { children: inWalkOrder(children, caseSensitive) }
    } catch {
      return undefined
    } finally {
      borrowed.returnLoan()
    }
  }

  const addReading = (visit: V, reading: Reading | undefined): void => {
    requestedCount--
    if (reading === undefined) relistQueue.push(visit)
    else done.push({ visit, ...reading })
  }

  const sendJob = (workers: WorkerPool, visits: ReadonlyArray<V>): void => {
    const paths: Array<string> = []
    const sent: Array<V> = []
    const returns: Array<() => void> = []
    const borrowed = new Map<Visit, HostDirectory>()
    for (const visit of visits) {
      const above = visit.above as V | undefined
      let place = above && borrowed.get(above)
      if (above !== undefined && place === undefined) {
        const lent = borrow(above)
        if (lent !== undefined) {
          borrowed.set(above, (place = lent.place))
          returns.push(lent.returnLoan)
        }
      }
      const path = place?.at(visit.segment)
      if (typeof path !== "string") addReading(visit, undefined)
      else {
        paths.push(path)
        sent.push(visit)
      }
    }
    const withdraw = workers.list(
      paths,
      (answers) => {
        for (const [index, visit] of sent.entries()) {
          const answer = answers[index]!
          if (!isPlain(answer)) addReading(visit, undefined)
          else addReading(visit, stamps ? stampsOfListing(answer) : { children: childrenOf(answer, caseSensitive) })
        }
        wake?.()
      },
      () => {
        withdrawals.delete(withdraw)
        for (const returnLoan of returns) returnLoan()
        if (withdrawals.size === 0) onIdle?.()
      },
      stamps
    )
    withdrawals.add(withdraw)
  }

  const listIn = (place: HostDirectory): Effect.Effect<Reading, Fault> =>
    stamps
      ? readStamps(place)
      : Effect.map(children(place), (found) => ({
          // If another process has moved the directory, it may be outside the root, so nothing in it is removed.
          children: sweeps && place.isSame() ? found.filter(({ name }) => !removeLeftover(place, name)) : found
        }))

  /** Lists a directory again, through its parent's descriptor, because its path may now lead to another directory. */
  const listAgain = (visit: V, left = maxAttempts): Effect.Effect<Reading, Fault> =>
    Effect.flatten(
      Effect.acquireUseRelease(
        attempt(() => lendDirectory(visit, true)),
        ({ place }) =>
          Effect.map(Effect.result(listIn(place)), (result) => {
            // If an entry disappears while Node determines its kind, the listing of an existing directory can fail with
            // NotFound.
            const isGone = result._tag === "Failure" && result.failure._tag === "NotFound"
            return isGone && left > 0 ? listAgain(visit, left - 1) : Effect.fromResult(result)
          }),
        ({ returnLoan }) => Effect.sync(returnLoan)
      )
    )

  const readAgain = (visit: V): Effect.Effect<void> =>
    Effect.match(listAgain(visit), {
      onSuccess: ({ children, self }) =>
        void done.push({ visit, children: stamps ? children : inWalkOrder(children, caseSensitive), self }),
      onFailure: (children) => void done.push({ visit, children })
    })

  const available = stamps || !caseSensitive ? undefined : processes?.()
  const treeSearch = available && makeTreeSearcher(confined, available, refuseHardlinks, pathOf, () => wake?.())

  const waitForReport: Effect.Effect<void> = Effect.callback<void>((resume) => {
    // Test again, because readings may have arrived since the last test.
    if (done.length + relistQueue.length > 0 || treeSearch?.hasReadings() === true) return resume(Effect.void)
    wake = () => {
      wake = undefined
      resume(Effect.void)
    }
    return Effect.sync(() => {
      wake = undefined
    })
  })

  const explorer: Explorer<V> = {
    trees: treeSearch?.trees,
    search: workers && make(workers, lendDirectory, refuseHardlinks, closed),
    availableReads: () => {
      if (readLocally < firstDirectories) return requestedCount === 0 ? 1 : 0
      if (readsLocally || treeSearch?.isBegun() === true) return requestedCount === 0 ? directoriesPerBatch : 0
      return maxRequested - requestedCount < directoriesPerJob ? 0 : maxRequested - requestedCount
    },
    read: (visits) => {
      requestedCount += visits.length
      if (workers === undefined || readsLocally || treeSearch?.isBegun() === true || readLocally < firstDirectories)
        localQueue.push(...visits.toReversed())
      else
        for (let at = 0; at < visits.length; at += directoriesPerJob) sendJob(workers, visits.slice(at, at + directoriesPerJob))
    },
    take: () => {
      const taken = done
      done = []
      return taken
    },
    waitForReading: Effect.suspend(() => {
      if (done.length > 0) return Effect.void
      const unusualVisit = relistQueue.pop()
      if (unusualVisit !== undefined) {
        return readAgain(unusualVisit)
      }
      const next = localQueue.pop()
      if (next === undefined) return treeSearch?.hasReadings() === true ? Effect.void : waitForReport
      for (let visit: V | undefined = next; visit !== undefined; visit = localQueue.pop()) {
        readLocally++
        addReading(visit, readNow(visit))
      }
      return readLocally % directoriesPerYield < directoriesPerBatch ? Effect.yieldNow : Effect.void
    }),
    keepOpen: (visit) => {
      if (held.has(visit) || !mayHold()) return
      try {
        const place = openVisit(visit)
        if (isFault(place)) return
        holdDirectory(visit, place)
      } catch {
        // Ignore the error: the directory is opened when it is needed.
      }
    },
    release: (visit) => {
      const heldDirectory = held.get(visit)
      if (heldDirectory !== undefined) releaseHeld(visit, heldDirectory)
    },
    relist: (visit) =>
      Effect.flatMap(
        attempt(() => held.get(visit)?.place.isSame() === false),
        (isMoved) => (isMoved ? Effect.fail(notFound) : Effect.map(listAgain(visit), ({ children }) => children))
      )
  }
  /**
   * Waits for the workers, and then closes the descriptors. The system reuses the number of a closed descriptor at
   * once.
   */
  const close: Effect.Effect<void> = Effect.andThen(
    Effect.callback<void>((resume) => {
      treeSearch?.end()
      for (const withdraw of withdrawals) withdraw()
      if (withdrawals.size === 0) resume(Effect.void)
      else onIdle = () => resume(Effect.void)
    }),
    Effect.sync(() => {
      stopReleasing()
      for (const [visit, heldDirectory] of held) releaseHeld(visit, heldDirectory)
    })
  )
  return { explorer, close }
}

export const explore =
  (confined: Confined, means: Means): Explore =>
  <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean): Effect.Effect<Explorer<V>, never, Scope.Scope> =>
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => makeHostExplorer(confined, means, pathOf, searches)),
        ({ close }) => close
      ),
      ({ explorer }) => explorer
    )
