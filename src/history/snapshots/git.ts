/**
 * Snapshots of a directory, stored in a git repository.
 *
 * This library walks the directory itself and writes the captured objects as a pack. Git reads and maintains the objects, and
 * users can inspect them with git. Git never accesses the directory.
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { Buffer } from "../../runtime/buffer.ts"
import * as Installation from "../../runtime/installation.ts"
import { createHash, Fs, join, randomBytes, randomUUID } from "../../runtime/node.ts"
import { type StoreFault, storeFault } from "../errors.ts"
import { encodeCommit, encodeTree, type TreeEntry } from "../git/codec.ts"
import { collect, needsCollecting } from "../git/collect.ts"
import { idOf } from "../git/objects.ts"
import * as PackIndex from "../git/packIndex.ts"
import * as PackWriter from "../git/packWriter.ts"
import { load as loadGitTree, treeSourceOf } from "../git/reader.ts"
import * as Store from "../git/store.ts"
import { recoverTransactions, replaceTree, withExclusiveLock } from "../replace.ts"
import { type ContentSink, hashOnlySink, maxWholeFileBytes, type Scan, scan, type ScanOptions } from "../scan.ts"
import { type StampedDirectory, type StampedNode, stampOf } from "../stamps.ts"
import { type Change, differences, type DirectoryNode, type FileNode, type Node } from "../tree.ts"
import { shared as sharedThreads } from "../threads/pool.ts"
import { make as makeView } from "../view.ts"
import * as Budget from "./strategy.ts"
import {
  dropGit,
  excludeGit,
  findExpired,
  type Label,
  type LayerOptions,
  type Problem,
  rootOf,
  type StoredSnapshot,
  type Strategy,
  type TakeOptions
} from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

// The commit message of a snapshot has a title line for people and a line of JSON. A commit whose message has another form is
// not a snapshot.

interface CommitMessage {
  readonly id: string
  readonly root: string
  readonly createdAt: number
  readonly label: Label
  readonly files: number
  readonly bytes: number
  /** The number of directories below the root. */
  readonly directories: number
  /** The number of FIFOs, sockets and devices, which are not captured. */
  readonly skipped: number
  readonly previous?: string | undefined
  readonly excludesGit?: boolean | undefined
}

const Text = Schema.optionalKey(Schema.String)
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Line = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    id: Schema.String,
    root: Schema.String,
    createdAt: Count,
    files: Count,
    bytes: Count,
    directories: Count,
    skipped: Count,
    previous: Text,
    excludesGit: Schema.optionalKey(Schema.Boolean),
    tag: Text,
    tool: Text,
    callId: Text
  })
)

const decodeLine = Schema.decodeUnknownOption(Line)

const encode = ({ label, ...fields }: CommitMessage): string =>
  `${label.tag ?? "snapshot"}\n\n${JSON.stringify({ version: 1, ...fields, ...label })}\n`

const decode = (message: string): CommitMessage | undefined => {
  const line = message.trimEnd().split("\n").at(-1) ?? ""
  const fields = Option.getOrUndefined(decodeLine(line))
  if (fields === undefined || fields.createdAt > 8.64e15) return undefined
  const { callId, tag, tool, version: _, ...rest } = fields
  return {
    ...rest,
    label: { ...(tag !== undefined && { tag }), ...(tool !== undefined && { tool }), ...(callId !== undefined && { callId }) }
  }
}

// The last scan is saved for the next process, which otherwise would read every file again. A missing, truncated or foreign
// file is ignored. A message authentication code with the key of this installation protects the file. Otherwise an attacker
// could prepare a store that claims wrong content for a file.

interface SavedScan {
  readonly scan: Scan
  readonly packs: ReadonlyArray<string>
}

const version = 1

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/**
 * Returns the text that the authentication code covers. The first word differs from other texts that this installation
 * authenticates.
 */
const authenticatedText = (text: string): string => `seen ${hashOf(text)}`

const codeLength = 32

/** The flags that open a file without following a symlink or blocking on a pipe. */
const readFlags = Fs.constants.O_RDONLY | (Fs.constants.O_NOFOLLOW ?? 0) | (Fs.constants.O_NONBLOCK ?? 0)

const fileOf = (directory: string, root: string): string =>
  join(directory, `seen-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`)

/**
 * A saved file or symlink: the name, the id, the mode, the size, and the stamp (mtime, ctime, inode, mode). Instead of an id, a
 * symlink has `>` and its target. A stamp with times of -1 never matches.
 */
type LeafRow = readonly [string, string, number | null, number, number, number, number, number]

const ScanHeader = Schema.Struct({
  version: Schema.Literal(version),
  root: Schema.String,
  began: Schema.Finite,
  files: Schema.Int,
  bytes: Schema.Finite,
  directories: Schema.Int,
  others: Schema.Int,
  packs: Schema.Array(Schema.String)
})

type DirectoryRow = readonly [
  mode: number | null,
  id: string,
  directories: ReadonlyArray<string>,
  leaves: ReadonlyArray<LeafRow>,
  /**
   * The stamp of the directory without the mode, which is the first element of the row. Absent if the directory must be
   * listed again.
   */
  stamp?: readonly [modified: number, changed: number, inode: number]
]

const noStamp = { modified: -1, changed: -1, inode: 0, mode: 0 }

const leafOf = (segment: string, node: StampedNode): LeafRow => {
  const { changed, inode, mode, modified } = node.stamp ?? noStamp
  return node.kind === "file"
    ? [segment, node.id, node.mode ?? null, node.sizeBytes, modified, changed, inode, mode]
    : [segment, `>${node.target}`, null, node.stamp?.sizeBytes ?? 0, modified, changed, inode, mode]
}

const lineOf = (self: StampedDirectory): DirectoryRow => {
  const directories: Array<string> = []
  const leaves: Array<LeafRow> = []
  for (const [segment, node] of self.entries) {
    if (node.kind === "directory") directories.push(segment)
    else leaves.push(leafOf(segment, node))
  }
  const { mode = null, stamp } = self
  const row = [mode, self.id ?? "", directories, leaves] as const
  return stamp === undefined || mode !== stamp.mode ? row : [...row, [stamp.modified, stamp.changed, stamp.inode]]
}

const lines = function* (top: DirectoryNode): Generator<string> {
  const pending = [top]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    yield JSON.stringify(lineOf(next))
    for (const node of [...next.entries.values()].reverse()) if (node.kind === "directory") pending.push(node)
  }
}

const directoriesPerYield = 200

const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Saves a scan atomically. The old file stays if the call fails or the process is killed. Ignores failures. */
const save = (directory: string, root: string, { packs, scan }: SavedScan): Effect.Effect<void> =>
  Effect.promise(async () => {
    const { tree, ...counts } = scan
    const temporary = join(directory, `tmp_seen_${randomBytes(9).toString("hex")}`)
    try {
      const parts = [JSON.stringify({ version, root, ...counts, packs })]
      for (const line of lines(tree)) if (parts.push(line) % directoriesPerYield === 0) await yieldToEventLoop()
      const text = `${parts.join("\n")}\n`
      await Fs.promises.writeFile(temporary, `${Installation.signName(authenticatedText(text))}\n${text}`, {
        mode: 0o600,
        flag: "wx"
      })
      await Fs.promises.rename(temporary, fileOf(directory, root))
    } catch {
      await Fs.promises.rm(temporary, { force: true }).catch(() => {})
    }
  })

const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(ScanHeader))

const nodeOf = ([, idOrTarget, mode, sizeBytes, modified, changed, inode, bits]: LeafRow): StampedNode => {
  const stamp = stampOf({ sizeBytes, mode: bits, modified, changed, inode })
  return idOrTarget.startsWith(">")
    ? { kind: "symlink", target: idOrTarget.slice(1), stamp }
    : { kind: "file", id: idOrTarget, sizeBytes, ...(mode === null ? undefined : { mode }), stamp }
}

interface OpenDirectory {
  readonly entries: Map<string, Node>
  readonly pendingNames: Array<string>
  readonly finish: () => DirectoryNode
}

const openDirectory = ([mode, id, directories, leaves, stamp]: DirectoryRow): OpenDirectory => {
  const entries = new Map<string, Node>()
  for (const leaf of leaves) entries.set(leaf[0], nodeOf(leaf))
  return {
    entries,
    pendingNames: directories.toReversed(),
    finish: (): StampedDirectory => ({
      kind: "directory",
      entries,
      ...(mode === null ? undefined : { mode }),
      ...(id === "" ? undefined : { id }),
      ...(stamp !== undefined &&
        mode !== null && {
          stamp: stampOf({ sizeBytes: 0, mode, modified: stamp[0], changed: stamp[1], inode: stamp[2] })
        })
    })
  }
}

/** Parses the lines of a saved scan into a tree. `save` must have written the lines. */
const treeOf = async (text: ReadonlyArray<string>): Promise<DirectoryNode> => {
  const open: Array<OpenDirectory> = [openDirectory(JSON.parse(text[0]!) as DirectoryRow)]
  let at = 1
  for (;;) {
    const here = open.at(-1)!
    const name = here.pendingNames.pop()
    if (name !== undefined) {
      const below = openDirectory(JSON.parse(text[at++]!) as DirectoryRow)
      if (at % directoriesPerYield === 0) await yieldToEventLoop()
      const holder = here.entries
      const named: OpenDirectory = {
        ...below,
        finish: () => {
          const node = below.finish()
          holder.set(name, node)
          return node
        }
      }
      open.push(named)
      continue
    }
    const node = open.pop()!.finish()
    if (open.length === 0) return node
  }
}

const readWhole = async (path: string): Promise<string> => {
  const handle = await Fs.promises.open(path, readFlags)
  try {
    return (await handle.stat()).isFile() ? await handle.readFile("utf8") : ""
  } finally {
    await handle.close()
  }
}

/** Returns the saved scan of this root. Returns `undefined` if there is none, or if this installation did not write the file. */
const load = (directory: string, root: string): Effect.Effect<SavedScan | undefined> =>
  Effect.promise(async () => {
    try {
      const all = await readWhole(fileOf(directory, root))
      const text = all.slice(codeLength + 1)
      if (!Installation.isSignatureOf(authenticatedText(text), all.slice(0, codeLength))) return undefined
      const [first = "", ...rest] = text.trimEnd().split("\n")
      const head = Option.getOrUndefined(decodeHead(first))
      if (head === undefined || head.root !== root) return undefined
      const { packs, root: _, version: __, ...counts } = head
      return { scan: { tree: await treeOf(rest), ...counts }, packs }
    } catch {
      return undefined
    }
  })

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
    encoded: ({ crc, encoded, id }) => {
      if (encoded !== undefined && !has(id)) writer.addEncoded(id, encoded, crc)
    },
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
    yield* Budget.checkDirectory("gitDir", directory)
    const store = yield* Store.open(directory, { avoid: top === undefined ? [] : [top] })
    yield* Budget.reserveDirectory(store.directory)
    yield* withExclusiveLock(port, recoverTransactions(port))
    return yield* makeStrategy(port, store, options, isPersistent)
  })

export const makeScoped = (port: Backend, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.flatMap(Budget.makeTemporaryDirectory("fs-algebra-git-"), (directory) => make(port, directory, options, false))

/** The largest number of entries that a commit may claim. The limit protects against forged counts. */
const maxCommitEntries = 20_000_000

const makeStrategy = Effect.fnUntraced(function* (
  port: Backend,
  store: Store.Store,
  options: LayerOptions,
  isPersistent: boolean
) {
  const { packDirectory, reader, snapshots } = store
  const index = yield* PackIndex.open(packDirectory)
  const threads = yield* sharedThreads
  const { caseSensitive } = port.info
  const rootPath = rootOf(port)
  const savedScan = isPersistent ? yield* load(store.directory, rootPath) : undefined
  let lastScan = savedScan
  if (isPersistent && port.history !== undefined) {
    yield* Effect.addFinalizer(() =>
      lastScan === savedScan || lastScan === undefined ? Effect.void : save(store.directory, rootPath, lastScan)
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
    const commitMessage = decode(message)
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
    const commitMessage = decode(message)
    const entries = Math.min(maxCommitEntries, (commitMessage?.files ?? 0) + (commitMessage?.directories ?? 0))
    return withoutGit(yield* loadGitTree(reader, tree, lastScan?.scan.tree, entries), kept)
  })

  const content = (_: FsPath, file: FileNode): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault> =>
    file.sizeBytes > maxWholeFileBytes
      ? Effect.succeed(reader.stream(file.id))
      : Effect.map(reader.object(file.id), ({ body }) => body)

  /**
   * Removes the oldest snapshots in rounds until the store is within the limit. The larger the excess is, the more snapshots are
   * removed in one round.
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
      // If another process uses the store, this call cannot free space. A later call tries again.
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

  /** Applies the retention rules. Logs a failure as a warning, because the snapshot itself has succeeded. */
  const tidyQuietly = (spared: StoredSnapshot | undefined): Effect.Effect<void> =>
    Effect.ignore(applyRetention(spared), {
      log: "Warn",
      message: "fs-algebra: old snapshots could not be removed from the store"
    })

  /**
   * Returns a creation time after the time of the previous snapshot, even if the clock was set back. Listing and expiry
   * depend on this order.
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
    { bounds, isPassing = false, snapshotId = randomUUID() }: TakeOptions
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
            threads,
            previous: lastScan?.scan,
            hasContent: isWhole ? undefined : index.has,
            excludes: excludeGit(excludesGit),
            onCensus: checkCensus(bounds),
            onProgress
          })
        )
      )
      const createdAt = yield* nextCreationTime()
      const previous = newest?.id
      const commitMessage: CommitMessage = {
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
      const commit = writer.add("commit", encodeCommit({ tree: scanned.tree.id!, createdAt, message: encode(commitMessage) }))
      const pack = yield* writer.finish
      yield* Effect.uninterruptible(
        Effect.map(snapshots.put(snapshotId, commit), () => {
          if (isPassing) transactionSnapshots.add(snapshotId)
          else newest = { id: snapshotId, createdAt }
        })
      )
      lastScan = { scan: scanned, packs: pack === undefined ? [...knownPacks] : [...knownPacks, `${pack}.idx`] }
      return toStoredSnapshot({ id: snapshotId, commit, message: encode(commitMessage) })!
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
        scan: { previous: lastScan?.scan, threads, excludes: excludeGit(isWithoutGit(kept)) },
        onProgress:
          options.onProgress &&
          ((files, totalFiles) => Effect.sync(() => options.onProgress!({ phase: "writing", files, bytes: 0, totalFiles })))
      })
    )

  const now = (excludesGit: boolean): Effect.Effect<DirectoryNode, Problem> =>
    Effect.suspend(() =>
      Effect.map(scan(port, { previous: lastScan?.scan, threads, excludes: excludeGit(excludesGit) }), ({ tree }) => tree)
    )

  return {
    name: "git",
    commitRef: /^[0-9a-f]{40}$/,
    rootPath,
    gitDir: store.directory,
    take: (label, options = {}) =>
      Effect.tap(store.withoutRemoval(capture(label, options)), () =>
        options.isPassing === true ? Effect.void : tidyQuietly(options.spared)
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
            if (left !== undefined)
              return yield* Effect.fail(storeFault("io", `"${left.path}" differs from the snapshot after the restore`))
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
