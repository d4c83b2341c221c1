/** The contents of a journal in the object store of the server, over the journal's own connection. */
import * as Effect from "effect/Effect"
import * as Blobs from "../../repository/stores/jetStream/blobs.ts"
import { openBucket } from "../../repository/stores/jetStream/buckets.ts"
import { JournalError } from "../errors.ts"
import type { ContentStore } from "../model.ts"
import * as BlobContents from "../store/blobContents.ts"
import { type Connection, forStores } from "./connection.ts"
import type { Options } from "./options.ts"

export const open = (
  connection: Connection,
  { name, replicas, storage }: Options
): Effect.Effect<ContentStore, JournalError> => {
  const shared = forStores(connection)
  return Effect.mapBoth(openBucket(shared, Blobs.objectsOf(name, storage), { replicas }), {
    onFailure: ({ detail, reason }) =>
      new JournalError({ operation: "JetStream.open", reason: reason === "invalid" ? "corrupt" : "unavailable", detail }),
    onSuccess: () => BlobContents.make(Blobs.make(shared, name), () => connection.endError()?.reason ?? "unavailable")
  })
}
