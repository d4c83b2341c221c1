/** What is measured: one way of answering a question. */

export interface Outcome {
  /** Absent where the answer went to a file that nobody has read yet. */
  readonly results?: number
  /** Milliseconds until the first result, of a stream. */
  readonly firstMs?: number
}

export interface Peer {
  /** What targets call it. Ours begin with "ours". */
  readonly id: string
  readonly name: string
  readonly run: () => Promise<Outcome>
  /** The answer in words that all peers share: a path from the root, and for lines `path:number`. */
  readonly answer: () => Promise<ReadonlyArray<string>>
  /** What it leaves out by design, which is then no difference. */
  readonly lacks?: { readonly what: string; readonly is: (result: string) => boolean }
}

/** What a search of contents is asked. */
export interface Question {
  readonly pattern: string
  readonly literal?: boolean
  readonly ignoreCase?: boolean
}

export const isOurs = ({ id }: Pick<Peer, "id">): boolean => id.startsWith("ours")

export const shown = ({ ignoreCase, literal, pattern }: Question): string =>
  `\`${pattern.replaceAll("|", "\\|")}\`${literal === true ? ", literal" : ""}${ignoreCase === true ? ", ignoring case" : ""}`

/** The question as JavaScript's own regular expression, one line at a time. */
export const regExp = ({ ignoreCase, literal, pattern }: Question): RegExp =>
  new RegExp(literal === true ? pattern.replace(/[^\w]/g, "\\$&") : pattern, ignoreCase === true ? "i" : "")
