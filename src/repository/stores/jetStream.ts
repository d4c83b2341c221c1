/**
 * Stores on a NATS server with JetStream: blobs in an object store, and heads in a key-value bucket.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { StoreError } from "../errors.ts"
import * as Blobs from "./jetStream/blobs.ts"
import { openBucket, type StoreConnection } from "./jetStream/buckets.ts"
import * as Connection from "./jetStream/connection.ts"
import * as Heads from "./jetStream/heads.ts"
import { checkOptions, type JetStreamOptions } from "./jetStream/options.ts"
import type { Stores } from "./stores.ts"

const packageNames = "@nats-io/transport-node and @nats-io/jetstream"

const loadPackages = Effect.tryPromise({
  try: Connection.importPackages,
  catch: (cause) =>
    new StoreError({
      reason: "unavailable",
      detail: `cannot load the packages of stores on NATS; install ${packageNames}: ${String(cause)}`
    })
})

const enabling = "; the server has no JetStream: start it with --jetstream, or enable JetStream for the account"

const connect = (options: JetStreamOptions): Effect.Effect<StoreConnection, StoreError, Scope.Scope> =>
  Effect.flatMap(loadPackages, (packages) =>
    Connection.make(packages, options, {
      closed: "the stores are closed",
      make: (operation, _, detail, isNotEnabled = false) =>
        new StoreError({
          reason: "unavailable",
          detail: `${operation ?? "opening the stores"}: ${detail}${isNotEnabled ? enabling : ""}`
        })
    })
  )

export const open = (options: JetStreamOptions): Effect.Effect<Stores, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* checkOptions(options)
    const connection = yield* connect(options)
    const names = { blobs: `${options.name}-blobs`, heads: `${options.name}-heads` }
    yield* openBucket(connection, Blobs.bucketOf(names.blobs), options)
    yield* openBucket(connection, Heads.bucketOf(names.heads), options)
    return { blobs: Blobs.make(connection, names.blobs), heads: Heads.make(connection, names.heads) }
  })
