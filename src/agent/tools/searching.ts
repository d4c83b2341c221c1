import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Entry from "../../model/Entry.ts"
import type { Kind } from "../../model/Entry.ts"
import { type Call, optional, type ToolFailure, ToolProgress } from "../definition.ts"
import { countFitting } from "../text/fit.ts"
import { formatCount as plural, formatSize as size, listed } from "../../model/words.ts"
import { type MountPoint, withoutMount } from "../toolPath.ts"

interface ListedEntry {
  readonly name: string
  readonly kind: Kind
  readonly sizeBytes?: number | undefined
  readonly addressable?: boolean | undefined
}

const notesOf = ({ kind, sizeBytes }: ListedEntry): ReadonlyArray<string> =>
  kind === "directory"
    ? []
    : kind === "file"
      ? sizeBytes === undefined
        ? []
        : [size(sizeBytes)]
      : [kind === "symlink" ? "link" : "neither file nor directory"]

export const formatEntry = (entry: ListedEntry): string => {
  const notes = [...notesOf(entry), ...(entry.addressable === false ? ["escaped: no path can name it"] : [])]
  return `${entry.name}${entry.kind === "directory" ? "/" : ""}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`
}

interface Counts {
  readonly files: number
  readonly directories: number
  readonly others: number
}

export const countsOf = (entries: ReadonlyArray<{ readonly kind: Kind }>): Counts => {
  const count = (kind: Kind): number => entries.reduce((sum, entry) => (entry.kind === kind ? sum + 1 : sum), 0)
  const files = count("file")
  const directories = count("directory")
  return { files, directories, others: entries.length - files - directories }
}

export const formatCounts = ({ directories, files, others }: Counts): string =>
  [
    plural(directories, "directory", "directories"),
    plural(files, "file"),
    ...(others > 0 ? [plural(others, "other")] : [])
  ].join(", ")

export const parameters = {
  path: optional(Schema.String, "Directory to search. Default: the root"),
  after: optional(Schema.String, "Where to continue: the value in the last line of the previous result"),
  include_ignored: optional(Schema.Boolean, "Include what .gitignore names, and .git")
}

export const maxMatches = (maximum: number, unit: string) =>
  optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)), `The largest number of ${unit}. Default ${maximum}`)

export const Skipped = Schema.Struct({
  ignored: Schema.Int,
  binary: Schema.Int,
  too_large: Schema.Int,
  unreadable: Schema.Int,
  unreadable_paths: Schema.Array(Schema.String)
})

export const skippedOf = ({ binary, ignored, tooLarge, unreadable, unreadablePaths }: Entry.Skipped): typeof Skipped.Type => ({
  ignored,
  binary,
  too_large: tooLarge,
  unreadable,
  unreadable_paths: unreadablePaths
})

/** Trims a pattern, because models add blanks around patterns, and removes a mount point at its beginning. */
export const globOf = (pattern: string, mountPoint: MountPoint): string => withoutMount(pattern.trim(), mountPoint)

const maxNamedPaths = 3

/** Lists the first paths, and says how many more of `count` there are. */
export const listSome = (paths: ReadonlyArray<string>, max: number, count = paths.length): string => {
  const shown = paths.slice(0, max)
  return listed(count > shown.length ? [...shown, `${count - shown.length} more`] : shown)
}

const namePaths = (paths: ReadonlyArray<string>, count: number): string =>
  paths.length === 0 ? "" : ` (${listSome(paths, maxNamedPaths, count)})`

export const describeSkipped = ({ binary, ignored, tooLarge, unreadable, unreadablePaths }: Entry.Skipped): string => {
  const reasons = [
    ignored > 0 ? `${ignored} ignored` : "",
    binary > 0 ? `${binary} binary` : "",
    tooLarge > 0 ? `${tooLarge} too large` : "",
    unreadable > 0 ? `${unreadable} unreadable${namePaths(unreadablePaths, unreadable)}` : ""
  ].filter((reason) => reason !== "")
  return reasons.length === 0 ? "" : `skipped: ${reasons.join(", ")}`
}

const continueHint = (next: string): string => `continue with after=${JSON.stringify(next)}`

export const footer = (found: string, skipped: Entry.Skipped, next: string | undefined): string => {
  const skippedText = describeSkipped(skipped)
  return [next === undefined ? found : `${found}, and more`, skippedText, next === undefined ? "" : continueHint(next)]
    .filter((part) => part !== "")
    .join("; ")
}

export const ignoredHint = ({ ignored }: Entry.Skipped): string =>
  ignored > 0 ? "; include_ignored=true searches ignored files too" : ""

interface Found {
  readonly matches: ReadonlyArray<unknown>
  readonly truncated: boolean
  readonly next?: string | undefined
}

interface Pages<A extends Found> {
  readonly page: (maxMatches: number) => Effect.Effect<A, ToolFailure>
  /** Returns the value of `after` that continues after a match. */
  readonly nextOf: (match: A["matches"][number]) => string
  readonly sent: (found: A) => string
}

/**
 * Searches for a page. If the page exceeds the budget, searches again with a smaller limit, so that the reported counts
 * describe the shorter page.
 */
export const searchFitting = Effect.fnUntraced(function* <A extends Found>(
  limit: number,
  { nextOf, page, sent }: Pages<A>,
  { settings }: Call
): Effect.fn.Return<A, ToolFailure> {
  const cut = (found: A, count: number): A =>
    count === found.matches.length
      ? found
      : { ...found, matches: found.matches.slice(0, count), truncated: true, next: nextOf(found.matches[count - 1]) }
  const fitting = (found: A): number => countFitting(found.matches.length, (count) => sent(cut(found, count)), settings)
  const whole = yield* page(limit)
  const count = fitting(whole)
  if (count === whole.matches.length) return whole
  const shorter = yield* page(count)
  return cut(shorter, fitting(shorter))
})

/** Reports progress once a second. The amount of work is unknown, so only the elapsed time is reported. */
export const withProgress = <A, E, R>(search: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const report = yield* ToolProgress
    if (report === undefined) return yield* search
    const started = yield* Clock.currentTimeMillis
    const reportElapsed = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const seconds = Math.round((now - started) / 1000)
      return report({ done: seconds, message: `searching for ${plural(seconds, "second")}` })
    })
    const progressFiber = yield* Effect.forkChild(Effect.repeat(Effect.delay(reportElapsed, "1 second"), Schedule.forever))
    return yield* Effect.ensuring(search, Fiber.interrupt(progressFiber))
  })
