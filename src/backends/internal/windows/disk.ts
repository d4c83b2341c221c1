/**
 * The functions of `node:fs` that the Windows host calls, in the exact form in which it calls them, so that tests can
 * simulate a disk.
 *
 * Flags are the `constants` of `node:fs`. Windows has no O_NOFOLLOW, so opening a path follows links.
 */
import type * as Fs from "node:fs"

/** Bigints, because NTFS file numbers have 64 bits. Times are whole milliseconds. */
export type WindowsStats = Pick<
  Fs.BigIntStats,
  "dev" | "ino" | "mode" | "nlink" | "size" | "mtimeMs" | "birthtimeMs" | "isFile" | "isDirectory" | "isSymbolicLink"
>

export type WindowsEntry = Pick<Fs.Dirent, "name" | "isFile" | "isDirectory" | "isSymbolicLink">

type Done = (error: Error | null, count: number) => void

export interface WindowsDisk {
  /** Returns `undefined` if nothing exists, also below a file. */
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
  /** Windows keeps one bit of the mode: without 0o200 the file is read-only. */
  readonly chmodSync: (path: string, mode: number) => void
  /** Seconds since 1970 with fractions. */
  readonly utimesSync: (path: string, accessed: number, modified: number) => void
  readonly futimesSync: (descriptor: number, accessed: number, modified: number) => void
}
