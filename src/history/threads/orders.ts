/** The orders that threads carry out, and what they report. */

/** The fields of a stamp, in this order: size, permission bits, mtimeMs, ctimeMs and inode. */
export const stampLength = 5

/** Files of one directory. */
export interface Place {
  /** A path of the directory through which no other process can lead a name elsewhere. */
  readonly base: string
  /** The names, joined by "/". */
  readonly names: string
}

export interface CaptureOrder {
  readonly _tag: "Capture"
  readonly places: ReadonlyArray<Place>
  /** The stamps that the files must have before and after they are read. */
  readonly stamps: Float64Array
  /** The id with which a file needs no object, or "". */
  readonly knownIds: ReadonlyArray<string>
  readonly refusesHardlinks: boolean
  /** Encodes the objects; otherwise the files are only hashed. */
  readonly isEncoding: boolean
}

export interface CaptureReport {
  readonly _tag: "Captured"
  /** The id of each file, or "" for a file that could not be opened or has another stamp. */
  readonly ids: ReadonlyArray<string>
  /** The end of each object in `bytes`: the same as the one before for a file without an object. */
  readonly ends: Uint32Array<ArrayBuffer>
  readonly crcs: Uint32Array<ArrayBuffer>
  readonly bytes: Uint8Array<ArrayBuffer>
}

export interface CompareOrder {
  readonly _tag: "Compare"
  /** The path of the root. */
  readonly base: string
  /** The disk of the root. Entries of other disks count as changed. */
  readonly device: number
  /** A directory in each element: its path and the names in it, joined by line feeds. */
  readonly directories: ReadonlyArray<string>
  /** The stamps of each directory and of its names. The size of a directory is not compared. */
  readonly stamps: Float64Array
}

/** A directory has another stamp, or only names with other stamps, or everything is the same. */
export const directoryStates = { other: 0, otherNames: 1, same: 2 } as const

export interface CompareReport {
  readonly _tag: "Compared"
  /** One value of `directoryStates` per directory, in the order of `CompareOrder.directories`. */
  readonly states: Uint8Array<ArrayBuffer>
}

export interface DeflateOrder {
  readonly _tag: "Deflate"
  readonly level: number
  /** The smallest content that is compressed. */
  readonly minBytes: number
  /** Contents one after another, with the end of each. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array
}

export interface DeflateReport {
  readonly _tag: "Deflated"
  /** The compressed contents, with the end of each. A content that would not be shorter is as it was. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array<ArrayBuffer>
  /** The CRC-32 of each content. */
  readonly crcs: Uint32Array<ArrayBuffer>
}

export interface InflateOrder {
  readonly _tag: "Inflate"
  /** Compressed contents one after another, with the end of each. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array
  /** The size and CRC-32 of each content, and whether it is compressed. */
  readonly sizes: Uint32Array
  readonly crcs: Uint32Array
  readonly isDeflated: Uint8Array
}

export interface InflateReport {
  readonly _tag: "Inflated"
  /** The id of each content, or "" for one that is not as recorded. */
  readonly ids: ReadonlyArray<string>
}

export type Order = CaptureOrder | CompareOrder | DeflateOrder | InflateOrder
export type Report =
  | CaptureReport
  | CompareReport
  | DeflateReport
  | InflateReport
  | { readonly _tag: "Failed"; readonly detail: string }
