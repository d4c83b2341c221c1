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
import { carry, setMode, setTime } from "./carry.ts"
import { type Layers, notFound } from "./layers.ts"

export interface Raise {
  readonly directory: (path: FsPath.FsPath) => Effect.Effect<void, Fault>
  /** Copies up an entry if it exists; otherwise only the directories above it. */
  readonly entry: (path: FsPath.FsPath) => Effect.Effect<void, Fault>
  readonly tree: (path: FsPath.FsPath) => Effect.Effect<void, Fault>
}

type Made = Array<readonly [path: FsPath.FsPath, like: FileStat]>

export const make = ({ below, list, lower, spelt, upper }: Layers): Raise => {
  const raise = (path: FsPath.FsPath, stat: FileStat): Effect.Effect<void, Fault> =>
    Effect.catch(
      Effect.flatMap(spelt(path), (path) => carry(lower, path, stat, upper, { replace: false })),
      (fault) => (fault._tag === "AlreadyExists" ? Effect.void : Effect.fail(fault))
    )

  const directories = Effect.fnUntraced(function* (path: FsPath.FsPath, made: Made): Effect.fn.Return<void, Fault> {
    const missing: Array<FsPath.FsPath> = []
    for (let at = path; at !== FsPath.root && (yield* upper.stat(at)) === undefined; at = FsPath.parent(at)) missing.push(at)
    for (let i = missing.length - 1; i >= 0; i--) {
      const at = missing[i]!
      const stat = yield* below(at)
      if (stat === undefined) return yield* notFound
      yield* raise(at, stat)
      made.push([at, stat])
    }
  })

  /**
   * Restores times and modes of new directories last: filling a directory changes its time, and needs permission to
   * write.
   */
  const settle = (made: Made): Effect.Effect<void> =>
    Effect.forEach(
      made,
      ([path, like]) => Effect.ignore(Effect.andThen(setMode(upper, path, like.mode), setTime(upper, path, like))),
      { discard: true }
    )

  const leaf = (path: FsPath.FsPath): Effect.Effect<void, Fault> =>
    Effect.flatMap(upper.stat(path), (found) =>
      found === undefined
        ? Effect.flatMap(below(path), (stat) => (stat === undefined ? Effect.void : raise(path, stat)))
        : Effect.void
    )

  const raising = (run: (made: Made) => Effect.Effect<void, Fault>): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      const made: Made = []
      return Effect.ensuring(run(made), settle(made))
    })

  const tree = Effect.fnUntraced(function* (top: FsPath.FsPath, made: Made): Effect.fn.Return<void, Fault> {
    yield* directories(top, made)
    const stack = [top]
    while (stack.length > 0) {
      const here = stack.pop()!
      for (const child of yield* list(here)) {
        if (TemporaryNames.isInProgress(child.name)) continue
        const path = FsPath.join(here, keyOf(child))
        if (child.kind !== "directory") {
          yield* leaf(path)
          continue
        }
        yield* directories(path, made)
        stack.push(path)
      }
    }
  })

  return {
    directory: (path) => raising((made) => directories(path, made)),
    entry: (path) => raising((made) => Effect.andThen(directories(FsPath.parent(path), made), leaf(path))),
    tree: (path) => raising((made) => tree(path, made))
  }
}
