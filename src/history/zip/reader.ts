/**
 * Reads a ZIP archive as a tree whose contents can be read on demand.
 *
 * The whole archive is checked first: the central directory, then all names and sizes, then the checksum of each content.
 * The last check unpacks each file once, and computes the ids by which trees are compared.
 *
 * If the archive has a manifest of this library and entries below `files/`, these entries are the tree. All other entries
 * are checked and ignored. In any other archive the tree is at the top level, even if it contains a `manifest.json` of
 * another program.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isNode } from "../../runtime/node.ts"
import type { ArchiveError } from "../errors.ts"
import { shared as sharedThreads, type Threads } from "../threads/pool.ts"
import type { Unpack } from "../unpack.ts"
import { findNode, blobHasher, countFiles, type DirectoryNode, type FileNode, type LinkNode, type Node } from "../tree.ts"
import * as Codec from "./codec.ts"
import { Budget, checkLink, checkName, Draft, type NameRules, pathOf, refuse, tryArchive } from "./names.ts"
import * as Format from "./records.ts"
import {
  type CentralDirectory,
  type CentralEntry,
  checkGap,
  checkLocal,
  readCentralDirectory,
  textOf,
  Window
} from "./records.ts"
import * as Manifest from "./manifest.ts"
import type { Source } from "./spool.ts"
import { type Unpacked, unpackFiles } from "./unpackFiles.ts"
import type { Layout } from "./writer.ts"

export interface Contents {
  readonly tree: DirectoryNode
  readonly content: (
    path: FsPath,
    file: FileNode
  ) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, ArchiveError | Fault>, ArchiveError | Fault>
  /** Stages many small files in threads. */
  readonly unpack?: Unpack | undefined
}

export interface Archived extends Contents {
  readonly manifest: Manifest.Manifest
}

export interface RestoreTarget {
  readonly backend: string
  readonly caseSensitive: boolean
}

/** An archive of either layout. The manifest is absent if the tree is at the top level. */
interface AnyArchive extends Contents {
  readonly manifest: Manifest.Manifest | undefined
}

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

interface Entry extends CentralEntry {
  readonly kind: Node["kind"]
  readonly mode: number | undefined
  readonly archivePath: FsPath
  readonly isInTree: boolean
  readonly file: Mutable<FileNode>
  readonly link: Mutable<LinkNode>
  data: number
}

const corrupt = (detail: string, entry: string) => refuse("corrupt", detail, entry)

/** The host numbers of Unix and macOS. Only entries from these hosts have a Unix mode. */
const unixHosts = new Set([Format.unix, 19])

const kinds: Readonly<Record<number, Node["kind"]>> = {
  [Format.fileType]: "file",
  [Format.directoryType]: "directory",
  [Format.linkType]: "symlink"
}

/**
 * Returns the kind and the mode of an entry. Ignores the mode if the bits of the file type are 0, because the other bits may
 * then be arbitrary.
 */
const kindOf = ({ attributes, host, name }: CentralEntry): Pick<Entry, "kind" | "mode"> => {
  const isDirectory = name.endsWith("/")
  const bits = attributes >>> 16
  const type = bits & 0o170000
  if (!unixHosts.has(host) || type === 0) return { kind: isDirectory ? "directory" : "file", mode: undefined }
  const kind = kinds[type]
  if (kind === undefined) throw refuse("unsupported", "the entry is a device, a socket or a FIFO", name)
  if ((kind === "directory") !== isDirectory)
    throw corrupt("either the name or the file type says that the entry is a directory, but not both", name)
  return { kind, mode: kind === "symlink" ? undefined : bits & 0o777 }
}

const checkSizes = (entry: CentralEntry, kind: Node["kind"], layout: Layout): void => {
  const { method, name, packed, size } = entry
  if (method === Format.stored && packed !== size)
    throw corrupt("the entry is stored without compression, but its two sizes differ", name)
  if (size > packed * Codec.maxDeflateRatio) throw corrupt("the size is impossible for the length of the compressed data", name)
  if (kind === "directory" && size !== 0) throw corrupt("the entry is a directory, but it has content", name)
  if (kind === "symlink" && size > maxTargetBytes) throw refuse("link", "the link's target is longer than 4095 bytes", name)
  const isManifest = layout === "manifest" && name === Manifest.manifestName
  if (isManifest && size > Manifest.maxManifestBytes) throw refuse("tooLarge", "the manifest is too large", name)
  const isHeld = kind === "symlink" || isManifest
  if (isHeld && packed > 2 * Manifest.maxManifestBytes)
    throw corrupt("the compressed data is larger than the content could need", name)
}

const maxTargetBytes = 4095

const prefixOf = (layout: Layout): string => (layout === "plain" ? "" : Manifest.filesPrefix)

const entryOf = (listed: CentralEntry, rules: NameRules, layout: Layout): Entry => {
  const { name, size } = listed
  const archivePath = checkName(name)
  const { kind, mode } = kindOf(listed)
  checkSizes(listed, kind, layout)
  const prefix = prefixOf(layout)
  const isInTree = archivePath.startsWith(prefix)
  if (isInTree) pathOf(archivePath.slice(prefix.length), name, rules)
  return {
    ...listed,
    kind,
    mode,
    archivePath,
    isInTree,
    file: { kind: "file", sizeBytes: size, id: "", ...(mode === undefined ? undefined : { mode }) },
    link: { kind: "symlink", target: "" },
    data: 0
  }
}

/**
 * The largest size, in bytes, of an entry that is unpacked in one call. `maxWholePackedBytes` limits the compressed size of
 * such an entry.
 */
const maxWholeBytes = 1024 * 1024
const maxWholePackedBytes = 256 * 1024
const chunkBytes = 256 * 1024

/** The number of unpacked bytes, and of entries, between two yields to other fibers. */
const bytesPerYield = 1024 * 1024
const entriesPerYield = 128
const namesPerYield = 256

const eachInSlices = Effect.fnUntraced(function* <A>(
  entries: ReadonlyArray<A>,
  visit: (entry: A) => void
): Effect.fn.Return<void, ArchiveError> {
  for (let from = 0; from < entries.length; from += namesPerYield) {
    yield* tryArchive(() => entries.slice(from, from + namesPerYield).forEach(visit))
    yield* Effect.yieldNow
  }
})

interface ContentChecker {
  /** Adds an entry, and copies its packed bytes. May fail because an earlier entry is damaged. */
  readonly add: (entry: Entry, packed: Uint8Array) => Effect.Effect<void, ArchiveError>
  /** Waits until all added entries are checked. Fails if one is damaged. */
  readonly finish: Effect.Effect<void, ArchiveError>
}

/** The minimum number of entries for a check in threads. For fewer entries, starting the threads takes too long. */
const minThreadedEntries = 256

/** The numbers of entries, and of their packed and unpacked bytes, at which an order to a thread is complete. */
const [entriesPerOrder, bytesPerOrder] = [128, 512 * 1024] as const

const checkAlone = (entry: Entry, packed: Uint8Array): Effect.Effect<void, ArchiveError> =>
  Effect.map(unpack(entry, packed), (content) => void (entry.file.id = blobHasher(entry.size).update(content).digest("hex")))

const checkOrder = Effect.fnUntraced(function* (
  threads: Threads,
  batch: ReadonlyArray<readonly [entry: Entry, packed: Uint8Array]>
): Effect.fn.Return<void, ArchiveError> {
  const bytes = new Uint8Array(batch.reduce((sum, [, packed]) => sum + packed.length, 0))
  const ends = new Uint32Array(batch.length)
  let end = 0
  for (const [index, [, packed]] of batch.entries()) {
    bytes.set(packed, end)
    ends[index] = end += packed.length
  }
  const report = yield* threads.run({
    _tag: "Inflate",
    bytes,
    ends,
    sizes: Uint32Array.from(batch, ([{ size }]) => size),
    crcs: Uint32Array.from(batch, ([{ crc }]) => crc),
    isDeflated: Uint8Array.from(batch, ([{ method }]) => (method === Format.stored ? 0 : 1))
  })
  if (report?._tag !== "Inflated")
    return yield* Effect.forEach(batch, ([entry, packed]) => checkAlone(entry, packed), { discard: true })
  for (const [index, [entry]] of batch.entries()) {
    const id = report.ids[index]!
    if (id === "") return yield* Effect.fail(damaged(entry))
    entry.file.id = id
  }
})

/**
 * Makes a checker that unpacks many entries at a time in threads. Returns `undefined` without Node, and if checking one entry at
 * a time is as fast.
 */
const makeContentChecker = Effect.fnUntraced(function* (
  count: number
): Effect.fn.Return<ContentChecker | undefined, never, Scope.Scope> {
  if (!isNode || count < minThreadedEntries) return undefined
  const threads = yield* sharedThreads
  const running: Array<Fiber.Fiber<void, ArchiveError>> = []
  let batch: Array<readonly [Entry, Uint8Array]> = []
  let bytes = 0
  let failure: ArchiveError | undefined
  const awaitFirst = Effect.suspend(() =>
    Effect.tapError(Fiber.join(running.shift()!), (error) => Effect.sync(() => void (failure = error)))
  )
  const send = Effect.suspend(() => {
    const sent = batch
    batch = []
    bytes = 0
    return Effect.map(Effect.forkScoped(checkOrder(threads, sent)), (fiber) => void running.push(fiber))
  })
  const scope = yield* Effect.scope
  const sendIn = Effect.provideService(send, Scope.Scope, scope)
  return {
    add: (entry, packed) =>
      Effect.suspend(() => {
        // Copy the bytes. `Buffer.slice` would return a view.
        batch.push([entry, new Uint8Array(packed)])
        bytes += packed.length + entry.size
        if (batch.length < entriesPerOrder && bytes < bytesPerOrder) return Effect.void
        return running.length < threads.concurrency ? sendIn : Effect.andThen(awaitFirst, sendIn)
      }),
    finish: Effect.gen(function* () {
      if (failure !== undefined) return yield* Effect.fail(failure)
      if (batch.length > 0) yield* sendIn
      while (running.length > 0) yield* awaitFirst
    })
  }
})

class Reader {
  readonly #source: Source
  readonly #window: Window
  readonly #rules: NameRules

  constructor(source: Source, rules: NameRules) {
    this.#source = source
    this.#window = new Window(source)
    this.#rules = rules
  }

  /**
   * Reads the archive. `expected` is the required layout; if absent, any layout is accepted. `restoreTarget` is the
   * filesystem for which verbatim entries are restored. With `defersContents`, the files of the tree have no ids, and their
   * contents are only checked when they are read.
   */
  readonly read = Effect.fnUntraced(
    { self: this },
    function* (
      expected: Layout | undefined,
      restoreTarget: RestoreTarget | undefined,
      defersContents = false
    ): Effect.fn.Return<AnyArchive, ArchiveError | Fault> {
      const { limits } = this.#rules
      const found = yield* readCentralDirectory(this.#source, limits.maxArchiveEntries + 1)
      const layout = expected ?? (yield* this.#layoutOf(found))
      const manifest = layout === "plain" ? undefined : yield* this.#manifest(found.entries)
      const entries: Array<Entry> = []
      yield* eachInSlices(found.entries, (listed) => void entries.push(entryOf(listed, this.#rules, layout)))
      yield* tryArchive(() => this.#spend(entries, layout))
      const tree = yield* buildTree(entries, layout)
      yield* this.#check(entries, found.offset, layout, defersContents)
      if (manifest === undefined && layout === "manifest") {
        return yield* Effect.fail(refuse("corrupt", "the archive has no manifest, so it was not written by this library"))
      }
      if (manifest !== undefined) yield* tryArchive(() => checkCounts(manifest, tree))
      if (
        restoreTarget !== undefined &&
        manifest?.verbatim !== undefined &&
        manifest.verbatim.backend === restoreTarget.backend
      ) {
        const verbatimEntries = yield* this.#verbatimEntries(entries)
        if (verbatimEntries.length !== manifest.verbatim.entries) {
          return yield* Effect.fail(corrupt("the manifest states a wrong number of verbatim entries", Manifest.manifestName))
        }
        yield* tryArchive(() => Manifest.merge(tree, verbatimEntries, restoreTarget.caseSensitive))
      }
      return { manifest, tree, ...this.#contents(tree, entries) }
    }
  )

  /** Detects the layout by the content of `manifest.json` and the names of the other entries. */
  #layoutOf({ comment, entries }: CentralDirectory): Effect.Effect<Layout, ArchiveError | Fault> {
    if (comment === Manifest.plainComment) return Effect.succeed("plain")
    if (entries.length === 0) return Effect.fail(refuse("corrupt", "the archive is empty"))
    const listed = entries.find(({ name }) => name === Manifest.manifestName)
    const isBeside = entries.length === 1 || entries.some(({ name }) => name.startsWith(Manifest.filesPrefix))
    if (listed === undefined || !isBeside || listed.size > Manifest.maxManifestBytes) return Effect.succeed("plain")
    return Effect.gen({ self: this }, function* () {
      const entry = yield* tryArchive(() => entryOf(listed, this.#rules, "manifest"))
      if (entry.kind !== "file") return "plain"
      entry.data = yield* checkLocal(this.#window, entry)
      return Manifest.isManifest(yield* this.#bytes(entry)) ? "manifest" : "plain"
    })
  }

  /**
   * Reads the manifest before all other entries, so that an unknown version is the first reported error. Returns `undefined` if
   * the archive has no manifest.
   */
  #manifest(entries: ReadonlyArray<CentralEntry>): Effect.Effect<Manifest.Manifest | undefined, ArchiveError | Fault> {
    const listed = entries.find(({ name }) => name === Manifest.manifestName)
    if (listed === undefined) return Effect.succeed(undefined)
    return Effect.gen({ self: this }, function* () {
      const entry = yield* tryArchive(() => entryOf(listed, this.#rules, "manifest"))
      if (entry.kind !== "file") return yield* Effect.fail(corrupt("the manifest is not a file", entry.name))
      entry.data = yield* checkLocal(this.#window, entry)
      const bytes = yield* this.#bytes(entry)
      return yield* tryArchive(() => Manifest.read(bytes))
    })
  }

  #spend(entries: ReadonlyArray<Entry>, layout: Layout): void {
    const budget = new Budget(this.#rules.limits)
    for (const { name, size } of entries) {
      if (layout === "manifest" && name === Manifest.manifestName) continue
      budget.enter()
      budget.spend(size, name)
    }
  }

  /** Checks that every entry has the recorded offset, size and content, and that no unused bytes are between entries. */
  readonly #check = Effect.fnUntraced(
    { self: this },
    function* (
      entries: ReadonlyArray<Entry>,
      end: number,
      layout: Layout,
      defersContents: boolean
    ): Effect.fn.Return<void, ArchiveError | Fault, Scope.Scope> {
      const inPlace = [...entries].sort((a, b) => a.offset - b.offset)
      if (inPlace[0] !== undefined && inPlace[0].offset !== 0) {
        return yield* Effect.fail(refuse("corrupt", "the archive has bytes before its first entry"))
      }
      const isDeferred = ({ isInTree, kind }: Entry): boolean => defersContents && isInTree && kind === "file"
      const checker = yield* makeContentChecker(defersContents ? 0 : inPlace.length)
      let unpacked = 0
      for (const [i, entry] of inPlace.entries()) {
        const placed = Effect.gen({ self: this }, function* () {
          entry.data = yield* checkLocal(this.#window, entry)
          yield* checkGap(this.#window, entry, entry.data + entry.packed, inPlace[i + 1]?.offset ?? end)
          if (entry.kind === "symlink") yield* this.#readLink(entry, layout)
          else if (isDeferred(entry)) return
          else if (checker === undefined || !isSmall(entry)) entry.file.id = yield* this.#id(entry)
          else yield* checker.add(entry, yield* this.#window.bytes(entry.data, entry.packed))
        })
        // Finish the checks of earlier entries first, so that the first damaged entry is reported.
        yield* checker === undefined ? placed : Effect.tapError(placed, () => checker.finish)
        unpacked += (isDeferred(entry) ? 0 : entry.size) + bytesPerYield / entriesPerYield
        if (unpacked > bytesPerYield) {
          unpacked = 0
          yield* Effect.yieldNow
        }
      }
      if (checker !== undefined) yield* checker.finish
    },
    Effect.scoped
  )

  #readLink(entry: Entry, layout: Layout): Effect.Effect<void, ArchiveError | Fault> {
    return Effect.flatMap(this.#bytes(entry), (bytes) =>
      tryArchive(() => {
        const target = textOf(bytes)
        if (target === undefined) throw refuse("link", "the link's target is not UTF-8", entry.name)
        const { isInTree, archivePath } = entry
        checkLink((isInTree ? archivePath.slice(prefixOf(layout).length) : archivePath) as FsPath, target, entry.name)
        entry.link.target = target
      })
    )
  }

  readonly #verbatimEntries = Effect.fnUntraced({ self: this }, function* (entries: ReadonlyArray<Entry>): Effect.fn.Return<
    ReadonlyArray<Manifest.VerbatimEntry>,
    ArchiveError | Fault
  > {
    const found: Array<Manifest.VerbatimEntry> = []
    for (const [i, entry] of entries.entries()) {
      if (i % entriesPerYield === 0) yield* Effect.yieldNow
      const { file, kind, name, size } = entry
      if (kind !== "file" || !name.startsWith(Manifest.verbatimPrefix)) continue
      if (!Manifest.isLink(name)) found.push({ name, file })
      else if (size > maxTargetBytes)
        return yield* Effect.fail(refuse("link", "the link's target is longer than 4095 bytes", name))
      else found.push({ name, file, text: textOf(yield* this.#bytes(entry)) })
    }
    return found
  })

  #id(entry: Entry): Effect.Effect<string, ArchiveError | Fault> {
    const hash = blobHasher(entry.size)
    const read = isSmall(entry)
      ? Effect.map(this.#bytes(entry), (bytes) => void hash.update(bytes))
      : Stream.runForEach(this.#stream(entry), (bytes) => Effect.sync(() => void hash.update(bytes)))
    return Effect.map(read, () => hash.digest("hex"))
  }

  #bytes(entry: Entry): Effect.Effect<Uint8Array, ArchiveError | Fault> {
    return this.#unpacked(entry, this.#window.bytes(entry.data, entry.packed))
  }

  #unpacked(
    entry: Entry,
    packed: Effect.Effect<Uint8Array, ArchiveError | Fault>
  ): Effect.Effect<Uint8Array, ArchiveError | Fault> {
    return Effect.flatMap(packed, (packed) => unpack(entry, packed))
  }

  #packed(entry: Entry): Stream.Stream<Uint8Array, Fault> {
    return Stream.unfold(0, (done) =>
      done === entry.packed
        ? Effect.succeed(undefined)
        : Effect.map(
            this.#source.read(entry.data + done, Math.min(chunkBytes, entry.packed - done)),
            (bytes) => [bytes, done + bytes.length] as const
          )
    )
  }

  /** Streams the content. Never returns more bytes than the recorded size. If the content does not match, fails at the end. */
  #stream(entry: Entry): Stream.Stream<Uint8Array, ArchiveError | Fault> {
    const packed = this.#packed(entry)
    const bytes =
      entry.method === Format.stored
        ? Stream.map(packed, (part) => new Uint8Array(part))
        : Stream.unwrap(
            Effect.map(Codec.inflatePump, (pump) =>
              Codec.pipeThrough(
                packed,
                pump,
                Effect.suspend(() => (pump.consumed === entry.packed ? Effect.void : Effect.fail(damaged(entry))))
              )
            )
          )
    return Stream.mapError(checked(entry, bytes), (error) => (error._tag === "Broken" ? damaged(entry) : error))
  }

  #contents(tree: DirectoryNode, entries: ReadonlyArray<Entry>): Pick<Contents, "content" | "unpack"> {
    const byNode = new Map<Node, Entry>()
    for (const entry of entries) if (entry.kind === "file") byNode.set(entry.file, entry)
    const unpack: Unpack = (files, options) => {
      const small = files.flatMap((unstaged): ReadonlyArray<Unpacked> => {
        const entry = byNode.get(unstaged.file)
        return entry === undefined || !isSmall(entry) ? [] : [[entry, unstaged]]
      })
      return Effect.scoped(
        Effect.flatMap(sharedThreads, (threads) => unpackFiles(this.#source, small, { ...options, threads }))
      )
    }
    const content: Contents["content"] = (path) =>
      Effect.suspend((): ReturnType<Contents["content"]> => {
        const node = findNode(tree, path)
        const entry = node === undefined ? undefined : byNode.get(node)
        if (entry === undefined) return Effect.fail<Fault>({ _tag: "NotFound", path })
        // Contents are requested in any order, so do not read ahead.
        return isSmall(entry)
          ? this.#unpacked(entry, this.#source.read(entry.data, entry.packed))
          : Effect.succeed(this.#stream(entry))
      })
    return { content, ...(isNode && { unpack }) }
  }
}

const isSmall = ({ packed, size }: CentralEntry): boolean => size <= maxWholeBytes && packed <= maxWholePackedBytes

const unpack = (entry: Entry, packed: Uint8Array): Effect.Effect<Uint8Array, ArchiveError> =>
  Effect.flatMap(
    entry.method === Format.stored ? Effect.succeed(new Uint8Array(packed)) : Codec.inflate(packed, entry.size),
    (bytes) => (bytes === undefined || Codec.crc32(bytes) !== entry.crc ? Effect.fail(damaged(entry)) : Effect.succeed(bytes))
  )

const damaged = ({ name }: CentralEntry): ArchiveError =>
  corrupt("the content is damaged: it does not decompress to the recorded size and checksum", name)

const checked = <E>(entry: Entry, bytes: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E | ArchiveError> =>
  Stream.suspend(() => {
    let seen = 0
    let crc = 0
    const counted = Stream.mapEffect(bytes, (part) => {
      seen += part.length
      if (seen > entry.size) return Effect.fail(damaged(entry))
      crc = Codec.crc32(part, crc)
      return Effect.succeed(part)
    })
    const end = Stream.suspend(() => (seen === entry.size && crc === entry.crc ? Stream.empty : Stream.fail(damaged(entry))))
    return Stream.concat(counted, end)
  })

/** Builds the tree. Also records the names outside the tree, so that collisions are detected everywhere. */
const buildTree = Effect.fnUntraced(function* (
  entries: ReadonlyArray<Entry>,
  layout: Layout
): Effect.fn.Return<DirectoryNode, ArchiveError> {
  const draft = new Draft()
  yield* eachInSlices(entries, ({ file, kind, link, mode, name, archivePath }) => {
    if (kind === "directory") draft.addDirectory(archivePath, mode, name)
    else draft.add(archivePath, kind === "file" ? file : link, name)
  })
  // Omit the mode of the root, because an import keeps the mode of the destination.
  if (layout === "plain") return { kind: "directory", entries: draft.tree.entries }
  const files = draft.tree.entries.get(Manifest.filesPrefix.slice(0, -1))
  if (files !== undefined && files.kind !== "directory") {
    return yield* Effect.fail(corrupt("the entry files/ is not a directory", "files"))
  }
  return { kind: "directory", entries: files?.entries ?? new Map() }
})

const checkCounts = ({ fileCount, totalBytes }: Manifest.Manifest, tree: DirectoryNode): void => {
  const { bytes, files } = countFiles(tree)
  if (files !== fileCount || bytes !== totalBytes) {
    throw corrupt(
      `the manifest lists ${fileCount} files with ${totalBytes} bytes, but the archive has ${files} with ${bytes}`,
      Manifest.manifestName
    )
  }
}

/**
 * Reads an archive with a manifest of this library. The source must not change while contents are read.
 *
 * `restoreTarget` is the filesystem for which verbatim entries are restored. If absent, these entries are checked and
 * ignored, like all entries outside `files/`.
 */
export const read = (
  source: Source,
  rules: NameRules,
  restoreTarget?: RestoreTarget
): Effect.Effect<Archived, ArchiveError | Fault> =>
  Effect.map(new Reader(source, rules).read("manifest", restoreTarget), (found) => ({ ...found, manifest: found.manifest! }))

export const readAny = (
  source: Source,
  rules: NameRules,
  {
    defersContents,
    restoreTarget
  }: { readonly defersContents?: boolean; readonly restoreTarget?: RestoreTarget | undefined } = {}
): Effect.Effect<Contents, ArchiveError | Fault> => new Reader(source, rules).read(undefined, restoreTarget, defersContents)
