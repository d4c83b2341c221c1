/**
 * Counts the matching lines of each file, with a search page by page that keeps only the counts. A file is reported when it is
 * counted completely, so the search continues at the end of a file.
 */
import * as Effect from "effect/Effect"
import type { GrepResult, Skipped } from "../../model/Entry.ts"
import type { GrepError } from "../../model/FsError.ts"

export interface FileCount {
  readonly path: string
  readonly count: number
}

export interface FileCounts {
  readonly files: ReadonlyArray<FileCount>
  readonly filesSearched: number
  readonly skipped: Skipped
  readonly next: string | undefined
}

const beyondLastLine = 2_000_000_000

const endOf = (path: string): string => `${beyondLastLine}:${path}`

const noneSkipped: Skipped = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }

const maxUnreadablePaths = 100

const sum = (a: Skipped, b: Skipped): Skipped => ({
  ignored: a.ignored + b.ignored,
  binary: a.binary + b.binary,
  tooLarge: a.tooLarge + b.tooLarge,
  unreadable: a.unreadable + b.unreadable,
  unreadablePaths: [...a.unreadablePaths, ...b.unreadablePaths].slice(0, maxUnreadablePaths)
})

const pageSize = 20_000

const matchesIn = (files: ReadonlyArray<FileCount>): number => files.reduce((sum, { count }) => sum + count, 0)

const addCounts = (before: ReadonlyArray<FileCount>, { matches }: GrepResult): ReadonlyArray<FileCount> => {
  const counts = new Map(before.map(({ count, path }) => [path, count]))
  for (const { path } of matches) counts.set(path, (counts.get(path) ?? 0) + 1)
  return [...counts].map(([path, count]) => ({ path, count }))
}

/** Adds a page. The file in which the previous page ended is searched again, and counts once. */
const addPage = (before: FileCounts, page: GrepResult, isFirst: boolean): FileCounts => ({
  files: addCounts(before.files, page),
  filesSearched: before.filesSearched + page.filesSearched - (isFirst || page.filesSearched === 0 ? 0 : 1),
  skipped: sum(before.skipped, page.skipped),
  next: undefined
})

/** Cuts the result to `count` files, as if the search had that limit. */
const cutToCount = (found: FileCounts, count: number): FileCounts =>
  count === found.files.length
    ? found
    : { ...found, files: found.files.slice(0, count), next: endOf(found.files[count - 1]!.path) }

/**
 * Counts as many files as were requested and fit. If that cuts the result, the last page is searched again up to the cut. The
 * numbers of searched and skipped files therefore belong to the answer.
 */
export const countByFile = Effect.fnUntraced(function* (
  page: (after: string | undefined, maxMatches: number) => Effect.Effect<GrepResult, GrepError>,
  start: string | undefined,
  maxFiles: number,
  fits: (count: number, found: (count: number) => FileCounts) => number
): Effect.fn.Return<FileCounts, GrepError> {
  const pages: Array<{ readonly before: FileCounts; readonly after: string | undefined }> = []
  let found: FileCounts = { files: [], filesSearched: 0, skipped: noneSkipped, next: undefined }
  let after = start
  do {
    pages.push({ before: found, after })
    const next: GrepResult = yield* page(after, pageSize)
    found = addPage(found, next, pages.length === 1)
    after = next.next
    // The last file may have more matches, so read until there is one more file than requested.
  } while (after !== undefined && found.files.length <= maxFiles)
  const count = fits(Math.min(maxFiles, found.files.length), (count) => cutToCount(found, count))
  if (count === found.files.length) return found
  const cutCounts = cutToCount(found, count)
  const total = matchesIn(cutCounts.files)
  const last = pages.findLast(({ before }) => matchesIn(before.files) < total) ?? pages[0]!
  const again = yield* page(last.after, total - matchesIn(last.before.files))
  return { ...addPage(last.before, again, last === pages[0]), next: cutCounts.next }
})
