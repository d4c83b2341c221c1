/**
 * Copies entries up: an entry that is about to change is first copied, unchanged and invisibly, to the upper tree.
 *
 * A fiber that comes second finds the copy and uses it.
 */
import * as Effect from "effect/Effect"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { copyEntry, setMode, setTime } from "./carry.ts"
import { type Layers, failNotFound } from "./layers.ts"

export interface CopyUp {
  readonly directory: (path: FsPath.FsPath) => Effect.Effect<void, Fault>
  /** Copies up an entry if it exists; otherwise only the directories above it. */
  readonly entry: (path: FsPath.FsPath) => Effect.Effect<void, Fault>
  readonly tree: (path: FsPath.FsPath) => Effect.Effect<void, Fault>
}

type CreatedDirectories = Array<readonly [path: FsPath.FsPath, like: FileStat]>

export const make = ({ statLower: below, list, lower, toLowerSpelling: spelt, upper }: Layers): CopyUp => {
  const copyUpEntry = (path: FsPath.FsPath, stat: FileStat): Effect.Effect<void, Fault> =>
    Effect.catch(
      Effect.flatMap(spelt(path), (path) => copyEntry(lower, path, stat, upper, { replace: false })),
      (fault) => (fault._tag === "AlreadyExists" ? Effect.void : Effect.fail(fault))
    )

  const copyUpDirectories = Effect.fnUntraced(function* (
    path: FsPath.FsPath,
    created: CreatedDirectories
  ): Effect.fn.Return<void, Fault> {
    const missing: Array<FsPath.FsPath> = []
    for (let at = path; at !== FsPath.root && (yield* upper.stat(at)) === undefined; at = FsPath.parent(at)) missing.push(at)
    for (let i = missing.length - 1; i >= 0; i--) {
      const at = missing[i]!
      const stat = yield* below(at)
      if (stat === undefined) return yield* failNotFound
      yield* copyUpEntry(at, stat)
      created.push([at, stat])
    }
  })

  /**
   * Restores times and modes of new directories last: filling a directory changes its time, and needs permission to
   * write.
   */
  const restoreTimesAndModes = (created: CreatedDirectories): Effect.Effect<void> =>
    Effect.forEach(
      created,
      ([path, like]) => Effect.ignore(Effect.andThen(setMode(upper, path, like.mode), setTime(upper, path, like))),
      { discard: true }
    )

  const copyUpLeaf = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(upper.stat(path), (found) =>
      found === undefined
        ? Effect.flatMap(below(path), (stat) => (stat === undefined ? Effect.void : copyUpEntry(path, stat)))
        : Effect.void
    )

  const restoringAfterwards = (run: (created: CreatedDirectories) => Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      const created: CreatedDirectories = []
      return Effect.ensuring(run(created), restoreTimesAndModes(created))
    })

  const tree = Effect.fnUntraced(function* (top: FsPath.FsPath, created: CreatedDirectories): Effect.fn.Return<void, Fault> {
    yield* copyUpDirectories(top, created)
    const stack = [top]
    while (stack.length > 0) {
      const here = stack.pop()!
      for (const child of yield* list(here)) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const path = FsPath.join(here, keyOf(child))
        if (child.kind !== "directory") {
          yield* copyUpLeaf(path)
          continue
        }
        yield* copyUpDirectories(path, created)
        stack.push(path)
      }
    }
  })

  return {
    directory: (path) => restoringAfterwards((created) => copyUpDirectories(path, created)),
    entry: (path) =>
      restoringAfterwards((created) => Effect.andThen(copyUpDirectories(FsPath.parent(path), created), copyUpLeaf(path))),
    tree: (path) => restoringAfterwards((created) => tree(path, created))
  }
}
