/**
 * Snapshots of a directory, with git as the object store.
 *
 * This library walks the directory itself and writes the captured objects as a pack. Git reads and maintains the
 * objects and lets people inspect them, but it never accesses the directory.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { randomUUID } from "../../runtime/node.ts"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { collect, needsCollecting } from "../git/collect.ts"
import { encodeCommit } from "../git/commitObject.ts"
import { load } from "../git/load.ts"
import { idOf } from "../git/objects.ts"
import * as PackIndex from "../git/packIndex.ts"
import * as PackWriter from "../git/packWriter.ts"
import * as Store from "../git/store.ts"
import { encodeTree, type TreeEntry } from "../git/treeObject.ts"
import { withExclusiveLock, recoverTransactions, replaceTree } from "../replace.ts"
import { hashOnlySink, scan, type ScanOptions, type ContentSink, maxWholeFileBytes } from "../scan.ts"
import { type Change, differences, type DirectoryNode, type FileNode, type Node } from "../tree.ts"
import { make as makeView } from "../view.ts"
import * as Budget from "./budget.ts"
import { dropGit, excludeGit } from "./excluding.ts"
import { treeSourceOf } from "./lookingInto.ts"
import * as Message from "./message.ts"
import * as Outside from "./outside.ts"
import type { LayerOptions } from "./options.ts"
import * as Remembered from "./remembered.ts"
import { findExpired } from "./retention.ts"
import { type StoredSnapshot, type Label, type Problem, rootOf, type Strategy, type TakeOptions } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

const treeEntry = (node: Node): TreeEntry =>
  node.kind === "symlink"
    ? { kind: "symlink", id: idOf("blob", Buffer.from(node.target)) }
    : node.kind === "file"
      ? { kind: "file", mode: node.mode, id: node.id }
      : { kind: "directory", id: node.id! }

const makeSink = (writer: PackWriter.PackWriter, has: (id: string) => boolean): ContentSink<StoreFault> => {
  const add = (kind: "blob" | "tree", body: Uint8Array): string => {
    const id = idOf(kind, body)
    if (!has(id)) writer.add(kind, body, id)
    return id
  }
  return {
    file: (bytes) => add("blob", bytes),
    large: (size, bytes) =>
      Effect.flatMap(hashOnlySink.large(size, bytes), (id) =>
        id === undefined || has(id) || writer.has(id)
          ? Effect.succeed(id)
          : Effect.catchIf(
              writer.addStream(size, bytes),
              (problem): problem is PackWriter.SizeMismatch => problem._tag === "SizeMismatch",
              () => Effect.succeed(undefined)
            )
      ),
    directory: (self) => {
      const entries = new Map<string, TreeEntry>()
      for (const [segment, node] of self.entries) {
        entries.set(segment, treeEntry(node))
        if (node.kind === "symlink") add("blob", Buffer.from(node.target))
      }
      const { body, modes } = encodeTree(entries, self.mode)
      if (modes !== undefined) add("blob", modes)
      return add("tree", body)
    }
  }
}

export const make = (
  port: Backend,
  directory: string,
  options: LayerOptions,
  isPersistent = true
): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.gen(function* () {
    const top = port.history?._tag === "Directory" ? port.history.root : undefined
    const refused = top === undefined ? undefined : Budget.refuseWideRoot(top, options)
    if (refused !== undefined) return yield* Effect.fail(refused)
    yield* Outside.checkDirectory("gitDir", directory)
    const store = yield* Store.open(directory, { avoid: top === undefined ? [] : [top] })
    yield* Outside.reserveDirectory(store.directory)
    yield* withExclusiveLock(port, recoverTransactions(port))
    return yield* makeStrategy(port, store, options, isPersistent)
  })

export const makeScoped = (port: Backend, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.flatMap(Outside.makeTemporaryDirectory("fs-algebra-git-"), (directory) => make(port, directory, options, false))

/** The most entries that a commit may claim, against forged counts. */
const maxCommitEntries = 20_000_000

const makeStrategy = Effect.fnUntraced(function* (
  port: Backend,
  store: Store.Store,
  options: LayerOptions,
  isPersistent: boolean
) {
  const { packDirectory, reader, snapshots } = store
  const index = yield* PackIndex.open(packDirectory)
  const { caseSensitive } = port.info
  const rootPath = rootOf(port)
  const savedScan = isPersistent ? yield* Remembered.load(store.directory, rootPath) : undefined
  let lastScan = savedScan
  if (isPersistent && port.history !== undefined) {
    yield* Effect.addFinalizer(() =>
      lastScan === savedScan || lastScan === undefined ? Effect.void : Remembered.save(store.directory, rootPath, lastScan)
    )
  }
  const excludesGit = options.git === "exclude"
  const isWithoutGit = (kept: StoredSnapshot): boolean => excludesGit || kept.excludesGit === true
  const withoutGit = (tree: DirectoryNode, kept: StoredSnapshot): DirectoryNode => (isWithoutGit(kept) ? dropGit(tree) : tree)
  let newest: { readonly id: string; readonly createdAt: number } | undefined
  const transactionSnapshots = new Set<string>()

  const checkCensus =
    (bounds: TakeOptions["bounds"]): ScanOptions<StoreFault>["onCensus"] =>
    (census, isWhole) => {
      options.onProgress?.({ phase: "counting", files: census.files, bytes: census.bytes })
      return Budget.checkBudget(census, isWhole, { ...options, ...bounds }, store.directory)
    }
  const onProgress: ScanOptions<StoreFault>["onProgress"] =
    options.onProgress === undefined
      ? undefined
      : (done, of) =>
          Effect.sync(() =>
            options.onProgress!({ phase: "reading", files: done.files, bytes: done.bytes, totalBytes: of.bytesToRead })
          )

  const toStoredSnapshot = ({ commit, id, message }: Store.Entry): StoredSnapshot | undefined => {
    const commitMessage = Message.decode(message)
    if (commitMessage === undefined || commitMessage.id !== id || commitMessage.root !== rootPath) return undefined
    const { bytes, createdAt, excludesGit, files, label, previous, skipped } = commitMessage
    const snapshot = new FilesystemSnapshot({
      snapshotId: id,
      createdAt: DateTime.makeUnsafe(createdAt),
      commitRef: commit,
      rootPath,
      gitDir: store.directory,
      ...(label.tag !== undefined && { tag: label.tag })
    })
    const census = Effect.succeed({ files, bytes })
    return {
      snapshot,
      label,
      counts: census,
      skipped,
      ...(previous !== undefined && { previous }),
      ...(excludesGit !== undefined && { excludesGit })
    }
  }
  const list = Effect.map(
    snapshots.list,
    (all) =>
      all
        .map(toStoredSnapshot)
        .filter(
          (kept) => kept !== undefined && !transactionSnapshots.has(kept.snapshot.snapshotId)
        ) as ReadonlyArray<StoredSnapshot>
  )
  const find: Strategy["find"] = (id) =>
    Effect.flatMap(snapshots.get(id), (commit) =>
      commit === undefined
        ? Effect.succeed(undefined)
        : Effect.map(store.commit(commit), ({ message }) => toStoredSnapshot({ id, commit, message }))
    )

  const treeOf = Effect.fnUntraced(function* (kept: StoredSnapshot): Effect.fn.Return<DirectoryNode, Problem> {
    const { message, tree } = yield* store.commit(kept.snapshot.commitRef)
    const commitMessage = Message.decode(message)
    const entries = Math.min(maxCommitEntries, (commitMessage?.files ?? 0) + (commitMessage?.directories ?? 0))
    return withoutGit(yield* load(reader, tree, lastScan?.scan.tree, entries), kept)
  })

  const content = (_: FsPath, file: FileNode): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault> =>
    file.sizeBytes > maxWholeFileBytes
      ? Effect.succeed(reader.stream(file.id))
      : Effect.map(reader.object(file.id), ({ body }) => body)

  /**
   * Removes the oldest snapshots until the store is small enough. The larger the excess, the more are removed at once.
   */
  const shrinkStore = Effect.fnUntraced(function* (
    maxBytes: number,
    spared: StoredSnapshot | undefined
  ): Effect.fn.Return<void, Problem> {
    for (;;) {
      const { bytes } = yield* store.stats
      const all = (yield* list).slice(0, -1).filter(({ snapshot }) => snapshot.snapshotId !== spared?.snapshot.snapshotId)
      if (bytes <= maxBytes || all.length === 0) return
      const removalCount = Math.max(1, Math.floor((all.length * (1 - maxBytes / bytes)) / 2))
      for (const { snapshot } of all.slice(0, removalCount)) yield* snapshots.remove(snapshot.snapshotId)
      // Another process uses the store, so no space can be freed. A later call will retry.
      if ((yield* collect(store, { maxWaste: 0 })).outcome !== "done") return
    }
  })

  const applyRetention = Effect.fnUntraced(function* (spared: StoredSnapshot | undefined): Effect.fn.Return<void, Problem> {
    const { retention } = options
    if (retention?.maxAge !== undefined || retention?.maxSnapshots !== undefined) {
      const time = yield* Clock.currentTimeMillis
      for (const old of findExpired(yield* list, retention, time, spared)) yield* snapshots.remove(old.snapshot.snapshotId)
    }
    if (yield* needsCollecting(store)) yield* collect(store)
    if (retention?.maxBytes !== undefined) yield* shrinkStore(retention.maxBytes, spared)
  })

  /** Tidies the store; a failure is only logged, because the snapshot itself has succeeded. */
  const tidyQuietly = (spared: StoredSnapshot | undefined): Effect.Effect<void> =>
    Effect.ignore(applyRetention(spared), { log: "Warn", message: "fs-algebra: the store of snapshots could not be tidied" })

  /**
   * Returns a creation time later than that of the previous snapshot, whatever the clock says. Listing and expiry rely
   * on this order.
   */
  const nextCreationTime = Effect.fnUntraced(function* (): Effect.fn.Return<number, Problem> {
    const before =
      newest ??
      (yield* list).map(({ snapshot }) => ({ id: snapshot.snapshotId, createdAt: snapshot.createdAt.epochMilliseconds })).at(-1)
    newest = before
    const now = Math.floor(yield* Clock.currentTimeMillis)
    return Math.max(0, now, before === undefined ? 0 : before.createdAt + 1)
  })

  const capture = Effect.fnUntraced(function* (
    label: Label,
    isPassing: boolean,
    bounds: TakeOptions["bounds"]
  ): Effect.fn.Return<StoredSnapshot, Problem> {
    yield* index.refresh
    const knownPacks = new Set(index.packs())
    const isWhole = lastScan?.packs.every((name) => knownPacks.has(name)) === true
    const writer = yield* PackWriter.open(packDirectory, { isDurable: isPersistent })
    return yield* Effect.gen(function* () {
      const scanned = yield* withExclusiveLock(
        port,
        Effect.andThen(
          recoverTransactions(port),
          scan<StoreFault>(port, {
            sink: makeSink(writer, index.has),
            previous: lastScan?.scan,
            hasContent: isWhole ? undefined : index.has,
            excludes: excludeGit(excludesGit),
            onCensus: checkCensus(bounds),
            onProgress
          })
        )
      )
      const snapshotId = randomUUID()
      const createdAt = yield* nextCreationTime()
      const previous = newest?.id
      const commitMessage: Message.Said = {
        id: snapshotId,
        root: rootPath,
        createdAt,
        label,
        files: scanned.files,
        bytes: scanned.bytes,
        directories: scanned.directories,
        skipped: scanned.others,
        ...(previous !== undefined && { previous }),
        ...(excludesGit && { excludesGit })
      }
      const commit = writer.add(
        "commit",
        encodeCommit({ tree: scanned.tree.id!, createdAt, message: Message.encode(commitMessage) })
      )
      const pack = yield* writer.finish
      yield* Effect.uninterruptible(
        Effect.map(snapshots.put(snapshotId, commit), () => {
          if (isPassing) transactionSnapshots.add(snapshotId)
          else newest = { id: snapshotId, createdAt }
        })
      )
      lastScan = { scan: scanned, packs: pack === undefined ? [...knownPacks] : [...knownPacks, `${pack}.idx`] }
      return toStoredSnapshot({ id: snapshotId, commit, message: Message.encode(commitMessage) })!
    }).pipe(Effect.ensuring(writer.discard))
  })

  const restoreTree = (
    kept: StoredSnapshot,
    after: DirectoryNode,
    paths: ReadonlyArray<FsPath> | undefined,
    dryRun: boolean
  ): Effect.Effect<ReadonlyArray<Change>, Problem> =>
    Effect.suspend(() =>
      replaceTree<StoreFault>(port, {
        after,
        content,
        paths,
        dryRun,
        scan: { previous: lastScan?.scan, excludes: excludeGit(isWithoutGit(kept)) },
        onProgress:
          options.onProgress &&
          ((files, totalFiles) => Effect.sync(() => options.onProgress!({ phase: "writing", files, bytes: 0, totalFiles })))
      })
    )

  const now = (excludesGit: boolean): Effect.Effect<DirectoryNode, Problem> =>
    Effect.suspend(() =>
      Effect.map(scan(port, { previous: lastScan?.scan, excludes: excludeGit(excludesGit) }), ({ tree }) => tree)
    )

  return {
    name: "git",
    commitRef: /^[0-9a-f]{40}$/,
    rootPath,
    gitDir: store.directory,
    take: (label, { bounds, isPassing = false, spared } = {}) =>
      Effect.tap(store.withoutRemoval(capture(label, isPassing, bounds)), () =>
        isPassing ? Effect.void : tidyQuietly(spared)
      ),
    list,
    find,
    restore: (kept, { dryRun = false, paths, verify }) =>
      store.withoutRemoval(
        Effect.gen(function* () {
          const after = yield* treeOf(kept)
          const changes = yield* restoreTree(kept, after, paths, dryRun)
          if (verify === true && !dryRun) {
            const [left] = yield* restoreTree(kept, after, paths, true)
            if (left !== undefined) return yield* Effect.fail(storeFault("io", `${left.path} is not as it was captured`))
          }
          return changes
        })
      ),
    diff: (from, to) =>
      store.withoutRemoval(
        Effect.gen(function* () {
          const ignoresGit = isWithoutGit(from) || (to !== undefined && isWithoutGit(to))
          const before = yield* treeOf(from)
          const after = yield* to === undefined
            ? withExclusiveLock(port, Effect.andThen(recoverTransactions(port), now(ignoresGit)))
            : treeOf(to)
          return differences(ignoresGit ? dropGit(before) : before, ignoresGit ? dropGit(after) : after, caseSensitive)
        })
      ),
    tree: (kept) => store.withoutRemoval(treeOf(kept)),
    now: now(excludesGit),
    view: (kept) =>
      Effect.map(store.commit(kept.snapshot.commitRef), ({ tree }) =>
        makeView({
          name: "Snapshot",
          root: rootPath,
          caseSensitive,
          relative: port.links?.relative,
          ...treeSourceOf(reader, tree, content)
        })
      ),
    forget: ({ snapshot }) =>
      Effect.map(snapshots.remove(snapshot.snapshotId), () => {
        transactionSnapshots.delete(snapshot.snapshotId)
        if (newest?.id === snapshot.snapshotId) newest = undefined
      }),
    stats: Effect.map(store.stats, ({ bytes, objects, snapshots }) => ({ bytes, objects, snapshots })),
    collect: Effect.asVoid(collect(store, { maxWaste: 0.05 }))
  } satisfies Strategy
})
