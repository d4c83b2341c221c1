/** The messages between the program and its threads. An order gives work to a thread, and a report is the answer. */

/** The number of fields of a stamp: size, permission bits, mtimeMs, ctimeMs and inode, in this order. */
export const stampLength = 5

/** Files of one directory. */
export interface Place {
  /** A path to the directory that stays valid if another process moves or replaces the directory. */
  readonly base: string
  /** The names of the files, joined by "/". */
  readonly names: string
}

export interface CaptureOrder {
  readonly _tag: "Capture"
  readonly places: ReadonlyArray<Place>
  /** The stamps that the files must have before and after they are read. */
  readonly stamps: Float64Array
  /** For each file, the id that it had when it was last stored, or "". A file that still has this id is not encoded again. */
  readonly knownIds: ReadonlyArray<string>
  readonly refusesHardlinks: boolean
  /** True to encode the objects. If false, the files are only hashed. */
  readonly isEncoding: boolean
}

export interface CaptureReport {
  readonly _tag: "Captured"
  /** The id of each file, or "" if the file was not read, has refused hard links, or has another stamp than the order. */
  readonly ids: ReadonlyArray<string>
  /**
   * The offset in `bytes` at which each object ends. For a file without an object, the offset is the end of the
   * previous object.
   */
  readonly ends: Uint32Array<ArrayBuffer>
  /** The CRC-32 of each object. */
  readonly crcs: Uint32Array<ArrayBuffer>
  readonly bytes: Uint8Array<ArrayBuffer>
}

export interface CompareOrder {
  readonly _tag: "Compare"
  /** The path of the root. */
  readonly base: string
  /** The device number of the root. Entries on other devices count as changed. */
  readonly device: number
  /** One text per directory: the path, and the names of the files and links in it, joined by line feeds. */
  readonly directories: ReadonlyArray<string>
  /**
   * The stamp of each directory, followed by the stamps of its files and links. The size of a directory is not
   * compared.
   */
  readonly stamps: Float64Array
}

/**
 * The result of a comparison. `other`: the stamp of the directory differs. `otherNames`: only the stamp of an entry
 * differs. `same`: all stamps are equal.
 */
export const directoryStates = { other: 0, otherNames: 1, same: 2 } as const

export interface CompareReport {
  readonly _tag: "Compared"
  /** One value of `directoryStates` per directory, in the order of `CompareOrder.directories`. */
  readonly states: Uint8Array<ArrayBuffer>
}

export interface PackOrder {
  readonly _tag: "Pack"
  readonly places: ReadonlyArray<Place>
  /** The size of the largest file that is packed, in bytes. */
  readonly maxBytes: number
  readonly refusesHardlinks: boolean
}

export interface PackReport {
  readonly _tag: "Packed"
  /** The permission bits of each file, or -1 for a file that was not packed. */
  readonly modes: Int32Array<ArrayBuffer>
  /** The size of each content without compression, in bytes. */
  readonly sizes: Uint32Array<ArrayBuffer>
  /** The concatenated results, as in `DeflateReport`. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array<ArrayBuffer>
  /** The CRC-32 of each content. */
  readonly crcs: Uint32Array<ArrayBuffer>
}

export interface DeflateOrder {
  readonly _tag: "Deflate"
  /** The concatenated contents. `ends` contains the offset at which each content ends. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array
}

export interface DeflateReport {
  readonly _tag: "Deflated"
  /**
   * The concatenated results. `ends` contains the offset at which each result ends. A content that compression does not
   * shorten is unchanged.
   */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array<ArrayBuffer>
  /** The CRC-32 of each content. */
  readonly crcs: Uint32Array<ArrayBuffer>
}

export interface InflateOrder {
  readonly _tag: "Inflate"
  /** The concatenated contents, compressed or not. `ends` contains the offset at which each content ends. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array
  /** The size of each content without compression, in bytes. */
  readonly sizes: Uint32Array
  /** The CRC-32 of each content without compression. */
  readonly crcs: Uint32Array
  /** One flag per content, which is 1 if the content is compressed. */
  readonly isDeflated: Uint8Array
}

export interface InflateReport {
  readonly _tag: "Inflated"
  /** The id of each content, or "" for a content with a wrong size or CRC-32. */
  readonly ids: ReadonlyArray<string>
}

export interface UnpackOrder {
  readonly _tag: "Unpack"
  readonly places: ReadonlyArray<Place>
  /** The permission bits of each file, or -1 to use the umask. */
  readonly modes: Int32Array
  /** A part of the archive. `starts` and `ends` contain the offsets of each content in this part. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  /** The size of each content without compression, in bytes. */
  readonly sizes: Uint32Array
  /** The CRC-32 of each content without compression. */
  readonly crcs: Uint32Array
  /** The id of each content, or "" if the id is not known. */
  readonly ids: ReadonlyArray<string>
  /** One flag per content, which is 1 if the content is compressed. */
  readonly isDeflated: Uint8Array
  /** True to compute the SHA-256 of each content. */
  readonly isHashed: boolean
}

export interface UnpackReport {
  readonly _tag: "Unpacked"
  /**
   * The SHA-256 of each content, or "" if no hash was asked for. `undefined` for a file that was not created, because its
   * content is not intact or the disk refused the file.
   */
  readonly hashes: ReadonlyArray<string | undefined>
}

export type Order = CaptureOrder | CompareOrder | PackOrder | DeflateOrder | InflateOrder | UnpackOrder
export type Report =
  | CaptureReport
  | CompareReport
  | PackReport
  | DeflateReport
  | InflateReport
  | UnpackReport
  | { readonly _tag: "Failed"; readonly detail: string }
