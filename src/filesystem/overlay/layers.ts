/**
 * Shows two trees as one. The upper tree contains the changes and takes precedence over the lower tree.
 *
 * A set of hidden paths records deletions. The overlay does not show the lower tree at a hidden path or below it. A hidden path
 * with an upper entry shows only the upper tree; a hidden path without an upper entry is deleted. The trees therefore need no
 * marker files, which a user could see.
 */
import { notFound, notADirectory } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend, Child } from "../../port/Backend.ts"

export interface HiddenPaths {
  readonly covers: (path: FsPath.FsPath) => boolean
  readonly ancestors: () => ReadonlySet<FsPath.FsPath>
  /** Hides the path while `effect` runs, and permanently if it succeeds. */
  readonly hideWhile: <A>(path: FsPath.FsPath, effect: Effect.Effect<A, Fault>) => Effect.Effect<A, Fault>
  readonly clear: () => void
}

const makeHiddenPaths = (keyOf: Layers["keyOf"]): HiddenPaths => {
  const hidden = new Set<FsPath.FsPath>()
  let pruneThreshold = 1024

  const covers = (key: FsPath.FsPath): boolean => {
    for (let at = key; ; at = FsPath.parent(at)) {
      if (hidden.has(at)) return true
      if (at === FsPath.root) return false
    }
  }
  const prune = (): void => {
    for (const path of hidden) if (path !== FsPath.root && covers(FsPath.parent(path))) hidden.delete(path)
    pruneThreshold = Math.max(1024, hidden.size * 2)
  }

  return {
    covers: (path) => hidden.size > 0 && covers(keyOf(path)),
    ancestors: () => {
      const ancestors = new Set<FsPath.FsPath>()
      for (const path of hidden) {
        for (let at = path; at !== FsPath.root && !ancestors.has(FsPath.parent(at));) ancestors.add((at = FsPath.parent(at)))
      }
      return ancestors
    },
    hideWhile: (path, effect) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          hidden.add(keyOf(path))
          return Effect.onExit(effect, (exit) =>
            Effect.sync(() => {
              if (Exit.isFailure(exit)) hidden.delete(keyOf(path))
              else if (hidden.size > pruneThreshold) prune()
            })
          )
        })
      ),
    clear: () => hidden.clear()
  }
}

export interface Layers {
  readonly upper: Backend
  readonly lower: Backend
  readonly hidden: HiddenPaths
  readonly keyOf: (path: FsPath.FsPath) => FsPath.FsPath
  /** Returns the visible entry of the lower tree at a path, even if the upper tree has an entry there. */
  readonly statLower: (path: FsPath.FsPath) => Effect.Effect<FileStat | undefined, Fault>
  /** Returns the path with its last name as the lower tree spells it. The spelling may differ in case. */
  readonly toLowerSpelling: (path: FsPath.FsPath) => Effect.Effect<FsPath.FsPath, Fault>
  readonly stat: Backend["stat"]
  readonly list: Backend["list"]
  readonly open: Backend["open"]
}

export const make = (upper: Backend, lower: Backend): Layers => {
  const keyOf: Layers["keyOf"] = upper.info.caseSensitive ? (path) => path : FsPath.fold
  const hidden = makeHiddenPaths(keyOf)

  const isBlocked = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<boolean, Fault> {
    for (let slash = path.indexOf("/"); slash !== -1; slash = path.indexOf("/", slash + 1)) {
      const stat = yield* upper.stat(path.slice(0, slash) as FsPath.FsPath)
      if (stat === undefined) return false
      if (stat.kind !== "directory") return true
    }
    return false
  })

  const showsLower = (path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
    Effect.suspend(() =>
      hidden.covers(path)
        ? Effect.succeed(false)
        : path.includes("/")
          ? Effect.map(isBlocked(path), (blocked) => !blocked)
          : Effect.succeed(true)
    )

  const statLower: Layers["statLower"] = (path) =>
    Effect.flatMap(showsLower(path), (shown) => (shown ? lower.stat(path) : Effect.succeed(undefined)))

  const stat: Backend["stat"] = (path) =>
    Effect.flatMap(upper.stat(path), (found) => (found === undefined ? statLower(path) : Effect.succeed(found)))

  const withoutHidden = (path: FsPath.FsPath, children: ReadonlyArray<Child>): ReadonlyArray<Child> =>
    children.filter((child) => !hidden.covers(FsPath.join(path, child.name)))

  const nameOf = (name: string): string => (upper.info.caseSensitive ? name : FsPath.fold(name))

  const listBelow = (path: FsPath.FsPath): Effect.Effect<ReadonlyArray<Child>, Fault> =>
    Effect.flatMap(statLower(path), (stat) =>
      stat === undefined
        ? Effect.fail(notFound)
        : stat.kind === "directory"
          ? Effect.map(lower.list(path), (children) => withoutHidden(path, children))
          : Effect.fail(notADirectory)
    )

  const list: Backend["list"] = (path) =>
    Effect.flatMap(upper.stat(path), (found) => {
      if (found === undefined) return listBelow(path)
      if (found.kind !== "directory") return Effect.fail(notADirectory)
      return Effect.flatMap(statLower(path), (stat) =>
        stat?.kind === "directory"
          ? Effect.zipWith(upper.list(path), lower.list(path), (above, under) => {
              const upperNames = new Set(above.map((child) => nameOf(child.name)))
              return [...above, ...withoutHidden(path, under).filter((child) => !upperNames.has(nameOf(child.name)))]
            })
          : upper.list(path)
      )
    })

  const toLowerSpelling: Layers["toLowerSpelling"] = (path) =>
    upper.info.caseSensitive || path === FsPath.root
      ? Effect.succeed(path)
      : Effect.map(lower.list(FsPath.parent(path)), (children) => {
          const name = nameOf(FsPath.name(path))
          const found = children.find((child) => nameOf(child.name) === name)
          return found === undefined ? path : FsPath.join(FsPath.parent(path), found.name)
        })

  const open: Backend["open"] = (path) =>
    Effect.flatMap(upper.stat(path), (found) =>
      found === undefined
        ? Effect.flatMap(showsLower(path), (shown) => (shown ? lower.open(path) : Effect.fail(notFound)))
        : upper.open(path)
    )

  return { upper, lower, hidden, keyOf, statLower, toLowerSpelling, stat, list, open }
}
