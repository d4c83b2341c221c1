/**
 * Ids of file requests, derived from the position of the spell's invocation. So a repeated request has the same id, and an answer
 * identifies its spell.
 */

/** The step of a spell. `ask` is the only step, except for an edit without FileEdit, which has a `read` and a `write`. */
export type Step = "ask" | "read" | "write"

export interface Derived {
  /** The position of the invocation in the journal of spells. */
  readonly position: number
  readonly step: Step
  readonly correlationId: string
}

export interface Ids {
  readonly idOf: (derived: Derived) => string
  /** Returns the parts of an id; `undefined` for an id that was made elsewhere. */
  readonly parse: (id: string) => Derived | undefined
}

const derivedPattern = /^([1-9]\d*)\/(ask|read|write)\/([^]*)$/

export const make = (name: string): Ids => ({
  idOf: ({ correlationId, position, step }) => `${name}/${position}/${step}/${correlationId}`,
  parse: (id) => {
    const match = id.startsWith(`${name}/`) ? derivedPattern.exec(id.slice(name.length + 1)) : null
    return match === null ? undefined : { position: Number(match[1]), step: match[2] as Step, correlationId: match[3]! }
  }
})
