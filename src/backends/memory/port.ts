/** The port over a tree in memory, with the tree's watchers and history. */
import { accessDenied, diskFull, invalidArgument, notADirectory, notAFile, notFound } from "../../model/Fault.ts"
import { notALink } from "../faults.ts"
import type * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { compare, fold, type FsPath } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend, Child, Handle, Links, Rules, Whole } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { isReadOnly } from "../../port/Rules.ts"
import type { Watchers } from "../../port/watchers.ts"
import type { Captured, Difference, MemoryHistory } from "../../port/history.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { make as makeLocks } from "../../runtime/locks.ts"
import { randomUUID } from "../../runtime/node.ts"
import * as Content from "./content.ts"
import { makeExplore } from "./explorer.ts"
import * as Children from "./hashTrie.ts"
import { type Directory, type File, find, forEachDifference, isFault, type MemoryTree, type Node, sizeOf } from "./tree.ts"

// The port over a tree in memory. Each operation is one synchronous step, so no other operation can interleave and no
// interruption leaves it incomplete.

const failNotFound = Effect.fail(notFound)
const failNotADirectory = Effect.fail(notADirectory)
const failDiskFull = Effect.fail(diskFull)

const statOf = (node: Node, path: FsPath, identity: string): FileStat => {
  const { createdAt, kind, mode, modifiedAt } = node
  const stat = {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: sizeOf(node),
    createdAt,
    modifiedAt,
    mode,
    identity
  }
  return kind === "symlink" ? { ...stat, isSymlink: true } : stat
}

const absent = Effect.succeedSome(undefined)

const versionOf = (content: Content.Content): Effect.Effect<string> => Effect.sync(() => Content.version(content))

/**
 * Returns the function that identifies the entries of one tree. The tree has no hard links, so a path identifies an
 * entry.
 */
const makeIdentityOf = (caseInsensitive: boolean): ((path: FsPath) => string) => {
  let tree: string | undefined
  return (path) => `${(tree ??= randomUUID())}:${caseInsensitive ? fold(path) : path}`
}

const handleOf = (file: File, path: FsPath, identity: string): Handle => {
  const { content } = file
  return {
    stat: statOf(file, path, identity),
    read: (offset, length) => Effect.sync(() => Content.slice(content, offset, length)),
    version: versionOf(content)
  }
}

const wholeOf = (file: File, path: FsPath, identity: string): Whole => ({
  stat: statOf(file, path, identity),
  bytes: Content.view(file.content),
  isLent: true,
  version: versionOf(file.content)
})

/** Collects a stream into one content. Copies the chunks, because the stream may reuse their arrays. */
const collectStream = <E, R>(stream: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Content.Content, Fault | E, R> =>
  Effect.suspend(() => {
    let content = Content.empty
    const copied = Stream.runForEachArray(stream, (arrays): Effect.Effect<void, Fault> => {
      for (const bytes of arrays) {
        const more = Content.append(content, bytes)
        if (more === undefined) return failDiskFull
        content = more
      }
      return Effect.void
    })
    return Effect.map(copied, () => content)
  })

/**
 * Creates a clock that makes one DateTime per millisecond and reuses it, because creating a DateTime costs more than a
 * whole write.
 */
const makeCachedClock = (): ((clock: Clock.Clock) => DateTime.Utc) => {
  let last = DateTime.makeUnsafe(0)
  return (clock) => {
    const millis = clock.currentTimeMillisUnsafe()
    if (millis !== last.epochMilliseconds) last = DateTime.makeUnsafe(millis)
    return last
  }
}

const makeReader = (get: MemoryTree["get"], identityOf: (path: FsPath) => string) => {
  const list: Backend["list"] = (path) =>
    Effect.suspend((): Effect.Effect<ReadonlyArray<Child>, Fault> => {
      const node = get(path)
      if (node === undefined) return failNotFound
      if (node.kind !== "directory") return failNotADirectory
      const out: Array<Child> = []
      Children.forEach(node.children, (child) =>
        out.push({ name: child.name, kind: child.kind, addressable: true, sizeBytes: sizeOf(child) })
      )
      return Effect.succeed(out)
    })

  const open: Backend["open"] = (path) =>
    Effect.suspend((): Effect.Effect<Handle, Fault> => {
      const node = get(path)
      if (node === undefined) return failNotFound
      return node.kind === "file" ? Effect.succeed(handleOf(node, path, identityOf(path))) : Effect.fail(notAFile)
    })

  const readLink = (path: FsPath): Effect.Effect<string, Fault> =>
    Effect.suspend((): Effect.Effect<string, Fault> => {
      const node = get(path)
      if (node === undefined) return failNotFound
      return node.kind === "symlink" ? Effect.succeed(node.target) : Effect.fail(notALink)
    })

  return {
    stat: (path: FsPath): Effect.Effect<FileStat | undefined> =>
      Effect.sync(() => {
        const node = get(path)
        return node && statOf(node, path, identityOf(path))
      }),
    list,
    open,
    readLink,
    handlers: {
      Stat: ({ path }) => {
        const node = get(path)
        return node === undefined ? absent : Effect.succeed(Option.some(statOf(node, path, identityOf(path))))
      },
      Read: ({ maxBytes, path }) => {
        const node = get(path)
        return node?.kind === "file" && node.content.length <= maxBytes
          ? Effect.succeed(Option.some(wholeOf(node, path, identityOf(path))))
          : Request.declined
      }
    } satisfies Request.Handlers
  }
}

export const makeMemoryPort = (
  tree: MemoryTree,
  watchers: Watchers,
  options: { readonly caseInsensitive: boolean; readonly rules: Rules; readonly relative?: Links["relative"] }
): Backend => {
  const { caseInsensitive, relative, rules } = options
  const now = makeCachedClock()
  const identityOf = makeIdentityOf(caseInsensitive)
  const { handlers, list, open, readLink, stat } = makeReader(tree.get, identityOf)

  const change = (run: (now: DateTime.Utc) => Fault | undefined): Effect.Effect<void, Fault> =>
    Effect.clockWith((clock): Effect.Effect<void, Fault> => {
      const fault = run(now(clock))
      return fault === undefined ? Effect.void : Effect.fail(fault)
    })

  const put = (
    path: FsPath,
    content: Content.Content | undefined,
    mode: "create" | "replace" | "append",
    clock: Clock.Clock
  ): Effect.Effect<FileStat, Fault> => {
    if (content === undefined) return failDiskFull
    const file = tree.write(path, content, mode, now(clock))
    return isFault(file) ? Effect.fail(file) : Effect.succeed(statOf(file, path, identityOf(path)))
  }

  const write: Backend["write"] = (path, bytes, mode, how) => {
    const commit = how?.commit
    if (!isBytes(bytes)) {
      return Effect.flatMap(collectStream(bytes), (content) => {
        const publish = Effect.clockWith((clock) => put(path, content, mode, clock))
        return commit === undefined ? publish : commit(publish)
      })
    }
    if (commit === undefined) return Effect.clockWith((clock) => put(path, Content.of(bytes), mode, clock))
    return Effect.suspend(() => {
      const content = Content.of(bytes)
      return commit(Effect.clockWith((clock) => put(path, content, mode, clock)))
    })
  }

  const checkDirectory = (path: FsPath): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      const node = tree.get(path)
      if (node === undefined) return Effect.fail(notFound)
      return node.kind === "directory" ? Effect.void : Effect.fail(notADirectory)
    })

  return {
    info: {
      name: "InMemory",
      root: "/",
      caseSensitive: !caseInsensitive,
      readOnly: isReadOnly(rules),
      confinement: "virtual"
    },
    stat,
    list,
    open,
    write,
    makeDirectory: (path) => change((now) => tree.makeDirectory(path, now)),
    remove: (path) => change((now) => tree.remove(path, now)),
    rename: (from, to, { replace }) => change((now) => tree.rename(from, to, replace, now)),
    links: {
      read: readLink,
      relative,
      make: (path, target) => change((now) => tree.makeLink(path, target, now))
    },
    attributes: { set: (path, attributes) => change(() => tree.setAttributes(path, attributes)) },
    watch: (path) => watchers.watch(path, checkDirectory(path)),
    rules,
    locks: makeLocks({ caseSensitive: !caseInsensitive }),
    perform: Request.handlers({
      ...handlers,
      RemoveTree: ({ path }) =>
        Effect.clockWith((clock) => {
          const removed = tree.removeTree(path, now(clock))
          return isFault(removed) ? Effect.fail(removed) : Effect.succeed(Option.some(removed))
        })
    }),
    explore: makeExplore(tree.get, !caseInsensitive)
  }
}

// The history of a tree in memory.
//
// Captured and current states share everything that has not changed. So capture and restore take constant time, and a
// comparison takes time proportional to the differences.

const readOnly = Effect.fail(accessDenied("readOnly"))
const foreignCapture = invalidArgument("captured", "it was not captured from this filesystem")

interface Options {
  readonly caseInsensitive: boolean
  readonly rules: Rules
  readonly relative?: Links["relative"]
}

const topOf = ({ root }: Captured): Directory => root as Directory

const isEqual = (self: Content.Content, that: Content.Content): boolean =>
  self === that || (self.length === that.length && Buffer.compare(Content.view(self), Content.view(that)) === 0)

/** Tests whether two nodes are equal. Ignores times and the children of directories. */
const isSame = (self: Node, that: Node): boolean => {
  if (self.kind === "symlink") return that.kind === "symlink" && self.target === that.target
  if (self.kind !== that.kind || self.mode !== that.mode) return false
  return self.kind === "directory" || that.kind !== "file" || isEqual(self.content, that.content)
}

const inOrder = (differences: Array<Difference>, caseInsensitive: boolean): ReadonlyArray<Difference> =>
  differences.sort((a, b) => (caseInsensitive && compare(fold(a.path), fold(b.path))) || compare(a.path, b.path))

const view = (captured: Captured, { caseInsensitive, relative, rules }: Options): Backend => {
  const top = topOf(captured)
  const get = (path: FsPath): Node | undefined => find(top, caseInsensitive ? fold(path) : path)
  const { handlers, list, open, readLink, stat } = makeReader(get, makeIdentityOf(caseInsensitive))
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
    locks: makeLocks({ caseSensitive: !caseInsensitive }),
    perform: Request.handlers(handlers),
    explore: makeExplore(get, !caseInsensitive)
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

export const makeMemoryHistory = (tree: MemoryTree, options: Options): MemoryHistory => {
  /**
   * The states that this tree has captured. Another tree may fold names differently, so its states would corrupt this
   * tree.
   */
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
      Effect.suspend(() => (ownCaptures.has(captured.root) ? restorePaths(captured, paths) : Effect.fail(foreignCapture))),
    view: (captured) => view(captured, options),
    differences: (before, after) => differences(before, after, options.caseInsensitive)
  }
}
