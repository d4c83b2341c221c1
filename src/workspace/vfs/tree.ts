/**
 * A directory that is or was the filesystem of a session. After a replacement, the old directory is closed and removed when the
 * last call in it has ended.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as PosixHost from "../../backends/PosixHost.ts"
import * as WindowsHost from "../../backends/WindowsHost.ts"
import * as HostRoot from "../../backends/posix/confinement.ts"
import { children } from "../../backends/posix/entries.ts"
import { attempt } from "../../backends/posix/errors.ts"
import { awaitCall, closeQuietly } from "../../runtime/host.ts"
import { type Confined, type HostDirectory, lstatEntry, withPlace } from "../../backends/posix/place.ts"
import { openFile } from "../../backends/posix/read.ts"
import { type Fault, type FsError, toFault } from "../../model/FsError.ts"
import { type FsPath, join, root } from "../../model/FsPath.ts"
import { type Backend, type Child, type Info, keyOf } from "../../port/Backend.ts"
import { Fs, isNode, Path, platform, readLinkBytes } from "../../runtime/node.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import * as Temporary from "../temporary.ts"
import type { Files } from "./files.ts"

// Copies a directory into an empty directory. The copy is confined to the source, because another program may change the source
// at the same time. Files are cloned or copied, never hard-linked. Sockets, FIFOs, devices and unfinished writes are skipped.

/** The number of files that are copied at the same time: the default size of Node's thread pool. */
const concurrency = 4

const inDirectory = <A>(
  confined: Confined,
  path: FsPath,
  use: (place: HostDirectory) => Effect.Effect<A, Fault>
): Effect.Effect<A, Fault> =>
  Effect.acquireUseRelease(
    attempt(() => confined.directory(path)),
    use,
    (place) => Effect.sync(() => place.release())
  )

const isRoot = isNode && process.getuid?.() === 0

/** Keeps the owner of the entry if the process runs as root. Other users can only create files that they own. */
const keepOwner = (at: string | Buffer, { gid, uid }: Fs.Stats): void => {
  if (isRoot && (uid !== 0 || gid !== 0)) Fs.lchownSync(at, uid, gid)
}

const ignoreMissing = <A>(effect: Effect.Effect<A, Fault>): Effect.Effect<A | undefined, Fault> =>
  Effect.catch(effect, (fault) => (fault._tag === "NotFound" ? Effect.succeed(undefined) : Effect.fail(fault)))

const copyFile = (
  source: Confined,
  path: FsPath,
  from: HostDirectory,
  into: HostDirectory,
  segment: string
): Effect.Effect<void, Fault> =>
  Effect.acquireUseRelease(
    ignoreMissing(attempt(() => openFile(source, path, Fs.constants.O_RDONLY, "allow"))),
    (file) => {
      if (file === undefined) return Effect.void
      const at = into.at(segment)
      const sourcePath = source.descriptorPath?.(file.descriptor) ?? from.at(segment)
      const flags = Fs.constants.COPYFILE_FICLONE | Fs.constants.COPYFILE_EXCL
      return Effect.andThen(
        awaitCall<void>((done) => Fs.copyFile(sourcePath, at, flags, (error) => done(error, undefined))),
        attempt(() => {
          keepOwner(at, file.stats)
          Fs.chmodSync(at, file.stats.mode & 0o777)
          Fs.utimesSync(at, file.stats.atimeMs / 1000, file.stats.mtimeMs / 1000)
        })
      )
    },
    (file) => Effect.sync(() => file && closeQuietly(file.descriptor))
  )

const copyLink = (from: HostDirectory, into: HostDirectory, segment: string): Effect.Effect<void, Fault> =>
  attempt((): Fault | undefined => {
    const found = lstatEntry(from.at(segment))
    if (found?.isSymbolicLink() !== true) return { _tag: "NotFound" }
    const at = into.at(segment)
    Fs.symlinkSync(readLinkBytes(from.at(segment)), at)
    keepOwner(at, found)
    return undefined
  })

interface CopiedDirectory {
  readonly path: FsPath
  readonly stats: Fs.Stats
  readonly subdirectories: ReadonlyArray<FsPath>
}

/** Copies the entries of one directory. Subdirectories are created without entries. */
const copyDirectory = (source: Confined, target: Confined, path: FsPath): Effect.Effect<CopiedDirectory, Fault> =>
  inDirectory(source, path, (from) =>
    inDirectory(target, path, (into) => {
      const subdirectories: Array<FsPath> = []
      const copyChild = (child: Child): Effect.Effect<void, Fault> => {
        const segment = keyOf(child)
        const at = join(path, segment)
        if (child.kind === "file") return copyFile(source, at, from, into, segment)
        if (child.kind === "symlink") return Effect.asVoid(ignoreMissing(copyLink(from, into, segment)))
        if (child.kind === "other") return Effect.void
        return attempt(() => {
          Fs.mkdirSync(into.at(segment), { mode: 0o700 })
          subdirectories.push(at)
        })
      }
      return Effect.map(
        Effect.flatMap(children(from), (all) =>
          Effect.forEach(
            all.filter(({ name }) => !TemporaryNames.isInProgress(name)),
            copyChild,
            { concurrency, discard: true }
          )
        ),
        (): CopiedDirectory => ({ path, stats: from.stats, subdirectories })
      )
    })
  )

const applyDirectoryMode = (target: Confined, { path, stats }: CopiedDirectory): Effect.Effect<void, Fault> =>
  attempt(() =>
    withPlace(target.directory(path), ({ directory }) => {
      keepOwner(directory, stats)
      Fs.chmodSync(directory, stats.mode & 0o777)
    })
  )

const copyConfined = (from: string, to: string): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    const source = yield* HostRoot.openScoped(from)
    const target = yield* HostRoot.openScoped(to)
    const levels: Array<CopiedDirectory> = []
    const paths = [root]
    for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
      const copied = copyDirectory(source, target, path)
      // Skip a directory that was removed during the copy.
      const level = yield* path === root ? copied : ignoreMissing(copied)
      if (level === undefined) continue
      levels.push(level)
      paths.push(...level.subdirectories)
    }
    // Set the modes of the deepest directories first, because a read-only directory cannot receive entries.
    for (const level of levels.reverse()) yield* applyDirectoryMode(target, level)
  }).pipe(Effect.scoped)

/** Copies without confinement, because no other program uses the directory on Windows. */
const copyPlainly = (from: string, to: string): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.tryPromise({
      try: () =>
        Fs.promises.cp(from, to, {
          recursive: true,
          preserveTimestamps: true,
          verbatimSymlinks: true,
          mode: Fs.constants.COPYFILE_FICLONE,
          filter: (path) => !TemporaryNames.isInProgress(Path.basename(path))
        }),
      catch: (cause): Fault => ({ _tag: "IoError", detail: "the directory could not be copied", cause })
    })
  )

/** Copies the tree. Both directories must exist. After a failure or an interruption, the incomplete copy stays. */
export const copyTree: (from: string, to: string) => Effect.Effect<void, Fault> =
  platform === "win32" ? copyPlainly : copyConfined

const makeHost = platform === "win32" ? WindowsHost.make : PosixHost.make

export interface ParentDirectory {
  readonly path: string
  readonly info: Info
  readonly hasAttributes: boolean
}

/** Returns the properties of the parent directory. Fails if the directory cannot be the root of a host filesystem. */
export const readParentDirectory = (directory: string): Effect.Effect<ParentDirectory, FsError> =>
  Effect.scoped(
    Effect.map(makeHost({ root: directory }), ({ attributes, info }) => ({
      path: Fs.realpathSync.native(directory),
      info,
      hasAttributes: attributes !== undefined
    }))
  )

export interface Tree {
  readonly path: string
  readonly port: Backend
  files: Files
  readonly vacatedDirectories: Set<FsPath>
  users: number
  isRetired: boolean
  readonly dispose: Effect.Effect<void>
}

/** Creates a directory, fills it with `fill`, and opens it. If a step fails or `fill` is interrupted, removes the directory. */
export const make = (
  parentScope: Scope.Scope,
  parentDirectory: ParentDirectory,
  files: Files,
  fill: (path: string) => Effect.Effect<void, Fault>
): Effect.Effect<Tree, Fault> =>
  Effect.uninterruptible(
    Effect.flatMap(Temporary.makeFilled(parentScope, parentDirectory.path, "vfs", fill), ({ path, remove: dispose, scope }) =>
      makeHost({ root: path }).pipe(
        Scope.provide(scope),
        Effect.mapBoth({
          onFailure: toFault,
          onSuccess: (port): Tree => ({ path, port, files, vacatedDirectories: new Set(), users: 0, isRetired: false, dispose })
        }),
        Effect.onError(() => dispose)
      )
    )
  )

/** Marks the tree as replaced. Removes the tree now, or when its last call ends. */
export const retire = (tree: Tree): Effect.Effect<void> =>
  Effect.suspend(() => {
    tree.isRetired = true
    return tree.users === 0 ? tree.dispose : Effect.void
  })

export const enter = (tree: Tree): Tree => {
  tree.users++
  return tree
}

export const leave = (tree: Tree): Effect.Effect<void> =>
  Effect.suspend(() => (--tree.users === 0 && tree.isRetired ? tree.dispose : Effect.void))
