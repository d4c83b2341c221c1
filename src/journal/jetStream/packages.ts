/** Loads the NATS clients when a journal is opened, so that only users of this journal need the packages. */
import * as Effect from "effect/Effect"
import { JournalError } from "../errors.ts"

const packageNames = "@nats-io/transport-node, @nats-io/jetstream and @nats-io/obj"

/** Rethrows the error. Bundlers treat an import with a handled failure as optional, and continue if the package is not installed. */
const rethrow = (cause: unknown): never => {
  throw cause
}

export const loadPackages = Effect.tryPromise({
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
      detail: `a journal on JetStream needs the packages ${packageNames} to be installed: ${String(cause)}`
    })
})

export type Packages = Effect.Success<typeof loadPackages>
