/**
 * Limits the pending work of a client before its next message is read, so that a flood uses no memory here. A client that
 * sends faster than it reads answers is read more slowly; no message is refused.
 */
import * as Effect from "effect/Effect"

export interface Flow {
  readonly hasRoom: () => boolean
  readonly awaitRoom: Effect.Effect<void>
  readonly awaitReader: Effect.Effect<void>
  readonly countMessage: (bytes: number) => void
  readonly whileCalling: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly whileWriting: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const maxConcurrentCalls = 256
const maxMessagesWhileWriting = 1024
const maxBytesWhileWriting = 64 * 1024 * 1024

export const make = (): Flow => {
  let calls = 0
  let writes = 0
  let messages = 0
  let bytes = 0
  let waiters: Array<{ readonly canResume: () => boolean; readonly resume: () => void }> = []
  const isReaderKeepingUp = () => writes === 0 || (messages <= maxMessagesWhileWriting && bytes <= maxBytesWhileWriting)
  const hasRoom = () => calls < maxConcurrentCalls && isReaderKeepingUp()
  const changed = (): void => {
    if (waiters.length === 0) return
    const resumable = new Set(waiters.filter(({ canResume }) => canResume()))
    waiters = waiters.filter((one) => !resumable.has(one))
    for (const { resume } of resumable) resume()
  }
  const waitUntil = (canResume: () => boolean): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      if (canResume()) return resume(Effect.void)
      waiters.push({ canResume, resume: () => resume(Effect.void) })
    })
  const countWhileRunning =
    (add: (n: 1 | -1) => void) =>
    <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        add(1)
        return Effect.ensuring(
          self,
          Effect.sync(() => {
            add(-1)
            changed()
          })
        )
      })
  return {
    hasRoom,
    awaitRoom: waitUntil(hasRoom),
    awaitReader: waitUntil(isReaderKeepingUp),
    countMessage: (size) => {
      messages++
      bytes += size
    },
    whileCalling: countWhileRunning((n) => {
      calls += n
    }),
    whileWriting: countWhileRunning((n) => {
      writes += n
      messages = 0
      bytes = 0
    })
  }
}
