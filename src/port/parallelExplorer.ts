/** Reads the directories of a walk several at a time, for backends where each `list` waits for a network. */
import * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Child } from "./Backend.ts"
import { type DirectoryReading, type Explore, type Explorer, inWalkOrder, type Visit } from "./explorer.ts"

/** Returns the `explore` of a backend, which runs up to `concurrency` calls of `list` at the same time. */
export const parallelExplore =
  ({ info, list }: Pick<Backend, "info" | "list">, concurrency: number): Explore =>
  <V extends Visit>(pathOf: (visit: V) => FsPath) =>
    Effect.sync((): Explorer<V> => {
      let requested: Array<V> = []
      let done: ReadonlyArray<DirectoryReading<V>> = []
      const read = (visit: V): Effect.Effect<DirectoryReading<V>> =>
        Effect.match(list(pathOf(visit)), {
          onSuccess: (children: ReadonlyArray<Child>) => ({ visit, children: inWalkOrder(children, info.caseSensitive) }),
          onFailure: (fault) => ({ visit, children: fault })
        })
      return {
        availableReads: () => (done.length === 0 ? concurrency - requested.length : 0),
        read: (visits) => {
          requested.push(...visits)
        },
        take: () => {
          const taken = done
          done = []
          return taken
        },
        waitForReading: Effect.suspend(() =>
          Effect.map(Effect.forEach(requested, read, { concurrency }), (readings) => {
            requested = []
            done = readings
          })
        ),
        keepOpen: () => {},
        release: () => {}
      }
    })
