/**
 * Reports the changes of a filesystem to its watchers. Each watcher has its own unbounded queue, so a slow watcher neither
 * blocks writers nor misses events. Without watchers, the only cost of a change is one comparison.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { WatchEvent } from "../model/Entry.ts"
import { notFound } from "../model/Fault.ts"
import type { Fault } from "../model/FsError.ts"
import { type FsPath, isWithin } from "../model/FsPath.ts"

export interface Watchers {
  readonly isActive: () => boolean
  readonly emit: (tag: WatchEvent["_tag"], path: FsPath) => void
  /** Subscribes, and then runs `check`, which fails if there is no directory to watch. So no later change is missed. */
  readonly watch: (path: FsPath, check: Effect.Effect<void, Fault>) => Stream.Stream<WatchEvent, Fault>
}

interface Watcher {
  readonly base: FsPath
  readonly queue: Queue.Queue<WatchEvent, Fault>
}

const gone = Cause.fail(notFound)

export const make = (keyOf: (path: FsPath) => FsPath): Watchers => {
  const watchers = new Set<Watcher>()
  const subscribe = (path: FsPath) =>
    Effect.map(Queue.unbounded<WatchEvent, Fault>(), (queue) => {
      const watcher: Watcher = { base: keyOf(path), queue }
      watchers.add(watcher)
      return watcher
    })
  const unsubscribe = (watcher: Watcher) => {
    watchers.delete(watcher)
    return Queue.shutdown(watcher.queue)
  }
  return {
    isActive: () => watchers.size > 0,
    emit: (tag, path) => {
      if (watchers.size === 0) return
      const key = keyOf(path)
      for (const { base, queue } of watchers) {
        if (key !== base && isWithin(base, key)) Queue.offerUnsafe(queue, { _tag: tag, path })
        // The watched directory was removed, moved or replaced. The reader still receives the earlier events.
        else if (tag !== "Updated" && isWithin(key, base)) Queue.failCauseUnsafe(queue, gone)
      }
    },
    watch: (path, check) =>
      Stream.unwrap(
        Effect.flatMap(Effect.acquireRelease(subscribe(path), unsubscribe), ({ queue }) =>
          Effect.as(check, Stream.fromQueue(queue))
        )
      )
  }
}
