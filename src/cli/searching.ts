/**
 * Prepares the paths of a search. Gitignore rules apply below each path, but a named path is searched even if git ignores it,
 * as in ripgrep.
 */
import * as Effect from "effect/Effect"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { Skipped } from "../model/Entry.ts"
import * as FsError from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { writeRemark } from "./answer.ts"
import { Quit } from "./exit.ts"
import { forEachPath } from "./failure.ts"
import * as humanise from "./humanise.ts"
import { errorStyle } from "./look.ts"
import { Screen } from "./screen.ts"

// Reports, on standard error, the files that a search skipped. Without this report, "nothing found" would be misleading.

interface SkippedFiles {
  readonly onSkip: (path: string, why: "ignored" | "binary" | "tooLarge" | "unreadable") => void
  readonly add: (skipped: Skipped) => void
  readonly counts: { ignored: number; binary: number; tooLarge: number; unreadable: number }
  readonly unreadablePaths: Array<string>
}

const maxKeptPaths = 100

export const makeCollector = (): SkippedFiles => {
  const counts = { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0 }
  const unreadablePaths: Array<string> = []
  return {
    counts,
    unreadablePaths,
    onSkip: (path, why) => {
      counts[why]++
      if (why === "unreadable" && unreadablePaths.length < maxKeptPaths) unreadablePaths.push(path)
    },
    add: (skipped) => {
      for (const why of reasons) counts[why] += skipped[why]
      unreadablePaths.push(...skipped.unreadablePaths.slice(0, maxKeptPaths - unreadablePaths.length))
    }
  }
}

const reasonLabels = {
  ignored: "ignored (--no-ignore includes them)",
  binary: "binary",
  tooLarge: "too large",
  unreadable: "unreadable"
} as const

const reasons = Object.keys(reasonLabels) as ReadonlyArray<keyof typeof reasonLabels>

const maxShownPaths = 3

export const report = Effect.fnUntraced(function* ({ counts, unreadablePaths }: SkippedFiles) {
  const { name, yellow } = errorStyle(yield* Screen)
  const parts = reasons.filter((why) => counts[why] > 0).map((why) => `${humanise.whole(counts[why])} ${reasonLabels[why]}`)
  if (parts.length === 0) return
  const paths = unreadablePaths.slice(0, maxShownPaths).map(name)
  const rest = counts.unreadable > paths.length ? ", …" : ""
  const list = paths.length === 0 ? "" : ` (${paths.join(", ")}${rest})`
  yield* writeRemark(`${yellow("skipped:")} ${parts.join(", ")}${list}`, { skipped: { ...counts, unreadablePaths } })
})

const kinds = ["file", "directory", "symlink", "other"] as const

const escapeGlob = (name: string): string => name.replace(/[\\*?[\]{}()!+@|^]/g, String.raw`\$&`)

/**
 * Tests whether a search of the path applies gitignore rules. A search ignores the rules if they exclude the path itself or a
 * directory above it.
 */
export const appliesGitignore = (fs: Algebra, given: string): Effect.Effect<boolean> => {
  const path = FsPath.parse(given)
  if (typeof path !== "string" || path === FsPath.root) return Effect.succeed(true)
  const ownPattern = `/${escapeGlob(FsPath.name(path))}`
  return fs.glob(ownPattern, { path: FsPath.parent(path), kinds, gitignore: true, maxMatches: 1 }).pipe(
    Effect.map(({ matches }) => matches.length > 0),
    // If the test fails, the search will report the error of the path.
    Effect.orElseSucceed(() => true)
  )
}

export interface SearchBase {
  readonly path: FsPath.FsPath
  readonly isDirectory: boolean
  readonly gitignore: boolean
}

interface SearchBases {
  /** The bases, sorted so that their matches are in path order. */
  readonly bases: ReadonlyArray<SearchBase>
  /** True if one base lies in another, so that matches are not in path order. */
  readonly isNested: boolean
  /**
   * The failure of the first path that cannot be searched. The failure has been reported already. `undefined` if all paths can
   * be searched.
   */
  readonly failed: Quit | undefined
}

const keyOf = ({ isDirectory, path }: SearchBase): string => (path === FsPath.root ? "" : isDirectory ? `${path}/` : path)

const covers = (self: SearchBase, that: SearchBase): boolean =>
  self !== that && FsPath.isWithin(self.path, that.path) && (that.gitignore || !self.gitignore)

/** Returns the paths that can be searched, without duplicates, and reports all other paths. */
export const searchBases = Effect.fnUntraced(function* (fs: Algebra, paths: ReadonlyArray<string>, gitignore: boolean) {
  const found = new Map<FsPath.FsPath, SearchBase>()
  const statAll = forEachPath(paths, (given) =>
    Effect.gen(function* () {
      const { isDirectory, path } = yield* Effect.mapError(fs.stat(given), (error) =>
        FsError.promote(FsError.toFault(error), "grep", error.path)
      )
      found.set(path, { path, isDirectory, gitignore: gitignore && (yield* appliesGitignore(fs, path)) })
    })
  )
  const failed = yield* Effect.matchEffect(statAll, {
    onSuccess: () => Effect.succeed(undefined),
    onFailure: (error) => (error instanceof Quit ? Effect.succeed(error) : Effect.fail(error))
  })
  const all = [...found.values()]
  const bases = all
    .filter((base) => !all.some((other) => covers(other, base)))
    .sort((a, b) => FsPath.compare(keyOf(a), keyOf(b)))
  const isNested = bases.some((base) => bases.some((other) => other !== base && FsPath.isWithin(other.path, base.path)))
  const answer: SearchBases = { bases, isNested, failed }
  return answer
})
