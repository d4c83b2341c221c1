/** The connection of a journal, whose failures are those of journals. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Shared from "../../repository/stores/jetStream/connection.ts"
import { JournalError } from "../errors.ts"
import type { Options } from "./options.ts"

export { creationRetryOptions, type Refusal } from "../../repository/stores/jetStream/connection.ts"

const packageNames = "@nats-io/transport-node, @nats-io/jetstream and @nats-io/obj"

/** Throws the error again. Bundlers treat a package as optional if a handler catches the failure of its import. */
const rethrow = (cause: unknown): never => {
  throw cause
}

const loadPackages = Effect.tryPromise({
  try: async () => {
    const [packages, obj] = await Promise.all([Shared.importPackages(), import("@nats-io/obj").catch(rethrow)])
    return { ...packages, obj }
  },
  catch: (cause) =>
    new JournalError({
      operation: "JetStream.open",
      reason: "unavailable",
      detail: `cannot load the packages of a JetStream journal; install ${packageNames}: ${String(cause)}`
    })
})

export interface Connection extends Shared.Connection<JournalError> {
  readonly obj: Effect.Success<typeof loadPackages>["obj"]
}

export const make = (options: Options): Effect.Effect<Connection, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { obj, ...packages } = yield* loadPackages
    let isOpen = false
    const connection = yield* Shared.make(packages, options, {
      closed: "the journal is closed",
      make: (operation, reason, detail) =>
        new JournalError({ operation: operation ?? (isOpen ? "JetStream" : "JetStream.open"), reason, detail })
    })
    isOpen = true
    return { ...connection, obj }
  })
