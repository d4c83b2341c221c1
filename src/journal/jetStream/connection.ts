/** The connection of a journal. Its failures are JournalErrors. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { StoreError } from "../../repository/errors.ts"
import * as Shared from "../../repository/stores/jetStream/connection.ts"
import { JournalError } from "../errors.ts"
import type { Options } from "./options.ts"

export { creationRetryOptions, type Refusal } from "../../repository/stores/jetStream/connection.ts"

const packageNames = "@nats-io/transport-node and @nats-io/jetstream"

const loadPackages = Effect.tryPromise({
  try: Shared.importPackages,
  catch: (cause) =>
    new JournalError({
      operation: "JetStream.open",
      reason: "unavailable",
      detail: `cannot load the packages of a JetStream journal; install ${packageNames}: ${String(cause)}`
    })
})

export type Connection = Shared.Connection<JournalError>

export const make = (options: Options): Effect.Effect<Connection, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const packages = yield* loadPackages
    let isOpen = false
    const connection = yield* Shared.make(packages, options, {
      closed: "the journal is closed",
      make: (operation, reason, detail) =>
        new JournalError({ operation: operation ?? (isOpen ? "JetStream" : "JetStream.open"), reason, detail })
    })
    isOpen = true
    return connection
  })

const toStoreError = ({ detail }: JournalError): StoreError => new StoreError({ reason: "unavailable", detail })

/** Returns the same connection with StoreErrors as its failures. */
export const forStores = (connection: Connection): Shared.Connection<StoreError> => ({
  ...connection,
  call: (operation, request) =>
    Effect.mapError(connection.call(operation, request), (error) => (Shared.isRefusal(error) ? error : toStoreError(error))),
  ask: (operation, request) => Effect.mapError(connection.ask(operation, request), toStoreError),
  sendOnce: (operation, request) =>
    Effect.mapError(connection.sendOnce(operation, request), (error) =>
      Shared.isRefusal(error) ? error : toStoreError(error)
    ),
  endError: () => {
    const error = connection.endError()
    return error && toStoreError(error)
  }
})
