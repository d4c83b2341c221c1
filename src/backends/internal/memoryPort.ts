/**
 * The port over a tree in memory. Each operation is one synchronous step, so no other operation can interleave and no
 * interruption leaves it incomplete.
 */
import type * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, Child, Handle, Links, Rules, Whole } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { isReadOnly } from "../../port/Rules.ts"
import { make as makeLocks } from "../../runtime/locks.ts"
import * as Content from "./memoryContent.ts"
import * as Children from "./memoryChildren.ts"
import { diskFull, type File, isFault, type MemoryTree, type Node } from "./memoryTree.ts"
import type { Watchers } from "./memoryWatch.ts"

const notFound: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotFound" })
const notADirectory: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotADirectory" })
const notAFile: Effect.Effect<never, Fault> = Effect.fail({ _tag: "NotAFile" })
const notALink: Effect.Effect<never, Fault> = Effect.fail({
  _tag: "InvalidArgument",
  argument: "path",
  detail: "it is not a symbolic link"
})
const failDiskFull: Effect.Effect<never, Fault> = Effect.fail(diskFull)

const sizeOf = (node: Node): number =>
  node.kind === "file" ? node.content.length : node.kind === "symlink" ? node.sizeBytes : 0

const statOf = (node: Node, path: FsPath): FileStat => {
  const { createdAt, kind, mode, modifiedAt } = node
  const stat = {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: sizeOf(node),
    createdAt,
    modifiedAt,
    mode
  }
  return kind === "symlink" ? { ...stat, isSymlink: true } : stat
}

const absent = Effect.succeedSome(undefined)

const versionOf = (content: Content.Content): Effect.Effect<string> => Effect.sync(() => Content.version(content))

const handleOf = (file: File, path: FsPath): Handle => {
  const { content } = file
  return {
    stat: statOf(file, path),
    read: (offset, length) => Effect.sync(() => Content.slice(content, offset, length)),
    version: versionOf(content)
  }
}

const wholeOf = (file: File, path: FsPath): Whole => ({
  stat: statOf(file, path),
  bytes: Content.view(file.content),
  isLent: true,
  get version() {
    return versionOf(file.content)
  }
})

/** Copies the chunks, because the stream may reuse their arrays. */
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

/** Creates a clock that returns one object per millisecond, because creating one costs more than a whole write. */
const makeCachedClock = (): ((clock: Clock.Clock) => DateTime.Utc) => {
  let last = DateTime.makeUnsafe(0)
  return (clock) => {
    const millis = clock.currentTimeMillisUnsafe()
    if (millis !== last.epochMilliseconds) last = DateTime.makeUnsafe(millis)
    return last
  }
}

export const makeReader = (get: MemoryTree["get"]) => {
  const list: Backend["list"] = (path) =>
    Effect.suspend((): Effect.Effect<ReadonlyArray<Child>, Fault> => {
      const node = get(path)
      if (node === undefined) return notFound
      if (node.kind !== "directory") return notADirectory
      const out: Array<Child> = []
      Children.forEach(node.children, (child) =>
        out.push({ name: child.name, kind: child.kind, addressable: true, sizeBytes: sizeOf(child) })
      )
      return Effect.succeed(out)
    })

  const open: Backend["open"] = (path) =>
    Effect.suspend((): Effect.Effect<Handle, Fault> => {
      const node = get(path)
      if (node === undefined) return notFound
      return node.kind === "file" ? Effect.succeed(handleOf(node, path)) : notAFile
    })

  const readLink = (path: FsPath): Effect.Effect<string, Fault> =>
    Effect.suspend((): Effect.Effect<string, Fault> => {
      const node = get(path)
      if (node === undefined) return notFound
      return node.kind === "symlink" ? Effect.succeed(node.target) : notALink
    })

  return {
    stat: (path: FsPath): Effect.Effect<FileStat | undefined> =>
      Effect.sync(() => {
        const node = get(path)
        return node && statOf(node, path)
      }),
    list,
    open,
    readLink,
    handlers: {
      Stat: ({ path }) => {
        const node = get(path)
        return node === undefined ? absent : Effect.succeed(Option.some(statOf(node, path)))
      },
      Read: ({ maxBytes, path }) => {
        const node = get(path)
        return node?.kind === "file" && node.content.length <= maxBytes
          ? Effect.succeed(Option.some(wholeOf(node, path)))
          : Request.declined
      }
    } satisfies Request.Handlers
  }
}

export const make = (
  tree: MemoryTree,
  watchers: Watchers,
  options: { readonly caseInsensitive: boolean; readonly rules: Rules; readonly relative?: Links["relative"] }
): Backend => {
  const { caseInsensitive, relative, rules } = options
  const now = makeCachedClock()
  const { handlers, list, open, readLink, stat } = makeReader(tree.get)

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
    return isFault(file) ? Effect.fail(file) : Effect.succeed(statOf(file, path))
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

  const watch: Backend["watch"] = (path) =>
    Stream.suspend(() => {
      const node = tree.get(path)
      if (node === undefined) return Stream.fromEffect(notFound)
      return node.kind === "directory" ? watchers.watch(path) : Stream.fromEffect(notADirectory)
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
    watch,
    rules,
    locks: makeLocks({ caseSensitive: !caseInsensitive }),
    perform: Request.handlers({
      ...handlers,
      RemoveTree: ({ path }) =>
        Effect.clockWith((clock) => {
          const removed = tree.removeTree(path, now(clock))
          return isFault(removed) ? Effect.fail(removed) : Effect.succeed(Option.some(removed))
        })
    })
  }
}
