/** The clients of NATS, loaded when a journal is opened: who does not use this journal need not have them. */
import * as Effect from "effect/Effect"
import { JournalError } from "../errors.ts"

const names = "@nats-io/transport-node, @nats-io/jetstream and @nats-io/obj"

/** A bundler takes an import whose failure is handled for an optional one, and goes on where the package is not installed. */
const rethrow = (cause: unknown): never => {
  throw cause
}

export const load = Effect.tryPromise({
  try: async () => {
    const [transport, jetstream, obj] = await Promise.all([
      import("@nats-io/transport-node").catch(rethrow),
      import("@nats-io/jetstream").catch(rethrow),
      import("@nats-io/obj").catch(rethrow)
    ])
    return { transport, jetstream, obj }
  },
  catch: (cause) =>
    new JournalError({
      operation: "JetStream.open",
      reason: "unavailable",
      detail: `a journal on JetStream needs the packages ${names} to be installed: ${String(cause)}`
    })
})

export type Packages = Effect.Success<typeof load>
