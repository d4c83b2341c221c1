/**
 * Writes a filesystem as a ZIP archive. Small files are compressed in one call, and large files are streamed. So the memory use
 * depends on the number of entries, but not on the sizes of files.
 *
 * The same tree at the same time gives the same bytes, because all times in an archive are the current time.
 *
 * A directory has an entry of its own if it has a mode or is empty. An entry has no mode if the backend has no modes.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import { isNode } from "../../runtime/node.ts"
import { shared as sharedThreads, type Threads } from "../threads/pool.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import type { Backend, Handle } from "../../port/Backend.ts"
import { withReadAhead } from "../../port/readAhead.ts"
import type { ArchiveError } from "../errors.ts"
import * as Codec from "./codec.ts"
import * as Format from "./records.ts"
import * as Manifest from "./manifest.ts"
import { Budget, refuse, tryArchive } from "./names.ts"
import { type Packed, type PackedFile, packFiles } from "./packFiles.ts"
import { changedWhileRead, filesOf, type Item, readContent, streamExactSize } from "./survey.ts"

type Bytes<E = never> = Stream.Stream<Uint8Array, E>

const chunkBytes = 64 * 1024

/** The numbers of entries and of content bytes at which a part is complete. One part is compressed at a time. */
const [entriesPerPart, bytesPerPart] = [128, 256 * 1024] as const

/** The number of items whose files one order to a thread reads and compresses. */
const itemsPerOrder = 128

/** The minimum number of entries for compression in threads. For fewer entries, starting the threads takes too long. */
const minThreadedItems = 256

/** The smallest file size, in bytes, at which the compressed size may need 64 bits. */
const wideSizeThreshold = 0xf000_0000

/** The longest name in bytes. The format stores the length in 16 bits. */
const maxNameBytes = 0xffff

const modeOf = (type: number, mode: number | undefined): number | undefined =>
  mode === undefined ? undefined : type | (mode & 0o777)

export type Layout = "manifest" | "plain"

/** Tests whether a reader could take a plain archive for an archive with a manifest, or refuse the archive as empty. */
const needsPlainComment = (items: ReadonlyArray<Item>): boolean =>
  items.length === 0 || items.some(({ path }) => path === Manifest.manifestName)

interface EntryHead {
  readonly name: string
  readonly mode: number | undefined
}

/** An entry that has been read, or that is packed already. Only a directory has neither. */
interface Prepared {
  readonly name: string
  readonly entry: EntryHead
  readonly content?: Uint8Array | undefined
  readonly packed?: Packed | undefined
}

type Gathered =
  | { readonly _tag: "Small"; readonly entries: ReadonlyArray<Prepared> }
  | { readonly _tag: "Large"; readonly item: Item }

const pack = (content: Uint8Array): Effect.Effect<Packed> =>
  Effect.map(Codec.deflate(content), (bytes) => ({ bytes, crc: Codec.crc32(content), size: content.length }))

const compressInThreads = (
  contents: ReadonlyArray<Uint8Array>,
  threads: Threads
): Effect.Effect<ReadonlyArray<Packed> | undefined> => {
  const ends = new Uint32Array(contents.length)
  let length = 0
  for (const [index, content] of contents.entries()) ends[index] = length += content.length
  const bytes = new Uint8Array(length)
  for (const [index, content] of contents.entries()) bytes.set(content, ends[index]! - content.length)
  return Effect.map(threads.run({ _tag: "Deflate", bytes, ends }), (report) =>
    report?._tag === "Deflated"
      ? contents.map((content, index) => ({
          bytes: report.bytes.subarray(index === 0 ? 0 : report.ends[index - 1], report.ends[index]),
          crc: report.crcs[index]!,
          size: content.length
        }))
      : undefined
  )
}

/** Compresses the contents of all entries. */
const compress = (entries: ReadonlyArray<Prepared>, threads: Threads | undefined): Effect.Effect<ReadonlyArray<Prepared>> => {
  const contents = entries.flatMap(({ content }) => (content === undefined ? [] : [content]))
  if (contents.length === 0) return Effect.succeed(entries)
  const inThreads = threads === undefined ? Effect.succeed(undefined) : compressInThreads(contents, threads)
  return Effect.map(
    Effect.flatMap(inThreads, (packed) => (packed === undefined ? Effect.forEach(contents, pack) : Effect.succeed(packed))),
    (packed) => {
      let next = 0
      return entries.map(({ content, entry, name, packed: before }) => ({
        name,
        entry,
        packed: content === undefined ? before : packed[next++]
      }))
    }
  )
}

export class Writer {
  readonly #port: Backend
  readonly #budget: Budget
  readonly #now: number
  readonly #time: number
  readonly #central: Array<Uint8Array> = []
  readonly #layout: Layout
  #offset = 0
  #files = 0
  #bytes = 0
  readonly #verbatim = { entries: 0, fileCount: 0, totalBytes: 0 }

  constructor(port: Backend, limits: LimitsShape, now: number, layout: Layout = "manifest") {
    this.#port = port
    this.#layout = layout
    this.#budget = new Budget(limits)
    this.#now = now
    this.#time = Format.dosTime(now)
  }

  /** The manifest of the entries written so far. Verbatim entries are counted separately. */
  get manifest(): Manifest.Manifest {
    return {
      createdAt: DateTime.makeUnsafe(this.#now),
      fileCount: this.#files,
      totalBytes: this.#bytes,
      ...(this.#verbatim.entries > 0 && { verbatim: { backend: this.#port.info.name, ...this.#verbatim } })
    }
  }

  bytes(items: ReadonlyArray<Item>): Bytes<ArchiveError | Fault> {
    return Stream.concat(
      Stream.flatMap(this.#parts(items), (part) => part),
      Stream.suspend(() => {
        if (this.#layout === "plain") return Stream.sync(() => this.#end(needsPlainComment(items) ? Manifest.plainComment : ""))
        const manifest = this.#whole(
          { name: Manifest.manifestName, mode: Format.fileType | 0o644 },
          Manifest.write(this.manifest)
        )
        return Stream.fromEffect(Effect.map(manifest, (bytes) => Buffer.concat([bytes, this.#end("")])))
      })
    )
  }

  /** Reads and compresses entries in threads, and encodes them in their order. */
  #parts(items: ReadonlyArray<Item>): Stream.Stream<Bytes<ArchiveError | Fault>, ArchiveError | Fault> {
    if (items.length < minThreadedItems || !isNode) return this.#partsOf(items, [], undefined)
    const { history } = this.#port
    const lend = history?._tag === "Directory" ? history.lend : undefined
    return Stream.unwrap(
      Effect.map(sharedThreads, (threads) => {
        if (lend === undefined) return this.#partsOf(items, [], threads)
        const slices = Stream.range(0, Math.ceil(items.length / itemsPerOrder) - 1)
        const packed = Stream.mapEffect(
          slices,
          (index) => {
            const slice = items.slice(index * itemsPerOrder, (index + 1) * itemsPerOrder)
            return Effect.map(packFiles(slice, lend, threads), (files) => [slice, files] as const)
          },
          { concurrency: threads.concurrency }
        )
        return Stream.flatMap(packed, ([slice, files]) => this.#partsOf(slice, files, threads))
      })
    )
  }

  /** Reads the items that have no packed file, some at a time. */
  #partsOf(
    items: ReadonlyArray<Item>,
    files: ReadonlyArray<PackedFile | undefined>,
    threads: Threads | undefined
  ): Stream.Stream<Bytes<ArchiveError | Fault>, ArchiveError | Fault> {
    const port = withReadAhead(this.#port, filesOf(items.filter((_, index) => files[index] === undefined)))
    const gathered = Effect.fnUntraced({ self: this }, function* (from: number, next: number = from): Effect.fn.Return<
      readonly [Gathered, number] | undefined,
      ArchiveError | Fault
    > {
      const entries: Array<Prepared> = []
      let bytes = 0
      for (; next < items.length && entries.length < entriesPerPart && bytes < bytesPerPart; next++) {
        const item = items[next]!
        const file = files[next]
        const prepared = file === undefined ? yield* this.#prepare(port, item) : yield* this.#preparePacked(item, file)
        if (prepared === "large") break
        if (prepared === undefined) continue
        entries.push(prepared)
        bytes += prepared.content?.length ?? 0
      }
      yield* Effect.yieldNow
      if (next > from) return [{ _tag: "Small", entries }, next]
      return next < items.length ? [{ _tag: "Large", item: items[next]! }, next + 1] : undefined
    })
    const compressed = Stream.mapEffect(
      Stream.unfold(0, (from: number) => gathered(from)),
      (some): Effect.Effect<Gathered> =>
        some._tag === "Large"
          ? Effect.succeed(some)
          : Effect.map(compress(some.entries, threads), (entries) => ({ _tag: "Small", entries })),
      { concurrency: threads?.concurrency ?? 1 }
    )
    return Stream.map(compressed, (some) => (some._tag === "Large" ? this.#large(some.item) : this.#encodeAll(some.entries)))
  }

  #encodeAll(entries: ReadonlyArray<Prepared>): Bytes<ArchiveError> {
    return Stream.flattenIterable(
      Stream.fromEffect(
        tryArchive(() => {
          const parts = entries.flatMap(({ entry, name, packed }) =>
            packed === undefined ? this.#directory(name, entry.mode) : this.#encode(entry, packed)
          )
          return parts.length === 0 ? [] : [Buffer.concat(parts)]
        })
      )
    )
  }

  /**
   * Reads a small entry. Returns "large" for a large file, and `undefined` if the file is gone or the item needs no
   * entry.
   */
  #prepare(port: Backend, item: Item): Effect.Effect<Prepared | "large" | undefined, ArchiveError | Fault> {
    if (item.isNonPortable === true && item.kind !== "file") return this.#prepareVerbatim(item)
    const name = this.#nameOf(item)
    if (item.kind === "directory") {
      if (item.mode === undefined && !item.isEmpty) return Effect.succeed(undefined)
      return Effect.succeed({ name: `${name}/`, entry: { name, mode: item.mode } })
    }
    if (item.kind === "symlink") {
      return this.#counted(item, { name, mode: Format.linkType | 0o777 }, Buffer.from(item.target))
    }
    return Effect.flatMap(
      Effect.scoped(readContent(port, item.path)),
      (content): Effect.Effect<Prepared | "large" | undefined, ArchiveError> =>
        content === undefined
          ? Effect.succeed(undefined)
          : content._tag === "Large"
            ? Effect.succeed("large")
            : this.#counted(item, { name, mode: modeOf(Format.fileType, content.mode) }, content.bytes, content.isLent)
    )
  }

  /**
   * Prepares the verbatim entry of a symlink or a directory: an ordinary file, from which other libraries create no symlink or
   * directory.
   */
  #prepareVerbatim(item: Item): Effect.Effect<Prepared, ArchiveError> {
    const mode = item.kind === "directory" ? modeOf(Format.fileType, item.mode) : Format.fileType | 0o600
    const content = item.kind === "symlink" ? Buffer.from(item.target) : new Uint8Array(0)
    return this.#counted(item, { name: this.#nameOf(item), mode }, content)
  }

  #count({ isNonPortable, kind }: Item, name: string, size: number): void {
    this.#budget.spend(size, name)
    if (isNonPortable === true) {
      this.#verbatim.entries++
      if (kind === "directory") return
      this.#verbatim.fileCount++
      this.#verbatim.totalBytes += size
      return
    }
    this.#files++
    this.#bytes += size
  }

  #counted(item: Item, entry: EntryHead, content: Uint8Array, isLent = false): Effect.Effect<Prepared, ArchiveError> {
    return tryArchive(() => {
      this.#count(item, entry.name, content.length)
      return { name: entry.name, entry, content: isLent ? content.slice() : content }
    })
  }

  #preparePacked(item: Item, packed: PackedFile): Effect.Effect<Prepared, ArchiveError> {
    return tryArchive(() => {
      const name = this.#nameOf(item)
      this.#count(item, name, packed.size)
      return { name, entry: { name, mode: modeOf(Format.fileType, packed.mode) }, packed }
    })
  }

  #directory(name: string, mode: number | undefined): ReadonlyArray<Uint8Array> {
    const entry = this.#entry({ name, mode: modeOf(Format.directoryType, mode) }, Format.stored, { isDirectory: true })
    return [this.#begin(entry), ...this.#done(entry)]
  }

  #encode(made: EntryHead, { bytes, crc, size }: Packed): ReadonlyArray<Uint8Array> {
    const isPacked = bytes.length < size
    const entry = this.#entry(made, isPacked ? Format.deflated : Format.stored)
    entry.crc = crc
    entry.size = size
    entry.packed = bytes.length
    return [this.#begin(entry), this.#data(bytes), ...this.#done(entry)]
  }

  #whole(made: EntryHead, content: Uint8Array): Effect.Effect<Uint8Array, ArchiveError> {
    return Effect.flatMap(pack(content), (packed) => tryArchive(() => Buffer.concat(this.#encode(made, packed))))
  }

  /** Encodes a large entry. The file is opened again, and may be small or gone by now. */
  #large(item: Item): Bytes<ArchiveError | Fault> {
    const { path } = item
    return Stream.unwrap(
      Effect.flatMap(readContent(this.#port, path), (content) =>
        tryArchive((): Bytes<ArchiveError | Fault> => {
          if (content === undefined) return Stream.empty
          const name = this.#nameOf(item)
          if (content._tag === "Whole") {
            this.#count(item, name, content.bytes.length)
            return Stream.fromEffect(this.#whole({ name, mode: modeOf(Format.fileType, content.mode) }, content.bytes))
          }
          const { mode, sizeBytes } = content.handle.stat
          this.#count(item, name, sizeBytes)
          return this.#streamed({ name, mode: modeOf(Format.fileType, mode) }, path, content.handle)
        })
      )
    )
  }

  /**
   * Streams a large file. The first bytes of the file decide whether it is compressed.
   *
   * An uncompressed file is read twice, because its checksum comes before the data.
   */
  #streamed(made: EntryHead, path: FsPath, handle: Handle): Bytes<Fault> {
    const isLarge = handle.stat.sizeBytes >= wideSizeThreshold
    return Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        const probe = yield* handle.read(0, chunkBytes)
        if (Codec.isWorthwhile((yield* Codec.deflate(probe)).length, probe.length)) {
          return this.#packed(this.#entry(made, Format.deflated, { isStreamed: true, isLarge }), path, handle)
        }
        let crc = 0
        yield* Stream.runForEach(streamExactSize(path, handle), (bytes) =>
          Effect.sync(() => void (crc = Codec.crc32(bytes, crc)))
        )
        return this.#stored(this.#entry(made, Format.stored, { isLarge }), path, handle, crc)
      })
    )
  }

  #packed(entry: Format.EntryRecord, path: FsPath, handle: Handle): Bytes<Fault> {
    const content = Stream.map(streamExactSize(path, handle), (bytes) => {
      entry.crc = Codec.crc32(bytes, entry.crc)
      entry.size += bytes.length
      return bytes
    })
    const packed = Stream.unwrap(Effect.map(Codec.deflatePump, (pump) => Codec.pipeThrough(content, pump)))
    return this.#around(
      entry,
      Stream.map(packed, (bytes) => {
        entry.packed += bytes.length
        return this.#data(bytes)
      }),
      Effect.void
    )
  }

  #stored(entry: Format.EntryRecord, path: FsPath, handle: Handle, crc: number): Bytes<Fault> {
    entry.crc = crc
    entry.size = entry.packed = handle.stat.sizeBytes
    let again = 0
    const content = Stream.map(streamExactSize(path, handle), (bytes) => {
      again = Codec.crc32(bytes, again)
      return this.#data(bytes)
    })
    return this.#around(
      entry,
      content,
      Effect.suspend(() => (again === crc ? Effect.void : Effect.fail(changedWhileRead(path))))
    )
  }

  #around(entry: Format.EntryRecord, data: Bytes<Fault | Codec.Broken>, check: Effect.Effect<void, Fault>): Bytes<Fault> {
    const all = Stream.concat(
      Stream.concat(
        Stream.sync(() => this.#begin(entry)),
        data
      ),
      Stream.flattenIterable(Stream.fromEffect(Effect.map(check, () => this.#done(entry))))
    )
    return Stream.mapError(all, (error) =>
      error._tag === "Broken"
        ? ({ _tag: "IoError", detail: `the file could not be compressed: ${String(error.detail)}` } as Fault)
        : error
    )
  }

  #entry(
    { mode, name }: EntryHead,
    method: number,
    entryFlags: { readonly isStreamed?: boolean; readonly isLarge?: boolean; readonly isDirectory?: boolean } = {}
  ): Format.EntryRecord {
    const { isDirectory = false, isLarge = false, isStreamed = false } = entryFlags
    const bytes = Buffer.from(name)
    if (bytes.length > maxNameBytes) throw refuse("name", "the name is longer than 65535 bytes", name)
    return {
      name: bytes,
      method,
      mode,
      isDirectory,
      hasDescriptor: isStreamed,
      mayNeed64Bits: isLarge,
      offset: this.#offset,
      crc: 0,
      packed: 0,
      size: 0
    }
  }

  #data(bytes: Uint8Array): Uint8Array {
    this.#offset += bytes.length
    return bytes
  }

  #begin(entry: Format.EntryRecord): Uint8Array {
    return this.#data(Format.localHeader(entry, this.#time))
  }

  #done(entry: Format.EntryRecord): ReadonlyArray<Uint8Array> {
    const after = entry.hasDescriptor ? [this.#data(Format.descriptor(entry))] : []
    this.#central.push(Format.centralHeader(entry, this.#time))
    return after
  }

  #nameOf(item: Item): string {
    if (item.isNonPortable === true) return Manifest.nameOf(item)
    return this.#layout === "plain" ? item.path : Manifest.filesPrefix + item.path
  }

  #end(comment: string): Uint8Array {
    const central = Buffer.concat(this.#central)
    return Buffer.concat([central, Format.endRecords(this.#central.length, central.length, this.#offset, comment)])
  }
}
