/**
 * The ids of the requests that were answered within the last 4,096 positions. A request with such an id is a duplicate, which
 * a leaf ignores. A request with an older id is a new request. The rule depends on positions only, so all leaves decide in the
 * same way.
 */
import { isTerminal } from "../FileSystemEntry.ts"

export const duplicateWindow = 4_096

export interface Answered {
  readonly advanceTo: (recorded: { readonly position: number; readonly entry: unknown }) => void
  readonly expect: (correlationId: string, position: number) => void
  /** Tests whether the id has an answer at a later position, or within the 4,096 positions before the current one. */
  readonly has: (correlationId: string) => boolean
  readonly find: (correlationId: string) => number | undefined
  readonly add: (correlationId: string) => void
  readonly size: () => number
}

export const make = (): Answered => {
  const expectedAnswers = new Map<string, number>()
  /**
   * The positions of the answers by correlation id, in order. Infinity is the position of an answer that is not appended yet.
   */
  const recentAnswers = new Map<string, number>()
  let currentPosition = 0

  const remember = (correlationId: string, position: number): void => {
    recentAnswers.delete(correlationId)
    recentAnswers.set(correlationId, position)
  }
  const forgetOld = (): void => {
    for (const [correlationId, position] of recentAnswers) {
      if (position >= currentPosition - duplicateWindow) return
      recentAnswers.delete(correlationId)
    }
  }
  const find = (correlationId: string): number | undefined => {
    const position = recentAnswers.get(correlationId)
    return position !== undefined && currentPosition - position <= duplicateWindow ? position : undefined
  }
  return {
    advanceTo: ({ entry, position }) => {
      currentPosition = position
      if (isTerminal(entry)) {
        if (expectedAnswers.get(entry.correlationId) === position) expectedAnswers.delete(entry.correlationId)
        remember(entry.correlationId, position)
      }
      forgetOld()
    },
    expect: (correlationId, position) => void expectedAnswers.set(correlationId, position),
    has: (correlationId) => expectedAnswers.has(correlationId) || find(correlationId) !== undefined,
    find,
    add: (correlationId) => {
      if (recentAnswers.get(correlationId) !== currentPosition) remember(correlationId, Number.POSITIVE_INFINITY)
    },
    size: () => expectedAnswers.size + recentAnswers.size
  }
}
