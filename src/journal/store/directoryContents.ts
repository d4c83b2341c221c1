/** A content store in a directory, with the layout of the blobs of a directory store. */
import * as Effect from "effect/Effect"
import { openBlobs } from "../../repository/stores/directory.ts"
import { JournalError } from "../errors.ts"
import type { ContentStore } from "../model.ts"
import { make } from "./blobContents.ts"

export const open = (
  directory: string,
  { fsync = false, isReader = false }: { readonly fsync?: boolean | undefined; readonly isReader?: boolean } = {}
): Effect.Effect<ContentStore, JournalError> =>
  Effect.mapBoth(openBlobs({ directory, fsync }, isReader), {
    onFailure: ({ detail }) => new JournalError({ operation: "ContentStore.open", reason: "io", detail }),
    onSuccess: (blobs) => make(blobs, () => "io")
  })
