/**
 * The port of a VfsState. The facts about a file change in the same step as the file. After a rollback or a reset, calls that
 * are already running read the old directory, and a write that is not published yet fails.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Attributes, Backend, Commit, Info, Locks, Rules } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { BringingBack, enforce, TakingBack } from "../../port/Rules.ts"
import type { Explore, Visit } from "../../port/explorer.ts"
import { parallelExplore } from "../../port/parallelExplorer.ts"
import { type Content, type Mode, runCommit } from "../../backends/writing.ts"
import { isUtf8 } from "../../runtime/node.ts"
import * as Files from "./files.ts"
import * as Tree from "./tree.ts"

// Detects whether bytes are text while they are written. Text is UTF-8 without NUL.

type EncodingHint = "utf-8" | "binary"

interface Sniffer {
  readonly push: (bytes: Uint8Array) => void
  readonly sizeBytes: () => number
  readonly hint: () => EncodingHint
}

const incompleteTailLength = (bytes: Uint8Array): number => {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

const makeSniffer = (): Sniffer => {
  let rest: Uint8Array = new Uint8Array(0)
  let size = 0
  let isText = true
  return {
    push: (bytes) => {
      size += bytes.length
      if (!isText) return
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      const end = all.length - incompleteTailLength(all)
      isText = !bytes.includes(0) && isUtf8(all.subarray(0, end))
      rest = all.slice(end)
    },
    sizeBytes: () => size,
    hint: () => (isText && rest.length === 0 ? "utf-8" : "binary")
  }
}

const passThrough = <E, R>(content: Content<E, R>, { push }: Sniffer): Content<E, R> => {
  if (isBytes(content)) {
    push(content)
    return content
  }
  return Stream.map(content, (bytes) => {
    push(bytes)
    return bytes
  })
}

/** Returns the encoding of a file after an append. `before` is `undefined` for a file of unknown encoding. */
const encodingAfterAppend = (before: string | null | undefined, appended: EncodingHint): string | null =>
  before === undefined || before === null ? null : before === "utf-8" ? appended : before

export interface TreeSource {
  readonly current: () => Tree.Tree | undefined
  readonly createDirectory: Effect.Effect<unknown, Fault>
  readonly changed: (tree: Tree.Tree) => void
}

const replacedFault: Fault = {
  _tag: "IoError",
  detail: "the filesystem was rolled back or reset before the write was complete"
}

/**
 * Adds the creation time from the facts. The creation time on disk is not usable, because each replacement creates a new file.
 */
const withCreationTime = (tree: Tree.Tree, stat: FileStat): FileStat => {
  const createdAt = stat.kind === "file" ? Files.get(tree.files, stat.path)?.createdAt : undefined
  return createdAt === undefined ? stat : { ...stat, createdAt }
}

export const make = (source: TreeSource, info: Info, rules: Rules, locks: Locks, hasAttributes: boolean): Backend => {
  const enterTree = Effect.sync(() => {
    const tree = source.current()
    return tree && Tree.enter(tree)
  })
  const left = (tree: Tree.Tree | undefined): Effect.Effect<void> => (tree === undefined ? Effect.void : Tree.leave(tree))

  const withTree = <A, E, R>(use: (tree: Tree.Tree) => Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.acquireUseRelease(
      enterTree,
      (tree): Effect.Effect<A, E | Fault, R> =>
        tree === undefined ? Effect.andThen(source.createDirectory, withTree(use)) : use(tree),
      left
    )
  const holdTree: Effect.Effect<Tree.Tree, Fault, Scope.Scope> = Effect.flatMap(
    Effect.acquireRelease(enterTree, left),
    (tree) => (tree === undefined ? Effect.andThen(source.createDirectory, holdTree) : Effect.succeed(tree))
  )

  const setFiles = (tree: Tree.Tree, files: Files.Files, ...paths: ReadonlyArray<FsPath>): void => {
    if (files === tree.files) return
    tree.files = files
    if (!paths.every(Files.isHidden)) source.changed(tree)
  }

  /**
   * Removes the empty directories above a removed path. Does nothing for a temporary path, or if a failed call removes an entry
   * that it created.
   */
  const removeEmptyParents = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.withFiber((fiber) =>
      fiber.getRef(TakingBack) || Files.isHidden(path) ? Effect.void : removeEmptyFrom(tree, parent(path))
    )
  const removeEmptyFrom = (tree: Tree.Tree, directory: FsPath): Effect.Effect<void> =>
    directory === root
      ? Effect.void
      : Effect.matchEffect(
          Effect.filterOrFail(tree.port.stat(directory), (stat) => stat?.kind === "directory").pipe(
            Effect.andThen(tree.port.remove(directory))
          ),
          { onFailure: () => Effect.void, onSuccess: () => removeEmptyFrom(tree, parent(directory)) }
        )

  const recordWritten = (tree: Tree.Tree, path: FsPath, mode: Mode, sniffer: Sniffer): Effect.Effect<void> =>
    Effect.gen(function* () {
      const at = yield* DateTime.now
      const stat = yield* Effect.orElseSucceed(tree.port.stat(path), () => undefined)
      const before = Files.get(tree.files, path)
      const sizeBytes = stat?.sizeBytes ?? sniffer.sizeBytes()
      const isAdded = mode === "append" && sizeBytes > sniffer.sizeBytes()
      const encoding = isAdded ? encodingAfterAppend(before?.encoding, sniffer.hint()) : sniffer.hint()
      // Use the earlier of the two times, because the kernel's clock is less precise and the creation time must not be
      // after the modification time.
      const created = stat?.modifiedAt === undefined ? at : DateTime.min(at, stat.modifiedAt)
      setFiles(tree, Files.recordWrite(tree.files, { path, mode, encoding, sizeBytes, at, created }), path)
    })

  /**
   * Remembers the directory of an entry that a transaction moves away. The directory is checked after the transaction, because
   * the transaction may put an entry there again.
   */
  const rememberDirectory = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.withFiber((fiber) =>
      Effect.sync(() => {
        if (!fiber.getRef(BringingBack) && !Files.isHidden(path)) tree.vacatedDirectories.add(parent(path))
      })
    )
  /**
   * Removes the remembered directories and their parents if they are empty. Runs when the hidden directory of the transaction
   * is removed.
   */
  const removeRemembered = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (tree.vacatedDirectories.size === 0 || !Files.isHidden(path) || Files.isHidden(parent(path))) return Effect.void
      const left = [...tree.vacatedDirectories]
      tree.vacatedDirectories.clear()
      return Effect.forEach(left, (directory) => removeEmptyFrom(tree, directory), { discard: true })
    })

  const refreshFiles = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.forEach(
      Files.filesWithin(tree.files, path),
      (each) =>
        Effect.ignore(
          Effect.map(tree.port.stat(each), (stat) => {
            if (stat === undefined) setFiles(tree, Files.recordRemoval(tree.files, each), each)
          })
        ),
      { discard: true }
    )

  const remove = (tree: Tree.Tree, path: FsPath): Effect.Effect<void, Fault> =>
    Effect.uninterruptible(
      Effect.tap(tree.port.remove(path), () => {
        setFiles(tree, Files.recordRemoval(tree.files, path), path)
        return Effect.andThen(removeEmptyParents(tree, path), removeRemembered(tree, path))
      })
    )

  const removeTree = (tree: Tree.Tree, path: FsPath) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.tap(
        Effect.onError(restore(tree.port.perform!({ _tag: "RemoveTree", path })), () => refreshFiles(tree, path)),
        () => {
          setFiles(tree, Files.recordRemoval(tree.files, path), path)
          return Effect.andThen(removeEmptyParents(tree, path), removeRemembered(tree, path))
        }
      )
    )

  const perform = Request.handlers({
    Read: (request) =>
      withTree((tree) =>
        Effect.map(
          tree.port.perform?.(request) ?? Request.declined,
          Option.map((whole) => ({ ...whole, stat: withCreationTime(tree, whole.stat) }))
        )
      ),
    RemoveTree: ({ path }) => withTree((tree) => removeTree(tree, path))
  })

  const explore: Explore = <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean) =>
    Effect.matchEffect(holdTree, {
      onFailure: (fault) => parallelExplore({ info, list: () => Effect.fail(fault) }, 1)<V>(pathOf, searches),
      onSuccess: (tree) => tree.port.explore!<V>(pathOf, searches)
    })

  return enforce({
    info,
    rules,
    locks,
    perform,
    ...(info.confinement === "race-free" && { explore }),
    stat: (path) => withTree((tree) => Effect.map(tree.port.stat(path), (stat) => stat && withCreationTime(tree, stat))),
    list: (path) => withTree((tree) => tree.port.list(path)),
    open: (path) =>
      Effect.flatMap(holdTree, (tree) =>
        Effect.map(tree.port.open(path), (handle) => ({ ...handle, stat: withCreationTime(tree, handle.stat) }))
      ),
    write: (path, content, mode, how) =>
      withTree((tree) => {
        const sniffer = makeSniffer()
        const commit: Commit = <A, E, R>(publish: Effect.Effect<A, E, R>) => {
          const published = Effect.suspend((): Effect.Effect<A, E | Fault, R> =>
            tree.isRetired
              ? Effect.fail(replacedFault)
              : Effect.uninterruptible(Effect.tap(publish, () => recordWritten(tree, path, mode, sniffer)))
          )
          return runCommit(how?.commit, published)
        }
        return Effect.map(tree.port.write(path, passThrough(content, sniffer), mode, { commit }), (stat) =>
          withCreationTime(tree, stat)
        )
      }),
    makeDirectory: (path) => withTree((tree) => tree.port.makeDirectory(path)),
    remove: (path) => withTree((tree) => remove(tree, path)),
    rename: (from, to, options) =>
      withTree((tree) =>
        Effect.uninterruptible(
          Effect.tap(tree.port.rename(from, to, options), () => {
            setFiles(tree, Files.recordMove(tree.files, from, to), from, to)
            return Files.isHidden(to) ? rememberDirectory(tree, from) : removeEmptyParents(tree, from)
          })
        )
      ),
    ...(hasAttributes && {
      attributes: {
        set: (path: FsPath, values: Parameters<Attributes["set"]>[1]) =>
          withTree((tree) => tree.port.attributes!.set(path, values))
      }
    })
  })
}
