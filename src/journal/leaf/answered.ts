/**
 * Remembers the ids of answered requests for 4,096 positions. A request that repeats a remembered id is a duplicate and is ignored. A
 * request that repeats an older id is a new request. The rule depends on positions only, so a later leaf decides the same.
 */
import { isTerminal } from "../FileSystemEntry.ts"

/** The largest distance in positions between an answer and a duplicate request. */
export const window = 4_096

export interface Answered {
  readonly move: (recorded: { readonly position: number; readonly entry: unknown }) => void
  readonly expect: (correlationId: string, position: number) => void
  /** Tests whether the id has an answer at a later position, or within the window before the current one. */
  readonly has: (correlationId: string) => boolean
  readonly find: (correlationId: string) => number | undefined
  readonly add: (correlationId: string) => void
  readonly size: () => number
}

export const make = (): Answered => {
  const ahead = new Map<string, number>()
  /** The answered ids in the order of their answers. An answer that is about to be appended has the position Infinity. */
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
