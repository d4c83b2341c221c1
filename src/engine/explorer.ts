import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Backend } from "../port/Backend.ts"
import type { Explorer, Reading } from "../port/explorer.ts"
import { inWalkOrder } from "../port/order.ts"
import type { Directory } from "./walker.ts"

const pathOf = ({ at }: Directory) => at

const plain = (port: Backend): Explorer<Directory> => {
  const { caseSensitive } = port.info
  let wanted: Directory | undefined
  let done: Array<Reading<Directory>> = []
  return {
    room: () => (wanted === undefined && done.length === 0 ? 1 : 0),
    read: ([visit]) => {
      wanted = visit
    },
    take: () => {
      const taken = done
      done = []
      return taken
    },
    wait: Effect.suspend(() => {
      const visit = wanted!
      wanted = undefined
      return Effect.match(port.list(visit.at), {
        onSuccess: (children) => void done.push({ visit, children: inWalkOrder(children, caseSensitive) }),
        onFailure: (children) => void done.push({ visit, children })
      })
    }),
    hold: () => {},
    leave: () => {}
  }
}

/**
 * Creates the explorer of a backend, or one that lists directories on demand. `searches` is true if the files will be
 * searched.
 */
export const make = (port: Backend, searches = false): Effect.Effect<Explorer<Directory>, never, Scope.Scope> =>
  port.explore?.(pathOf, searches) ?? Effect.sync(() => plain(port))
