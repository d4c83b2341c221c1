/**
 * Verifies and compacts journals. A compaction writes the newer entries to a new file, which then replaces the old file. The
 * new header contains the position and the hash of the last removed entry. So the remaining entries keep their positions and
 * their hash chain.
 */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { codeOf } from "../../model/realms.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { closeQuietly, syncDirectoryNow } from "../../runtime/host.ts"
import { dirname, Fs, join, resolve } from "../../runtime/node.ts"
import { type ContentRef, isEfferent, isTerminal } from "../FileSystemEntry.ts"
import type { ContentStore } from "../model.ts"
import { holds } from "./blobContents.ts"
import * as Directory from "./directoryContents.ts"
import { JournalError } from "../errors.ts"
import * as Answered from "../leaf/answered.ts"
import * as Codec from "./entryCopies.ts"
import { claimFile, openFile, realPath } from "./fileStore.ts"
import { compactedHeaderOf, type LocatedLine, readStart, scan } from "./format.ts"
import { attempt } from "./systemCalls.ts"
import { readAt } from "../../runtime/host.ts"

/**
 * The facts about an intact journal file.
 *
 * @since 0.1.0
 */
export interface Verified {
  readonly entries: number
  /** The position up to which a compaction has removed the entries. Absent if the journal was never compacted. */
  readonly after?: number
  readonly chained: boolean
  /**
   * The hash of the last line of a chained journal. A caller that stores this hash elsewhere can later detect whether lines
   * were cut off.
   */
  readonly head?: string
  /** True if the file ends with an incomplete append, which was never confirmed or is being written. */
  readonly torn: boolean
  /**
   * The numbers of distinct contents in the content store. `referenced` counts the contents to which entries refer. `damaged`
   * counts the contents that do not match their hash or their size.
   */
  readonly contents: { readonly referenced: number; readonly missing: number; readonly damaged: number }
}

const isRef = (value: object): value is ContentRef =>
  "sha256" in value && typeof value.sha256 === "string" && "size" in value && typeof value.size === "number"

const collectRefs = (value: unknown, refsByHash: Map<string, number>): void => {
  // Iterate instead of recursing, because a foreign entry may be nested deeper than the call stack allows.
  const pending = [value]
  for (let next = pending.pop(); pending.length > 0 || next !== undefined; next = pending.pop()) {
    if (typeof next !== "object" || next === null) continue
    if (isRef(next)) refsByHash.set(next.sha256, next.size)
    else for (const inner of Object.values(next)) pending.push(inner)
  }
}

const checkAll = (
  place: string | ContentStore,
  refs: ReadonlyMap<string, number>
): Effect.Effect<Verified["contents"], JournalError> =>
  Effect.gen(function* () {
    const contents = typeof place === "string" ? yield* Directory.open(place, { isReader: true }) : place
    let [missing, damaged] = [0, 0]
    for (const [sha256, size] of refs) {
      const isIntact = yield* Effect.as(Stream.runDrain(contents.stream({ sha256, size })), true).pipe(
        Effect.catch((error) => (error.reason === "corrupt" ? Effect.succeed(false) : Effect.fail(error)))
      )
      if (isIntact) continue
      if (yield* holds(contents, { sha256, size })) damaged++
      else missing++
    }
    return { referenced: refs.size, missing, damaged }
  })

export const verify = <E, I>(
  schema: Schema.Codec<E, I>,
  path: string,
  place: string | ContentStore
): Effect.Effect<Verified, JournalError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const descriptor = yield* openFile(path, Fs.constants.O_RDONLY)
      const { decode } = Codec.make(schema)
      const refs = new Map<string, number>()
      const visit = (group: ReadonlyArray<LocatedLine>): JournalError | undefined => {
        for (const { entry, position } of group) {
          const decoded = decode(entry, position)
          if (decoded instanceof JournalError) return decoded
          collectRefs(entry, refs)
        }
        return undefined
      }
      const from = yield* readStart(descriptor)
      if (from === undefined) {
        const torn = Fs.fstatSync(descriptor).size > 0
        return { entries: 0, chained: false, torn, contents: { referenced: 0, missing: 0, damaged: 0 } }
      }
      const { point, rest } = yield* scan(descriptor, from, visit)
      return {
        entries: point.position - from.position,
        ...(from.position === 0 ? {} : { after: from.position }),
        chained: point.chain !== undefined,
        ...(point.chain === undefined ? {} : { head: point.chain }),
        torn: rest > 0,
        contents: yield* checkAll(place, refs)
      }
    })
  )

/**
 * The result of a compaction.
 *
 * @since 0.1.0
 */
export interface Compacted {
  /** The number of entries removed. */
  readonly removed: number
  /** The position of the first remaining entry. */
  readonly first: number
  /** The number of contents removed from the content store because no remaining entry refers to them. */
  readonly contents: number
  /**
   * The reason why fewer entries were removed than requested. A leaf still needs `unanswered` requests and the `recent`
   * entries.
   */
  readonly kept?: "unanswered" | "recent"
}

const operation = "Journal.compact"

/** The system calls of a compaction. A test can replace this object to stop the process at each call. */
export interface Disk {
  readonly create: (path: string, mode: number) => number
  readonly write: (descriptor: number, bytes: Uint8Array) => number
  readonly sync: (descriptor: number) => void
  readonly rename: (from: string, to: string) => void
  readonly syncDirectory: (path: string) => void
  readonly unlink: (path: string) => void
}

export const realDisk: Disk = {
  create: (path, mode) => Fs.openSync(path, "wx", mode),
  write: (descriptor, bytes) => Fs.writeSync(descriptor, bytes),
  sync: (descriptor) => Fs.fsyncSync(descriptor),
  rename: (from, to) => Fs.renameSync(from, to),
  syncDirectory: syncDirectoryNow,
  unlink: (path) => Fs.unlinkSync(path)
}

const failure = (reason: JournalError["reason"], detail: string): JournalError =>
  new JournalError({ operation, reason, detail })

class Inventory {
  /** The position of the last entry of each append. `#offsets` contains the offset after the same entry. */
  readonly #positions: Array<number> = []
  readonly #offsets: Array<number> = []
  /** The last position that refers to each content. */
  readonly contents = new Map<string, number>()
  readonly #answered = Answered.make()
  readonly #open = new Map<string, number>()
  /** The requests that repeat the id of an answered request, each with the position of the earlier answer. */
  readonly #repeated: Array<readonly [answer: number, position: number]> = []
  readonly #leaves: Array<{ readonly instance: string; readonly from: number; until: number }> = []
  firstSince = Number.POSITIVE_INFINITY
  isServed: boolean

  constructor(isServed: boolean) {
    this.isServed = isServed
  }

  add(group: ReadonlyArray<LocatedLine>, since: number): void {
    for (const { at, entry, position } of group) {
      if (at >= since) this.firstSince = Math.min(this.firstSince, position)
      const named = new Map<string, number>()
      collectRefs(entry, named)
      for (const sha256 of named.keys()) this.contents.set(sha256, position)
      this.#see(entry, position)
    }
    const { length, offset, position } = group.at(-1)!
    this.#positions.push(position)
    this.#offsets.push(offset + length)
  }

  endUpTo(position: number): { readonly position: number; readonly offset: number } | undefined {
    let [low, high] = [0, this.#positions.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#positions[middle]! <= position) low = middle + 1
      else high = middle
    }
    return low === 0 ? undefined : { position: this.#positions[low - 1]!, offset: this.#offsets[low - 1]! }
  }

  lastRemovable(requestedPosition: number, last: number): { readonly position: number; readonly kept?: Compacted["kept"] } {
    let position = Math.min(requestedPosition, last - 1)
    if (!this.isServed) return { position }
    let kept: Compacted["kept"]
    const keepFrom = (first: number, why: Compacted["kept"]): void => {
      if (first > position) return
      position = first - 1
      kept = why
    }
    keepFrom(last - Answered.duplicateWindow + 1, "recent")
    const firstOpen = this.#open.values().next().value ?? Number.POSITIVE_INFINITY
    keepFrom(firstOpen, "unanswered")
    // Keep the announcement of a leaf that may have begun an open request, because the leaf's successor needs the
    // announcement.
    for (const { from, until } of this.#leaves) if (until > firstOpen) keepFrom(from, "unanswered")
    // Keep the earlier answer, because only this answer shows that the later request is a repetition.
    for (const [answer, at] of this.#repeated.toReversed()) if (at > position) keepFrom(answer, "recent")
    return { position: Math.max(0, position), ...(kept === undefined ? {} : { kept }) }
  }

  /** Observes an undecoded entry, because decoding a long journal would take too long. */
  #see(entry: unknown, position: number): void {
    this.#answered.advanceTo({ position, entry })
    if (isTerminal(entry)) this.#open.delete(entry.correlationId)
    else if (isEfferent(entry)) {
      const { correlationId } = entry
      const answer = this.#answered.find(correlationId)
      if (entry._tag === "FileWriteChunk" && entry.discard === true) this.#open.delete(correlationId)
      else if (answer !== undefined) this.#repeated.push([answer, position])
      else if (!this.#open.has(correlationId)) this.#open.set(correlationId, position)
    } else if (isLeafChanged(entry)) {
      this.isServed = true
      const { instance, status } = entry
      if (status === "Running") this.#leaves.push({ instance, from: position, until: Number.POSITIVE_INFINITY })
      else for (const leaf of this.#leaves) if (leaf.instance === instance) leaf.until = Math.min(leaf.until, position)
    }
  }
}

const isLeafChanged = (entry: unknown): entry is { readonly instance: string; readonly status: string } =>
  Predicate.hasProperty(entry, "_tag") && entry._tag === "DaemonChanged" && Predicate.hasProperty(entry, "prefix")

const chunkSize = 1024 * 1024

const writeAll = (disk: Disk, descriptor: number, bytes: Uint8Array): void => {
  for (let done = 0; done < bytes.length;) {
    const written = disk.write(descriptor, bytes.subarray(done))
    if (written === 0) throw Object.assign(new Error("the disk is full"), { code: "ENOSPC" })
    done += written
  }
}

const copy = (disk: Disk, from: number, to: number, start: number, end: number): Effect.Effect<void, JournalError> => {
  const next = (at: number): Effect.Effect<void, JournalError> =>
    at >= end
      ? Effect.void
      : Effect.flatMap(
          attempt(operation, () => {
            const bytes = Buffer.allocUnsafe(Math.min(chunkSize, end - at))
            const read = readAt(from, bytes, at)
            writeAll(disk, to, bytes.subarray(0, read))
            return read
          }),
          (read) =>
            read === 0
              ? Effect.fail(failure("corrupt", "entries were removed from the journal file"))
              : Effect.andThen(Effect.yieldNow, next(at + read))
        )
  return Effect.suspend(() => next(start))
}

const unlinkIfExists = (disk: Disk, path: string): void => {
  if (Fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined) disk.unlink(path)
}

const hashChars = 64
/** The number of bytes between the hash and the end of a line, including the line feed. */
const bytesAfterHash = '"}\n'.length

const hashBefore = (descriptor: number, offset: number): string => {
  const bytes = Buffer.alloc(hashChars)
  readAt(descriptor, bytes, offset - bytesAfterHash - hashChars)
  return bytes.toString("latin1")
}

/** Removes the contents to which no entry refers. Other files in the directory stay. Returns the number of removed contents. */
const removeUnnamedContents = (disk: Disk, directory: string, isNamed: (sha256: string) => boolean): number => {
  let removed = 0
  const stats = Fs.lstatSync(directory, { throwIfNoEntry: false })
  if (stats?.isDirectory() !== true) return 0
  for (const folder of Fs.readdirSync(directory, { withFileTypes: true })) {
    if (!folder.isDirectory() || !/^[0-9a-f]{2}$/.test(folder.name)) continue
    for (const file of Fs.readdirSync(join(directory, folder.name), { withFileTypes: true })) {
      if (!file.isFile() || !/^[0-9a-f]{62}$/.test(file.name) || isNamed(folder.name + file.name)) continue
      disk.unlink(join(directory, folder.name, file.name))
      removed++
    }
  }
  return removed
}

export const compact = (
  journalPath: string,
  options: { readonly before: number | DateTime.Utc; readonly contents?: string | ContentStore | undefined },
  disk: Disk = realDisk
): Effect.Effect<Compacted, JournalError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { before } = options
      if (typeof before === "number" && (!Number.isSafeInteger(before) || before < 1)) {
        return yield* failure("invalid", "the option `before` must be a time, or a position of at least 1")
      }
      const path = yield* attempt(operation, () => realPath(resolve(journalPath)))
      const stats = yield* attempt(operation, () => Fs.statSync(path))
      yield* claimFile(path)
      const descriptor = yield* openFile(path, Fs.constants.O_RDONLY)
      const from = yield* readStart(descriptor)
      if (from === undefined) return { removed: 0, first: 1, contents: 0 }
      const inventory = new Inventory(from.served)
      const since = typeof before === "number" ? Number.POSITIVE_INFINITY : before.epochMilliseconds
      const { point } = yield* scan(descriptor, from, (group) => void inventory.add(group, since))
      const requestedPosition = (typeof before === "number" ? before : inventory.firstSince) - 1
      const { kept, position } = inventory.lastRemovable(requestedPosition, point.position)
      const end = inventory.endUpTo(position)
      const why = kept === undefined ? {} : { kept }
      if (end === undefined) return { removed: 0, first: from.position + 1, contents: 0, ...why }
      const chain = from.chain === undefined ? undefined : hashBefore(descriptor, end.offset)
      const header = { after: end.position, chain, served: inventory.isServed }
      const draft = `${path}.compacting`
      yield* attempt(operation, () => unlinkIfExists(disk, draft))
      const target = yield* Effect.acquireRelease(
        attempt(operation, () => disk.create(draft, stats.mode & 0o777)),
        (target) => Effect.sync(() => closeQuietly(target))
      )
      yield* Effect.onError(
        Effect.gen(function* () {
          yield* attempt(operation, () => writeAll(disk, target, Buffer.from(compactedHeaderOf(header))))
          yield* copy(disk, descriptor, target, end.offset, point.offset)
          yield* attempt(operation, () => {
            disk.sync(target)
            disk.rename(draft, path)
          })
        }),
        () =>
          Effect.sync(() => {
            try {
              disk.unlink(draft)
            } catch (error) {
              if (codeOf(error) === undefined) throw error
            }
          })
      )
      const contents = yield* attempt(operation, () => {
        disk.syncDirectory(dirname(path))
        // Remove no contents from a directory that the caller has chosen, because other journals may use the directory too.
        if (options.contents !== undefined) return 0
        return removeUnnamedContents(
          disk,
          `${resolve(journalPath)}.contents`,
          (sha256) => (inventory.contents.get(sha256) ?? 0) > end.position
        )
      })
      return { removed: end.position - from.position, first: end.position + 1, contents, ...why }
    })
  )
