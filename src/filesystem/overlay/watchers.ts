/**
 * The watchers of an overlay. The overlay reports its changes itself, because the upper tree does not see deletions and
 * mistakes copies for changes.
 *
 * Each watcher has an unbounded queue, so a slow one blocks nobody and misses nothing.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { WatchEvent } from "../../model/Entry.ts"
import { type FsPath, isWithin } from "../../model/FsPath.ts"

export interface Watchers {
  readonly notifyWatchers: (tag: WatchEvent["_tag"], path: FsPath) => void
  readonly watch: (path: FsPath) => Stream.Stream<WatchEvent>
}

export const make = (keyOf: (path: FsPath) => FsPath): Watchers => {
  const watchers = new Set<{ readonly base: FsPath; readonly queue: Queue.Queue<WatchEvent> }>()
  return {
    notifyWatchers: (tag, path) => {
      if (watchers.size === 0) return
      const key = keyOf(path)
      for (const { base, queue } of watchers) {
        if (key !== base && isWithin(base, key)) Queue.offerUnsafe(queue, { _tag: tag, path })
      }
    },
    watch: (path) =>
      Stream.unwrap(
        Effect.map(
          Effect.acquireRelease(
            Effect.map(Queue.unbounded<WatchEvent>(), (queue) => {
              const watcher = { base: keyOf(path), queue }
              watchers.add(watcher)
              return watcher
            }),
            (watcher) => {
              watchers.delete(watcher)
              return Queue.shutdown(watcher.queue)
            }
          ),
          ({ queue }) => Stream.fromQueue(queue)
        )
      )
  }
}
