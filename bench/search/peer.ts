/** A peer is one way of answering a question, and is measured. */

export interface Outcome {
  /** Absent if the answer is in a file that is not read yet. */
  readonly results?: number
  /** Milliseconds until the first result of a stream. */
  readonly firstMs?: number
}

export interface Peer {
  /** The name in targets. Our own begin with "ours". */
  readonly id: string
  readonly name: string
  readonly run: () => Promise<Outcome>
  /** The answer in a form that all peers share: a path from the root, or `path:number` for lines. */
  readonly answer: () => Promise<ReadonlyArray<string>>
  /** Results that it omits by design, which are no difference. */
  readonly lacks?: { readonly what: string; readonly is: (result: string) => boolean }
}

/** A question for a search of contents. */
export interface Question {
  readonly pattern: string
  readonly literal?: boolean
  readonly ignoreCase?: boolean
}

export const isOurs = ({ id }: Pick<Peer, "id">): boolean => id.startsWith("ours")

export const shown = ({ ignoreCase, literal, pattern }: Question): string =>
  `\`${pattern.replaceAll("|", "\\|")}\`${literal === true ? ", literal" : ""}${ignoreCase === true ? ", ignoring case" : ""}`

/** Returns the question as a JavaScript regular expression for one line at a time. */
export const regExp = ({ ignoreCase, literal, pattern }: Question): RegExp =>
  new RegExp(literal === true ? pattern.replace(/[^\w]/g, "\\$&") : pattern, ignoreCase === true ? "i" : "")
