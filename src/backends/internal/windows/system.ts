/**
 * Adapts `node:fs` to a Windows disk without losing names.
 *
 * A name that is not well-formed text is passed as bytes, which Node preserves. Such names are rare, and each call
 * checks for them. A listing whose text has lost something is read again as bytes.
 */
import { Fs } from "../../../runtime/node.ts"
import type { WindowsDisk, WindowsEntry } from "./disk.ts"
import { fromBytes, toBytes } from "./keys.ts"

const replacementCharacter = "\ufffd"

/**
 * A drive's top directory with the prefix. Node removes the final backslash, and the rest would denote the volume
 * itself.
 */
const topOfDrive = /^\\\\\?\\([a-z]:\\)$/i

/** Returns the exact form of a path. Bytes are typed as text, because Node accepts both. */
const exactPath = (path: string): string => {
  if (!path.isWellFormed()) return toBytes(path) as unknown as string
  return topOfDrive.exec(path)?.[1] ?? path
}

const textOptions = { withFileTypes: true } as const
const byteOptions = { withFileTypes: true, encoding: "buffer" } as const

const toEntry = (entry: Fs.Dirent<Buffer>): WindowsEntry => ({
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
  fsyncSync: Fs.fsyncSync,
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
  readlinkSync: (path) => Fs.readlinkSync(exactPath(path)),
  chmodSync: (path, mode) => Fs.chmodSync(exactPath(path), mode),
  utimesSync: (path, accessed, modified) => Fs.utimesSync(exactPath(path), accessed, modified),
  futimesSync: Fs.futimesSync
}
