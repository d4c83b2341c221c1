/** The seven primitive operations on the objects of a bucket. */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { type FileStat, stat as makeStat } from "../../model/Entry.ts"
import {
  alreadyExists,
  directoryNotEmpty,
  type Fault,
  invalidPath,
  ioError,
  notADirectory,
  notAFile,
  notFound
} from "../../model/Fault.ts"
import { type FsPath, parent, root } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend, Child, Commit, Handle, Links, Rules } from "../../port/Backend.ts"
import { makeClaims, maxAttempts, shortPause } from "../../port/optimisticClaims.ts"
import { parallelExplore } from "../../port/parallelExplorer.ts"
import * as Request from "../../port/Request.ts"
import { isReadOnly } from "../../port/Rules.ts"
import { Buffer, concatenate } from "../../runtime/buffer.ts"
import { hasher, sha256 } from "../../runtime/hash.ts"
import { make as makeLocks } from "../../runtime/locks.ts"
import { isRoot, notALink, rootWriteFault } from "../faults.ts"
import { collect, type Mode, runCommit } from "../writing.ts"
import { defaultDirectoryMode, defaultFileMode, type EntryAttributes, linkBody, linkFault, linkSize } from "./attributes.ts"
import { childOf, directoryKey, fileKey, isUnreachable } from "./keys.ts"
import {
  absent,
  type Condition,
  maxParts,
  noCondition,
  type ObjectHead,
  type Objects,
  type Part,
  overtaken,
  type Stored,
  tooManyParts,
  type Upload
} from "./objects.ts"
import type { Support } from "./probe.ts"
import { makeCopyFile } from "./copyFile.ts"
import { makeRemoveTree } from "./removeTree.ts"
import { makeSetAttributes } from "./setAttributes.ts"

export interface Sizes {
  /** The number of bytes that are read when a file is opened. An open file of at most this size keeps its content. */
  readonly firstRead: number
  /** The size of each part of a stream, in bytes. A stream of at most this size is one plain write. */
  readonly part: number
  /** The maximum size of a file after an append, in bytes. */
  readonly append: number
  /**
   * The maximum size of an object that the store copies in one request, in bytes. S3 permits 5 GiB, but answers only after the
   * whole copy.
   */
  readonly copy: number
  /** The maximum size of an object that the store copies in one request although it could copy ranges, in bytes. */
  readonly quickCopy: number
  /** The maximum number of objects that one request deletes. */
  readonly batch: number
}

export const defaultSizes: Sizes = {
  firstRead: 1024 * 1024,
  part: 8 * 1024 * 1024,
  append: 64 * 1024 * 1024,
  copy: 512 * 1024 * 1024,
  quickCopy: 64 * 1024 * 1024,
  batch: 1000
}

/** The maximum length of a range in one request, in bytes. */
const maxRange = 8 * 1024 * 1024

/**
 * The number of directories that a walk lists at the same time, and of possible symlinks that a listing checks at the same
 * time.
 */
const concurrentLists = 16

/** The number of small files that are read at the same time. */
const concurrentReads = 32

const changed: Fault = ioError("the object changed while it was read; read it again", "ESTALE")
const modeChanged: Fault = ioError("the permission bits changed while the stream was written; write it again", "EAGAIN")
const unreachable: Fault = invalidPath('the object key has a segment "." or "..", which no request can express')
const crossDevice: Fault = ioError("a bucket cannot rename; the entry must be copied", "EXDEV")

/** Makes a cache of the versions of objects, by key and tag. A tag belongs to one content, so an entry never becomes outdated. */
const makeVersions = (limit: number) => {
  const versions = new Map<string, string>()
  return {
    get: (key: string, etag: string) => versions.get(`${etag} ${key}`),
    set: (key: string, etag: string, version: string) => {
      if (etag === "") return
      versions.set(`${etag} ${key}`, version)
      if (versions.size > limit) versions.delete(versions.keys().next().value!)
    }
  }
}

export interface Settings {
  readonly objects: Objects
  readonly support: Support
  readonly prefix: string
  /** The address of the bucket, from which the identities of files are made. */
  readonly place: string
  readonly shownRoot: string
  readonly rules: Rules
  readonly sizes: Sizes
  readonly bestEffort: ReadonlyArray<string>
  /** If true, modes, times and symlinks are stored as metadata. */
  readonly metadata: boolean
}

export const makePort = (settings: Settings): Backend => {
  const { metadata, objects, place, prefix, sizes, support } = settings
  const versions = makeVersions(10_000)
  const { claim, claimOf } = makeClaims<string>(overtaken)

  const keyOf = (path: FsPath): Effect.Effect<string | undefined, Fault> => {
    const key = fileKey(prefix, path)
    return key !== undefined && isUnreachable(key) ? Effect.fail(unreachable) : Effect.succeed(key)
  }

  /**
   * Reads the head of a file. Returns `undefined` if there is no file. If the caller holds a claim on the path, the claim keeps
   * the ETag of the first head.
   */
  const headOf = (path: FsPath): Effect.Effect<ObjectHead | undefined, Fault> =>
    Effect.flatMap(keyOf(path), (key) =>
      key === undefined
        ? Effect.succeed(undefined)
        : Effect.tap(objects.head(key), (head) => (head === undefined ? Effect.void : note(path, head.etag)))
    )

  const note = (path: FsPath, etag: string): Effect.Effect<void> =>
    Effect.map(claimOf(path), (claim) => {
      if (claim !== undefined) claim.seen ??= etag
    })

  const isDirectory = (path: FsPath): Effect.Effect<boolean, Fault> =>
    path === root
      ? Effect.succeed(true)
      : Effect.map(
          objects.list({ prefix: directoryKey(prefix, path), limit: 1 }),
          (page) => page.objects.length + page.prefixes.length > 0
        )

  const modifiedAt = (millis: number | undefined) => (millis === undefined ? {} : { modifiedAt: DateTime.makeUnsafe(millis) })

  /**
   * Returns the target of a symlink, or `undefined` for a file. A listing recognizes a symlink by its size, so every other call
   * also tests the size.
   */
  const linkOf = ({ attributes, sizeBytes }: Pick<ObjectHead, "attributes" | "sizeBytes">): string | undefined =>
    metadata && sizeBytes === linkSize ? attributes.link : undefined

  const fileStat = (path: FsPath, key: string, head: Omit<ObjectHead, "etag" | "foreign" | "writeId">): FileStat => {
    const identity = `${place}/${key}`
    const { attributes, modifiedMillis, sizeBytes } = head
    if (!metadata) return { ...makeStat({ path, kind: "file", sizeBytes, identity }), ...modifiedAt(modifiedMillis) }
    const link = linkOf(head)
    const own =
      link === undefined
        ? makeStat({ path, kind: "file", sizeBytes, identity, mode: attributes.mode ?? defaultFileMode })
        : { ...makeStat({ path, kind: "symlink", sizeBytes: Buffer.byteLength(link), identity }), isSymlink: true }
    return { ...own, ...modifiedAt(attributes.modifiedMillis ?? modifiedMillis) }
  }

  const markerOf = (path: FsPath): Effect.Effect<ObjectHead | undefined, Fault> => {
    const key = directoryKey(prefix, path)
    return key === "" ? Effect.succeed(undefined) : objects.head(key)
  }

  const directoryStat = (path: FsPath): Effect.Effect<FileStat, Fault> => {
    const own = { path, kind: "directory", sizeBytes: 0, identity: `${place}/${directoryKey(prefix, path)}` } as const
    if (!metadata) return Effect.succeed(makeStat(own))
    return Effect.map(markerOf(path), (marker) => ({
      ...makeStat({ ...own, mode: marker?.attributes.mode ?? defaultDirectoryMode }),
      ...modifiedAt(marker?.attributes.modifiedMillis ?? marker?.modifiedMillis)
    }))
  }

  const stat: Backend["stat"] = (path) =>
    Effect.flatMap(headOf(path), (head) =>
      head !== undefined
        ? Effect.succeed(fileStat(path, fileKey(prefix, path)!, head))
        : Effect.flatMap(isDirectory(path), (found) => (found ? directoryStat(path) : Effect.succeed(undefined)))
    )

  /** Fails unless the parent is a directory. */
  const requireParent = (path: FsPath): Effect.Effect<void, Fault> => {
    const above = parent(path)
    if (above === root) return Effect.void
    return Effect.flatMap(Effect.all([headOf(above), isDirectory(above)], { concurrency: 2 }), ([file, directory]) =>
      file !== undefined
        ? Effect.fail(notADirectory)
        : directory
          ? Effect.void
          : Effect.flatMap(Effect.exit(requireParent(above)), (exit) =>
              // If the directory above is missing too, report a missing directory. If a file is above, report that instead.
              Exit.isSuccess(exit) ? Effect.fail(notFound) : exit
            )
    )
  }

  /** Returns the targets of the symlinks in a directory, by name. */
  const linksOf = (
    directory: string,
    files: ReadonlyMap<string, number>
  ): Effect.Effect<ReadonlyMap<string, string>, Fault> => {
    const links = new Map<string, string>()
    if (!metadata) return Effect.succeed(links)
    const names = [...files].filter(([name, size]) => size === linkSize && !isUnreachable(name)).map(([name]) => name)
    const look = (name: string) =>
      Effect.map(objects.head(directory + name), (head) => {
        const target = head && linkOf(head)
        if (target !== undefined) links.set(name, target)
      })
    return Effect.as(Effect.forEach(names, look, { concurrency: concurrentLists, discard: true }), links)
  }

  const list: Backend["list"] = (path) =>
    Effect.gen(function* () {
      const directory = directoryKey(prefix, path)
      const files = new Map<string, number>()
      const directories: Array<string> = []
      let isPresent = path === root
      const pages = Effect.gen(function* () {
        let after: string | undefined
        do {
          const page = yield* objects.list({ prefix: directory, delimiter: "/", after })
          for (const { key, sizeBytes } of page.objects) {
            isPresent = true
            if (key !== directory) files.set(key.slice(directory.length), sizeBytes)
          }
          for (const common of page.prefixes) {
            isPresent = true
            directories.push(common.slice(directory.length, -1))
          }
          after = page.next
        } while (after !== undefined)
      })
      const [file] = yield* Effect.all([headOf(path), pages], { concurrency: 2 })
      if (file !== undefined) return yield* Effect.fail(notADirectory)
      if (!isPresent) return yield* Effect.fail(notFound)
      const out: Array<Child> = []
      const links = yield* linksOf(directory, files)
      for (const [name, sizeBytes] of files) {
        const target = links.get(name)
        out.push(
          target === undefined
            ? childOf(name, "file", false, sizeBytes)
            : childOf(name, "symlink", false, Buffer.byteLength(target))
        )
      }
      for (const name of directories) out.push(childOf(name, "directory", files.has(name)))
      return out
    })

  const fileMissing = (path: FsPath): Effect.Effect<never, Fault> =>
    Effect.flatMap(isDirectory(path), (found) => Effect.fail(found ? notAFile : notFound))

  const open: Backend["open"] = (path) =>
    Effect.gen(function* () {
      const key = yield* keyOf(path)
      if (key === undefined || path === root) return yield* Effect.fail(notAFile)
      let first = yield* objects.get(key, 0, sizes.firstRead)
      if (first === "changed") {
        // An empty object has no byte ranges.
        const head = yield* objects.head(key)
        if (head !== undefined && head.sizeBytes > 0) return yield* Effect.fail(changed)
        first = head && { head, bytes: new Uint8Array() }
      }
      if (first === undefined) return yield* fileMissing(path)
      const { bytes, head } = first
      if (linkOf(head) !== undefined) return yield* Effect.fail(notAFile)
      yield* note(path, head.etag)
      return handleOf(path, key, head, bytes)
    })

  /** Reads a small file in one request. Returns `undefined` for any other entry. */
  const readSmall = (path: FsPath, maxBytes: number): Effect.Effect<Request.Whole | undefined, Fault> =>
    Effect.gen(function* () {
      const key = yield* keyOf(path)
      if (key === undefined) return undefined
      const found = yield* objects.get(key, 0, Math.min(maxRange, maxBytes + 1))
      if (found === undefined || found === "changed") return undefined
      const { bytes, head } = found
      return bytes.length < head.sizeBytes || bytes.length > maxBytes || linkOf(head) !== undefined
        ? undefined
        : { stat: fileStat(path, key, head), bytes }
    })

  /**
   * Fails because the object was replaced during a read. Under a claim, fails with `overtaken`, so that the claim starts again.
   */
  const changedAt = (path: FsPath): Effect.Effect<never, Fault> =>
    Effect.flatMap(claimOf(path), (claim) => Effect.fail(claim === undefined ? changed : overtaken))

  const handleOf = (path: FsPath, key: string, head: ObjectHead, first: Uint8Array): Handle => {
    const read: Handle["read"] = (offset, length) =>
      Effect.suspend(() => {
        const end = Math.min(offset + length, head.sizeBytes)
        if (offset >= end) return Effect.succeed(new Uint8Array())
        if (offset < first.length) return Effect.succeed(first.slice(offset, Math.min(end, first.length)))
        return Effect.flatMap(objects.get(key, offset, Math.min(end - offset, maxRange), head.etag), (found) =>
          found === undefined || found === "changed" || found.head.sizeBytes !== head.sizeBytes
            ? changedAt(path)
            : Effect.succeed(found.bytes)
        )
      })
    const version = Effect.suspend(() => {
      const known = versions.get(key, head.etag)
      if (known !== undefined) return Effect.succeed(known)
      const hash = hasher()
      const next = (offset: number): Effect.Effect<string, Fault> =>
        Effect.flatMap(read(offset, maxRange), (bytes) => {
          hash.update(bytes)
          if (offset + bytes.length < head.sizeBytes) return next(offset + bytes.length)
          const found = hash.digest()
          versions.set(key, head.etag, found)
          return Effect.succeed(found)
        })
      return next(0)
    })
    return { stat: fileStat(path, key, head), read, version }
  }

  /**
   * Returns the stat of a file that was just stored. If another program has replaced the file since, or its head cannot be
   * read, the stat has no times, and the mode is the default.
   */
  const statStored = (path: FsPath, key: string, etag: string, sizeBytes: number): Effect.Effect<FileStat, Fault> =>
    Effect.map(
      Effect.catch(objects.head(key), () => Effect.succeed(undefined)),
      (head) => fileStat(path, key, head?.etag === etag ? head : { sizeBytes, modifiedMillis: undefined, attributes: {} })
    )

  /** Returns the attributes of an object after a write. The object keeps its mode. */
  const attributesAfter = (present: ObjectHead | undefined): Effect.Effect<EntryAttributes> =>
    metadata
      ? Effect.map(Clock.currentTimeMillis, (modifiedMillis) => ({ mode: present?.attributes.mode, modifiedMillis }))
      : Effect.succeed({})

  /**
   * Runs a write that depends on the present object. `store` stores the new object if the condition is met. If another program
   * replaces the object first, repeats the write, at most `maxAttempts` times. Under a claim, fails with `overtaken` instead. The
   * mode `create` fails with AlreadyExists instead.
   */
  const publish = (
    path: FsPath,
    mode: Mode,
    obeysConditions: boolean,
    store: (key: string, present: ObjectHead | undefined, condition: Condition) => Effect.Effect<FileStat | undefined, Fault>
  ): Effect.Effect<FileStat, Fault> => {
    const attempt = (left: number): Effect.Effect<FileStat, Fault> =>
      Effect.gen(function* () {
        const key = yield* keyOf(path)
        if (key === undefined) return yield* Effect.fail(rootWriteFault(mode))
        const [, present, directory] = yield* Effect.all([requireParent(path), headOf(path), isDirectory(path)], {
          concurrency: 3
        })
        if (mode === "create" && (present !== undefined || directory)) return yield* Effect.fail(alreadyExists)
        if (present === undefined ? directory : linkOf(present) !== undefined) return yield* Effect.fail(notAFile)
        const claim = yield* claimOf(path)
        if (claim?.seen !== undefined && present?.etag !== claim.seen) return yield* Effect.fail(overtaken)
        const condition: Condition = !obeysConditions
          ? noCondition
          : present === undefined
            ? absent
            : { _tag: "Match", etag: present.etag }
        const stored = yield* store(key, present, condition)
        if (stored !== undefined) return stored
        if (mode === "create") return yield* Effect.fail(alreadyExists)
        if (claim?.seen !== undefined || left === 0) return yield* Effect.fail(overtaken)
        yield* shortPause
        return yield* attempt(left - 1)
      })
    return path === root ? Effect.fail(rootWriteFault(mode)) : attempt(maxAttempts)
  }

  const statOf = (path: FsPath, key: string, sizeBytes: number, stored: Stored) =>
    stored._tag === "Refused" ? Effect.succeed(undefined) : statStored(path, key, stored.etag, sizeBytes)

  const putBytes = (
    path: FsPath,
    bytes: Uint8Array,
    condition: Condition,
    key: string,
    attributes: EntryAttributes
  ): Effect.Effect<FileStat | undefined, Fault> => {
    const hash = sha256(bytes)
    return Effect.flatMap(objects.put(key, bytes, hash, condition, support.form, { attributes }), (stored) => {
      if (stored._tag === "Stored") versions.set(key, stored.etag, hash)
      return statOf(path, key, bytes.length, stored)
    })
  }

  /** Reads a whole object of a known size. Returns `undefined` if another program replaces the object meanwhile. */
  const readWhole = (key: string, { etag, sizeBytes }: ObjectHead): Effect.Effect<Uint8Array | undefined, Fault> =>
    Effect.gen(function* () {
      const parts: Array<Uint8Array> = []
      for (let at = 0; at < sizeBytes; at += parts.at(-1)!.length) {
        const found = yield* objects.get(key, at, Math.min(maxRange, sizeBytes - at), etag)
        if (found === undefined || found === "changed" || found.bytes.length === 0) return undefined
        parts.push(found.bytes)
      }
      return concatenate(parts)
    })

  const tooLargeToAppend: Fault = ioError(
    `an append rewrites the object, and the result would have more than ${sizes.append} bytes; write a new object instead`,
    "EFBIG"
  )

  const appendBytes = (path: FsPath, added: Uint8Array, key: string, present: ObjectHead | undefined, condition: Condition) =>
    Effect.gen(function* () {
      const size = (present?.sizeBytes ?? 0) + added.length
      if (size > sizes.append) return yield* Effect.fail(tooLargeToAppend)
      const before = present === undefined ? new Uint8Array() : yield* readWhole(key, present)
      if (before === undefined) return undefined
      return yield* putBytes(path, concatenate([before, added]), condition, key, yield* attributesAfter(present))
    })

  const publishBytes = (path: FsPath, bytes: Uint8Array, mode: Mode): Effect.Effect<FileStat, Fault> =>
    publish(path, mode, support.put, (key, present, condition) =>
      mode === "append"
        ? appendBytes(path, bytes, key, present, condition)
        : Effect.flatMap(attributesAfter(present), (attributes) => putBytes(path, bytes, condition, key, attributes))
    )

  /**
   * Writes a stream in parts of one size, with constant memory use. The object becomes visible when the upload is completed. A
   * failed or interrupted upload is aborted.
   */
  const writeStream = <E, R>(
    path: FsPath,
    stream: Stream.Stream<Uint8Array, E, R>,
    mode: "create" | "replace",
    commit: Commit | undefined
  ): Effect.Effect<FileStat, Fault | E, R> =>
    Effect.suspend(() => {
      const hash = hasher()
      let buffer = new Uint8Array(Math.min(sizes.part, 64 * 1024))
      let filled = 0
      let total = 0
      let upload: Upload | undefined
      let modeAtStart: number | undefined
      const parts: Array<Part> = []
      const sendPart = Effect.gen(function* () {
        if (parts.length === maxParts) return yield* Effect.fail(tooManyParts(sizes.part))
        if (upload === undefined) {
          const key = yield* keyOf(path)
          if (key === undefined) return yield* Effect.fail(rootWriteFault(mode))
          const attributes = yield* attributesAfter(metadata && mode === "replace" ? yield* objects.head(key) : undefined)
          modeAtStart = attributes.mode
          upload = yield* Effect.uninterruptible(
            Effect.tap(objects.startUpload(key, { attributes }), (started) => Effect.sync(() => (upload = started)))
          )
        }
        parts.push(yield* objects.putPart(upload, parts.length + 1, buffer.subarray(0, filled)))
        filled = 0
      })
      const add = (chunk: Uint8Array): Effect.Effect<void, Fault> => {
        const length = Math.min(chunk.length, sizes.part - filled)
        if (filled + length > buffer.length) {
          const larger = new Uint8Array(Math.min(sizes.part, Math.max(buffer.length * 2, filled + length)))
          larger.set(buffer.subarray(0, filled))
          buffer = larger
        }
        buffer.set(chunk.subarray(0, length), filled)
        filled += length
        if (length === chunk.length) return Effect.void
        return Effect.andThen(
          sendPart,
          Effect.suspend(() => add(chunk.subarray(length)))
        )
      }
      const consumed = Stream.runForEach(stream, (chunk) => {
        hash.update(chunk)
        total += chunk.length
        return add(chunk)
      })
      const completed = (done: Upload) =>
        publish(path, mode, support.complete, (key, present, condition) =>
          // The metadata of an object is fixed when its upload starts.
          metadata && present !== undefined && present.attributes.mode !== modeAtStart
            ? Effect.fail(modeChanged)
            : Effect.flatMap(objects.complete(done, parts, condition, support.form), (stored) => {
                if (stored._tag === "Stored") versions.set(key, stored.etag, hash.digest())
                return statOf(path, key, total, stored)
              })
        )
      const run = Effect.gen(function* () {
        yield* consumed
        if (upload === undefined) return yield* runCommit(commit, publishBytes(path, buffer.slice(0, filled), mode))
        if (filled > 0) yield* sendPart
        return yield* runCommit(commit, completed(upload))
      })
      return Effect.onExit(run, (exit) =>
        Exit.isSuccess(exit) || upload === undefined ? Effect.void : objects.abandon(upload)
      )
    })

  const write: Backend["write"] = (path, bytes, mode, how) => {
    const commit = how?.commit
    if (isBytes(bytes)) {
      return Effect.suspend(() => {
        const content = bytes.slice()
        return runCommit(commit, publishBytes(path, content, mode))
      })
    }
    return mode === "append"
      ? Effect.flatMap(collect(bytes, sizes.append, tooLargeToAppend), (content) =>
          runCommit(commit, publishBytes(path, content, mode))
        )
      : writeStream(path, bytes, mode, commit)
  }

  const emptyHash = sha256(new Uint8Array())

  const putMarker = (path: FsPath): Effect.Effect<Stored, Fault> =>
    objects.put(directoryKey(prefix, path), new Uint8Array(), emptyHash, support.put ? absent : noCondition, support.form)

  const makeDirectory: Backend["makeDirectory"] = (path) =>
    path === root
      ? Effect.fail(alreadyExists)
      : Effect.gen(function* () {
          yield* keyOf(path)
          const [, file, directory] = yield* Effect.all([requireParent(path), headOf(path), isDirectory(path)], {
            concurrency: 3
          })
          if (file !== undefined || directory) return yield* Effect.fail(alreadyExists)
          if ((yield* putMarker(path))._tag === "Refused") return yield* Effect.fail(alreadyExists)
        })

  /** Makes the marker of the parent if it has none, so that the parent still exists when it becomes empty. */
  const keepParent = (path: FsPath): Effect.Effect<void, Fault> => {
    const above = parent(path)
    return above === root
      ? Effect.void
      : Effect.flatMap(objects.head(directoryKey(prefix, above)), (marker) =>
          marker === undefined ? Effect.asVoid(putMarker(above)) : Effect.void
        )
  }

  const remove: Backend["remove"] = (path) =>
    path === root
      ? Effect.fail(isRoot)
      : Effect.gen(function* () {
          const directory = directoryKey(prefix, path)
          const [file, below] = yield* Effect.all([headOf(path), objects.list({ prefix: directory, limit: 2 })], {
            concurrency: 2
          })
          if (file !== undefined) {
            const claim = yield* claimOf(path)
            if (claim?.seen !== undefined && claim.seen !== file.etag) return yield* Effect.fail(overtaken)
            yield* keepParent(path)
            const condition: Condition =
              claim !== undefined && support.remove ? { _tag: "Match", etag: file.etag } : noCondition
            if (!(yield* objects.remove(fileKey(prefix, path)!, condition, support.form))) return yield* Effect.fail(overtaken)
            return
          }
          if (below.objects.length + below.prefixes.length === 0) return yield* Effect.fail(notFound)
          if (below.objects.some(({ key }) => key !== directory)) return yield* Effect.fail(directoryNotEmpty)
          yield* keepParent(path)
          yield* objects.remove(directory, noCondition, support.form)
        })

  const links: Links = {
    read: (path) =>
      Effect.flatMap(headOf(path), (head) => {
        const target = head && linkOf(head)
        if (target !== undefined) return Effect.succeed(target)
        if (head !== undefined) return Effect.fail(notALink)
        return Effect.flatMap(isDirectory(path), (found) => Effect.fail(found ? notALink : notFound))
      }),
    make: (path, target) => {
      const fault = linkFault(target)
      if (fault !== undefined) return Effect.fail(fault)
      const body = linkBody(target)
      return Effect.asVoid(
        publish(path, "create", support.put, (key, _, condition) =>
          Effect.flatMap(Clock.currentTimeMillis, (modifiedMillis) =>
            putBytes(path, body, condition, key, { link: target, modifiedMillis })
          )
        )
      )
    }
  }

  const setAttributes = makeSetAttributes({
    settings,
    keyOf,
    headOf,
    isDirectory,
    linkOf,
    readWhole,
    hashOf: (key, head, bytes) => {
      const hash = versions.get(key, head.etag) ?? sha256(bytes)
      return { hash, keep: (etag: string) => versions.set(key, etag, hash) }
    }
  })

  const removeTree = makeRemoveTree({ settings, headOf, keepParent, unreachable })

  const copyFile = makeCopyFile({
    settings,
    keyOf,
    publish,
    attributesAfter,
    statStored,
    keepVersion: (from, key, etag) => {
      const version = versions.get(from.key, from.etag)
      if (version !== undefined) versions.set(key, etag, version)
    }
  })

  const locks = makeLocks()

  const info: Backend["info"] = {
    name: "Bucket",
    root: settings.shownRoot,
    caseSensitive: true,
    readOnly: isReadOnly(settings.rules),
    confinement: "virtual",
    rename: "copy",
    bestEffort: settings.bestEffort
  }

  return {
    info,
    rules: settings.rules,
    locks: { ...locks, claim },
    stat,
    list,
    open,
    write,
    makeDirectory,
    remove,
    rename: () => Effect.fail(crossDevice),
    ...(metadata
      ? {
          links,
          attributes: {
            set: (path, { mode, modifiedAt }) =>
              setAttributes(path, { mode, modifiedMillis: modifiedAt && DateTime.toEpochMillis(modifiedAt) })
          }
        }
      : {}),
    perform: Request.handlers({
      ReadMany: ({ maxBytes, paths }) =>
        Effect.asSome(
          Effect.forEach(
            paths,
            (path) =>
              Effect.catch(readSmall(path, maxBytes), (fault) =>
                fault._tag === "Unavailable" ? Effect.fail(fault) : Effect.succeed(undefined)
              ),
            { concurrency: concurrentReads }
          )
        ),
      RemoveTree: ({ path }) => (path === root ? Request.declined : Effect.asSome(removeTree(path))),
      CopyFile: copyFile
    }),
    explore: parallelExplore({ info, list }, concurrentLists)
  }
}
