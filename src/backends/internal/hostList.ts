import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import type { Child } from "../../port/Backend.ts"
import { attempt, isFault } from "./attempt.ts"
import { type Confined, maxAttempts, notFound, type HostDirectory, directoriesKeepChanging } from "./confined.ts"
import { children } from "./hostEntries.ts"
import { removeLeftover } from "./leftovers.ts"

/** Opens a directory. Fails with NotADirectory only for the entry itself, and with NotFound below a non-directory. */
export const openDirectory = (confined: Confined, path: FsPath): HostDirectory | Fault => {
  const place = confined.directory(path)
  if (!isFault(place) || place._tag !== "NotADirectory" || path === root) return place
  const above = confined.directory(parent(path))
  if (isFault(above)) return notFound
  above.release()
  return place
}

export const withDirectory = <A>(
  confined: Confined,
  path: FsPath,
  use: (place: HostDirectory) => Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> => {
  const attemptUse = (left: number): Effect.Effect<A, Fault> =>
    Effect.flatten(
      Effect.acquireUseRelease(
        attempt(() => openDirectory(confined, path)),
        (place) =>
          Effect.map(Effect.result(use(place)), (result): Effect.Effect<A, Fault> => {
            // An entry that disappears while its kind is determined can fail the listing of an existing directory.
            const isGone = result._tag === "Failure" && result.failure._tag === "NotFound"
            if (!isGone && place.isReadReliable()) return Effect.fromResult(result)
            return left === 0 ? Effect.fail(directoriesKeepChanging) : attemptUse(left - 1)
          }),
        (place) => Effect.sync(() => place.release())
      )
    )
  return attemptUse(maxAttempts)
}

export const list = (confined: Confined, path: FsPath, sweeps: boolean): Effect.Effect<ReadonlyArray<Child>, Fault> =>
  withDirectory(confined, path, (place) =>
    Effect.map(children(place), (found) => (sweeps ? found.filter(({ name }) => !removeLeftover(place, name)) : found))
  )
