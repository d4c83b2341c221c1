import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Backend } from "../port/Backend.ts"
import type { Explorer, DirectoryReading } from "../port/explorer.ts"
import { inWalkOrder } from "../port/order.ts"
import type { Directory } from "./walker.ts"

const pathOf = ({ at }: Directory) => at

const makeSequential = (port: Backend): Explorer<Directory> => {
  const { caseSensitive } = port.info
  let requestedVisit: Directory | undefined
  let pendingReadings: Array<DirectoryReading<Directory>> = []
  return {
    availableReads: () => (requestedVisit === undefined && pendingReadings.length === 0 ? 1 : 0),
    read: ([visit]) => {
      requestedVisit = visit
    },
    take: () => {
      const taken = pendingReadings
      pendingReadings = []
      return taken
    },
    waitForReading: Effect.suspend(() => {
      const visit = requestedVisit!
      requestedVisit = undefined
      return Effect.match(port.list(visit.at), {
        onSuccess: (children) => void pendingReadings.push({ visit, children: inWalkOrder(children, caseSensitive) }),
        onFailure: (children) => void pendingReadings.push({ visit, children })
      })
    }),
    keepOpen: () => {},
    release: () => {}
  }
}

/**
 * Creates the explorer of a backend, or one that lists directories on demand. `searches` is true if the files will be
 * searched.
 */
export const make = (port: Backend, searches = false): Effect.Effect<Explorer<Directory>, never, Scope.Scope> =>
  port.explore?.(pathOf, searches) ?? Effect.sync(() => makeSequential(port))
