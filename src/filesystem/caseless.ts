/**
 * Makes a case-sensitive backend case-insensitive: maps each path to its existing spelling.
 *
 * A combination of two backends needs this module if only one backend is case-sensitive, because one tree must have one rule
 * for case.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, follow } from "../port/Backend.ts"
import { composeLocks } from "./locking.ts"

const withoutCaseDuplicates = (children: ReadonlyArray<Child>): ReadonlyArray<Child> => {
  const childByKey = new Map<string, Child>()
  for (const child of children) {
    const key = FsPath.fold(child.name)
    const other = childByKey.get(key)
    if (other === undefined || FsPath.compare(child.name, other.name) < 0) childByKey.set(key, child)
  }
  return [...childByKey.values()]
}

export const makeCaseInsensitive = (self: Backend): Backend => {
  const { attributes, links, locks, watch } = self

  const findExistingSpelling = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<FsPath.FsPath, Fault> {
    let currentPath = FsPath.root
    for (const segment of FsPath.segments(path)) {
      const exact = FsPath.join(currentPath, segment)
      if ((yield* self.stat(exact)) !== undefined || (yield* self.stat(currentPath))?.kind !== "directory") {
        currentPath = exact
        continue
      }
      const key = FsPath.fold(segment)
      const found = withoutCaseDuplicates(yield* self.list(currentPath)).find((child) => FsPath.fold(child.name) === key)
      currentPath = found === undefined ? exact : FsPath.join(currentPath, found.name)
    }
    return currentPath
  })

  /** Returns the path in its existing spelling. Segments that do not exist are unchanged. */
  const toExistingSpelling = (path: FsPath.FsPath): Effect.Effect<FsPath.FsPath, Fault> =>
    Effect.flatMap(self.stat(path), (stat) => (stat === undefined ? findExistingSpelling(path) : Effect.succeed(path)))

  const withExistingSpelling = <A, E, R>(path: FsPath.FsPath, run: (path: FsPath.FsPath) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(toExistingSpelling(path), run)

  return {
    ...self,
    info: { ...self.info, caseSensitive: false },
    perform: undefined,
    explore: undefined,
    history: undefined,
    // A path has several spellings in this backend, but a transaction record can contain only one.
    hostRoots: undefined,
    stat: (path) => withExistingSpelling(path, self.stat),
    list: (path) => withExistingSpelling(path, (at) => Effect.map(self.list(at), withoutCaseDuplicates)),
    open: (path) => withExistingSpelling(path, self.open),
    write: (path, bytes, mode, how) => withExistingSpelling(path, (at) => self.write(at, bytes, mode, how)),
    makeDirectory: (path) => withExistingSpelling(path, self.makeDirectory),
    remove: (path) => withExistingSpelling(path, self.remove),
    rename: (from, to, options) =>
      withExistingSpelling(from, (source) =>
        FsPath.fold(from) === FsPath.fold(to)
          ? self.rename(source, FsPath.join(FsPath.parent(source), FsPath.name(to)), options)
          : withExistingSpelling(to, (target) => self.rename(source, target, options))
      ),
    links: links && {
      read: (path) => withExistingSpelling(path, links.read),
      follow: (path) => withExistingSpelling(path, (at) => follow(links, at)),
      relative: links.relative,
      make: (path, target) => withExistingSpelling(path, (at) => links.make(at, target))
    },
    attributes: attributes && { set: (path, values) => withExistingSpelling(path, (at) => attributes.set(at, values)) },
    watch: watch && ((path) => Stream.unwrap(Effect.map(toExistingSpelling(path), watch))),
    locks:
      locks &&
      composeLocks(
        (paths) => [{ locks, paths: paths.map(FsPath.fold) }],
        locks.claim && ((path, effect) => withExistingSpelling(path, (at) => locks.claim!(at, effect)))
      )
  }
}

export const withSameCaseRule = (self: Backend, that: Backend): readonly [self: Backend, that: Backend] =>
  self.info.caseSensitive === that.info.caseSensitive
    ? [self, that]
    : self.info.caseSensitive
      ? [makeCaseInsensitive(self), that]
      : [self, makeCaseInsensitive(that)]
