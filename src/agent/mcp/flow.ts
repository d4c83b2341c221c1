/**
 * Limits the pending work of a client before its next message is read, so that a flood uses no memory here. A client that
 * sends faster than it reads answers is read more slowly; no message is refused.
 */
import * as Effect from "effect/Effect"

export interface Flow {
  readonly hasRoom: () => boolean
  readonly room: Effect.Effect<void>
  readonly calm: Effect.Effect<void>
  readonly took: (bytes: number) => void
  readonly call: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly write: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const maxCalls = 256
const maxMessages = 1024
const maxBytes = 64 * 1024 * 1024

export const make = (): Flow => {
  let calls = 0
  let writes = 0
  let messages = 0
  let bytes = 0
  let waiting: Array<{ readonly mayGoOn: () => boolean; readonly resume: () => void }> = []
  const isCalm = () => writes === 0 || (messages <= maxMessages && bytes <= maxBytes)
  const hasRoom = () => calls < maxCalls && isCalm()
  const changed = (): void => {
    if (waiting.length === 0) return
    const free = new Set(waiting.filter(({ mayGoOn }) => mayGoOn()))
    waiting = waiting.filter((one) => !free.has(one))
    for (const { resume } of free) resume()
  }
  const until = (mayGoOn: () => boolean): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      if (mayGoOn()) return resume(Effect.void)
      waiting.push({ mayGoOn, resume: () => resume(Effect.void) })
    })
  const counted =
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
    room: until(hasRoom),
    calm: until(isCalm),
    took: (size) => {
      messages++
      bytes += size
    },
    call: counted((n) => {
      calls += n
    }),
    write: counted((n) => {
      writes += n
      messages = 0
      bytes = 0
    })
  }
}
