/**
 * The calls to a Windows disk. Transfers of at most `maxSyncBytes` are synchronous; larger transfers use the thread pool.
 */
import { makeTransfers, type TransferCalls, type Transfers } from "../posix/read.ts"
import type * as Effect from "effect/Effect"
import type * as NodeFs from "node:fs"
import type { Fault } from "../../model/FsError.ts"
import { Fs } from "../../runtime/node.ts"
import { attempt, awaitCall, retryTransient } from "./errors.ts"
import { fromBytes, toBytes } from "./names.ts"

// The functions of `node:fs` that the Windows host calls, with exactly the signatures that it uses. Tests simulate a disk
// with these functions.
//
// Flags are the `constants` of `node:fs`. Windows has no O_NOFOLLOW, so opening a path follows symlinks.

/** The stats of an entry. The numbers are bigints, because NTFS file numbers have 64 bits. Times are whole milliseconds. */
export type WindowsStats = Pick<
  NodeFs.BigIntStats,
  "dev" | "ino" | "mode" | "nlink" | "size" | "mtimeMs" | "birthtimeMs" | "isFile" | "isDirectory" | "isSymbolicLink"
>

export type WindowsEntry = Pick<NodeFs.Dirent, "name" | "isFile" | "isDirectory" | "isSymbolicLink">

export interface WindowsDisk extends TransferCalls {
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
  readonly ftruncateSync: (descriptor: number, length: number) => void
  readonly fsync: (descriptor: number, done: (error: Error | null) => void) => void

  readonly mkdirSync: (path: string) => void
  readonly rmdirSync: (path: string) => void
  readonly unlinkSync: (path: string) => void
  readonly renameSync: (from: string, to: string) => void
  readonly linkSync: (existing: string, path: string) => void
  readonly symlinkSync: (target: string, path: string, type: "file" | "dir" | "junction") => void
  readonly readlinkSync: (path: string) => string
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

const toEntry = (entry: NodeFs.Dirent<Buffer>): WindowsEntry => ({
  name: fromBytes(entry.name),
  isFile: () => entry.isFile(),
  isDirectory: () => entry.isDirectory(),
  isSymbolicLink: () => entry.isSymbolicLink()
})

const isWhole = (entries: ReadonlyArray<WindowsEntry>): boolean =>
  entries.every(({ name }) => !name.includes(replacementCharacter))

export const system: WindowsDisk = {
  lstatSync: (path, options) => Fs.lstatSync(exactPath(path), options),
  fstatSync: Fs.fstatSync,
  realpathSync: { native: (path) => Fs.realpathSync.native(exactPath(path)) },
  readdirSync: (path) => {
    const entries = Fs.readdirSync(exactPath(path), textOptions)
    return isWhole(entries) ? entries : Fs.readdirSync(exactPath(path), byteOptions).map(toEntry)
  },
  readdir: (path, _, done) => {
    Fs.readdir(exactPath(path), textOptions, (error, entries) => {
      if (error !== null || isWhole(entries)) return done(error, entries)
      Fs.readdir(exactPath(path), byteOptions, (error, entries) => done(error, error === null ? entries.map(toEntry) : []))
    })
  },
  openSync: (path, flags, mode) => Fs.openSync(exactPath(path), flags, mode),
  closeSync: Fs.closeSync,
  readSync: Fs.readSync,
  writeSync: Fs.writeSync,
  ftruncateSync: Fs.ftruncateSync,
  read: Fs.read,
  write: Fs.write,
  fsync: Fs.fsync,
  mkdirSync: (path) => void Fs.mkdirSync(exactPath(path)),
  rmdirSync: (path) => Fs.rmdirSync(exactPath(path)),
  unlinkSync: (path) => Fs.unlinkSync(exactPath(path)),
  renameSync: (from, to) => Fs.renameSync(exactPath(from), exactPath(to)),
  linkSync: (existing, path) => Fs.linkSync(exactPath(existing), exactPath(path)),
  symlinkSync: (target, path, type) => Fs.symlinkSync(target, exactPath(path), type),
  readlinkSync: (path) => Fs.readlinkSync(exactPath(path))
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
