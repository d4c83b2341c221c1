/**
 * Adapts `node:fs` to a Windows disk without losing names.
 *
 * A name that is not well-formed text is passed as bytes, which Node preserves. Such names are rare, and each call
 * checks for them. A listing whose text has lost something is read again as bytes.
 */
import { Fs } from "../../../runtime/node.ts"
import type { WindowsDisk, WindowsEntry } from "./disk.ts"
import { fromBytes, toBytes } from "./keys.ts"

const lost = "\ufffd"

/**
 * A drive's top directory with the prefix. Node removes the final backslash, and the rest would denote the volume
 * itself.
 */
const topOfDrive = /^\\\\\?\\([a-z]:\\)$/i

/** Returns the exact form of a path. Bytes are typed as text, because Node accepts both. */
const exact = (path: string): string => {
  if (!path.isWellFormed()) return toBytes(path) as unknown as string
  return topOfDrive.exec(path)?.[1] ?? path
}

const asked = { withFileTypes: true } as const
const askedForBytes = { withFileTypes: true, encoding: "buffer" } as const

const named = (entry: Fs.Dirent<Buffer>): WindowsEntry => ({
  name: fromBytes(entry.name),
  isFile: () => entry.isFile(),
  isDirectory: () => entry.isDirectory(),
  isSymbolicLink: () => entry.isSymbolicLink()
})

const isWhole = (entries: ReadonlyArray<WindowsEntry>): boolean => entries.every(({ name }) => !name.includes(lost))

export const system: WindowsDisk = {
  lstatSync: (path, options) => Fs.lstatSync(exact(path), options),
  fstatSync: Fs.fstatSync,
  realpathSync: { native: (path) => Fs.realpathSync.native(exact(path)) },
  readdirSync: (path) => {
    const entries = Fs.readdirSync(exact(path), asked)
    return isWhole(entries) ? entries : Fs.readdirSync(exact(path), askedForBytes).map(named)
  },
  readdir: (path, _, done) => {
    Fs.readdir(exact(path), asked, (error, entries) => {
      if (error !== null || isWhole(entries)) return done(error, entries)
      Fs.readdir(exact(path), askedForBytes, (error, entries) => done(error, error === null ? entries.map(named) : []))
    })
  },
  openSync: (path, flags, mode) => Fs.openSync(exact(path), flags, mode),
  closeSync: Fs.closeSync,
  readSync: Fs.readSync,
  writeSync: Fs.writeSync,
  fsyncSync: Fs.fsyncSync,
  ftruncateSync: Fs.ftruncateSync,
  read: Fs.read,
  write: Fs.write,
  fsync: Fs.fsync,
  mkdirSync: (path) => void Fs.mkdirSync(exact(path)),
  rmdirSync: (path) => Fs.rmdirSync(exact(path)),
  unlinkSync: (path) => Fs.unlinkSync(exact(path)),
  renameSync: (from, to) => Fs.renameSync(exact(from), exact(to)),
  linkSync: (existing, path) => Fs.linkSync(exact(existing), exact(path)),
  symlinkSync: (target, path, type) => Fs.symlinkSync(target, exact(path), type),
  readlinkSync: (path) => Fs.readlinkSync(exact(path)),
  chmodSync: (path, mode) => Fs.chmodSync(exact(path), mode),
  utimesSync: (path, accessed, modified) => Fs.utimesSync(exact(path), accessed, modified),
  futimesSync: Fs.futimesSync
}
