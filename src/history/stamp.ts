/** The metadata that shows a later scan whether the file has changed. */
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
