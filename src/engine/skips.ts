/** What a search looked past, counted so far as its answer reaches. */
import type { Skipped } from "../model/Entry.ts"
import { compare, type FsPath } from "../model/FsPath.ts"
import type { Why } from "./options.ts"

export interface Skips {
  readonly add: (path: FsPath, why: Why) => void
  /** Up to and with this path where the answer was cut there; where it was cut before the first, nothing. */
  readonly upTo: (last: string | undefined, isCut: boolean) => Skipped
}

const named = 100

export const make = (onSkip: ((path: string, why: Why) => void) | undefined): Skips => {
  const all: Array<{ readonly path: FsPath; readonly why: Why }> = []
  return {
    add: (path, why) => {
      all.push({ path, why })
      onSkip?.(path, why)
    },
    upTo: (last, isCut) => {
      const reached = isCut ? all.filter(({ path }) => last !== undefined && compare(path, last) <= 0) : all
      const count = (why: Why): number => reached.reduce((sum, skip) => (skip.why === why ? sum + 1 : sum), 0)
      const unreadable = reached.filter(({ why }) => why === "unreadable").map(({ path }) => path)
      return {
        ignored: count("ignored"),
        binary: count("binary"),
        tooLarge: count("tooLarge"),
        unreadable: unreadable.length,
        unreadablePaths: unreadable.sort(compare).slice(0, named)
      }
    }
  }
}
