/** Counts and reports the entries that a search skipped, from the start of a page to the last result of the page. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Skipped } from "../model/Entry.ts"
import type * as FsPath from "../model/FsPath.ts"
import { compare } from "../model/FsPath.ts"
import type { Why } from "./options.ts"

/** An entry that a walk skipped. `key` is its sort key in walk order. */
export class SkippedEntry {
  readonly path: FsPath.FsPath
  readonly why: Why
  readonly key: string

  constructor(path: FsPath.FsPath, why: Why, key: string) {
    this.path = path
    this.why = why
    this.key = key
  }
}

export interface Skip {
  (path: FsPath.FsPath, why: Why, key: string): void
}

interface Skips {
  readonly add: Skip
  /**
   * Counts all skipped entries, or, if the result is truncated, only the entries up to the key `last`. If a truncated result
   * has no items, the counts are 0.
   */
  readonly countUpTo: (last: string | undefined, isCut: boolean) => Skipped
}

const maxNamedPaths = 100

/**
 * Returns a function that reports the skipped entries after `from`. The previous page has already reported earlier
 * entries.
 */
export const makeReporter = (
  onSkip: ((path: string, why: Why) => void) | undefined,
  from: string | undefined,
  fold: (key: string) => string
): Skip => {
  const first = from === undefined ? undefined : fold(from)
  return (path, why, key) => {
    if (first === undefined || compare(fold(key), first) > 0) onSkip?.(path, why)
  }
}

export const make = (
  onSkip: ((path: string, why: Why) => void) | undefined,
  from: string | undefined,
  fold: (key: string) => string
): Skips => {
  const all: Array<{ readonly path: FsPath.FsPath; readonly why: Why; readonly key: string }> = []
  const reportSkip = makeReporter(onSkip, from, fold)
  const first = from === undefined ? undefined : fold(from)
  return {
    add: (path, why, key) => {
      reportSkip(path, why, key)
      const folded = fold(key)
      if (first === undefined || compare(folded, first) > 0) all.push({ path, why, key: folded })
    },
    countUpTo: (last, isCut) => {
      const end = last === undefined ? undefined : fold(last)
      const countedSkips = isCut ? all.filter(({ key }) => end !== undefined && compare(key, end) <= 0) : all
      const count = (why: Why): number => countedSkips.reduce((sum, skip) => (skip.why === why ? sum + 1 : sum), 0)
      const unreadable = countedSkips.filter(({ why }) => why === "unreadable").map(({ path }) => path)
      return {
        ignored: count("ignored"),
        binary: count("binary"),
        tooLarge: count("tooLarge"),
        unreadable: unreadable.length,
        unreadablePaths: unreadable.sort(compare).slice(0, maxNamedPaths)
      }
    }
  }
}

const stopSignal: unique symbol = Symbol("fs-algebra/enough")

export const runUntilFull = <A, E, R>(found: Stream.Stream<A, E, R>, take: (item: A) => boolean): Effect.Effect<void, E, R> =>
  Effect.catch(
    Stream.runForEachArray(found, (items): Effect.Effect<void, typeof stopSignal> =>
      items.every(take) ? Effect.void : Effect.fail<typeof stopSignal>(stopSignal)
    ),
    (stop): Effect.Effect<void, E> => (stop === stopSignal ? Effect.void : Effect.fail(stop as E))
  )
