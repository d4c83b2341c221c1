import * as Effect from "effect/Effect"
import { AlreadyExists } from "../model/FsError.ts"
import type { BlobStore } from "./BlobStore.ts"
import type { StoreError } from "./errors.ts"
import { type Head, HeadStore, type Operations as Heads } from "./HeadStore.ts"
import { open } from "./open.ts"

/**
 * Creates an empty workspace. Fails with AlreadyExists if the workspace exists, even if another program has just created it.
 * `open` does not report who created the workspace, so this function observes the calls that set the first head.
 */
export const create = (
  workspace: string,
  author: string
): Effect.Effect<Head, StoreError | AlreadyExists, BlobStore | HeadStore> =>
  Effect.gen(function* () {
    const heads = yield* HeadStore
    let first: Head | undefined
    let isConfirmed = false
    const watched: Heads = {
      ...heads,
      compareAndSet: (name, expected, next) => {
        if (expected === undefined) first = next
        return Effect.tap(heads.compareAndSet(name, expected, next), (isSet) =>
          Effect.sync(() => {
            isConfirmed ||= isSet
          })
        )
      }
    }
    yield* Effect.scoped(Effect.provideService(open({ workspace, author }), HeadStore, watched))
    // If the answer of the store was lost, compare the current head. No two first commits have the same root.
    const made = first as Head | undefined
    if (made !== undefined && (isConfirmed || (yield* heads.get(workspace))?.root === made.root)) return made
    return yield* Effect.fail(new AlreadyExists({ operation: "workspaces create", path: workspace }))
  })
