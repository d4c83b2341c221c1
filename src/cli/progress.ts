import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { duration } from "./humanise.ts"
import { Screen } from "./screen.ts"

/**
 * Shows progress while the effect runs, on a terminal only, after one second. The line disappears at the end. `detail` is
 * called each time the line is drawn.
 */
export const withProgress =
  (what: string, detail?: () => string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Screen> =>
    Effect.flatMap(Screen, (screen) => {
      if (!screen.showsProgress) return self
      return Effect.flatMap(Clock.currentTimeNanos, (start) => {
        const draw = Effect.flatMap(Clock.currentTimeNanos, (now) =>
          screen.status(
            [what, detail?.(), duration(now - start)].filter((part) => part !== undefined && part !== "").join(" · ")
          )
        )
        const drawRepeatedly = Effect.andThen(Effect.sleep("1 second"), Effect.repeat(draw, Schedule.spaced("200 millis")))
        return Effect.scoped(
          Effect.andThen(
            Effect.acquireRelease(Effect.forkScoped(drawRepeatedly), () => screen.status("")),
            self
          )
        ) as Effect.Effect<A, E, R>
      })
    })
