/** The system calls of a journal's writer, so that a test can make them fail. */
import { Fs } from "../../runtime/node.ts"

export interface Disk {
  /** Appends in one call and returns the number of bytes written. */
  readonly write: (descriptor: number, bytes: Uint8Array) => number
  readonly writeAsync: (descriptor: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void) => void
  readonly sync: (descriptor: number, done: (error: Error | null) => void) => void
  readonly truncate: (descriptor: number, size: number) => void
  /** Returns the file's size; `undefined` if the file was deleted. */
  readonly size: (descriptor: number) => number | undefined
}

export const realDisk: Disk = {
  write: (descriptor, bytes) => Fs.writeSync(descriptor, bytes),
  writeAsync: (descriptor, bytes, done) => Fs.write(descriptor, bytes, 0, bytes.length, null, done),
  sync: (descriptor, done) => Fs.fsync(descriptor, done),
  truncate: (descriptor, size) => Fs.ftruncateSync(descriptor, size),
  size: (descriptor) => {
    const { nlink, size } = Fs.fstatSync(descriptor)
    return nlink === 0 ? undefined : size
  }
}
