/** Removes a directory with everything in it. Removes many entries at the same time, because each removal waits for the server. */
import * as Effect from "effect/Effect"
import type { DeleteResult } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import { type FsPath, join } from "../../model/FsPath.ts"
import { type Backend, keyOf } from "../../port/Backend.ts"
import { isOwnName } from "../../runtime/temporaryNames.ts"

interface Directory {
  readonly path: FsPath
  readonly isHidden: boolean
}

const concurrentDirectories = 16
const concurrentRemovals = 32

const orIfNotFound = <A>(effect: Effect.Effect<A, Fault>, path: FsPath, absent: A): Effect.Effect<A, Fault> =>
  Effect.catch(effect, (fault) => (fault._tag === "NotFound" ? Effect.succeed(absent) : Effect.fail(located(fault, path))))

/**
 * Removes the files level by level from the top, and then the directories from the lowest level. Each entry is found again
 * before its removal, as in a single removal, so that no link leads a removal out of the root.
 */
export const removeTree = (
  { list, remove }: Pick<Backend, "list" | "remove">,
  top: FsPath
): Effect.Effect<DeleteResult, Fault> =>
  Effect.gen(function* () {
    let deleted = 0
    const levels: Array<ReadonlyArray<Directory>> = []
    for (let level: ReadonlyArray<Directory> = [{ path: top, isHidden: false }]; level.length > 0;) {
      levels.push(level)
      const below: Array<Directory> = []
      const clear = ({ isHidden, path }: Directory): Effect.Effect<void, Fault> =>
        Effect.flatMap(
          path === top ? Effect.mapError(list(path), (fault) => located(fault, path)) : orIfNotFound(list(path), path, []),
          (children) =>
            Effect.forEach(
              children,
              (child): Effect.Effect<void, Fault> => {
                const entry = { path: join(path, keyOf(child)), isHidden: isHidden || isOwnName(child.name) }
                if (child.kind === "directory") return Effect.sync(() => void below.push(entry))
                if (!entry.isHidden) deleted++
                return orIfNotFound(remove(entry.path), entry.path, undefined)
              },
              { concurrency: concurrentRemovals, discard: true }
            )
        )
      yield* Effect.forEach(level, clear, { concurrency: concurrentDirectories, discard: true })
      level = below
    }
    let directories = 0
    for (const level of levels.reverse()) {
      directories += level.filter(({ isHidden }) => !isHidden).length
      yield* Effect.forEach(level, ({ path }) => orIfNotFound(remove(path), path, undefined), {
        concurrency: concurrentRemovals,
        discard: true
      })
    }
    return { deleted, directories }
  })
