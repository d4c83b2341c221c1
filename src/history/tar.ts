/**
 * Reads and writes a tree as a tar archive, by the same rules as a ZIP archive. Names may start with `./`.
 *
 * An import buffers and checks the whole input, because only the end of a tar archive shows that the archive is complete. The
 * input may be compressed with gzip. A hard link becomes a file with the content of an earlier entry. The decoder replaces
 * invalid UTF-8 in names by U+FFFD, so names with U+FFFD are refused.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tar from "effect/encoding/Tar"
import { Buffer } from "../runtime/buffer.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { LimitsShape } from "../model/Limits.ts"
import type { Backend } from "../port/Backend.ts"
import type { ArchiveError } from "./errors.ts"
import { findNode, blobHasher, type FileNode, type Node } from "./tree.ts"
import * as Codec from "./zip/codec.ts"
import { Budget, checkLink, Draft, maxArchiveFileBytes, type NameRules, pathOf, refuse, tryArchive } from "./zip/names.ts"
import type { Contents } from "./zip/reader.ts"
import * as Spool from "./zip/spool.ts"
import { changedWhileRead, type Item, readContent, streamExactSize } from "./zip/survey.ts"

type Entry = Tar.Entry<ArchiveError | Fault>

const replacementCharacter = "\ufffd"

export const whyUnencodable = (text: string): string | undefined =>
  text.includes(replacementCharacter) ? "the name contains U+FFFD, which stands for bytes that are not valid text" : undefined

const entryOf = (port: Backend, item: Item, budget: Budget, mtime: Date): Stream.Stream<Entry, ArchiveError | Fault> => {
  const { path } = item
  const options = (mode: number | undefined) => ({ mtime, ...(mode === undefined ? undefined : { mode: mode & 0o777 }) })
  if (item.kind === "directory") return Stream.succeed(Tar.directory(path, options(item.mode)))
  if (item.kind === "symlink") {
    const size = Buffer.byteLength(item.target)
    return Stream.fromEffect(
      tryArchive((): Entry => {
        budget.spend(size, path)
        return Tar.symlink(path, item.target, { mtime })
      })
    )
  }
  // Keep the file open while its entry is read.
  return Stream.unwrap(
    Effect.flatMap(readContent(port, path), (content) =>
      tryArchive((): Stream.Stream<Entry> => {
        if (content === undefined) return Stream.empty
        if (content._tag === "Whole") {
          budget.spend(content.bytes.length, path)
          return Stream.succeed(Tar.file(path, content.isLent ? content.bytes.slice() : content.bytes, options(content.mode)))
        }
        const { handle } = content
        budget.spend(handle.stat.sizeBytes, path)
        return Stream.succeed(
          Tar.fileStream(path, handle.stat.sizeBytes, streamExactSize(path, handle), options(handle.stat.mode))
        )
      })
    )
  )
}

const refusedEntry = (error: Tar.TarError): Fault =>
  error.kind === "SizeMismatch"
    ? changedWhileRead("." as FsPath)
    : { _tag: "IoError", detail: `the entry cannot be archived: ${error.message}` }

/**
 * Encodes a tar archive. Every entry has the modification time `now`, in milliseconds since 1970. `onEntry` is called for
 * each entry before its bytes.
 */
export const bytes = (
  port: Backend,
  items: ReadonlyArray<Item>,
  limits: LimitsShape,
  now: number,
  onEntry: (kind: Item["kind"]) => void = () => {}
): Stream.Stream<Uint8Array, ArchiveError | Fault> =>
  Stream.suspend(() => {
    const budget = new Budget(limits)
    const mtime = DateTime.toDateUtc(DateTime.makeUnsafe(now))
    const entries = Stream.flatMap(Stream.fromIterable(items), (item) =>
      Stream.map(entryOf(port, item, budget, mtime), (entry) => {
        onEntry(item.kind)
        return entry
      })
    )
    return Stream.mapError(
      Stream.pipeThroughChannel(entries, Tar.encode<ArchiveError | Fault, unknown, Entry>()),
      (error): ArchiveError | Fault => (Tar.isTarError(error) ? refusedEntry(error) : error)
    )
  })

const corrupt = (detail: string, entry?: string) => refuse("corrupt", detail, entry)

const asArchiveError = ({ kind, message }: Tar.TarError): ArchiveError =>
  kind === "Unsupported" ? refuse("unsupported", message) : corrupt(message)

const isGzip = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b

const isBroken = (error: unknown): error is Codec.Broken =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "Broken"

const gunzipIfNeeded = <E, R>(input: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | ArchiveError, R> =>
  Stream.mapError(
    Stream.unwrap(Effect.map(Effect.scope, (scope) => Codec.pipeThrough(input, new GzipDetector(scope)))),
    (error) => (isBroken(error) ? corrupt(`the archive cannot be decompressed as gzip: ${error.detail}`) : error)
  )

class GzipDetector implements Codec.Transformer {
  readonly #scope: Scope.Scope
  #head = new Uint8Array(0)
  #pump: Codec.Transformer | undefined

  constructor(scope: Scope.Scope) {
    this.#scope = scope
  }

  readonly push = (bytes: Uint8Array): Effect.Effect<ReadonlyArray<Uint8Array>, Codec.Broken> => {
    if (this.#pump !== undefined) return this.#pump.push(bytes)
    this.#head = Buffer.concat([this.#head, bytes])
    return this.#head.length < 2 ? Effect.succeed([]) : Effect.flatMap(this.#decide, (pump) => pump.push(this.#head))
  }

  readonly finish: Effect.Effect<ReadonlyArray<Uint8Array>, Codec.Broken> = Effect.suspend(() =>
    this.#pump === undefined ? Effect.succeed([this.#head]) : this.#pump.finish
  )

  readonly #decide = Effect.suspend(() => {
    const chosen: Effect.Effect<Codec.Transformer, never, Scope.Scope> = isGzip(this.#head)
      ? Codec.gunzipPump
      : Effect.succeed(Codec.identity)
    return Effect.map(Effect.provideService(chosen, Scope.Scope, this.#scope), (pump) => (this.#pump = pump))
  })
}

/**
 * Returns an entry to append to the input, which detects a truncated archive. In a complete archive the entry follows the end
 * marker, so the decoder ignores the entry. In a truncated archive the decoder returns the entry.
 */
const truncationSentinel = (): Uint8Array => {
  const block = Buffer.alloc(512)
  block.write("the end is missing", 0, "latin1")
  block.write("0", 156, "latin1")
  block.fill(0x20, 148, 156)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1")
  return block
}

interface ContentPosition {
  readonly offset: number
  readonly size: number
}

const root = "."

const toRelativeName = (name: string): string => {
  const inside = name.startsWith("./") ? name.slice(2) : name
  return inside.endsWith("/") ? inside.slice(0, -1) : inside
}

class Reader {
  readonly #rules: NameRules
  readonly #spool: Spool.Spool
  readonly #budget: Budget
  readonly #draft = new Draft()
  readonly #placed = new Map<Node, ContentPosition>()
  #expected = 0
  #isOver = false

  constructor(rules: NameRules, spool: Spool.Spool) {
    this.#rules = rules
    this.#spool = spool
    this.#budget = new Budget(rules.limits)
  }

  read<E, R>(input: Stream.Stream<Uint8Array, E, R>): Effect.Effect<Contents, E | ArchiveError | Fault, R> {
    const end = Effect.suspend(() => {
      this.#isOver = true
      return this.#expected > 0 ? Effect.fail(corrupt("the archive ends inside a file")) : Effect.succeed(truncationSentinel())
    })
    const maxBytes = maxArchiveFileBytes(this.#rules.limits)
    let size = 0
    const bounded = Stream.mapEffect(gunzipIfNeeded(input), (part) => {
      size += part.length
      return size > maxBytes
        ? Effect.fail(refuse("tooLarge", "the archive is larger than maxArchiveBytes and maxArchiveEntries allow"))
        : Effect.succeed(part)
    })
    const entries = Stream.pipeThroughChannel(Stream.concat(bounded, Stream.fromEffect(end)), Tar.decode<E | ArchiveError>())
    return Effect.mapError(
      Effect.as(
        Stream.runForEach(entries, (entry) => this.#enter(entry)),
        { tree: this.#draft.tree, content: this.#content }
      ),
      (error) => (Tar.isTarError(error) ? asArchiveError(error) : error)
    )
  }

  #enter<E>({ body, header }: Tar.Entry<E>): Effect.Effect<void, E | ArchiveError | Fault> {
    return Effect.suspend(() => {
      const { path: name, type } = header
      // The decoder returned the sentinel. Do not check its name, because earlier headers can rename it.
      if (this.#isOver) return Effect.fail(corrupt("the end of the archive is missing"))
      if (name.includes(replacementCharacter)) return Effect.fail(refuse("name", "the name is not UTF-8", name))
      const place = toRelativeName(name)
      // Ignore the entry of the root, because an import keeps the mode of the destination.
      if (type === "Directory" && (place === root || place === ""))
        return name.startsWith("/") ? refuseAbsolute(name) : Effect.void
      if (type === "File") return this.#file(place, header, body)
      return tryArchive(() => this.#other(place, header))
    })
  }

  #file<E>(place: string, header: Tar.Header, body: Stream.Stream<Uint8Array, E>) {
    return Effect.gen({ self: this }, function* () {
      const { mode, path: name, size } = header
      const path = yield* tryArchive(() => {
        this.#spend(size, name)
        if (name.endsWith("/")) throw corrupt("the entry is a file, but its name ends with a slash", name)
        return pathOf(place, name, this.#rules)
      })
      const hash = blobHasher(size)
      const offset = this.#spool.size
      this.#expected = size
      yield* Stream.runForEach(body, (part) => {
        this.#expected -= part.length
        hash.update(part)
        return this.#spool.append(part)
      })
      const node: FileNode = { kind: "file", mode: mode & 0o777, sizeBytes: size, id: hash.digest("hex") }
      yield* tryArchive(() => this.#draft.add(path, node, name))
      this.#placed.set(node, { offset, size })
    })
  }

  #other(place: string, { linkTarget = "", mode, path: name, type }: Tar.Header): void {
    const path = pathOf(place, name, this.#rules)
    if (type === "Directory") {
      this.#spend(0, name)
      this.#draft.addDirectory(path, mode & 0o777, name)
    } else if (type === "Symlink") {
      if (linkTarget.includes(replacementCharacter)) throw refuse("link", "the link's target is not UTF-8", name)
      this.#spend(Buffer.byteLength(linkTarget), name)
      checkLink(path, linkTarget, name)
      this.#draft.add(path, { kind: "symlink", target: linkTarget }, name)
    } else if (type === "Hardlink") this.#copy(path, linkTarget, name)
    else throw refuse("unsupported", "the entry is not a file, a directory or a link", name)
  }

  #copy(path: FsPath, target: string, name: string): void {
    const original = findNode(this.#draft.tree, pathOf(toRelativeName(target), name, this.#rules))
    const placed = original === undefined ? undefined : this.#placed.get(original)
    if (original?.kind !== "file" || placed === undefined) {
      throw refuse("link", "the entry is a hard link to a file that does not come before it in the archive", name)
    }
    this.#spend(placed.size, name)
    const node: FileNode = { ...original }
    this.#draft.add(path, node, name)
    this.#placed.set(node, placed)
  }

  #spend(size: number, name: string): void {
    this.#budget.enter()
    this.#budget.spend(size, name)
  }

  readonly #content: Contents["content"] = (path) =>
    Effect.suspend((): ReturnType<Contents["content"]> => {
      const node = findNode(this.#draft.tree, path)
      const placed = node === undefined ? undefined : this.#placed.get(node)
      if (placed === undefined) return Effect.fail({ _tag: "NotFound", path })
      const { offset, size } = placed
      if (size <= maxWholeBytes) return Effect.map(this.#spool.read(offset, size), (bytes) => new Uint8Array(bytes))
      return Effect.succeed(
        Stream.unfold(0, (done) =>
          done === size
            ? Effect.succeed(undefined)
            : Effect.map(
                this.#spool.read(offset + done, Math.min(chunkBytes, size - done)),
                (bytes) => [new Uint8Array(bytes), done + bytes.length] as const
              )
        )
      )
    })
}

const refuseAbsolute = (name: string) => Effect.fail(refuse("name", "the name is absolute", name))

const maxWholeBytes = 1024 * 1024
const chunkBytes = 256 * 1024

export const read = <E, R>(
  input: Stream.Stream<Uint8Array, E, R>,
  rules: NameRules
): Effect.Effect<Contents, E | ArchiveError | Fault, R | Scope.Scope> =>
  Effect.flatMap(Spool.make(maxArchiveFileBytes(rules.limits)), (spool) => new Reader(rules, spool).read(input))
