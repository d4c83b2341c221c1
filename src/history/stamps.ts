/** Stamps of entries on the host. A stamp shows whether an entry has changed since a scan. */
import type { ListedDirectory, StampedChild } from "../port/history.ts"
import type { DirectoryNode, FileNode, LinkNode } from "./tree.ts"

export interface Stamp {
  readonly sizeBytes: number
  readonly mode: number
  readonly modified: number
  readonly changed: number
  readonly inode: number
}

export const stampOf = ({ changed, inode, mode, modified, sizeBytes }: Stamp): Stamp => ({
  sizeBytes,
  mode,
  modified,
  changed,
  inode
})

export const isSameStamp = (a: Stamp, b: Stamp): boolean =>
  a.sizeBytes === b.sizeBytes &&
  a.modified === b.modified &&
  a.changed === b.changed &&
  a.inode === b.inode &&
  a.mode === b.mode

/**
 * Returns `found`, the stamp of a directory in the listing of its parent. Returns `undefined` if the directory that was listed
 * afterwards has another stamp, or is not on the disk `device`. A mount or a rename may then have replaced the directory.
 */
export const listedStamp = (
  found: Stamp | undefined,
  listed: ListedDirectory | undefined,
  device: number | undefined
): Stamp | undefined =>
  found !== undefined && listed?.device === device && listed !== undefined && isSameStamp(found, { ...listed, sizeBytes: 0 })
    ? found
    : undefined

export type StampedNode = (FileNode | LinkNode) & { readonly stamp?: Stamp | undefined }

/** A directory with the stamp that it had before it was listed. A directory without a stamp must be listed again. */
export type StampedDirectory = DirectoryNode & { readonly stamp?: Stamp | undefined }

/**
 * Returns the possible error of a disk's timestamps in milliseconds. If both times are whole seconds, the disk may round them
 * to two seconds.
 */
const clockDelayMillis = ({ changed, modified }: Stamp): number => (changed % 1000 === 0 && modified % 1000 === 0 ? 2000 : 50)

/** Returns the earliest time, in milliseconds since 1970, after which every change of the entry also changes its stamp. */
export const settledAt = (stamp: Stamp): number => Math.max(stamp.changed, stamp.modified) + clockDelayMillis(stamp)

export const writeStamp = (stamps: Float64Array, at: number, stamp: Stamp | StampedChild): void => {
  stamps[at] = stamp.sizeBytes
  stamps[at + 1] = stamp.mode
  stamps[at + 2] = stamp.modified
  stamps[at + 3] = stamp.changed
  stamps[at + 4] = stamp.inode
}
