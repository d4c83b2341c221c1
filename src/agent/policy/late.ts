import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { type Refused, refused } from "../definition.ts"

const deadlineRefusal = (at: DateTime.Utc): Refused =>
  refused(`The time for calling tools was over at ${DateTime.formatIso(at)}.`, "Call no more tools; answer with what you know.")

const remainingMillis = (at: DateTime.Utc): Effect.Effect<number> =>
  Effect.map(Clock.currentTimeMillis, (now) => at.epochMilliseconds - now)

export const checkDeadline = (at: DateTime.Utc): Effect.Effect<void, Refused> =>
  Effect.flatMap(remainingMillis(at), (millis) => (millis > 0 ? Effect.void : Effect.fail(deadlineRefusal(at))))

export const interruptAt = <A, E, R>(at: DateTime.Utc, self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Refused, R> =>
  Effect.flatMap(remainingMillis(at), (duration) =>
    duration > 0
      ? Effect.timeoutOrElse(self, { duration, orElse: () => Effect.fail(deadlineRefusal(at)) })
      : Effect.fail<Refused>(deadlineRefusal(at))
  )
