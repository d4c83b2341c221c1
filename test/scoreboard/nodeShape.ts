/**
 * Makes effect's FileSystem from any object with the interface of node:fs, with the calls that `Platform.fromFileSystem` uses. It adds no
 * behaviour: except in `watch`, each call is one call of the object. An error keeps the object's error as its cause.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as PlatformError from "effect/PlatformError"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"

interface Kinds {
  readonly isFile: () => boolean
  readonly isDirectory: () => boolean
  readonly isSymbolicLink: () => boolean
  readonly isFIFO?: () => boolean
}

export interface Stats extends Kinds {
  readonly size: number
  readonly mode: number
  readonly mtime: Date
  readonly atime?: Date
  readonly birthtime?: Date
  readonly uid?: number
  readonly gid?: number
}

export interface OpenFile {
  readonly stat: () => Promise<Stats>
  readonly read: (into: Uint8Array, offset: number, length: number, position: number) => Promise<{ readonly bytesRead: number }>
  readonly close: () => Promise<void>
}

/** The part of node:fs that the scoreboard uses. */
export interface NodeShape {
  readonly promises: {
    readonly access: (path: string) => Promise<void>
    readonly stat: (path: string) => Promise<Stats>
    readonly lstat: (path: string) => Promise<Stats>
    readonly realpath: (path: string) => Promise<string>
    readonly readdir: (
      path: string,
      options: { readonly withFileTypes: true }
    ) => Promise<ReadonlyArray<Kinds & { readonly name: string }>>
    readonly open: (path: string, flags: string) => Promise<OpenFile>
    readonly writeFile: (
      path: string,
      data: Uint8Array,
      options: { readonly flag: string; readonly mode?: number }
    ) => Promise<void>
    readonly appendFile: (path: string, data: Uint8Array) => Promise<void>
    readonly truncate: (path: string, length: number) => Promise<void>
    readonly mkdir: (path: string) => Promise<unknown>
    readonly rename: (from: string, to: string) => Promise<void>
    readonly unlink: (path: string) => Promise<void>
    readonly rmdir: (path: string) => Promise<void>
    readonly readlink: (path: string) => Promise<string>
    readonly symlink: (target: string, path: string) => Promise<void>
    readonly link: (from: string, to: string) => Promise<void>
    readonly chmod: (path: string, mode: number) => Promise<void>
    readonly chown: (path: string, uid: number, gid: number) => Promise<void>
    readonly utimes: (path: string, accessed: Date | number, modified: Date | number) => Promise<void>
  }
  /** Absent if the object reports no changes. */
  readonly watch?: (
    path: string,
    options: { readonly recursive: boolean },
    listener: (event: string, name: string | null) => void
  ) => { readonly close: () => void }
}

const typeOf = (entry: Kinds): FileSystem.File.Type =>
  entry.isFile()
    ? "File"
    : entry.isDirectory()
      ? "Directory"
      : entry.isSymbolicLink()
        ? "SymbolicLink"
        : entry.isFIFO?.() === true
          ? "FIFO"
          : "Unknown"

const infoOf = (stats: Stats): FileSystem.File.Info => ({
  type: typeOf(stats),
  mtime: Option.fromNullishOr(stats.mtime),
  atime: Option.fromNullishOr(stats.atime),
  birthtime: Option.fromNullishOr(stats.birthtime),
  dev: 0n,
  rdev: Option.none(),
  ino: Option.none(),
  mode: stats.mode,
  nlink: Option.none(),
  uid: Option.fromNullishOr(stats.uid),
  gid: Option.fromNullishOr(stats.gid),
  size: ByteSize.bytes(stats.size),
  blksize: Option.none(),
  blocks: Option.none()
})

const call = <A>(method: string, path: string, run: () => Promise<A>): Effect.Effect<A, PlatformError.PlatformError> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      PlatformError.systemError({ module: "FileSystem", method, _tag: "Unknown", pathOrDescriptor: path, cause })
  })

const unused = (method: string): PlatformError.PlatformError =>
  PlatformError.badArgument({ module: "FileSystem", method, description: "the scoreboard does not use this" })

const fileOf = (path: string, file: OpenFile): FileSystem.File => {
  let at = 0
  const read: FileSystem.File["readAlloc"] = (size, options) =>
    Effect.map(
      call("read", path, () => {
        const bytes = new Uint8Array(size)
        return file
          .read(bytes, 0, size, options?.position === undefined ? at : Number(options.position))
          .then(({ bytesRead }) => bytes.subarray(0, bytesRead))
      }),
      (bytes) => {
        if (options?.position === undefined) at += bytes.length
        return bytes.length === 0 ? Option.none() : Option.some(bytes)
      }
    )
  return {
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    stat: Effect.map(
      call("stat", path, () => file.stat()),
      infoOf
    ),
    readAlloc: read,
    seek: () => Effect.fail(unused("seek")),
    sync: Effect.fail(unused("sync")),
    read: () => Effect.fail(unused("read")),
    truncate: () => Effect.fail(unused("truncate")),
    write: () => Effect.fail(unused("write")),
    writeAll: () => Effect.fail(unused("writeAll"))
  }
}

export const fromNodeFs = (shape: NodeShape): FileSystem.FileSystem => {
  const fs = shape.promises
  const watch: FileSystem.FileSystem["watch"] = (path, options) =>
    Stream.callback<FileSystem.WatchEvent, PlatformError.PlatformError>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() =>
          shape.watch!(path, { recursive: options?.recursive === true }, (event, name) => {
            if (name === null) return
            if (event !== "rename") return void Queue.offerUnsafe(queue, { _tag: "Update", path: name })
            void fs.lstat(`${path}/${name}`).then(
              () => Queue.offerUnsafe(queue, { _tag: "Create", path: name }),
              () => Queue.offerUnsafe(queue, { _tag: "Remove", path: name })
            )
          })
        ),
        (watcher) => Effect.sync(() => watcher.close())
      ).pipe(Effect.tap(() => Effect.sync(() => options?.onReady?.())))
    )
  return FileSystem.make({
    access: (path) => call("access", path, () => fs.access(path)),
    stat: (path) =>
      Effect.map(
        call("stat", path, () => fs.stat(path)),
        infoOf
      ),
    lstat: (path) =>
      Effect.map(
        call("lstat", path, () => fs.lstat(path)),
        infoOf
      ),
    realPath: (path) => call("realPath", path, () => fs.realpath(path)),
    readDirectory: () => Effect.fail(unused("readDirectory")),
    readDirectoryEntries: (path) =>
      Effect.map(
        call("readDirectoryEntries", path, () => fs.readdir(path, { withFileTypes: true })),
        (entries) => entries.map((entry) => ({ name: entry.name, type: typeOf(entry) }))
      ),
    open: (path, options) =>
      options?.noFollow === true
        ? Effect.fail(unused("open"))
        : Effect.map(
            Effect.acquireRelease(
              call("open", path, () => fs.open(path, options?.flag ?? "r")),
              (file) => Effect.ignore(call("close", path, () => file.close()))
            ),
            (file) => fileOf(path, file)
          ),
    readFile: () => Effect.fail(unused("readFile")),
    writeFile: (path, data, options) =>
      call("writeFile", path, () =>
        options?.flag === "a"
          ? fs.appendFile(path, data)
          : fs.writeFile(path, data, {
              flag: options?.flag ?? "w",
              ...(options?.mode === undefined ? undefined : { mode: options.mode })
            })
      ),
    truncate: (path, length) => call("truncate", path, () => fs.truncate(path, length ?? 0)),
    makeDirectory: (path) => call("makeDirectory", path, () => fs.mkdir(path)),
    rename: (from, to) => call("rename", from, () => fs.rename(from, to)),
    // `Platform.fromFileSystem` uses `recursive` only for empty directories, and `force` only for files that may be missing.
    remove: (path, options) => call("remove", path, () => (options?.recursive === true ? fs.rmdir(path) : fs.unlink(path))),
    readLink: (path) => call("readLink", path, () => fs.readlink(path)),
    symlink: (target, path) => call("symlink", path, () => fs.symlink(target, path)),
    link: (from, to) => call("link", from, () => fs.link(from, to)),
    chmod: (path, mode) => call("chmod", path, () => fs.chmod(path, mode)),
    chown: (path, uid, gid) => call("chown", path, () => fs.chown(path, uid, gid)),
    utimes: (path, accessed, modified) => call("utimes", path, () => fs.utimes(path, accessed, modified)),
    watch: shape.watch === undefined ? () => Stream.fail(unused("watch")) : watch,
    copy: () => Effect.fail(unused("copy")),
    copyFile: () => Effect.fail(unused("copyFile")),
    makeTempDirectory: () => Effect.fail(unused("makeTempDirectory")),
    makeTempDirectoryScoped: () => Effect.fail(unused("makeTempDirectoryScoped")),
    makeTempFile: () => Effect.fail(unused("makeTempFile")),
    makeTempFileScoped: () => Effect.fail(unused("makeTempFileScoped"))
  })
}
