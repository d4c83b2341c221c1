/** Feeds values to any number of readers. A slow reader loses nothing, and values without a reader are not kept. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

export interface Feed<A> {
  readonly isRead: () => boolean
  readonly tell: (value: A) => void
  readonly stream: Stream.Stream<A>
}

export const make = <A>(): Feed<A> => {
  const readers = new Set<Queue.Queue<A>>()
  const reader = Effect.acquireRelease(
    Effect.map(Queue.unbounded<A>(), (queue) => {
      readers.add(queue)
      return queue
    }),
    (queue) =>
      Effect.suspend(() => {
        readers.delete(queue)
        return Queue.shutdown(queue)
      })
  )
  return {
    isRead: () => readers.size > 0,
    tell: (value) => {
      for (const queue of readers) Queue.offerUnsafe(queue, value)
    },
    stream: Stream.unwrap(Effect.map(reader, (queue) => Stream.fromQueue(queue)))
  }
}
