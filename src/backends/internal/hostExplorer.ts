/**
 * Explores host directories for a walk.
 *
 * Each directory is reached through the descriptor of its parent. So no path is walked again, and no other process can
 * lead the walk astray.
 *
 * Workers list many directories at a time, while the walk processes earlier ones. This thread reads the first few, for
 * which starting a worker is not worthwhile, and those of a content search. A search keeps the workers busy, and its
 * directories must be opened here anyway.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, isTemporaryName, root } from "../../model/FsPath.ts"
import type { Kind } from "../../model/Entry.ts"
import type { Child } from "../../port/Backend.ts"
import type { Explore, Explorer, Reading, Visit } from "../../port/explorer.ts"
import { inWalkOrder } from "../../port/order.ts"
import type { Crew } from "../../runtime/crew.ts"
import type { Listing } from "../../runtime/lister.ts"
import { attempt, isFault, whenExhausted } from "./attempt.ts"
import { type Confined, maxLooks, notFound, type Place } from "./confined.ts"
import { children, childrenNow, isSmall } from "./hostEntries.ts"
import * as HostSearch from "./hostSearch.ts"
import { namesNow, ofListing, stampsIn, stampsOf } from "./hostStamps.ts"
import { childOf, isText } from "./hostNames.ts"
import { sweep } from "./leftovers.ts"

/** Directories read on this thread before the workers are used: about 2 ms, while starting a worker takes 40 ms. */
const few = 128
const jobSize = 64
const maxAsked = 320
/** Directories read on this thread at a time, and before a yield to other fibers. */
const together = 16
const slice = 128
/** Directories held open by all walks together. Each needs a descriptor. */
const maxHeld = 1536
let allHeld = 0

const quarter = (): number => {
  const limit = /^Max open files\s+(\d+)/m.exec(Fs.readFileSync("/proc/self/limits", "latin1"))
  return limit === null ? maxHeld : Number(limit[1]) >> 2
}
let most = 0
const mayHold = (): boolean => {
  if (most === 0) most = Math.min(maxHeld, quarter())
  return allHeld < most
}

interface Held {
  readonly place: Place
  lent: number
  /** Set once the walk has left the directory. The last user then releases it. */
  isLeft: boolean
}

interface Lent {
  readonly place: Place
  readonly giveBack: () => void
}

const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

const childrenOf = ({ kinds: codes, names }: Listing, caseSensitive: boolean): ReadonlyArray<Child> => {
  if (codes.length === 0) return []
  const all = names.split("/")
  if (caseSensitive && isText(names))
    return all.map((name, index) => ({ name, kind: kinds[codes[index]!]!, addressable: true }))
  // The escaped form of an inexpressible name may sort differently from the name.
  return inWalkOrder(
    all.map((name, index) => childOf(name, kinds[codes[index]!]!)),
    caseSensitive
  )
}

/**
 * Tests whether a listing needs no second look.
 *
 * Names that may not be valid text, and names with the form of temporary files, must be examined one by one: such a
 * file may be hidden, a leftover, or an ordinary file.
 */
const isPlain = (answer: Listing | string): answer is Listing =>
  typeof answer !== "string" &&
  !answer.isDoubtful &&
  !(answer.names.includes(".~") && answer.names.split("/").some(isTemporaryName))

export interface Means {
  readonly crew: Crew | undefined
  readonly sweeps: boolean
  readonly refuseHardlinks: boolean
  /** Returns each entry with the data that shows changes: children are Stamped, in any order. */
  readonly stamps?: boolean | undefined
}

const make = <V extends Visit>(
  confined: Confined,
  { crew: workers, refuseHardlinks, stamps = false, sweeps }: Means,
  pathOf: (visit: V) => FsPath,
  searches: boolean
) => {
  const { caseSensitive } = confined
  const isAlone = workers === undefined || searches
  const held = new Map<Visit, Held>()
  const withdrawals = new Set<() => void>()
  let here: Array<V> = []
  let done: Array<Reading<V>> = []
  /** Directories that need a full listing by the port, because the fast one was not plain. */
  let odd: Array<V> = []
  let asked = 0
  let readHere = 0
  let wake: (() => void) | undefined
  let idle: (() => void) | undefined

  const closed = (): Fault | undefined => {
    const top = confined.directory(root)
    if (isFault(top)) return top
    top.release()
    return undefined
  }

  const letGo = (visit: Visit, known: Held): void => {
    held.delete(visit)
    allHeld--
    if (known.lent === 0) known.place.release()
    else known.isLeft = true
  }

  const giveBack = (known: Held): void => {
    if (--known.lent === 0 && known.isLeft) known.place.release()
  }

  /** Releases unused directories when the process has no descriptors left. They are reopened on demand. */
  const keepAll = whenExhausted(() => {
    for (const [visit, known] of held) {
      if (known.lent === 0) letGo(visit, known)
    }
  })

  const reach = (visit: V): Place | Fault => {
    const above = visit.above && held.get(visit.above)?.place
    return above === undefined ? confined.directory(pathOf(visit)) : above.enter(visit.segment)
  }

  const keep = (visit: V, place: Place): Held => {
    const known = { place, lent: 0, isLeft: false }
    held.set(visit, known)
    allHeld++
    return known
  }

  /**
   * Lends a directory for a moment.
   *
   * A held directory stays open until the walk leaves it. A directory that `isRead` is held if possible, because its
   * subdirectories must be reached through the directory that was read.
   */
  const lend = (visit: V, isRead = false): Lent | Fault => {
    let known = held.get(visit)
    if (known === undefined) {
      const place = reach(visit)
      if (isFault(place)) return place
      if (!isRead || !mayHold()) return { place, giveBack: () => place.release() }
      known = keep(visit, place)
    }
    const lent = known
    lent.lent++
    return { place: lent.place, giveBack: () => giveBack(lent) }
  }

  const borrow = (visit: V, isRead = false): Lent | undefined => {
    try {
      const lent = lend(visit, isRead)
      return isFault(lent) ? undefined : lent
    } catch {
      return undefined
    }
  }

  const readNow = (visit: V): ReadonlyArray<Child> | undefined => {
    const borrowed = borrow(visit, true)
    if (borrowed === undefined) return undefined
    try {
      if (!isSmall(borrowed.place)) return undefined
      if (stamps) return stampsOf(borrowed.place, namesNow(borrowed.place))
      const children = childrenNow(borrowed.place)
      return children.some(({ name }) => isTemporaryName(name)) ? undefined : inWalkOrder(children, caseSensitive)
    } catch {
      return undefined
    } finally {
      borrowed.giveBack()
    }
  }

  const arrive = (visit: V, children: ReadonlyArray<Child> | undefined): void => {
    asked--
    if (children === undefined) odd.push(visit)
    else done.push({ visit, children })
  }

  const send = (crew: Crew, visits: ReadonlyArray<V>): void => {
    const paths: Array<string> = []
    const sent: Array<V> = []
    const returns: Array<() => void> = []
    const borrowed = new Map<Visit, Place>()
    for (const visit of visits) {
      const above = visit.above as V | undefined
      let place = above && borrowed.get(above)
      if (above !== undefined && place === undefined) {
        const lent = borrow(above)
        if (lent !== undefined) {
          borrowed.set(above, (place = lent.place))
          returns.push(lent.giveBack)
        }
      }
      const path = place?.at(visit.segment)
      if (typeof path !== "string") arrive(visit, undefined)
      else {
        paths.push(path)
        sent.push(visit)
      }
    }
    const withdraw = crew.list(
      paths,
      (answers) => {
        for (const [index, visit] of sent.entries()) {
          const answer = answers[index]!
          arrive(visit, !isPlain(answer) ? undefined : stamps ? ofListing(answer) : childrenOf(answer, caseSensitive))
        }
        wake?.()
      },
      () => {
        withdrawals.delete(withdraw)
        for (const giveBack of returns) giveBack()
        if (withdrawals.size === 0) idle?.()
      },
      stamps
    )
    withdrawals.add(withdraw)
  }

  const listIn = (place: Place): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    stamps
      ? stampsIn(place)
      : Effect.map(children(place), (found) =>
          // If the directory was moved elsewhere meanwhile, it may be outside the root, so nothing in it is removed.
          sweeps && place.isSame() ? found.filter(({ name }) => !sweep(place, name)) : found
        )

  /** Lists a directory through its parent as it was read. Its path may lead to another directory by now. */
  const listAgain = (visit: V, left = maxLooks): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    Effect.flatten(
      Effect.acquireUseRelease(
        attempt(() => lend(visit, true)),
        ({ place }) =>
          Effect.map(Effect.result(listIn(place)), (result) => {
            // An entry that disappears while its kind is determined can fail the listing of an existing directory.
            const isGone = result._tag === "Failure" && result.failure._tag === "NotFound"
            return isGone && left > 0 ? listAgain(visit, left - 1) : Effect.fromResult(result)
          }),
        ({ giveBack }) => Effect.sync(giveBack)
      )
    )

  const readAgain = (visit: V): Effect.Effect<void> =>
    Effect.match(listAgain(visit), {
      onSuccess: (children) => void done.push({ visit, children: stamps ? children : inWalkOrder(children, caseSensitive) }),
      onFailure: (children) => void done.push({ visit, children })
    })

  const explorer: Explorer<V> = {
    search: workers && HostSearch.make(workers, lend, refuseHardlinks, closed),
    room: () => {
      if (readHere < few) return asked === 0 ? 1 : 0
      if (isAlone) return asked === 0 ? together : 0
      return maxAsked - asked < jobSize ? 0 : maxAsked - asked
    },
    read: (visits) => {
      asked += visits.length
      if (workers === undefined || isAlone || readHere < few) here.push(...visits.toReversed())
      else for (let at = 0; at < visits.length; at += jobSize) send(workers, visits.slice(at, at + jobSize))
    },
    take: () => {
      const taken = done
      done = []
      return taken
    },
    wait: Effect.suspend(() => {
      if (done.length > 0) return Effect.void
      const strange = odd.pop()
      if (strange !== undefined) {
        return readAgain(strange)
      }
      const next = here.pop()
      if (next === undefined) {
        return Effect.callback<void>((resume) => {
          wake = () => {
            wake = undefined
            resume(Effect.void)
          }
          return Effect.sync(() => {
            wake = undefined
          })
        })
      }
      for (let visit: V | undefined = next; visit !== undefined; visit = here.pop()) {
        readHere++
        arrive(visit, readNow(visit))
      }
      return readHere % slice < together ? Effect.yieldNow : Effect.void
    }),
    hold: (visit) => {
      if (held.has(visit) || !mayHold()) return
      try {
        const place = reach(visit)
        if (isFault(place)) return
        keep(visit, place)
      } catch {
        // The directory is reached on demand later.
      }
    },
    leave: (visit) => {
      const known = held.get(visit)
      if (known !== undefined) letGo(visit, known)
    },
    again: (visit) =>
      Effect.flatMap(
        attempt(() => held.get(visit)?.place.isSame() === false),
        (isMoved) => (isMoved ? Effect.fail(notFound) : listAgain(visit))
      )
  }
  /** Waits for the workers, because the number of a closed descriptor may be reused at once. */
  const close: Effect.Effect<void> = Effect.andThen(
    Effect.callback<void>((resume) => {
      for (const withdraw of withdrawals) withdraw()
      if (withdrawals.size === 0) resume(Effect.void)
      else idle = () => resume(Effect.void)
    }),
    Effect.sync(() => {
      keepAll()
      for (const [visit, known] of held) letGo(visit, known)
    })
  )
  return { explorer, close }
}

export const explore =
  (confined: Confined, means: Means): Explore =>
  <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean): Effect.Effect<Explorer<V>, never, Scope.Scope> =>
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => make(confined, means, pathOf, searches)),
        ({ close }) => close
      ),
      ({ explorer }) => explorer
    )
