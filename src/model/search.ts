/** The messages between the search engine, the backends and the worker threads that search file contents. */

export interface SearchPattern {
  readonly source: string
  readonly flags: string
  /** The literal text, if the pattern is plain text and the search is case-sensitive. */
  readonly literal: string | undefined
  readonly multiline: boolean
}

/** Literal texts. Each matching line contains at least one of these texts. With `fold`, ASCII letters match in either case. */
export interface Needles {
  readonly texts: ReadonlyArray<string>
  readonly fold: boolean
}

export interface Query {
  readonly pattern: SearchPattern
  readonly needles: Needles | undefined
  readonly maxMatches: number
  /** The size limit of a file in bytes; larger files are skipped. */
  readonly maxBytes: number
  readonly includesText: boolean
  /** The time that the pattern may spend on one file, in milliseconds; Infinity for a literal text. */
  readonly patternBudgetMillis: number
}

export interface LineMatch {
  readonly lineNumber: number
  readonly lineContent: string
  readonly matchStart: number
  readonly matchEnd: number
}

/** The reason why a file was skipped; "gone" means that the file no longer exists. */
export type SkipReason = "binary" | "tooLarge" | "unreadable" | "gone"

/** The results of a search in a few buffers. */
export interface PackedMatches {
  /**
   * The number of matching lines of each file, or -1 for `binary`, -2 for `tooLarge`, -3 for `unreadable`, -4 for
   * `gone`. If the request was cancelled, the last files have no number.
   */
  readonly files: Int32Array<ArrayBuffer>
  /** Four numbers per match: line number, `matchStart`, `matchEnd`, and the offset in `bytes` at which the line ends. */
  readonly meta: Int32Array<ArrayBuffer>
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly isAscii: boolean
  /** The text of each file with matches, in order. `undefined` if the query does not request texts. */
  readonly texts: ReadonlyArray<string> | undefined
}
