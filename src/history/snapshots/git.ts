/**
 * Snapshots of a directory, in git as a store of objects. What is captured comes from our own confined walk and is written as a pack of
 * ours; git reads it again, keeps it together and lets people look at it. git never sees the directory.
 */
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { recover } from "../exchange.ts"
import { collect, needsCollecting } from "../git/collect.ts"
import { encodeCommit } from "../git/commitObject.ts"
import { entriesOf, load } from "../git/load.ts"
import { idOf } from "../git/objects.ts"
import * as PackIndex from "../git/packIndex.ts"
import * as PackWriter from "../git/packWriter.ts"
import * as Store from "../git/store.ts"
import { encodeTree, type TreeEntry } from "../git/treeObject.ts"
import { alone, replace } from "../replace.ts"
import { hashing, scan, type ScanOptions, type Sink, wholeFile } from "../scan.ts"
import { type Change, differences, type DirectoryNode, type FileNode, type Node } from "../tree.ts"
import { make as makeView } from "../view.ts"
import * as Budget from "./budget.ts"
import * as GitDirectory from "./gitDirectory.ts"
import * as Message from "./message.ts"
import type { LayerOptions } from "./options.ts"
import * as Remembered from "./remembered.ts"
import { expired } from "./retention.ts"
import type { Kept, Label, Problem, Strategy } from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

const toFault = (fault: StoreFault): Fault => ({ _tag: "IoError", detail: fault.detail })

/** What a directory has in it, as the store's trees want it. Of links the target is an object of its own. */
const treeEntry = (node: Node): TreeEntry =>
  node.kind === "symlink"
    ? { kind: "symlink", id: idOf("blob", Buffer.from(node.target)) }
    : node.kind === "file"
      ? { kind: "file", mode: node.mode, id: node.id }
      : { kind: "directory", id: node.id! }

/** Writes what the store does not have. */
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

const packsIn = (directory: string): ReadonlyArray<string> => Fs.readdirSync(directory).filter((name) => name.endsWith(".idx"))

export const make = (
  port: Backend,
  directory: string,
  options: LayerOptions,
  isKept = true
): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.gen(function* () {
    const { history } = port
    const top = history?._tag === "Directory" ? history.root : undefined
    const refused = top === undefined ? undefined : Budget.refusal(top, options)
    if (refused !== undefined) return yield* Effect.fail(refused)
    yield* GitDirectory.check(directory)
    const store = yield* Store.open(directory, { avoid: top === undefined ? [] : [top] })
    yield* alone(port, recover(port))
    return yield* over(port, store, options, isKept)
  })

/** In a directory of its own, that goes with the scope. */
export const makeScoped = (port: Backend, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.flatMap(GitDirectory.temporary, (directory) => make(port, directory, options, false))

const over = Effect.fnUntraced(function* (port: Backend, store: Store.Store, options: LayerOptions, isKept: boolean) {
  const { packDirectory, reader, snapshots } = store
  const index = yield* PackIndex.open(packDirectory)
  const { caseSensitive, root: rootPath } = port.info
  const excludes = options.git === "exclude" ? (path: FsPath): boolean => path === ".git" : undefined
  const maxEntries = 2 * (options.maxFiles ?? Budget.maxFiles)
  const remembered = isKept ? yield* Remembered.load(store.directory, rootPath) : undefined
  let last = remembered
  if (isKept && port.history !== undefined) {
    yield* Effect.addFinalizer(() =>
      last === remembered || last === undefined ? Effect.void : Remembered.save(store.directory, rootPath, last)
    )
  }
  let newest: string | undefined

  const onCensus: ScanOptions<StoreFault>["onCensus"] = (census, isWhole) => {
    options.onProgress?.({ phase: "counting", files: census.files, bytes: census.bytes })
    return Budget.check(census, isWhole, options, store.directory)
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
    const { createdAt, label, previous } = said
    const snapshot = new FilesystemSnapshot({
      snapshotId: id,
      createdAt: DateTime.makeUnsafe(createdAt),
      commitRef: commit,
      rootPath,
      gitDir: store.directory,
      ...(label.tag !== undefined && { tag: label.tag })
    })
    const census = Effect.succeed({ files: said.files, bytes: said.bytes })
    return { snapshot, label, census, ...(previous !== undefined && { previous }) }
  }
  const list = Effect.map(snapshots.list, (all) => all.map(keptOf).filter((kept) => kept !== undefined))
  const find: Strategy["find"] = (id) =>
    Effect.flatMap(snapshots.get(id), (commit) =>
      commit === undefined
        ? Effect.succeed(undefined)
        : Effect.map(store.commit(commit), ({ message }) => keptOf({ id, commit, message }))
    )

  const treeOf = (kept: Kept): Effect.Effect<DirectoryNode, Problem> =>
    Effect.flatMap(store.commit(kept.snapshot.commitRef), ({ tree }) => load(reader, tree, last?.scan.tree, maxEntries))

  const content = (_: FsPath, file: FileNode): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault> =>
    file.sizeBytes > wholeFile ? Effect.succeed(reader.stream(file.id)) : Effect.map(reader.object(file.id), ({ body }) => body)

  /** All that is forgotten with time, and the packs that have become many. */
  /** Only what is kept longer than it should be goes; of a store that does not become smaller no more than that. */
  const tidy = Effect.fnUntraced(function* (spared: Kept | undefined): Effect.fn.Return<void, Problem> {
    const { retention } = options
    if (retention !== undefined) {
      const time = yield* Clock.currentTimeMillis
      for (const old of expired(yield* list, retention, time, spared)) yield* snapshots.remove(old.snapshot.snapshotId)
    }
    if (yield* needsCollecting(store)) yield* collect(store)
    const maxBytes = retention?.maxBytes
    if (maxBytes === undefined) return
    const all = yield* list
    let { bytes } = yield* store.stats
    for (const { snapshot } of all.slice(0, -1)) {
      if (bytes <= maxBytes) return
      if (snapshot.snapshotId === spared?.snapshot.snapshotId) continue
      yield* snapshots.remove(snapshot.snapshotId)
      const { outcome } = yield* collect(store, { maxWaste: 0 })
      bytes = (yield* store.stats).bytes
      // Nothing goes while others are at the store; next time, then.
      if (outcome !== "done") return
    }
  })

  const capture = Effect.fnUntraced(function* (label: Label): Effect.fn.Return<Kept, Problem> {
    const createdAt = yield* Clock.currentTimeMillis
    yield* index.refresh
    const there = new Set(packsIn(packDirectory))
    const isWhole = last?.packs.every((name) => there.has(name)) === true
    const writer = yield* PackWriter.open(packDirectory, { isDurable: isKept })
    return yield* Effect.gen(function* () {
      const taken = yield* alone(
        port,
        Effect.andThen(
          recover(port),
          scan<StoreFault>(port, {
            sink: writing(writer, index.has),
            previous: last?.scan,
            isHeld: isWhole ? undefined : index.has,
            excludes,
            onCensus,
            onProgress
          })
        )
      )
      const snapshotId = randomUUID()
      const previous = newest ?? (yield* list).at(-1)?.snapshot.snapshotId
      const said: Message.Said = {
        id: snapshotId,
        root: rootPath,
        createdAt,
        label,
        files: taken.files,
        bytes: taken.bytes,
        ...(previous !== undefined && { previous })
      }
      const commit = writer.add("commit", encodeCommit({ tree: taken.tree.id!, createdAt, message: Message.encode(said) }))
      yield* writer.finish
      yield* snapshots.put(snapshotId, commit)
      newest = snapshotId
      last = { scan: taken, packs: packsIn(packDirectory) }
      return keptOf({ id: snapshotId, commit, message: Message.encode(said) })!
    }).pipe(Effect.ensuring(writer.abandon))
  })

  const restoring = Effect.fnUntraced(function* (
    after: DirectoryNode,
    paths: ReadonlyArray<FsPath> | undefined,
    dryRun: boolean
  ): Effect.fn.Return<ReadonlyArray<Change>, Problem> {
    return yield* replace<StoreFault>(port, {
      after,
      content,
      paths,
      dryRun,
      scan: { previous: last?.scan, excludes }
    })
  })

  return {
    name: "git",
    commitRef: /^[0-9a-f]{40}$/,
    gitDir: store.directory,
    take: (label, spared) => Effect.tap(store.holding(capture(label)), () => Effect.ignore(tidy(spared))),
    list,
    find,
    restore: (kept, { dryRun = false, paths, verify }) =>
      store.holding(
        Effect.gen(function* () {
          const after = yield* treeOf(kept)
          const changes = yield* restoring(after, paths, dryRun)
          if (verify === true && !dryRun) {
            const left = yield* restoring(after, paths, true)
            if (left.length > 0) return yield* Effect.fail(storeFault("io", `${left[0]!.path} is not as it was captured`))
          }
          return changes
        })
      ),
    diff: (from, to) =>
      store.holding(
        Effect.gen(function* () {
          const before = yield* treeOf(from)
          const after =
            to === undefined
              ? (yield* alone(port, Effect.andThen(recover(port), scan(port, { previous: last?.scan, excludes })))).tree
              : yield* treeOf(to)
          return differences(before, after, caseSensitive)
        })
      ),
    tree: (kept) => store.holding(treeOf(kept)),
    now: Effect.map(
      Effect.suspend(() => scan(port, { previous: last?.scan, excludes })),
      ({ tree }) => tree
    ),
    view: (kept) =>
      Effect.map(store.commit(kept.snapshot.commitRef), ({ tree }) => {
        return makeView({
          name: "Snapshot",
          root: rootPath,
          caseSensitive,
          tree: { kind: "directory", id: tree, entries: new Map() },
          entries: ({ id }) => Effect.mapError(entriesOf(reader, id!), toFault),
          content: (path, file) =>
            Effect.mapError(
              Effect.map(content(path, file), (bytes) =>
                bytes instanceof Uint8Array ? bytes : Stream.mapError(bytes, toFault)
              ),
              toFault
            )
        })
      }),
    forget: ({ snapshot }) => Effect.asVoid(snapshots.remove(snapshot.snapshotId)),
    stats: Effect.map(store.stats, ({ bytes, objects, snapshots }) => ({ bytes, objects, snapshots })),
    collect: Effect.asVoid(collect(store, { maxWaste: 0.05 }))
  } satisfies Strategy
})
