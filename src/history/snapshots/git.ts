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
import { alone, recovering, replace } from "../replace.ts"
import { hashing, scan, type ScanOptions, type Sink, wholeFile } from "../scan.ts"
import { type Change, differences, type DirectoryNode, type FileNode, type Node } from "../tree.ts"
import { make as makeView } from "../view.ts"
import * as Budget from "./budget.ts"
import { dropGit, excluding } from "./excluding.ts"
import { lookingInto } from "./lookingInto.ts"
import * as Message from "./message.ts"
import * as Outside from "./outside.ts"
import type { LayerOptions } from "./options.ts"
import * as Remembered from "./remembered.ts"
import { expired } from "./retention.ts"
import { type Kept, type Label, type Problem, rootOf, type Strategy, type TakeOptions } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

const treeEntry = (node: Node): TreeEntry =>
  node.kind === "symlink"
    ? { kind: "symlink", id: idOf("blob", Buffer.from(node.target)) }
    : node.kind === "file"
      ? { kind: "file", mode: node.mode, id: node.id }
      : { kind: "directory", id: node.id! }

const writing = (writer: PackWriter.PackWriter, has: (id: string) => boolean): Sink<StoreFault> => {
  const add = (kind: "blob" | "tree", body: Uint8Array): string => {
    const id = idOf(kind, body)
    if (!has(id)) writer.add(kind, body, id)
    return id
  }
  return {
    file: (bytes) => add("blob", bytes),
    large: (size, bytes) =>
      Effect.flatMap(hashing.large(size, bytes), (id) =>
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
  isKept = true
): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.gen(function* () {
    const top = port.history?._tag === "Directory" ? port.history.root : undefined
    const refused = top === undefined ? undefined : Budget.refusal(top, options)
    if (refused !== undefined) return yield* Effect.fail(refused)
    yield* Outside.check("gitDir", directory)
    const store = yield* Store.open(directory, { avoid: top === undefined ? [] : [top] })
    yield* Outside.guarded(store.directory)
    yield* alone(port, recovering(port))
    return yield* over(port, store, options, isKept)
  })

export const makeScoped = (port: Backend, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.flatMap(Outside.temporary("fs-algebra-git-"), (directory) => make(port, directory, options, false))

/** The most entries that a commit may claim, against forged counts. */
const mostEntries = 20_000_000

const over = Effect.fnUntraced(function* (port: Backend, store: Store.Store, options: LayerOptions, isKept: boolean) {
  const { packDirectory, reader, snapshots } = store
  const index = yield* PackIndex.open(packDirectory)
  const { caseSensitive } = port.info
  const rootPath = rootOf(port)
  const remembered = isKept ? yield* Remembered.load(store.directory, rootPath) : undefined
  let last = remembered
  if (isKept && port.history !== undefined) {
    yield* Effect.addFinalizer(() =>
      last === remembered || last === undefined ? Effect.void : Remembered.save(store.directory, rootPath, last)
    )
  }
  const excludesGit = options.git === "exclude"
  const isWithoutGit = (kept: Kept): boolean => excludesGit || kept.excludesGit === true
  const withoutGit = (tree: DirectoryNode, kept: Kept): DirectoryNode => (isWithoutGit(kept) ? dropGit(tree) : tree)
  let newest: { readonly id: string; readonly createdAt: number } | undefined
  const passing = new Set<string>()

  const counting =
    (bounds: TakeOptions["bounds"]): ScanOptions<StoreFault>["onCensus"] =>
    (census, isWhole) => {
      options.onProgress?.({ phase: "counting", files: census.files, bytes: census.bytes })
      return Budget.check(census, isWhole, { ...options, ...bounds }, store.directory)
    }
  const onProgress: ScanOptions<StoreFault>["onProgress"] =
    options.onProgress === undefined
      ? undefined
      : (done, of) =>
          Effect.sync(() =>
            options.onProgress!({ phase: "reading", files: done.files, bytes: done.bytes, totalBytes: of.bytesToRead })
          )

  const keptOf = ({ commit, id, message }: Store.Entry): Kept | undefined => {
    const said = Message.decode(message)
    if (said === undefined || said.id !== id || said.root !== rootPath) return undefined
    const { bytes, createdAt, excludesGit, files, label, previous, skipped } = said
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
      census,
      skipped,
      ...(previous !== undefined && { previous }),
      ...(excludesGit !== undefined && { excludesGit })
    }
  }
  const list = Effect.map(
    snapshots.list,
    (all) =>
      all.map(keptOf).filter((kept) => kept !== undefined && !passing.has(kept.snapshot.snapshotId)) as ReadonlyArray<Kept>
  )
  const find: Strategy["find"] = (id) =>
    Effect.flatMap(snapshots.get(id), (commit) =>
      commit === undefined
        ? Effect.succeed(undefined)
        : Effect.map(store.commit(commit), ({ message }) => keptOf({ id, commit, message }))
    )

  const treeOf = Effect.fnUntraced(function* (kept: Kept): Effect.fn.Return<DirectoryNode, Problem> {
    const { message, tree } = yield* store.commit(kept.snapshot.commitRef)
    const said = Message.decode(message)
    const entries = Math.min(mostEntries, (said?.files ?? 0) + (said?.directories ?? 0))
    return withoutGit(yield* load(reader, tree, last?.scan.tree, entries), kept)
  })

  const content = (_: FsPath, file: FileNode): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault> =>
    file.sizeBytes > wholeFile ? Effect.succeed(reader.stream(file.id)) : Effect.map(reader.object(file.id), ({ body }) => body)

  /**
   * Removes the oldest snapshots until the store is small enough. The larger the excess, the more are removed at once.
   */
  const shrink = Effect.fnUntraced(function* (maxBytes: number, spared: Kept | undefined): Effect.fn.Return<void, Problem> {
    for (;;) {
      const { bytes } = yield* store.stats
      const all = (yield* list).slice(0, -1).filter(({ snapshot }) => snapshot.snapshotId !== spared?.snapshot.snapshotId)
      if (bytes <= maxBytes || all.length === 0) return
      const some = Math.max(1, Math.floor((all.length * (1 - maxBytes / bytes)) / 2))
      for (const { snapshot } of all.slice(0, some)) yield* snapshots.remove(snapshot.snapshotId)
      // Another process uses the store, so no space can be freed. A later call will retry.
      if ((yield* collect(store, { maxWaste: 0 })).outcome !== "done") return
    }
  })

  const tidy = Effect.fnUntraced(function* (spared: Kept | undefined): Effect.fn.Return<void, Problem> {
    const { retention } = options
    if (retention?.maxAge !== undefined || retention?.maxSnapshots !== undefined) {
      const time = yield* Clock.currentTimeMillis
      for (const old of expired(yield* list, retention, time, spared)) yield* snapshots.remove(old.snapshot.snapshotId)
    }
    if (yield* needsCollecting(store)) yield* collect(store)
    if (retention?.maxBytes !== undefined) yield* shrink(retention.maxBytes, spared)
  })

  /** Tidies the store; a failure is only logged, because the snapshot itself has succeeded. */
  const tidying = (spared: Kept | undefined): Effect.Effect<void> =>
    Effect.ignore(tidy(spared), { log: "Warn", message: "fs-algebra: the store of snapshots could not be tidied" })

  /**
   * Returns a creation time later than that of the previous snapshot, whatever the clock says. Listing and expiry rely
   * on this order.
   */
  const moment = Effect.fnUntraced(function* (): Effect.fn.Return<number, Problem> {
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
  ): Effect.fn.Return<Kept, Problem> {
    yield* index.refresh
    const there = new Set(index.packs())
    const isWhole = last?.packs.every((name) => there.has(name)) === true
    const writer = yield* PackWriter.open(packDirectory, { isDurable: isKept })
    return yield* Effect.gen(function* () {
      const taken = yield* alone(
        port,
        Effect.andThen(
          recovering(port),
          scan<StoreFault>(port, {
            sink: writing(writer, index.has),
            previous: last?.scan,
            isHeld: isWhole ? undefined : index.has,
            excludes: excluding(excludesGit),
            onCensus: counting(bounds),
            onProgress
          })
        )
      )
      const snapshotId = randomUUID()
      const createdAt = yield* moment()
      const previous = newest?.id
      const said: Message.Said = {
        id: snapshotId,
        root: rootPath,
        createdAt,
        label,
        files: taken.files,
        bytes: taken.bytes,
        directories: taken.directories,
        skipped: taken.others,
        ...(previous !== undefined && { previous }),
        ...(excludesGit && { excludesGit })
      }
      const commit = writer.add("commit", encodeCommit({ tree: taken.tree.id!, createdAt, message: Message.encode(said) }))
      const pack = yield* writer.finish
      yield* Effect.uninterruptible(
        Effect.map(snapshots.put(snapshotId, commit), () => {
          if (isPassing) passing.add(snapshotId)
          else newest = { id: snapshotId, createdAt }
        })
      )
      last = { scan: taken, packs: pack === undefined ? [...there] : [...there, `${pack}.idx`] }
      return keptOf({ id: snapshotId, commit, message: Message.encode(said) })!
    }).pipe(Effect.ensuring(writer.abandon))
  })

  const restoring = (
    kept: Kept,
    after: DirectoryNode,
    paths: ReadonlyArray<FsPath> | undefined,
    dryRun: boolean
  ): Effect.Effect<ReadonlyArray<Change>, Problem> =>
    Effect.suspend(() =>
      replace<StoreFault>(port, {
        after,
        content,
        paths,
        dryRun,
        scan: { previous: last?.scan, excludes: excluding(isWithoutGit(kept)) },
        onProgress:
          options.onProgress &&
          ((files, totalFiles) => Effect.sync(() => options.onProgress!({ phase: "writing", files, bytes: 0, totalFiles })))
      })
    )

  const now = (excludesGit: boolean): Effect.Effect<DirectoryNode, Problem> =>
    Effect.suspend(() => Effect.map(scan(port, { previous: last?.scan, excludes: excluding(excludesGit) }), ({ tree }) => tree))

  return {
    name: "git",
    commitRef: /^[0-9a-f]{40}$/,
    rootPath,
    gitDir: store.directory,
    take: (label, { bounds, isPassing = false, spared } = {}) =>
      Effect.tap(store.holding(capture(label, isPassing, bounds)), () => (isPassing ? Effect.void : tidying(spared))),
    list,
    find,
    restore: (kept, { dryRun = false, paths, verify }) =>
      store.holding(
        Effect.gen(function* () {
          const after = yield* treeOf(kept)
          const changes = yield* restoring(kept, after, paths, dryRun)
          if (verify === true && !dryRun) {
            const [left] = yield* restoring(kept, after, paths, true)
            if (left !== undefined) return yield* Effect.fail(storeFault("io", `${left.path} is not as it was captured`))
          }
          return changes
        })
      ),
    diff: (from, to) =>
      store.holding(
        Effect.gen(function* () {
          const isLess = isWithoutGit(from) || (to !== undefined && isWithoutGit(to))
          const before = yield* treeOf(from)
          const after = yield* to === undefined ? alone(port, Effect.andThen(recovering(port), now(isLess))) : treeOf(to)
          return differences(isLess ? dropGit(before) : before, isLess ? dropGit(after) : after, caseSensitive)
        })
      ),
    tree: (kept) => store.holding(treeOf(kept)),
    now: now(excludesGit),
    view: (kept) =>
      Effect.map(store.commit(kept.snapshot.commitRef), ({ tree }) =>
        makeView({
          name: "Snapshot",
          root: rootPath,
          caseSensitive,
          relative: port.links?.relative,
          ...lookingInto(reader, tree, content)
        })
      ),
    forget: ({ snapshot }) =>
      Effect.map(snapshots.remove(snapshot.snapshotId), () => {
        passing.delete(snapshot.snapshotId)
        if (newest?.id === snapshot.snapshotId) newest = undefined
      }),
    stats: Effect.map(store.stats, ({ bytes, objects, snapshots }) => ({ bytes, objects, snapshots })),
    collect: Effect.asVoid(collect(store, { maxWaste: 0.05 }))
  } satisfies Strategy
})
