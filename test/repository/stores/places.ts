import { PgClient } from "@effect/sql-pg"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stores from "../../../src/repository/Stores.ts"
import type { StoreServices } from "../../../src/testing/StoreLaws.ts"
import type { Place } from "./chain.ts"

/** Returns a client of the database, whose connections time out early. */
export const postgresClient = (url: string) => PgClient.layer({ url: Redacted.make(url), maxConnections: 4 })

/** Returns the stores of a place. */
export const layerOf = (place: Place): Layer.Layer<StoreServices, unknown> => {
  if ("directory" in place) return Stores.layerDirectory(place)
  if ("file" in place) return Stores.layerSql().pipe(Layer.provide(Stores.sqliteClient(place)))
  if ("nats" in place) return Stores.layerJetStream({ servers: [place.nats], name: place.name })
  if ("bucket" in place) {
    const credentials = { accessKeyId: "TESTKEY", secretAccessKey: Redacted.make("TESTSECRET") }
    return Stores.layerBucket({ ...place, credentials })
  }
  return Stores.layerSql().pipe(Layer.provide(postgresClient(place.url)))
}
