/**
 * Writes a filesystem as a ZIP archive in constant memory. Small files are compressed in one call, and large files are
 * streamed.
 *
 * The same tree and clock give the same bytes, because all times in an archive are the time of the clock.
 *
 * A directory has an entry of its own if it has a mode or is empty. An entry has no mode if the backend has no modes.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import type { Backend, Handle } from "../../port/Backend.ts"
import type { ArchiveError } from "../errors.ts"
import * as Codec from "./codec.ts"
import * as Format from "./records.ts"
import * as Manifest from "./manifest.ts"
import { Budget, refuse, tryArchive } from "./names.ts"
import { readContent, type Item, streamExactSize, unsteady } from "./survey.ts"

type Bytes<E = never> = Stream.Stream<Uint8Array, E>

const chunkBytes = 64 * 1024

const bytesPerYield = 256 * 1024

/** The size, in bytes, from which the compressed size may need 64 bits. */
const wideSizeThreshold = 0xf000_0000

/** The longest name in bytes. The format stores the length in 16 bits. */
const maxNameBytes = 0xffff

const modeOf = (type: number, mode: number | undefined): number | undefined =>
  mode === undefined ? undefined : type | (mode & 0o777)

export type Layout = "manifest" | "plain"

/** Tests whether a reader could mistake a plain archive for one with a manifest, or for an empty file. */
const needsPlainComment = (items: ReadonlyArray<Item>): boolean =>
  items.length === 0 || items.some(({ path }) => path === Manifest.manifestName)

interface EntryHead {
  readonly name: string
  readonly mode: number | undefined
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
        return Stream.fromEffect(Effect.map(manifest, (parts) => Buffer.concat([...parts, this.#end("")])))
      })
    )
  }

  #parts(items: ReadonlyArray<Item>): Stream.Stream<Bytes<ArchiveError | Fault>, ArchiveError | Fault> {
    const gathered = Effect.fnUntraced({ self: this }, function* (from: number): Effect.fn.Return<
      readonly [Bytes<ArchiveError | Fault>, number] | undefined,
      ArchiveError | Fault
    > {
      let next = from
      const parts: Array<Uint8Array> = []
      const [offset, packed] = [this.#offset, this.#bytes]
      while (next < items.length && this.#offset - offset < chunkBytes && this.#bytes - packed < bytesPerYield) {
        const made = yield* this.#small(items[next]!)
        if (made === undefined) break
        parts.push(...made)
        next++
      }
      if (next > from) {
        yield* Effect.yieldNow
        return [parts.length === 0 ? Stream.empty : Stream.succeed(Buffer.concat(parts)), next]
      }
      return next < items.length ? [this.#large(items[next]!), next + 1] : undefined
    })
    return Stream.unfold(0, gathered)
  }

  /** Encodes a small entry. Returns an empty array if the file is gone, and `undefined` if the file is large. */
  #small(item: Item): Effect.Effect<ReadonlyArray<Uint8Array> | undefined, ArchiveError | Fault> {
    if (item.isOdd === true && item.kind !== "file") return this.#odd(item)
    const name = this.#nameOf(item)
    if (item.kind === "directory") {
      if (item.mode === undefined && !item.isEmpty) return Effect.succeed([])
      return tryArchive(() => this.#directory(`${name}/`, item.mode))
    }
    if (item.kind === "symlink") {
      return this.#counted(item, { name, mode: Format.linkType | 0o777 }, Buffer.from(item.target))
    }
    return Effect.flatMap(Effect.scoped(readContent(this.#port, item.path)), (content) =>
      content === undefined
        ? Effect.succeed([])
        : content._tag === "Large"
          ? Effect.succeed(undefined)
          : this.#counted(item, { name, mode: modeOf(Format.fileType, content.mode) }, content.bytes)
    )
  }

  /** Encodes a symlink or a directory as an ordinary file, so that other readers do not create a symlink or a directory. */
  #odd(item: Item): Effect.Effect<ReadonlyArray<Uint8Array>, ArchiveError> {
    const mode = item.kind === "directory" ? modeOf(Format.fileType, item.mode) : Format.fileType | 0o600
    const content = item.kind === "symlink" ? Buffer.from(item.target) : new Uint8Array(0)
    return this.#counted(item, { name: this.#nameOf(item), mode }, content)
  }

  #count({ isOdd, kind }: Item, name: string, size: number): void {
    this.#budget.spend(size, name)
    if (isOdd === true) {
      this.#verbatim.entries++
      if (kind === "directory") return
      this.#verbatim.fileCount++
      this.#verbatim.totalBytes += size
      return
    }
    this.#files++
    this.#bytes += size
  }

  #counted(item: Item, made: EntryHead, content: Uint8Array): Effect.Effect<ReadonlyArray<Uint8Array>, ArchiveError> {
    return Effect.andThen(
      tryArchive(() => this.#count(item, made.name, content.length)),
      this.#whole(made, content)
    )
  }

  #directory(name: string, mode: number | undefined): ReadonlyArray<Uint8Array> {
    const entry = this.#entry({ name, mode: modeOf(Format.directoryType, mode) }, Format.stored, { isDirectory: true })
    return [this.#begin(entry), ...this.#done(entry)]
  }

  #whole(made: EntryHead, content: Uint8Array): Effect.Effect<ReadonlyArray<Uint8Array>, ArchiveError> {
    // Skip the compression, because deflate cannot shorten such a small content.
    const packing = content.length < 8 ? Effect.succeed(content) : Codec.deflate(content)
    return Effect.flatMap(packing, (packed) =>
      tryArchive(() => {
        const isPacked = packed.length < content.length
        const entry = this.#entry(made, isPacked ? Format.deflated : Format.stored)
        entry.crc = Codec.crc32(content)
        entry.size = content.length
        entry.packed = isPacked ? packed.length : content.length
        return [this.#begin(entry), this.#data(isPacked ? packed : content), ...this.#done(entry)]
      })
    )
  }

  /** Encodes a large entry. Opens the file again, so it may be small or gone by now. */
  #large(item: Item): Bytes<ArchiveError | Fault> {
    const { path } = item
    return Stream.unwrap(
      Effect.flatMap(readContent(this.#port, path), (content) =>
        tryArchive((): Bytes<ArchiveError | Fault> => {
          if (content === undefined) return Stream.empty
          const name = this.#nameOf(item)
          if (content._tag === "Whole") {
            const parts = this.#counted(item, { name, mode: modeOf(Format.fileType, content.mode) }, content.bytes)
            return Stream.fromEffect(Effect.map(parts, (parts) => Buffer.concat(parts)))
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
      Effect.suspend(() => (again === crc ? Effect.void : Effect.fail(unsteady(path))))
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
    if (item.isOdd === true) return Manifest.nameOf(item)
    return this.#layout === "plain" ? item.path : Manifest.filesPrefix + item.path
  }

  #end(comment: string): Uint8Array {
    const central = Buffer.concat(this.#central)
    return Buffer.concat([central, Format.endRecords(this.#central.length, central.length, this.#offset, comment)])
  }
}
