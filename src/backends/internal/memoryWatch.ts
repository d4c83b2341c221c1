/**
 * Reports changes to watchers. Each has its own unbounded queue, so a slow one neither blocks others nor misses events.
 * Without watchers, a change costs one comparison.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { WatchEvent } from "../../model/Entry.ts"
import { fold, type FsPath, isWithin } from "../../model/FsPath.ts"
import type { Listener } from "./memoryTree.ts"

export interface Watchers extends Listener {
  readonly watch: (path: FsPath) => Stream.Stream<WatchEvent>
}

interface Watcher {
  readonly base: FsPath
  readonly queue: Queue.Queue<WatchEvent>
}

export const make = (options: { readonly caseInsensitive: boolean }): Watchers => {
  const watchers = new Set<Watcher>()
  const keyOf = (path: FsPath): FsPath => (options.caseInsensitive ? fold(path) : path)
  const subscribe = (path: FsPath) =>
    Effect.map(Queue.unbounded<WatchEvent>(), (queue) => {
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
      const key = keyOf(path)
      for (const { base, queue } of watchers) {
        if (key !== base && isWithin(base, key)) Queue.offerUnsafe(queue, { _tag: tag, path })
      }
    },
    watch: (path) =>
      Stream.unwrap(Effect.map(Effect.acquireRelease(subscribe(path), unsubscribe), ({ queue }) => Stream.fromQueue(queue)))
  }
}
