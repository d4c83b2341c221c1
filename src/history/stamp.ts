/** The metadata of a file by which a later scan knows that it did not change. */
export interface Stamp {
  readonly sizeBytes: number
  readonly mode: number
  readonly modified: number
  readonly changed: number
  readonly inode: number
}

/** Returns the stamp alone. */
export const stampOf = ({ changed, inode, mode, modified, sizeBytes }: Stamp): Stamp => ({
  sizeBytes,
  mode,
  modified,
  changed,
  inode
})

/** Returns whether two stamps tell of the same file in the same state. */
export const isSameStamp = (a: Stamp, b: Stamp): boolean =>
  a.sizeBytes === b.sizeBytes &&
  a.modified === b.modified &&
  a.changed === b.changed &&
  a.inode === b.inode &&
  a.mode === b.mode
