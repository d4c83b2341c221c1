/**
 * Makes a case-sensitive backend case-insensitive: each path is mapped to the existing spelling.
 *
 * A combination of two backends needs this if only one of them is case-sensitive, because a tree can have only one
 * rule.
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, follow } from "../port/Backend.ts"
import { composed } from "./locking.ts"

const distinct = (children: ReadonlyArray<Child>): ReadonlyArray<Child> => {
  const shown = new Map<string, Child>()
  for (const child of children) {
    const key = FsPath.fold(child.name)
    const other = shown.get(key)
    if (other === undefined || FsPath.compare(child.name, other.name) < 0) shown.set(key, child)
  }
  return [...shown.values()]
}

export const caseless = (self: Backend): Backend => {
  const { attributes, links, locks, watch } = self

  const search = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<FsPath.FsPath, Fault> {
    let here = FsPath.root
    for (const segment of FsPath.segments(path)) {
      const exact = FsPath.join(here, segment)
      if ((yield* self.stat(exact)) !== undefined || (yield* self.stat(here))?.kind !== "directory") {
        here = exact
        continue
      }
      const key = FsPath.fold(segment)
      const found = distinct(yield* self.list(here)).find((child) => FsPath.fold(child.name) === key)
      here = found === undefined ? exact : FsPath.join(here, found.name)
    }
    return here
  })

  /** Returns the path in its existing spelling, as far as it exists. */
  const spelt = (path: FsPath.FsPath): Effect.Effect<FsPath.FsPath, Fault> =>
    Effect.flatMap(self.stat(path), (stat) => (stat === undefined ? search(path) : Effect.succeed(path)))

  const on = <A, E, R>(path: FsPath.FsPath, run: (path: FsPath.FsPath) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(spelt(path), run)

  return {
    ...self,
    info: { ...self.info, caseSensitive: false },
    perform: undefined,
    explore: undefined,
    history: undefined,
    // A path has several spellings here, but a transaction record can hold only one.
    hostRoots: undefined,
    stat: (path) => on(path, self.stat),
    list: (path) => on(path, (at) => Effect.map(self.list(at), distinct)),
    open: (path) => on(path, self.open),
    write: (path, bytes, mode, how) => on(path, (at) => self.write(at, bytes, mode, how)),
    makeDirectory: (path) => on(path, self.makeDirectory),
    remove: (path) => on(path, self.remove),
    rename: (from, to, options) =>
      on(from, (source) =>
        FsPath.fold(from) === FsPath.fold(to)
          ? self.rename(source, FsPath.join(FsPath.parent(source), FsPath.name(to)), options)
          : on(to, (target) => self.rename(source, target, options))
      ),
    links: links && {
      read: (path) => on(path, links.read),
      follow: (path) => on(path, (at) => follow(links, at)),
      relative: links.relative,
      make: (path, target) => on(path, (at) => links.make(at, target))
    },
    attributes: attributes && { set: (path, values) => on(path, (at) => attributes.set(at, values)) },
    watch,
    locks:
      locks &&
      composed(
        (paths) => [{ locks, paths: paths.map(FsPath.fold) }],
        locks.claim && ((path, effect) => on(path, (at) => locks.claim!(at, effect)))
      )
  }
}

export const alike = (self: Backend, that: Backend): readonly [self: Backend, that: Backend] =>
  self.info.caseSensitive === that.info.caseSensitive
    ? [self, that]
    : self.info.caseSensitive
      ? [caseless(self), that]
      : [self, caseless(that)]
