/**
 * The ids of requests that have an answer, as far back as `window` positions. A request that repeats such an id is the same request once
 * more and is ignored; one that repeats an older id is another request. The rule depends on positions alone, so that a leaf which starts
 * later decides as the one before it did.
 */
import { isTerminal } from "../FileSystemEntry.ts"

/** Positions from an answer to a request with its id, up to which they are one. */
export const window = 4_096

export interface Answered {
  /** Moves on to an entry, and notes an answer. */
  readonly move: (recorded: { readonly position: number; readonly entry: unknown }) => void
  /** Notes an answer that stands further on. */
  readonly expect: (correlationId: string, position: number) => void
  /** Whether the id has an answer further on, or at most `window` positions back. */
  readonly has: (correlationId: string) => boolean
  /** The position of that answer behind the entry. */
  readonly find: (correlationId: string) => number | undefined
  /** Notes an answer that is about to be appended. */
  readonly add: (correlationId: string) => void
  /** How many ids are remembered. */
  readonly size: () => number
}

export const make = (): Answered => {
  const ahead = new Map<string, number>()
  /** In the order of their answers; those about to be appended have no number yet. */
  const behind = new Map<string, number>()
  let now = 0

  const note = (correlationId: string, position: number): void => {
    behind.delete(correlationId)
    behind.set(correlationId, position)
  }
  const forget = (): void => {
    for (const [correlationId, position] of behind) {
      if (position >= now - window) return
      behind.delete(correlationId)
    }
  }
  const find = (correlationId: string): number | undefined => {
    const position = behind.get(correlationId)
    return position !== undefined && now - position <= window ? position : undefined
  }
  return {
    move: ({ entry, position }) => {
      now = position
      if (isTerminal(entry)) {
        if (ahead.get(entry.correlationId) === position) ahead.delete(entry.correlationId)
        note(entry.correlationId, position)
      }
      forget()
    },
    expect: (correlationId, position) => void ahead.set(correlationId, position),
    has: (correlationId) => ahead.has(correlationId) || find(correlationId) !== undefined,
    find,
    add: (correlationId) => {
      if (behind.get(correlationId) !== now) note(correlationId, Number.POSITIVE_INFINITY)
    },
    size: () => ahead.size + behind.size
  }
}
