/**
 * `node:fs` as a Windows disk that keeps every name: one that is no well-formed text is given and taken as bytes, which Node passes on as
 * they are. Such names are rare, and each call looks for them; a listing is asked for again where text has shown that it lost something.
 */
import { Fs } from "../../../runtime/node.ts"
import type { WindowsDisk, WindowsEntry } from "./disk.ts"
import { fromBytes, toBytes } from "./keys.ts"

/** What decoders put in the place of what is no text. */
const lost = "\ufffd"

/** Node takes the backslash off its end, and what is left is the volume itself instead of its top directory. */
const topOfDrive = /^\\\\\?\\([a-z]:\\)$/i

/** Typed as text, since Node takes both where it takes a path. */
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
