/**
 * The SnapshotStore service. The archives are the only state, so each call reads them again.
 *
 * Only manifests are cached, for as long as the file's stamp is unchanged.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Buffer } from "../../runtime/buffer.ts"
import { isBytes } from "../../model/bytes.ts"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { type Fault, promote, type ReadError } from "../../model/FsError.ts"
import { compare, root } from "../../model/FsPath.ts"
import { bringBackArchiveOf, importArchiveOf, keepZipOf } from "../Archive.ts"
import { ArchiveError, SnapshotError, SnapshotRestoreError, type StoreFault, storeFault } from "../errors.ts"
import { isPermitted } from "../replace.ts"
import { type DirectoryNode, emptyDirectory, forEachDifference } from "../tree.ts"
import { make as makeView } from "../view.ts"
import type { Manifest } from "../zip/manifest.ts"
import * as Outside from "../zip/outside.ts"
import type { Archived } from "../zip/reader.ts"
import { whyInvalidId } from "./names.ts"
import { contentsOf, manifestOf } from "./opened.ts"
import type { Operations, SnapshotInfo, TreeEntry } from "./operations.ts"
import type { Archive, SnapshotDirectory } from "./shelf.ts"

const quoteId = (id: string): string =>
  typeof id === "string" ? JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id) : `what is of type ${typeof id}`

export const toError =
  (operation: string) =>
  ({ detail, reason }: StoreFault): SnapshotError =>
    new SnapshotError({ operation, reason, detail })

const isStoreFault = (problem: { readonly _tag: string }): problem is StoreFault => problem._tag === "StoreFault"

const checkId = (operation: string, id: string): Effect.Effect<void, SnapshotError> => {
  const why = whyInvalidId(id)
  if (why === undefined) return Effect.void
  return Effect.fail(toError(operation)(storeFault("refused", `${quoteId(id)} cannot be the id of a snapshot: ${why}`)))
}

/** Keeps an ArchiveError for an invalid archive, and converts a fault of its file to a SnapshotError. */
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

/** The errors that prevent every read. Skipping the archive would report it as absent. */
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

export interface Contents extends Archived {
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

/** Returns a text for an error, even if an untyped program passed another value. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : typeof value)

export const make = (fs: Algebra, shelf: SnapshotDirectory, replacesExisting: boolean): Operations => {
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

  /** Returns `nothing` if the directory is refused: such a directory contains no snapshots of ours. */
  const orIfRefused = <A>(effect: Effect.Effect<A, StoreFault>, fallback: A): Effect.Effect<A> =>
    Effect.catch(effect, (fault) =>
      fault.reason === "refused" ? Effect.succeed(fallback) : Effect.die(toError("SnapshotStore")(fault))
    )

  const find = (id: string): Effect.Effect<Archive | undefined, StoreFault> =>
    whyInvalidId(id) === undefined ? shelf.find(id) : Effect.succeed(undefined)

  const get = (id: string): Effect.Effect<SnapshotInfo | undefined> =>
    Effect.flatMap(orIfRefused(find(id), undefined), (archive) =>
      archive === undefined ? Effect.succeed(undefined) : Effect.map(readInfo(archive), (found) => found?.info)
    )

  const list = Effect.gen(function* () {
    const archives = yield* orIfRefused(shelf.all, [])
    const all: Array<KnownArchive> = []
    for (const archive of archives) {
      const found = yield* readInfo(archive)
      if (found !== undefined) all.push(found)
    }
    const paths = new Set(archives.map(({ path }) => path))
    for (const path of manifestCache.keys()) if (!paths.has(path)) manifestCache.delete(path)
    return all.sort(compareByCreation).map(({ info }) => info)
  })

  const duplicate = (id: string): StoreFault => storeFault("refused", `there is a snapshot ${quoteId(id)} already`)

  const write = Effect.fnUntraced(function* (id: string, draft: string) {
    yield* Outside.write(
      draft,
      () => keepZipOf(fs),
      (fault) => toError("snapshot")(storeFault("io", promote(fault, "snapshot", shelf.directory).message))
    )
    const manifest = yield* Effect.mapError(manifestOf(draft), toArchiveFailure("snapshot"))
    yield* Effect.mapError(shelf.checkOwn(id), toError("snapshot"))
    const archive = yield* Effect.mapError(shelf.publish(draft, id, replacesExisting), toError("snapshot"))
    if (archive === undefined) return yield* Effect.fail(toError("snapshot")(duplicate(id)))
    return infoOf(archive, manifest)
  })

  const snapshot = Effect.fnUntraced(function* (id: string) {
    yield* checkId("snapshot", id)
    yield* Effect.mapError(shelf.prepare, toError("snapshot"))
    const idExists = !replacesExisting && (yield* Effect.mapError(shelf.find(id), toError("snapshot"))) !== undefined
    if (idExists) return yield* Effect.fail(toError("snapshot")(duplicate(id)))
    // Fail early, before reading all files. The check is repeated before the archive is replaced.
    yield* Effect.mapError(shelf.checkOwn(id), toError("snapshot"))
    return yield* Effect.scoped(Effect.flatMap(shelf.draft, (draft) => write(id, draft)))
  })

  const restoreFrom = Effect.fnUntraced(function* (
    snapshotId: string,
    find: Effect.Effect<string, SnapshotRestoreError>,
    importFrom: typeof importArchiveOf
  ) {
    const refuse = toRestoreError(snapshotId)
    if (!isPermitted(fs.port)) {
      return yield* Effect.fail(refuse("readOnly", "restoring needs permission to write and to delete"))
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
    directory: shelf.directory,
    snapshot,
    rollback: (id) => restoreFrom(textOf(id), findArchivePath(id), bringBackArchiveOf),
    restore: (archivePath) =>
      restoreFrom(
        textOf(archivePath),
        typeof archivePath === "string"
          ? Effect.succeed(archivePath)
          : Effect.fail(toRestoreError(textOf(archivePath))("incompatible", "it is no path")),
        importArchiveOf
      ),
    get,
    list,
    delete: (id) =>
      Effect.andThen(
        checkId("delete", id),
        Effect.mapError(
          Effect.flatMap(shelf.find(id), (archive) =>
            archive === undefined ? Effect.succeed(false) : Effect.andThen(shelf.checkOwn(id), shelf.remove(id))
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
