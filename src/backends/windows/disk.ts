/** The calls to a Windows disk. Few bytes are read or written synchronously; more bytes go through the thread pool. */
import { makeTransfers, type Transfers } from "../posix/read.ts"
import type * as Effect from "effect/Effect"
import type * as Fs from "node:fs"
import type { Fault } from "../../model/FsError.ts"
import { Fs as FsType } from "../../runtime/node.ts"
import { attempt, awaitCall, retryTransient } from "./errors.ts"
import { fromBytes, toBytes } from "./names.ts"

// The functions of `node:fs` that the Windows host calls, with exactly the signatures that it uses. Tests simulate a disk
// with these functions.
//
// Flags are the `constants` of `node:fs`. Windows has no O_NOFOLLOW, so opening a path follows symlinks.

/** The stats of an entry. They are bigints, because NTFS file numbers have 64 bits. Times are whole milliseconds. */
export type WindowsStats = Pick<
  Fs.BigIntStats,
  "dev" | "ino" | "mode" | "nlink" | "size" | "mtimeMs" | "birthtimeMs" | "isFile" | "isDirectory" | "isSymbolicLink"
>

export type WindowsEntry = Pick<Fs.Dirent, "name" | "isFile" | "isDirectory" | "isSymbolicLink">

type Done = (error: Error | null, count: number) => void

export interface WindowsDisk {
  /** Returns `undefined` if the path does not exist or lies below a file. */
  readonly lstatSync: (
    path: string,
    options: { readonly bigint: true; readonly throwIfNoEntry: false }
  ) => WindowsStats | undefined
  readonly fstatSync: (descriptor: number, options: { readonly bigint: true }) => WindowsStats
  readonly realpathSync: { readonly native: (path: string) => string }
  readonly readdirSync: (path: string, options: { readonly withFileTypes: true }) => Array<WindowsEntry>
  readonly readdir: (
    path: string,
    options: { readonly withFileTypes: true },
    done: (error: Error | null, entries: Array<WindowsEntry>) => void
  ) => void

  readonly openSync: (path: string, flags: number, mode?: number) => number
  readonly closeSync: (descriptor: number) => void
  readonly readSync: (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number) => number
  /** `position` is null if the file was opened to append. */
  readonly writeSync: (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number | null) => number
  readonly fsyncSync: (descriptor: number) => void
  readonly ftruncateSync: (descriptor: number, length: number) => void
  readonly read: (descriptor: number, bytes: Uint8Array, at: number, length: number, position: number, done: Done) => void
  readonly write: (
    descriptor: number,
    bytes: Uint8Array,
    at: number,
    length: number,
    position: number | null,
    done: Done
  ) => void
  readonly fsync: (descriptor: number, done: (error: Error | null) => void) => void

  readonly mkdirSync: (path: string) => void
  readonly rmdirSync: (path: string) => void
  readonly unlinkSync: (path: string) => void
  readonly renameSync: (from: string, to: string) => void
  readonly linkSync: (existing: string, path: string) => void
  readonly symlinkSync: (target: string, path: string, type: "file" | "dir" | "junction") => void
  readonly readlinkSync: (path: string) => string
  /** Sets the mode. Windows stores only the bit 0o200; without this bit, the file is read-only. */
  readonly chmodSync: (path: string, mode: number) => void
  /** Sets the times, in seconds since 1970 with fractions. */
  readonly utimesSync: (path: string, accessed: number, modified: number) => void
  readonly futimesSync: (descriptor: number, accessed: number, modified: number) => void
}

// Adapts `node:fs` to a Windows disk without losing names.
//
// A name that is not well-formed text is passed as bytes, which Node preserves. Such names are rare, and each call
// checks for them. If the text of a listing may be lossy, the listing is read again as bytes.

const replacementCharacter = "\ufffd"

/**
 * A pattern for the root directory of a drive with the prefix `\\?\`. Node removes the final backslash, and the
 * remaining path would mean the volume itself.
 */
const topOfDrive = /^\\\\\?\\([a-z]:\\)$/i

/**
 * Returns the path in the form that Node passes on unchanged. The form may be bytes, although its type is string,
 * because Node accepts both.
 */
const exactPath = (path: string): string => {
  if (!path.isWellFormed()) return toBytes(path) as unknown as string
  return topOfDrive.exec(path)?.[1] ?? path
}

const textOptions = { withFileTypes: true } as const
const byteOptions = { withFileTypes: true, encoding: "buffer" } as const

const toEntry = (entry: FsType.Dirent<Buffer>): WindowsEntry => ({
  name: fromBytes(entry.name),
  isFile: () => entry.isFile(),
  isDirectory: () => entry.isDirectory(),
  isSymbolicLink: () => entry.isSymbolicLink()
})

const isWhole = (entries: ReadonlyArray<WindowsEntry>): boolean =>
  entries.every(({ name }) => !name.includes(replacementCharacter))

export const system: WindowsDisk = {
  lstatSync: (path, options) => FsType.lstatSync(exactPath(path), options),
  fstatSync: FsType.fstatSync,
  realpathSync: { native: (path) => FsType.realpathSync.native(exactPath(path)) },
  readdirSync: (path) => {
    const entries = FsType.readdirSync(exactPath(path), textOptions)
    return isWhole(entries) ? entries : FsType.readdirSync(exactPath(path), byteOptions).map(toEntry)
  },
  readdir: (path, _, done) => {
    FsType.readdir(exactPath(path), textOptions, (error, entries) => {
      if (error !== null || isWhole(entries)) return done(error, entries)
      FsType.readdir(exactPath(path), byteOptions, (error, entries) => done(error, error === null ? entries.map(toEntry) : []))
    })
  },
  openSync: (path, flags, mode) => FsType.openSync(exactPath(path), flags, mode),
  closeSync: FsType.closeSync,
  readSync: FsType.readSync,
  writeSync: FsType.writeSync,
  fsyncSync: FsType.fsyncSync,
  ftruncateSync: FsType.ftruncateSync,
  read: FsType.read,
  write: FsType.write,
  fsync: FsType.fsync,
  mkdirSync: (path) => void FsType.mkdirSync(exactPath(path)),
  rmdirSync: (path) => FsType.rmdirSync(exactPath(path)),
  unlinkSync: (path) => FsType.unlinkSync(exactPath(path)),
  renameSync: (from, to) => FsType.renameSync(exactPath(from), exactPath(to)),
  linkSync: (existing, path) => FsType.linkSync(exactPath(existing), exactPath(path)),
  symlinkSync: (target, path, type) => FsType.symlinkSync(target, exactPath(path), type),
  readlinkSync: (path) => FsType.readlinkSync(exactPath(path)),
  chmodSync: (path, mode) => FsType.chmodSync(exactPath(path), mode),
  utimesSync: (path, accessed, modified) => FsType.utimesSync(exactPath(path), accessed, modified),
  futimesSync: FsType.futimesSync
}

export const transfersOf = (disk: WindowsDisk): Transfers =>
  makeTransfers(disk, attempt, (start) => retryTransient(awaitCall(start)))

/** Flushes the bytes to disk. Never retries: after a failure, it is unknown which bytes were written. */
export const flush = (disk: WindowsDisk, descriptor: number): Effect.Effect<void, Fault> =>
  awaitCall<void>((end) => disk.fsync(descriptor, (error) => end(error, undefined)))

/** Closes a descriptor and ignores errors. Use this function only if a failed close cannot lose written data. */
export const closeQuietly = (disk: WindowsDisk, descriptor: number): void => {
  try {
    disk.closeSync(descriptor)
  } catch {
    // The descriptor is closed despite the error.
  }
}

/** Removes a hidden file and ignores errors. A file that remains is a leftover, which a later sweep removes. */
export const unlinkQuietly = (disk: WindowsDisk, at: string): void => {
  try {
    disk.unlinkSync(at)
  } catch {
    // The file is already gone, or a later sweep removes it.
  }
}
