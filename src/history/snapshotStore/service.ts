/**
 * The SnapshotStore service. The archives are the only state, so each call reads them again.
 *
 * Only manifests are cached. A cached manifest is used while the stamp of the file is unchanged.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { type Fault, type FsError, promote, type ReadError } from "../../model/FsError.ts"
import { compare, type FsPath, root } from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import { isBytes } from "../../model/realms.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { bringBackArchiveOf, importArchiveOf, keepZipOf } from "../Archive.ts"
import { ArchiveError, SnapshotError, SnapshotRestoreError, type StoreFault, storeFault } from "../errors.ts"
import { isPermitted } from "../replace.ts"
import { type DirectoryNode, emptyDirectory, forEachDifference } from "../tree.ts"
import { make as makeView } from "../view.ts"
import * as Codec from "../zip/codec.ts"
import * as ManifestModule from "../zip/manifest.ts"
import type { Manifest } from "../zip/manifest.ts"
import { refuse, tryArchive } from "../zip/names.ts"
import * as Outside from "../zip/hostFile.ts"
import { type Archived, read as readArchive } from "../zip/reader.ts"
import { type CentralEntry, checkLocal, readCentralDirectory, stored, Window } from "../zip/records.ts"
import { fromDescriptor, type Source } from "../zip/spool.ts"
import { type Archive, type SnapshotDirectory, whyInvalidId } from "./directory.ts"

/**
 * The facts about a snapshot, from its manifest and its file.
 *
 * @since 0.1.0
 */
export interface SnapshotInfo {
  readonly snapshotId: string
  /** The absolute path of the archive file. */
  readonly archivePath: string
  /** The number of files and symlinks. */
  readonly fileCount: number
  /** The size of all files and symlink targets in bytes. `archiveBytes` is the size of the archive file. */
  readonly totalBytes: number
  readonly archiveBytes: number
  readonly createdAt: DateTime.Utc
}
/** @since 0.1.0 */
export const SnapshotInfo = Schema.Struct({
  snapshotId: Schema.String,
  archivePath: Schema.String,
  fileCount: Schema.Int,
  totalBytes: Schema.Int,
  archiveBytes: Schema.Int,
  createdAt: Schema.DateTimeUtc
})

/**
 * The options of a SnapshotStore.
 *
 * @since 0.1.0
 */
export interface Options {
  /**
   * The absolute path of the directory. The first snapshot creates the directory, for this user only.
   *
   * An existing directory must belong to this user, must not be a symlink, and must not be writable by everybody. The directory
   * must be outside the root of every open filesystem.
   *
   * @default "fs-algebra-snapshots" in the system's temporary directory
   */
  readonly directory?: string | undefined
  /**
   * The handling of an existing snapshot with the same id. `error` fails with SnapshotError `refused`.
   *
   * @default "replace"
   */
  readonly onDuplicate?: "replace" | "error" | undefined
}

/**
 * A file or a symlink in an archive.
 *
 * @since 0.1.0
 */
export interface TreeEntry {
  readonly path: FsPath
  readonly sizeBytes: number
}

/**
 * The operations of a SnapshotStore.
 *
 * An id is a text of at most 248 bytes. An id must not contain separators or control characters, or consist of dots only.
 * Taking or deleting a snapshot with an invalid id fails with SnapshotError `refused`. All other operations treat an invalid
 * id as unknown.
 *
 * @since 0.1.0
 */
export interface Operations {
  /** The filesystem that is captured and restored. */
  readonly filesystem: Algebra
  /** The absolute path of the directory, which may not exist yet. */
  readonly directory: string
  /**
   * Writes a snapshot, and replaces a snapshot with the same id if `onDuplicate` permits this. A failure keeps the old
   * snapshot.
   */
  readonly snapshot: (id: string) => Effect.Effect<SnapshotInfo, SnapshotError | ArchiveError | FsError>
  /**
   * Restores the tree and returns its number of files and symlinks. After a failure nothing has changed.
   *
   * Fails with SnapshotRestoreError `unknown` if the snapshot does not exist. Fails with `readOnly` if writing or deleting is
   * not permitted.
   */
  readonly rollback: (id: string) => Effect.Effect<number, SnapshotRestoreError | ArchiveError | FsError>
  /** Restores the tree from an archive at any path of this host. */
  readonly restore: (archivePath: string) => Effect.Effect<number, SnapshotRestoreError | ArchiveError | FsError>
  readonly get: (id: string) => Effect.Effect<SnapshotInfo | undefined>
  /** The snapshots in the order of creation. Omits invalid archives. */
  readonly list: Effect.Effect<ReadonlyArray<SnapshotInfo>>
  /** Deletes a snapshot. Returns whether the snapshot existed. */
  readonly delete: (id: string) => Effect.Effect<boolean, SnapshotError>
  readonly manifest: (id: string) => Effect.Effect<Manifest | undefined, SnapshotError | ArchiveError>
  /** Returns the files and symlinks in the snapshot, in path order. Returns an empty list if the snapshot does not exist. */
  readonly tree: (id: string) => Effect.Effect<ReadonlyArray<TreeEntry>, SnapshotError | ArchiveError>
  readonly file: (id: string, path: string) => Effect.Effect<string | undefined, SnapshotError | ArchiveError | FsError>
  /**
   * Returns the tree of the snapshot as a read-only Filesystem that lives as long as the scope. Fails with SnapshotError
   * `unknown` if the snapshot does not exist.
   */
  readonly view: (id: string) => Effect.Effect<Algebra, SnapshotError | ArchiveError, Scope.Scope>
}

const checkContent = ({ crc, size }: CentralEntry, bytes: Uint8Array | undefined): Uint8Array => {
  if (bytes === undefined || bytes.length !== size || Codec.crc32(bytes) !== crc) {
    throw refuse("corrupt", "the content is damaged", ManifestModule.manifestName)
  }
  return bytes
}

const manifestIn = Effect.fnUntraced(function* (
  source: Source
): Effect.fn.Return<ManifestModule.Manifest, ArchiveError | Fault> {
  const { maxArchiveEntries } = yield* Limits
  const { entries } = yield* readCentralDirectory(source, maxArchiveEntries + 1)
  const entry = entries.find(({ name }) => name === ManifestModule.manifestName)
  if (entry === undefined) return yield* Effect.fail(refuse("corrupt", "the archive has no manifest"))
  if (entry.size > ManifestModule.maxManifestBytes || entry.packed > ManifestModule.maxManifestBytes) {
    return yield* Effect.fail(refuse("tooLarge", "the manifest is too large", entry.name))
  }
  const data = yield* checkLocal(new Window(source), entry)
  if (data + entry.packed > source.size) return yield* Effect.fail(refuse("corrupt", "the archive is truncated", entry.name))
  const packed = yield* source.read(data, entry.packed)
  const bytes = entry.method === stored ? packed : yield* Codec.inflate(packed, entry.size)
  return yield* tryArchive(() => ManifestModule.read(checkContent(entry, bytes)))
})

const sourceAt = (path: string): Effect.Effect<Source, Fault, Scope.Scope> =>
  Effect.map(Outside.open(path), ({ descriptor, size }) => fromDescriptor(descriptor, size))

const manifestOf = (path: string): Effect.Effect<ManifestModule.Manifest, ArchiveError | Fault> =>
  Effect.scoped(Effect.flatMap(sourceAt(path), manifestIn))

/**
 * Opens and checks an archive. During the scope, contents come from the opened file, even if the path now belongs to another
 * file.
 */
const contentsOf = (path: string): Effect.Effect<Archived, ArchiveError | Fault, Scope.Scope> =>
  Effect.flatMap(Limits, (limits) =>
    Effect.flatMap(sourceAt(path), (source) => readArchive(source, { limits, policy: undefined }))
  )

const quoteId = (id: string): string =>
  typeof id === "string" ? JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id) : `a value of type ${typeof id}`

export const toError =
  (operation: string) =>
  ({ detail, reason }: StoreFault): SnapshotError =>
    new SnapshotError({ operation, reason, detail })

const isStoreFault = (problem: { readonly _tag: string }): problem is StoreFault => problem._tag === "StoreFault"

const checkId = (operation: string, id: string): Effect.Effect<void, SnapshotError> => {
  const why = whyInvalidId(id)
  if (why === undefined) return Effect.void
  return Effect.fail(toError(operation)(storeFault("refused", `${quoteId(id)} is not a valid snapshot id: ${why}`)))
}

const toArchiveFailure =
  (operation: string) =>
  (problem: ArchiveError | Fault | StoreFault): ArchiveError | SnapshotError => {
    if (problem instanceof ArchiveError) return problem
    if (isStoreFault(problem)) return toError(operation)(problem)
    const { message } = promote(problem, operation, root)
    return toError(operation)(storeFault(problem._tag === "NotFound" ? "unknown" : "io", message))
  }

const toRestoreError =
  (snapshotId: string) =>
  (reason: SnapshotRestoreError["reason"], detail: string): SnapshotRestoreError =>
    new SnapshotRestoreError({ snapshotId, reason, detail })

const restoreReasons: Partial<Record<string, SnapshotRestoreError["reason"]>> = {
  NotFound: "unknown",
  NotADirectory: "unknown",
  NotAFile: "incompatible"
}

/**
 * The codes of errors that prevent all reads. If the store skipped an archive after such an error, the archive would seem to
 * be missing.
 */
const exhaustionCodes: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"])

const isExhausted = (problem: Fault | ArchiveError): boolean =>
  problem._tag === "IoError" && exhaustionCodes.has(problem["code"])

const compareByCreation = (a: KnownArchive, b: KnownArchive): number => {
  const [first, second] = [DateTime.toEpochMillis(a.info.createdAt), DateTime.toEpochMillis(b.info.createdAt)]
  if (first !== second) return first - second
  if (a.archive.stat.mtimeNs !== b.archive.stat.mtimeNs) return a.archive.stat.mtimeNs < b.archive.stat.mtimeNs ? -1 : 1
  return compare(a.archive.id, b.archive.id)
}

interface KnownArchive {
  readonly archive: Archive
  readonly info: SnapshotInfo
}

const infoOf = ({ id, path, stat }: Archive, { createdAt, fileCount, totalBytes, verbatim }: Manifest): SnapshotInfo => ({
  snapshotId: id,
  archivePath: path,
  fileCount: fileCount + (verbatim?.fileCount ?? 0),
  totalBytes: totalBytes + (verbatim?.totalBytes ?? 0),
  archiveBytes: Number(stat.size),
  createdAt
})

const stampOf = ({ ctimeNs, ino, mtimeNs, size }: Archive["stat"]): string => `${ino} ${size} ${mtimeNs} ${ctimeNs}`

const filesIn = (top: DirectoryNode): ReadonlyArray<TreeEntry> => {
  const out: Array<TreeEntry> = []
  forEachDifference(emptyDirectory, top, (path, _, node) => {
    if (node?.kind === "file") out.push({ path, sizeBytes: node.sizeBytes })
    if (node?.kind === "symlink") out.push({ path, sizeBytes: Buffer.byteLength(node.target) })
  })
  return out.sort((a, b) => compare(a.path, b.path))
}

interface Contents extends Archived {
  readonly path: string
}

const toFault = (problem: ArchiveError | Fault): Fault =>
  problem instanceof ArchiveError ? { _tag: "IoError", detail: problem.message } : problem

export const viewOf = ({ content, path, tree }: Contents): Algebra =>
  makeAlgebra(
    makeView({
      name: "Snapshot",
      root: path,
      caseSensitive: true,
      tree,
      content: (path, file) =>
        Effect.mapBoth(content(path, file), {
          onFailure: toFault,
          onSuccess: (bytes) => (isBytes(bytes) ? bytes : Stream.mapError(bytes, toFault))
        })
    })
  )

const orAbsent = (text: Effect.Effect<string, ReadError>): Effect.Effect<string | undefined, ReadError> =>
  Effect.catchTag(text, ["NotFound", "NotAFile"], () => Effect.succeed(undefined))

/** Returns the text of an id. For a value that is not a string, returns the name of its type. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : typeof value)

export const make = (fs: Algebra, snapshotDirectory: SnapshotDirectory, replacesExisting: boolean): Operations => {
  const manifestCache = new Map<string, readonly [stamp: string, manifest: Manifest]>()

  const readInfo = (archive: Archive): Effect.Effect<KnownArchive | undefined> => {
    const stamp = stampOf(archive.stat)
    const before = manifestCache.get(archive.path)
    if (before?.[0] === stamp) return Effect.succeed({ archive, info: infoOf(archive, before[1]) })
    return Effect.matchEffect(manifestOf(archive.path), {
      onSuccess: (manifest) => {
        manifestCache.set(archive.path, [stamp, manifest])
        return Effect.succeed({ archive, info: infoOf(archive, manifest) })
      },
      onFailure: (problem) => {
        manifestCache.delete(archive.path)
        return isExhausted(problem) ? Effect.die(problem) : Effect.succeed(undefined)
      }
    })
  }

  /**
   * Returns `fallback` if the directory is refused, because such a directory contains no snapshots of this store. Any other
   * fault is a defect.
   */
  const orIfRefused = <A>(effect: Effect.Effect<A, StoreFault>, fallback: A): Effect.Effect<A> =>
    Effect.catch(effect, (fault) =>
      fault.reason === "refused" ? Effect.succeed(fallback) : Effect.die(toError("SnapshotStore")(fault))
    )

  const find = (id: string): Effect.Effect<Archive | undefined, StoreFault> =>
    whyInvalidId(id) === undefined ? snapshotDirectory.find(id) : Effect.succeed(undefined)

  const get = (id: string): Effect.Effect<SnapshotInfo | undefined> =>
    Effect.flatMap(orIfRefused(find(id), undefined), (archive) =>
      archive === undefined ? Effect.succeed(undefined) : Effect.map(readInfo(archive), (found) => found?.info)
    )

  const list = Effect.gen(function* () {
    const archives = yield* orIfRefused(snapshotDirectory.all, [])
    const all: Array<KnownArchive> = []
    for (const archive of archives) {
      const found = yield* readInfo(archive)
      if (found !== undefined) all.push(found)
    }
    const paths = new Set(archives.map(({ path }) => path))
    for (const path of manifestCache.keys()) if (!paths.has(path)) manifestCache.delete(path)
    return all.sort(compareByCreation).map(({ info }) => info)
  })

  const duplicate = (id: string): StoreFault => storeFault("refused", `the snapshot ${quoteId(id)} already exists`)

  const write = Effect.fnUntraced(function* (id: string, draft: string) {
    yield* Outside.write(
      draft,
      () => keepZipOf(fs),
      (fault) => toError("snapshot")(storeFault("io", promote(fault, "snapshot", snapshotDirectory.directory).message))
    )
    const manifest = yield* Effect.mapError(manifestOf(draft), toArchiveFailure("snapshot"))
    yield* Effect.mapError(snapshotDirectory.checkOwn(id), toError("snapshot"))
    const archive = yield* Effect.mapError(snapshotDirectory.publish(draft, id, replacesExisting), toError("snapshot"))
    if (archive === undefined) return yield* Effect.fail(toError("snapshot")(duplicate(id)))
    return infoOf(archive, manifest)
  })

  const snapshot = Effect.fnUntraced(function* (id: string) {
    yield* checkId("snapshot", id)
    yield* Effect.mapError(snapshotDirectory.prepare, toError("snapshot"))
    const idExists =
      !replacesExisting && (yield* Effect.mapError(snapshotDirectory.find(id), toError("snapshot"))) !== undefined
    if (idExists) return yield* Effect.fail(toError("snapshot")(duplicate(id)))
    // Check here to fail before all files are read. The check is repeated before the archive is replaced.
    yield* Effect.mapError(snapshotDirectory.checkOwn(id), toError("snapshot"))
    return yield* Effect.scoped(Effect.flatMap(snapshotDirectory.draft, (draft) => write(id, draft)))
  })

  const restoreFrom = Effect.fnUntraced(function* (
    snapshotId: string,
    find: Effect.Effect<string, SnapshotRestoreError>,
    importFrom: typeof importArchiveOf
  ) {
    const refuse = toRestoreError(snapshotId)
    if (!isPermitted(fs.port)) {
      return yield* Effect.fail(refuse("readOnly", "a restore needs permission to write and to delete"))
    }
    const path = yield* find
    yield* Effect.mapError(Effect.scoped(Outside.open(path)), (fault) =>
      refuse(restoreReasons[fault._tag] ?? "io", promote(fault, "restore", path).message)
    )
    return yield* importFrom(fs, path)
  })

  const findArchivePath = (id: string): Effect.Effect<string, SnapshotRestoreError> => {
    const refuse = toRestoreError(textOf(id))
    return Effect.matchEffect(find(id), {
      onFailure: ({ detail, reason }) => Effect.fail(refuse(reason === "refused" ? "unavailable" : "io", detail)),
      onSuccess: (archive) =>
        archive === undefined ? Effect.fail(refuse("unknown", "there is no such snapshot")) : Effect.succeed(archive.path)
    })
  }

  const openContents = (
    operation: string,
    id: string
  ): Effect.Effect<Contents | undefined, SnapshotError | ArchiveError, Scope.Scope> =>
    Effect.mapError(
      Effect.flatMap(find(id), (archive) =>
        archive === undefined
          ? Effect.succeed(undefined)
          : Effect.map(contentsOf(archive.path), (contents): Contents => ({ ...contents, path: archive.path }))
      ),
      toArchiveFailure(operation)
    )

  return {
    filesystem: fs,
    directory: snapshotDirectory.directory,
    snapshot,
    rollback: (id) => restoreFrom(textOf(id), findArchivePath(id), bringBackArchiveOf),
    restore: (archivePath) =>
      restoreFrom(
        textOf(archivePath),
        typeof archivePath === "string"
          ? Effect.succeed(archivePath)
          : Effect.fail(toRestoreError(textOf(archivePath))("incompatible", "the path of the archive is not a string")),
        importArchiveOf
      ),
    get,
    list,
    delete: (id) =>
      Effect.andThen(
        checkId("delete", id),
        Effect.mapError(
          Effect.flatMap(snapshotDirectory.find(id), (archive) =>
            archive === undefined
              ? Effect.succeed(false)
              : Effect.andThen(snapshotDirectory.checkOwn(id), snapshotDirectory.remove(id))
          ),
          toError("delete")
        )
      ),
    manifest: (id) =>
      Effect.mapError(
        Effect.flatMap(find(id), (archive) => (archive === undefined ? Effect.succeed(undefined) : manifestOf(archive.path))),
        toArchiveFailure("manifest")
      ),
    tree: (id) =>
      Effect.scoped(Effect.map(openContents("tree", id), (contents) => (contents === undefined ? [] : filesIn(contents.tree)))),
    file: (id, path) =>
      Effect.scoped(
        Effect.flatMap(openContents("file", id), (contents) =>
          contents === undefined ? Effect.succeed(undefined) : orAbsent(viewOf(contents).readString(path))
        )
      ),
    view: (id) =>
      Effect.flatMap(openContents("view", id), (contents) =>
        contents === undefined
          ? Effect.fail(toError("view")(storeFault("unknown", `there is no snapshot ${quoteId(id)}`)))
          : Effect.succeed(viewOf(contents))
      )
  }
}
