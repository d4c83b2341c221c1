/** What is asked of the text of a file, and what is answered: between the engine, the backends and the threads that do the work. */

/** An expression, ready to be compiled. */
export interface Question {
  readonly source: string
  readonly flags: string
  /** The text itself, where the pattern is nothing but text in this case. */
  readonly literal: string | undefined
  readonly multiline: boolean
}

/** Every line that matches holds one of these texts; with `fold` letters of ASCII count in both cases. */
export interface Needles {
  readonly texts: ReadonlyArray<string>
  readonly fold: boolean
}

export interface Query {
  readonly question: Question
  readonly needles: Needles | undefined
  /** Lines with a match per file, at the most. */
  readonly most: number
  /** Larger files are not read. */
  readonly maxBytes: number
  /** Whether the text of a file in which something was found is answered too. */
  readonly withText: boolean
  /** Milliseconds that the pattern may work on one file; Infinity where it is known to be quick. */
  readonly budget: number
}

/** The first match of a line. */
export interface Found {
  /** 1-based. */
  readonly lineNumber: number
  readonly lineContent: string
  readonly matchStart: number
  readonly matchEnd: number
}

/** Why nothing is known of a file's text; "gone" is no file any more. */
export type Unsearched = "binary" | "tooLarge" | "unreadable" | "gone"
