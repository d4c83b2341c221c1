/**
 * The ids of file entries that are asked for a spell follow from where the invocation stands, so that asking again is asking the same, and
 * the answer says which spell it is for.
 */

/** `ask` where one entry is all there is to it; an edit without FileEdit is a `read` and a `write`. */
export type Step = "ask" | "read" | "write"

export interface Derived {
  /** Of the invocation, in the journal of spells. */
  readonly position: number
  readonly step: Step
  readonly correlationId: string
}

export interface Ids {
  readonly of: (derived: Derived) => string
  /** `undefined` for the ids of others. */
  readonly parse: (id: string) => Derived | undefined
}

const rest = /^([1-9]\d*)\/(ask|read|write)\/([^]*)$/

export const make = (name: string): Ids => ({
  of: ({ correlationId, position, step }) => `${name}/${position}/${step}/${correlationId}`,
  parse: (id) => {
    const match = id.startsWith(`${name}/`) ? rest.exec(id.slice(name.length + 1)) : null
    return match === null ? undefined : { position: Number(match[1]), step: match[2] as Step, correlationId: match[3]! }
  }
})
