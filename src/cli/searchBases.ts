/**
 * Prepares the paths of a search. Gitignore rules apply below each path, but a named path is searched even if git ignores it,
 * as in ripgrep.
 */
import * as Effect from "effect/Effect"
import type { Algebra } from "../filesystem/Filesystem.ts"
import * as FsError from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Quit } from "./exit.ts"
import { forEachPath } from "./failure.ts"

const kinds = ["file", "directory", "symlink", "other"] as const

const escapeGlob = (name: string): string => name.replace(/[\\*?[\]{}()!+@|^]/g, String.raw`\$&`)

/**
 * Tests whether a search of the path applies gitignore rules; it does not if they ignore the path itself or a directory above
 * it.
 */
export const appliesGitignore = (fs: Algebra, given: string): Effect.Effect<boolean> => {
  const path = FsPath.parse(given)
  if (typeof path !== "string" || path === FsPath.root) return Effect.succeed(true)
  const ownPattern = `/${escapeGlob(FsPath.name(path))}`
  return fs.glob(ownPattern, { path: FsPath.parent(path), kinds, gitignore: true, maxMatches: 1 }).pipe(
    Effect.map(({ matches }) => matches.length > 0),
    // The search itself reports what is wrong with the path.
    Effect.orElseSucceed(() => true)
  )
}

export interface SearchBase {
  readonly path: FsPath.FsPath
  readonly isDirectory: boolean
  readonly gitignore: boolean
}

export interface SearchBases {
  /** The bases in the order of their matches. */
  readonly bases: ReadonlyArray<SearchBase>
  /** True if one base lies in another, so that matches are not in path order. */
  readonly isNested: boolean
  /** The first path that cannot be searched; it has been reported. */
  readonly failed: Quit | undefined
}

const keyOf = ({ isDirectory, path }: SearchBase): string => (path === FsPath.root ? "" : isDirectory ? `${path}/` : path)

const covers = (self: SearchBase, that: SearchBase): boolean =>
  self !== that && FsPath.isWithin(self.path, that.path) && (that.gitignore || !self.gitignore)

/** Returns the paths that can be searched, without duplicates, and reports the others. */
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
