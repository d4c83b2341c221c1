/**
 * The history of a tree in memory.
 *
 * Captured and current states share everything that has not changed. So capture and restore take constant time, and a
 * comparison takes time proportional to the differences.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { Buffer } from "../../runtime/buffer.ts"
import type { Fault } from "../../model/FsError.ts"
import { compare, fold, type FsPath } from "../../model/FsPath.ts"
import type { Backend, Links, Rules } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import type { Captured, Difference, MemoryHistory } from "../../port/history.ts"
import * as Locks from "../../runtime/locks.ts"
import * as Content from "./memoryContent.ts"
import { makeReader } from "./memoryPort.ts"
import { type Directory, find, forEachDifference, type MemoryTree, type Node } from "./memoryTree.ts"

const readOnly: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "readOnly" })
const foreignCapture: Effect.Effect<never, Fault> = Effect.fail({
  _tag: "InvalidArgument",
  argument: "captured",
  detail: "this filesystem has not captured it"
})

export interface Options {
  readonly caseInsensitive: boolean
  readonly rules: Rules
  readonly relative?: Links["relative"]
}

const topOf = ({ root }: Captured): Directory => root as Directory

const isEqual = (self: Content.Content, that: Content.Content): boolean =>
  self === that || (self.length === that.length && Buffer.compare(Content.view(self), Content.view(that)) === 0)

/** Tests whether two nodes are the same. Times do not count: a touched file is the same file. */
const isSame = (self: Node, that: Node): boolean => {
  if (self.kind === "symlink") return that.kind === "symlink" && self.target === that.target
  if (self.kind !== that.kind || self.mode !== that.mode) return false
  return self.kind === "directory" || that.kind !== "file" || isEqual(self.content, that.content)
}

const inOrder = (differences: Array<Difference>, caseInsensitive: boolean): ReadonlyArray<Difference> =>
  differences.sort((a, b) => (caseInsensitive && compare(fold(a.path), fold(b.path))) || compare(a.path, b.path))

const view = (captured: Captured, { caseInsensitive, relative, rules }: Options): Backend => {
  const top = topOf(captured)
  const { handlers, list, open, readLink, stat } = makeReader((path) => find(top, caseInsensitive ? fold(path) : path))
  return {
    info: { name: "InMemory", root: "/", caseSensitive: !caseInsensitive, readOnly: true, confinement: "virtual" },
    stat,
    list,
    open,
    write: () => readOnly,
    makeDirectory: () => readOnly,
    remove: () => readOnly,
    rename: () => readOnly,
    links: { read: readLink, relative, make: () => readOnly },
    attributes: { set: () => readOnly },
    rules: { ...rules, permits: () => false },
    locks: Locks.make({ caseSensitive: !caseInsensitive }),
    perform: Request.handlers(handlers)
  }
}

const differences = (before: Captured, after: Captured, caseInsensitive: boolean): ReadonlyArray<Difference> => {
  const out: Array<Difference> = []
  forEachDifference(topOf(before), topOf(after), (path, before, after) => {
    if (before === undefined) out.push({ _tag: "Added", path })
    else if (after === undefined) out.push({ _tag: "Removed", path })
    else if (!isSame(before, after)) out.push({ _tag: "Modified", path })
  })
  return inOrder(out, caseInsensitive)
}

export const make = (tree: MemoryTree, options: Options): MemoryHistory => {
  /** A state of another tree may fold names differently and would corrupt this one. */
  const ownCaptures = new WeakSet<object>()
  const restorePaths = (captured: Captured, paths: ReadonlyArray<FsPath> | undefined): Effect.Effect<void> =>
    Effect.clockWith((clock) => {
      const root = topOf(captured)
      if (paths === undefined) tree.restore({ root })
      else tree.restorePaths({ root }, paths, DateTime.makeUnsafe(clock.currentTimeMillisUnsafe()))
      return Effect.void
    })
  return {
    _tag: "Memory",
    capture: Effect.sync(() => {
      const captured = tree.capture()
      ownCaptures.add(captured.root)
      return captured
    }),
    restore: (captured, paths) =>
      Effect.suspend(() => (ownCaptures.has(captured.root) ? restorePaths(captured, paths) : foreignCapture)),
    view: (captured) => view(captured, options),
    differences: (before, after) => differences(before, after, options.caseInsensitive)
  }
}
