/** A tool that waits until it is interrupted, for tests that abort a call. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "../../src/agent/Tool.ts"

/** Makes a tool that never writes `late.md`, with the signals that its call has started and ended. */
export const slowTool = Effect.gen(function* () {
  const [started, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const slow = Tool.make({
    name: "slow",
    description: "Waits before it writes.",
    value: Schema.Null,
    needsFilesystem: true,
    handle: (_, { filesystem }) =>
      Deferred.succeed(started, undefined).pipe(
        Effect.andThen(Effect.never),
        Effect.andThen(filesystem.write("late.md", "x")),
        Effect.as({ message: "Written.", value: null }),
        Effect.orDie,
        Effect.ensuring(Deferred.succeed(ended, undefined))
      )
  })
  return { slow, started, ended }
})
