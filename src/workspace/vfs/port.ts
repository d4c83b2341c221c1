/**
 * The facts about files change in the same step as the files. After a rollback or a reset, running calls continue to read the
 * old directory, and a write that is not yet published fails.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import type { Attributes, Backend, Commit, Info, Locks, Rules } from "../../port/Backend.ts"
import type { Explore, Explorer, Visit } from "../../port/explorer.ts"
import * as Request from "../../port/Request.ts"
import { BringingBack, enforce, TakingBack } from "../../port/Rules.ts"
import * as Files from "./files.ts"
import * as Hint from "./hint.ts"
import * as Tree from "./tree.ts"

export interface Source {
  readonly current: () => Tree.Tree | undefined
  readonly provide: Effect.Effect<unknown, Fault>
  readonly changed: (tree: Tree.Tree) => void
}

const exchanged: Fault = {
  _tag: "IoError",
  detail: "the filesystem was brought back, or reset, before this was written"
}

/** Adds the creation time. The disk creates a new file on replacement, so only the facts have the original time. */
const dated = (tree: Tree.Tree, stat: FileStat): FileStat => {
  const createdAt = stat.kind === "file" ? Files.get(tree.files, stat.path)?.createdAt : undefined
  return createdAt === undefined ? stat : { ...stat, createdAt }
}

const failing = <V extends Visit>(fault: Fault): Explorer<V> => {
  let asked: ReadonlyArray<V> = []
  return {
    room: () => 1,
    read: (visits) => void (asked = [...asked, ...visits]),
    take: () => {
      const read = asked.map((visit) => ({ visit, children: fault }))
      asked = []
      return read
    },
    wait: Effect.void,
    hold: () => {},
    leave: () => {}
  }
}

export const make = (source: Source, info: Info, rules: Rules, locks: Locks, hasAttributes: boolean): Backend => {
  const entered = Effect.sync(() => {
    const tree = source.current()
    return tree && Tree.enter(tree)
  })
  const left = (tree: Tree.Tree | undefined): Effect.Effect<void> => (tree === undefined ? Effect.void : Tree.leave(tree))

  const using = <A, E, R>(use: (tree: Tree.Tree) => Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.acquireUseRelease(
      entered,
      (tree): Effect.Effect<A, E | Fault, R> => (tree === undefined ? Effect.andThen(source.provide, using(use)) : use(tree)),
      left
    )
  const holding: Effect.Effect<Tree.Tree, Fault, Scope.Scope> = Effect.flatMap(Effect.acquireRelease(entered, left), (tree) =>
    tree === undefined ? Effect.andThen(source.provide, holding) : Effect.succeed(tree)
  )

  const becomes = (tree: Tree.Tree, files: Files.Files, ...paths: ReadonlyArray<FsPath>): void => {
    if (files === tree.files) return
    tree.files = files
    if (!paths.every(Files.isHidden)) source.changed(tree)
  }

  /**
   * Removes the empty directories above a removed path. Does nothing for a temporary path, or when a failed call removes its own entries.
   */
  const prune = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.withFiber((fiber) =>
      fiber.getRef(TakingBack) || Files.isHidden(path) ? Effect.void : pruneAbove(tree, parent(path))
    )
  const pruneAbove = (tree: Tree.Tree, directory: FsPath): Effect.Effect<void> =>
    directory === root
      ? Effect.void
      : Effect.matchEffect(
          Effect.filterOrFail(tree.port.stat(directory), (stat) => stat?.kind === "directory").pipe(
            Effect.andThen(tree.port.remove(directory))
          ),
          { onFailure: () => Effect.void, onSuccess: () => pruneAbove(tree, parent(directory)) }
        )

  const noted = (
    tree: Tree.Tree,
    path: FsPath,
    mode: "create" | "replace" | "append",
    sniffed: Hint.Sniffer
  ): Effect.Effect<void> =>
    Effect.gen(function* () {
      const at = yield* DateTime.now
      const stat = yield* Effect.orElseSucceed(tree.port.stat(path), () => undefined)
      const before = Files.get(tree.files, path)
      const sizeBytes = stat?.sizeBytes ?? sniffed.sizeBytes()
      const isAdded = mode === "append" && sizeBytes > sniffed.sizeBytes()
      const encoding = isAdded ? Hint.joined(before?.encoding, sniffed.hint()) : sniffed.hint()
      // The kernel's clock is coarser than ours, and the creation time must not be after the modification time.
      const created = stat?.modifiedAt === undefined ? at : DateTime.min(at, stat.modifiedAt)
      becomes(tree, Files.written(tree.files, { path, mode, encoding, sizeBytes, at, created }), path)
    })

  /**
   * Remembers the directory of an entry that a transaction moves away. The entry may return or be replaced, so the
   * directory is checked after the transaction.
   */
  const putAside = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.withFiber((fiber) =>
      Effect.sync(() => {
        if (!fiber.getRef(BringingBack) && !Files.isHidden(path)) tree.left.add(parent(path))
      })
    )
  /**
   * Removes the remembered directories, and those above them, if they are empty. Does so once the transaction's hidden
   * directory is removed.
   */
  const settle = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (tree.left.size === 0 || !Files.isHidden(path) || Files.isHidden(parent(path))) return Effect.void
      const left = [...tree.left]
      tree.left.clear()
      return Effect.forEach(left, (directory) => pruneAbove(tree, directory), { discard: true })
    })

  const lookAgain = (tree: Tree.Tree, path: FsPath): Effect.Effect<void> =>
    Effect.forEach(
      Files.within(tree.files, path),
      (each) =>
        Effect.ignore(
          Effect.map(tree.port.stat(each), (stat) => {
            if (stat === undefined) becomes(tree, Files.removed(tree.files, each), each)
          })
        ),
      { discard: true }
    )

  const remove = (tree: Tree.Tree, path: FsPath): Effect.Effect<void, Fault> =>
    Effect.uninterruptible(
      Effect.tap(tree.port.remove(path), () => {
        becomes(tree, Files.removed(tree.files, path), path)
        return Effect.andThen(prune(tree, path), settle(tree, path))
      })
    )

  const removeTree = (tree: Tree.Tree, path: FsPath) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.tap(
        Effect.onError(restore(tree.port.perform!({ _tag: "RemoveTree", path })), () => lookAgain(tree, path)),
        () => {
          becomes(tree, Files.removed(tree.files, path), path)
          return Effect.andThen(prune(tree, path), settle(tree, path))
        }
      )
    )

  const perform = Request.handlers({
    Read: (request) =>
      using((tree) =>
        Effect.map(
          tree.port.perform?.(request) ?? Request.declined,
          Option.map((whole) => ({ ...whole, stat: dated(tree, whole.stat) }))
        )
      ),
    RemoveTree: ({ path }) => using((tree) => removeTree(tree, path))
  })

  const explore: Explore = <V extends Visit>(pathOf: (visit: V) => FsPath, searches: boolean) =>
    Effect.matchEffect(holding, {
      onFailure: (fault) => Effect.succeed(failing<V>(fault)),
      onSuccess: (tree) => tree.port.explore!<V>(pathOf, searches)
    })

  return enforce({
    info,
    rules,
    locks,
    perform,
    ...(info.confinement === "race-free" && { explore }),
    stat: (path) => using((tree) => Effect.map(tree.port.stat(path), (stat) => stat && dated(tree, stat))),
    list: (path) => using((tree) => tree.port.list(path)),
    open: (path) =>
      Effect.flatMap(holding, (tree) =>
        Effect.map(tree.port.open(path), (handle) => ({ ...handle, stat: dated(tree, handle.stat) }))
      ),
    write: (path, content, mode, how) =>
      using((tree) => {
        const sniffed = Hint.sniffer()
        const commit: Commit = <A, E, R>(publish: Effect.Effect<A, E, R>) => {
          const published = Effect.suspend((): Effect.Effect<A, E | Fault, R> =>
            tree.isRetired
              ? Effect.fail(exchanged)
              : Effect.uninterruptible(Effect.tap(publish, () => noted(tree, path, mode, sniffed)))
          )
          return how?.commit === undefined ? published : how.commit(published)
        }
        return Effect.map(tree.port.write(path, Hint.through(content, sniffed), mode, { commit }), (stat) => dated(tree, stat))
      }),
    makeDirectory: (path) => using((tree) => tree.port.makeDirectory(path)),
    remove: (path) => using((tree) => remove(tree, path)),
    rename: (from, to, options) =>
      using((tree) =>
        Effect.uninterruptible(
          Effect.tap(tree.port.rename(from, to, options), () => {
            becomes(tree, Files.moved(tree.files, from, to), from, to)
            return Files.isHidden(to) ? putAside(tree, from) : prune(tree, from)
          })
        )
      ),
    ...(hasAttributes && {
      attributes: {
        set: (path: FsPath, values: Parameters<Attributes["set"]>[1]) =>
          using((tree) => tree.port.attributes!.set(path, values))
      }
    })
  })
}
